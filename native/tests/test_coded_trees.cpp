// One row's codes through whole trees: it reaches the leaves that it walks to.
#include <limits>
#include <string>

#include "core/coded_trees.hpp"
#include "core/worker.hpp"
#include "tests/check.hpp"
#include "tests/laid_rows.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

constexpr Shape kPlain{.special = false};

template <class Real>
CodedTrees coded(const Trees<Real>& trees) {
    const Forest<Real> forest = trees.forest();
    std::vector<int32_t> order = natural_order(trees.n_trees());
    std::reverse(order.begin(), order.end());  // any order will do
    return lay_out_coded<Real>(forest, Questions<Real>(forest), order);
}

template <class In, class Real>
void check_leaves(const Trees<Real>& trees, uint64_t seed) {
    const CodedTrees layout = coded(trees);
    CHECK(layout.usable());
    if (!layout.usable()) return;
    const std::vector<In> rows = hostile_rows<In>(trees, seed, 60);
    const int64_t width = trees.n_features;
    Random random(seed);
    std::vector<int32_t> tree(trees.n_trees() + 3);
    for (int32_t& t : tree) t = random.below(trees.n_trees());
    for (std::string_view isa : available_isas()) {
        const CodedKernels* const kernels = coded_kernels(isa);
        if (!kernels) continue;
        for (size_t at = 0; at < rows.size(); at += width) {
            const std::vector<In> row(rows.begin() + at, rows.begin() + at + width);
            alignas(64) uint8_t line[CodedTrees::kCodes];
            std::vector<int32_t> leaf(tree.size(), -1), expected;
            for (int32_t t : tree)
                expected.push_back(static_cast<int32_t>(leaf_of(trees, t, row.data())));
            kernels->encode<In, TileValue<In, Real>>()(layout, row.data(), line);
            kernels->leaves(layout, line, tree.data(), static_cast<int32_t>(tree.size()),
                            leaf.data());
            CHECK_ALL_EQUAL(leaf, expected, std::string(isa));
        }
    }
}

// Without categories; zeros are missing at some splits.
template <class Real>
Trees<Real> comparing_trees(uint64_t seed) {
    Trees<Real> trees = trees_of_all_forms<Real>(seed, 3 + 5 * (seed % 3), kPlain, 7);
    Random random(seed);
    for (uint8_t& flags : trees.flags)
        if (random.below(3) == 0) flags |= kZeroIsMissing;
    return trees;
}

TEST(codes_lead_to_the_leaves_of_walks) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
        check_leaves<float>(comparing_trees<float>(seed), seed);
        check_leaves<double>(comparing_trees<float>(seed), seed);
        check_leaves<float>(comparing_trees<double>(seed), seed);
        check_leaves<double>(comparing_trees<double>(seed), seed);
    }
}

TEST(all_ways_of_missing_values_have_codes) {
    for (const double cut : {0.5, std::numeric_limits<double>::infinity()})
        for (const bool less_equal : {false, true})
            for (int32_t flags :
                 {0, +kDefaultLeft, +kZeroIsMissing, kDefaultLeft | kZeroIsMissing}) {
                Trees<double> trees;
                trees.n_features = 2;
                trees.rules.less_equal = less_equal;
                for (int32_t f : {0, 1, 0}) {
                    trees.add_stump(f, cut, static_cast<uint8_t>(flags), 1, 2);
                    trees.add_stump(f, -cut, static_cast<uint8_t>(flags), 3, 4);
                }
                check_leaves<double>(trees, 1);
                check_leaves<float>(trees, 2);
            }
}

TEST(trees_of_any_depth_are_followed_to_their_leaves) {
    for (int32_t leaves = 1; leaves <= kMaxMaskedLeaves; ++leaves) {
        Trees<float> trees;
        Random random(leaves);
        add_chain(trees, random, kPlain, leaves);
        check_leaves<float>(trees, leaves);
    }
}

// One feature after the other, with so many cuts each.
Trees<float> columns(int32_t n, int32_t cuts) {
    Trees<float> trees;
    trees.n_features = n;
    for (int32_t f = 0; f < n; ++f)
        for (int32_t i = 0; i < cuts; ++i)
            trees.add_stump(f, static_cast<float>(i * i) / 100, kDefaultLeft, 0.25, 0.75);
    return trees;
}

TEST(columns_have_as_many_cuts_as_a_byte_counts) {
    for (int32_t cuts : {1, 15, 16, 17, 31, 32, 33, 240, 241, 255})
        check_leaves<float>(columns(2, cuts), cuts);
    CHECK(!coded(columns(2, 256)).usable());
    check_leaves<float>(columns(64, 3), 1);
    CHECK(!coded(columns(65, 3)).usable());
}

TEST(forests_that_do_not_fit_have_no_codes) {
    Trees<float> trees = columns(1, 1);
    CHECK(coded(trees).usable());
    Trees<float> categories = trees;
    categories.add_stump(0, 0.5f, kCategorical, 1, 2, {1, 2});
    CHECK(!coded(categories).usable());
    Random random(3);
    grow_leaves(trees, random, kPlain, kMaxMaskedLeaves);
    trees.end_tree();
    CHECK(coded(trees).usable());
    grow_leaves(trees, random, kPlain, kMaxMaskedLeaves + 1);
    trees.end_tree();
    CHECK(!coded(trees).usable());
}

}  // namespace
