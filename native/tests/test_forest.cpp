// What the validator refuses, each by a forest with one thing wrong, and the walk of one row.
#include <functional>

#include "core/forest.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

// Tree 0: node 0 (children node 1 and leaf 2), node 1 (leaves 0 and 1). Tree 1: a single leaf.
Trees<float> sound() {
    Trees<float> trees;
    trees.n_features = 2;
    trees.add_node(0, 0.5f, 0);
    trees.add_node(1, -0.5f, kCategorical, {3, 40});
    const int32_t a = trees.add_leaf(1), b = trees.add_leaf(2), c = trees.add_leaf(4);
    trees.set_children(0, 1, c);
    trees.set_children(1, a, b);
    trees.end_tree();
    trees.add_leaf(8);
    trees.end_tree();
    return trees;
}

void refused(const char* message, const std::function<void(Trees<float>&)>& change, int line) {
    Trees<float> trees = sound();
    change(trees);
    check::throws([&] { trees.forest(); }, message, __FILE__, line);
}
#define REFUSED(message, change) refused(message, [](Trees<float>& t) { change; }, __LINE__)

TEST(a_sound_forest_is_taken) {
    const Forest<float> forest = sound().forest();
    CHECK_EQUAL(forest.n_trees(), 2);
    CHECK_EQUAL(forest.n_features(), 2);
    CHECK_EQUAL(forest.leaves_of(0), 3);
    CHECK_EQUAL(forest.leaves_of(1), 1);
    CHECK_EQUAL(forest.root(1), ~3);
    CHECK_EQUAL(forest.node(1).feature(), 1);
    CHECK_EQUAL(forest.node(1).flags(), static_cast<uint32_t>(kCategorical));
    CHECK(forest.special());
}

TEST(sizes_are_checked_before_anything_is_read) {
    const Trees<float> trees = sound();
    FlatTrees<float> flat = trees.flat();
    const int32_t feature = 0;
    flat.feature = {&feature, size_t{1} << 28};  // never read
    CHECK_THROWS(Forest<float>(flat, 2, trees.rules), "more than 2^28 nodes or leaves");
    flat = trees.flat();
    const double value = 0;
    flat.leaf_value = {&value, size_t{1} << 28};
    CHECK_THROWS(Forest<float>(flat, 2, trees.rules), "more than 2^28 nodes or leaves");
}

TEST(arrays_that_do_not_fit_each_other) {
    REFUSED("more than 2^27 features", t.n_features = 1 << 27);
    REFUSED("more than 2^27 features", t.n_features = -1);
    REFUSED("one entry more than there are trees", t.node_begin.pop_back());
    REFUSED("one entry more than there are trees", t.leaf_begin.push_back(4));
    REFUSED("one entry more than there are trees", t.node_begin = t.leaf_begin = {0});
    REFUSED("one entry more than there are trees", (t.node_begin.clear(), t.leaf_begin.clear()));
    REFUSED("differ in length", t.threshold.pop_back());
    REFUSED("differ in length", t.left.pop_back());
    REFUSED("differ in length", t.right.push_back(0));
    REFUSED("differ in length", t.flags.pop_back());
    REFUSED("n_nodes + 1 entries", t.category_begin.pop_back());
}

TEST(offsets_that_do_not_cover_their_arrays) {
    REFUSED("node_begin does not start at 0", t.node_begin[0] = 1);
    REFUSED("node_begin falls at 2", (t.node_begin[1] = 3));
    REFUSED("node_begin does not end", t.node_begin[2] = 5);
    REFUSED("leaf_begin does not start at 0", t.leaf_begin[0] = -1);
    REFUSED("leaf_begin falls at 1", t.leaf_begin[1] = -2);
    REFUSED("leaf_begin does not end", t.leaf_begin[2] = 3);
    REFUSED("category_begin does not start at 0", t.category_begin[0] = 1);
    REFUSED("category_begin falls at 2", t.category_begin[1] = 9);
    REFUSED("category_begin does not end", t.category_words.push_back(0));
}

TEST(numbers_that_are_none) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    for (double bad : {0.0, -1.0, kInf, kNaN}) {
        Trees<float> trees = sound();
        trees.rules.divisor = bad;
        CHECK_THROWS(trees.forest(), "base and divisor must be finite");
    }
    REFUSED("base and divisor must be finite", t.rules.base = kInf);
    for (Summation summation :
         {Summation::kFloat32, Summation::kFloat32Late, Summation::kFloat64Late}) {
        Trees<float> trees = sound();
        trees.rules.summation = summation;
        trees.forest();
        trees.rules.divisor = 2;
        CHECK_THROWS(trees.forest(), "are not divided");
    }
    for (double bad : {kInf, -kInf, kNaN, 1e39}) {
        Trees<float> trees = sound();
        trees.leaf_value[3] = bad;
        CHECK_THROWS(trees.forest(), "not finite, or too large for float32");
    }
    REFUSED("tree 0 has a threshold that is NaN",
            t.threshold[1] = std::numeric_limits<float>::quiet_NaN());
    Trees<float> large = sound();
    large.leaf_value[0] = 1e39;
    large.rules.divisor = 1e6;
    large.forest();  // what it adds to a sum fits
}

TEST(shares_come_in_pairs) {
    REFUSED("leaf_other must hold one share per leaf", t.leaf_other = {0.5});
    REFUSED("leaf_other must hold one share per leaf", t.rules.summation = Summation::kShares);
    Trees<float> trees = sound();
    trees.rules.summation = Summation::kShares;
    trees.leaf_other = {0.5, 0.5, 0.5, 0.5};
    trees.forest();
    trees.leaf_other[2] = kInf;
    CHECK_THROWS(trees.forest(), "a leaf value is not finite");
}

TEST(trees_whose_walk_would_leave_them_or_never_end) {
    REFUSED("tree 0 has not one leaf more than it has nodes", t.leaf_begin[1] = 2);
    REFUSED("tree 1 has not one leaf more than it has nodes",
            (t.leaf_value.push_back(0), ++t.leaf_begin[2]));
    REFUSED("tree 0 splits on a feature out of range", t.feature[0] = 2);
    REFUSED("tree 0 splits on a feature out of range", t.feature[1] = -1);
    REFUSED("tree 0 has a child out of range", t.left[0] = 0);   // itself
    REFUSED("tree 0 has a child out of range", t.right[1] = 0);  // its parent
    REFUSED("tree 0 has a child out of range", t.left[0] = 2);
    REFUSED("tree 0 has a child out of range", t.right[0] = ~3);
    REFUSED("tree 0 has a child out of range", t.right[0] = std::numeric_limits<int32_t>::min());
    REFUSED("tree 0 has a child out of range", t.left[1] = std::numeric_limits<int32_t>::max());
    REFUSED("tree 0 has a child with two parents", t.right[0] = 1);
    REFUSED("tree 0 has a child with two parents", t.right[1] = ~0);
}

template <class Real, class In>
void check_walks(uint64_t seed) {
    const Trees<Real> trees = random_trees<Real>(seed);
    const Forest<Real> forest = trees.forest();
    const std::vector<In> rows = random_rows<In>(seed, 200, trees.n_features);
    for (size_t at = 0; at < rows.size(); at += trees.n_features)
        for (int32_t t = 0; t + 4 <= trees.n_trees(); t += 4) {
            int32_t leaf[4];
            for (int32_t k = 0; k < 4; ++k) leaf[k] = forest.root(t + k);
            forest.template walk<4>(leaf, &rows[at]);
            for (int32_t k = 0; k < 4; ++k) CHECK_EQUAL(~leaf[k], leaf_of(trees, t + k, &rows[at]));
        }
}

TEST(several_walks_at_once_reach_the_leaves_of_plain_ones) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
        check_walks<float, float>(seed);
        check_walks<float, double>(seed);
        check_walks<double, float>(seed);
        check_walks<double, double>(seed);
    }
}

TEST(path_lengths_count_nodes) {
    const Forest<float> forest = sound().forest();
    const std::vector<float> rows = {0, 3, 0, 4, 1, 0, 1, 0};  // two rows through both nodes
    CHECK_EQUAL(forest.mean_path_length(0, rows.data(), 4), 1.5);
    CHECK_EQUAL(forest.mean_path_length(1, rows.data(), 4), 0.0);
}

}  // namespace
