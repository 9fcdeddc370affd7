// One row's codes through whole trees: it reaches the leaves that it walks to.
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "core/coded_trees.hpp"
#include "core/worker.hpp"
#include "tests/check.hpp"
#include "tests/laid_rows.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

constexpr Shape kPlain{.special = false};

// A layout, and what it refers to.
template <class Real>
struct Coded {
    explicit Coded(const Trees<Real>& trees) : forest(trees.forest()), questions(forest) {
        std::vector<int32_t> order = natural_order(trees.n_trees());
        std::reverse(order.begin(), order.end());  // any order will do
        layout = lay_out_coded<Real>(forest, questions, order);
    }
    Forest<Real> forest;
    Questions<Real> questions;
    CodedTrees layout;
};

template <class Real>
int32_t n_codes_of(const Trees<Real>& trees) {
    return Coded<Real>(trees).layout.n_codes;
}

template <class Real>
bool usable(const Trees<Real>& trees) {
    return Coded<Real>(trees).layout.usable();
}

template <class In, class Real>
void check_leaves(const Trees<Real>& trees, uint64_t seed) {
    const Coded<Real> coded(trees);
    const CodedTrees& layout = coded.layout;
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
            alignas(64) uint8_t line[CodedTrees::kLine];
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

// Splits of all kinds, of trees of many leaves and few.
template <class Real>
Trees<Real> trees_with_categories(uint64_t seed) {
    Trees<Real> trees = trees_of_all_forms<Real>(seed, 3 + 5 * (seed % 3), {}, 7);
    trees.rules.truncates = seed % 2 == 0;
    return trees;
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
        check_leaves<float>(trees_with_categories<float>(seed), seed);
        check_leaves<double>(trees_with_categories<float>(seed), seed);
        check_leaves<float>(trees_with_categories<double>(seed), seed);
        check_leaves<double>(trees_with_categories<double>(seed), seed);
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
    for (int32_t leaves = 1; leaves <= kMaxMaskedLeaves; ++leaves)
        for (const bool special : {false, true}) {
            Trees<float> trees;
            Random random(leaves);
            add_chain(trees, random, {.special = special}, leaves);
            const Coded<float> laid_out(trees);
            const CodedTrees& layout = laid_out.layout;
            CHECK_EQUAL(layout.small.empty(), leaves > 32);
            CHECK_EQUAL(layout.trees.empty(), leaves <= 32);
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
    for (int32_t cuts : {1, 15, 16, 17, 31, 32, 33, 240, 241, 255}) {
        CHECK_EQUAL(n_codes_of(columns(2, cuts)), 2);
        check_leaves<float>(columns(2, cuts), cuts);
    }
    for (const auto& [cuts, n] : {std::pair(256, 4), std::pair(510, 4), std::pair(511, 6)}) {
        CHECK_EQUAL(n_codes_of(columns(2, cuts)), n);
        check_leaves<float>(columns(2, cuts), cuts);
    }
    for (int32_t n : {64, 65, 128, 129, 192, 193, 256}) check_leaves<float>(columns(n, 3), n);
    CHECK(!usable(columns(257, 1)));
}

// One feature after the other, with so many sets of categories each, and some cuts.
Trees<float> sets(int32_t n, int32_t n_sets, uint8_t flags = 0) {
    Trees<float> trees;
    trees.n_features = n;
    Random random(n_sets);
    for (int32_t f = 0; f < n; ++f) {
        for (int32_t i = 0; i < n_sets; ++i) {
            std::vector<int32_t> codes{i % 80};
            for (int32_t k = 0; k < 5; ++k) codes.push_back(random.below(80));
            trees.add_stump(f, 0, kCategorical | flags | (i % 2 ? kInSetLeft : 0), 1, 2, codes);
        }
        trees.add_stump(f, 0.5f, 0, 3, 4);
        trees.add_stump(f, 3.5f, kDefaultLeft, 3, 4);
    }
    return trees;
}

TEST(questions_about_categories_have_a_bit_each) {
    for (const auto& [n, n_sets, n_codes] :
         {std::tuple(1, 1, 3), std::tuple(1, 8, 3), std::tuple(1, 9, 4), std::tuple(7, 41, 56),
          std::tuple(8, 48, 64), std::tuple(8, 49, 72), std::tuple(16, 48, 128),
          std::tuple(16, 49, 144), std::tuple(2, 1008, 256)}) {
        const Trees<float> trees = sets(n, n_sets);
        CHECK_EQUAL(n_codes_of(trees), n_codes);
        check_leaves<float>(trees, n_sets);
        check_leaves<double>(sets(n, n_sets, kDefaultLeft | kZeroIsMissing), n_sets);
    }
    CHECK(!usable(sets(2, 1009)));
}

TEST(a_category_may_be_in_no_set_at_all) {
    for (const bool truncates : {false, true}) {
        Trees<float> trees;
        trees.rules.truncates = truncates;
        for (int32_t f = 0; f < trees.n_features; ++f) {
            trees.add_stump(f, 0, kCategorical, 1, 2);
            trees.add_stump(f, 0, kCategorical | kInSetLeft | kDefaultLeft, 3, 4);
        }
        check_leaves<float>(trees, 1);
        check_leaves<double>(trees, 2);
    }
}

TEST(forests_that_do_not_fit_have_no_codes) {
    Trees<float> trees = columns(1, 1);
    CHECK(usable(trees));
    Trees<float> categories = trees;  // more classes than a byte counts
    for (int32_t code = 0; code < 256; ++code)
        categories.add_stump(0, 0.5f, kCategorical, 1, 2, {code});
    CHECK(!usable(categories));
    Random random(3);
    grow_leaves(trees, random, kPlain, kMaxMaskedLeaves);
    trees.end_tree();
    CHECK(usable(trees));
    grow_leaves(trees, random, kPlain, kMaxMaskedLeaves + 1);
    trees.end_tree();
    CHECK(!usable(trees));
}

}  // namespace
