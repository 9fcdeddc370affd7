// Trees laid out for one row at a time, and the kernels that walk them.
#include <string>

#include "core/kernels.hpp"
#include "core/row_trees.hpp"
#include "core/worker.hpp"
#include "tests/check.hpp"
#include "tests/laid_rows.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

constexpr Shape kPlain{.special = false};

template <class In, class Real>
void check_walks(const Trees<Real>& trees, uint64_t seed) {
    const Forest<Real> forest = trees.forest();
    const RowTrees layout(forest);
    CHECK(layout.usable);
    const std::vector<In> rows = hostile_rows<In>(trees, seed, 60);
    Random random(seed);
    const auto n_rows = static_cast<int32_t>(rows.size() / trees.n_features);
    for (std::string_view isa : available_isas())
        for (int32_t at = 0; at < n_rows; ++at) {
            const int32_t n = 1 + at % kWalksAtOnce, together = 1 + at % kRowsWalked;
            std::vector<int32_t> tree(n);
            for (int32_t& t : tree) t = random.below(trees.n_trees());
            // Rows by themselves, in memory that ends with them; the last row may come twice.
            std::vector<std::vector<In>> some;
            std::vector<const In*> pointers;
            for (int32_t i = 0; i < together; ++i) {
                const In* const row = rows.data() + std::min(at + i, n_rows - 1) * trees.n_features;
                some.emplace_back(row, row + trees.n_features);
            }
            std::vector<int32_t> leaf(together * kWalksAtOnce, -1), expected = leaf;
            for (int32_t i = 0; i < together; ++i) {
                pointers.push_back(some[i].data());
                for (int32_t k = 0; k < n; ++k)
                    expected[i * kWalksAtOnce + k] =
                        static_cast<int32_t>(leaf_of(trees, tree[k], pointers[i]));
            }
            row_kernels(isa).walk<In>()(layout, tree.data(), n, pointers.data(), together,
                                        leaf.data());
            CHECK_ALL_EQUAL(leaf, expected, std::string(isa));
        }
}

// Splits that send all numbers left and missing values right do not fit, so none is left.
template <class Real>
void send_missing_left_at_infinity(Trees<Real>& trees) {
    for (size_t i = 0; i < trees.threshold.size(); ++i)
        if (trees.threshold[i] == std::numeric_limits<Real>::infinity())
            trees.flags[i] |= kDefaultLeft;
}

template <class Real>
Trees<Real> plain_trees(uint64_t seed) {
    Trees<Real> trees = trees_of_all_forms<Real>(seed, 1 + 4 * (seed % 3), kPlain, 9);
    Random random(seed);
    grow(trees, random, {.leaf_stop = 0.02, .special = false}, 11);
    trees.end_tree();
    make_thresholds_odd(trees, seed);
    send_missing_left_at_infinity(trees);
    return trees;
}

TEST(a_row_reaches_the_leaves_of_its_walks) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
        check_walks<float>(plain_trees<float>(seed), seed);
        check_walks<float>(plain_trees<double>(seed), seed);
        check_walks<double>(plain_trees<double>(seed), seed);
    }
}

TEST(a_row_is_compared_with_whole_trees) {
    for (const int64_t n_features : {1, 14, 32, 33, 64, 65})
        for (int32_t depth = 2; depth <= RowTrees::kFlatLevels + 1; ++depth) {
            Trees<float> trees;
            trees.n_features = n_features;
            Random random(n_features + depth);
            trees.add_leaf(0.5);
            trees.end_tree();
            for (int32_t t = 0; t < 20; ++t) {
                grow(trees, random, {.leaf_stop = t % 2 ? 0.2 : 0.0, .special = false}, depth);
                trees.end_tree();
            }
            make_thresholds_odd(trees, depth);
            send_missing_left_at_infinity(trees);
            const bool fits = n_features <= RowTrees::kMaxFlatFeatures;
            const RowTrees layout(trees.forest());
            CHECK_EQUAL(!layout.flat.empty(), fits && depth <= RowTrees::kFlatLevels);
            check_walks<float>(trees, depth);
        }
}

TEST(a_row_is_compared_with_whole_oblivious_trees) {
    for (const int64_t n_features : {1, 14, 32, 33, 64, 65, 300})
        for (int32_t depth = 0; depth <= RowTrees::kObliviousLevels + 1; ++depth) {
            Trees<float> trees;
            trees.n_features = n_features;
            Random random(n_features + depth);
            for (int32_t t = 0; t < 20; ++t)
                add_oblivious(trees, random, t == 0 ? depth : random.below(depth + 1), kPlain);
            const RowTrees layout(trees.forest());
            CHECK_EQUAL(!layout.oblivious.empty(), depth <= RowTrees::kObliviousLevels);
            check_walks<float>(trees, depth);
        }
}

TEST(forests_that_do_not_fit_are_not_laid_out) {
    const auto usable = [](const Trees<float>& trees) { return RowTrees(trees.forest()).usable; };
    Trees<float> trees;
    trees.add_stump(0, 0.5f, 0, 1, 2);
    CHECK(usable(trees));
    for (uint8_t flags : {+kCategorical, +kZeroIsMissing}) {
        Trees<float> special = trees;
        special.add_stump(0, 0.5f, flags, 1, 2);
        CHECK(!usable(special));
    }
    for (bool less_equal : {false, true})
        for (uint8_t flags : {0, +kDefaultLeft}) {
            Trees<float> infinite = trees;
            infinite.rules.less_equal = less_equal;
            infinite.add_stump(0, std::numeric_limits<float>::infinity(), flags, 1, 2);
            CHECK_EQUAL(usable(infinite), !less_equal || flags != 0);
        }
    for (const auto& [n_features, fits] :
         {std::pair(1 << 15, true), std::pair((1 << 15) + 1, false)}) {
        Trees<float> wide;
        wide.n_features = n_features;
        wide.add_stump(n_features - 1, 0.5f, 0, 1, 2);
        CHECK_EQUAL(usable(wide), fits);
        if (fits) check_walks<float>(wide, 1);
    }
    for (const auto& [leaves, fits] : {std::pair(1 << 15, true), std::pair((1 << 15) + 1, false)}) {
        Trees<float> large;
        Random random(3);
        grow_leaves(large, random, kPlain, leaves);
        large.end_tree();
        CHECK_EQUAL(usable(large), fits);
        if (fits) check_walks<float>(large, 2);
    }
}

TEST(a_forest_of_leaves_needs_no_values) {
    Trees<float> trees;
    trees.n_features = 0;
    for (double value : {0.5, -0.25}) {
        trees.add_leaf(value);
        trees.end_tree();
    }
    const RowTrees layout(trees.forest());
    CHECK(layout.usable);
    for (std::string_view isa : available_isas()) {
        const std::vector<int32_t> tree = {1, 0, 1};
        std::vector<int32_t> leaf(3);
        const float* const row = nullptr;
        row_kernels(isa).walk<float>()(layout, tree.data(), 3, &row, 1, leaf.data());
        CHECK_ALL_EQUAL(leaf, tree, std::string(isa));
    }
}

}  // namespace
