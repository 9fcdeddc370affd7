// How steps are divided into segments.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cost_model.hpp"
#include "core/engine.hpp"
#include "core/mask_kernels.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

template <class Real>
std::vector<TreeCost> costs_of(const Forest<Real>& forest) {
    return FullEngine<Real>(forest).tree_costs();
}

// Segments follow each other up to `last`, and each is all on masks or all walked: small trees
// never, and what masks do not hold always.
template <class Real>
void check_division(const Forest<Real>& forest, const Questions<Real>& questions,
                    const std::vector<int32_t>& order, int32_t last,
                    const std::vector<double>& survival) {
    const Divider<Real> divider(forest, questions, order, last, survival, costs_of(forest),
                                WalkCost::kPlain);
    for (double n : {1.0, 16.0, 64.0, 100.0, 1e6}) {
        int32_t at = 0;
        for (const Steps& steps : divider.divide(n).segments) {
            CHECK_EQUAL(steps.begin, at);
            CHECK(steps.end > steps.begin && steps.end - steps.begin <= kMaxSegmentTrees);
            for (int32_t r = steps.begin; r < steps.end; ++r) {
                if (steps.masked) CHECK(questions.masked[order[r]]);
                if (!steps.masked) CHECK(forest.leaves_of(order[r]) > kMaxMaskedLeaves);
            }
            at = steps.end;
        }
        CHECK_EQUAL(at, last);
    }
}

TEST(segments_cover_the_steps_whatever_the_survival) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    for (uint64_t seed = 0; seed < 4; ++seed) {
        Trees<float> trees;
        Random random(seed);
        const int32_t n = 300;
        for (int32_t t = 0; t < n; ++t) {
            const bool deep = seed > 0 && random.below(20) == 0;
            grow_leaves(trees, random, {}, 1 + (deep ? 99 : random.below(9)));
            trees.end_tree();
        }
        const Forest<float> forest = trees.forest();
        const Questions<float> questions(forest);
        const Questions<float> of_large(forest, kMaxCategoryBytes, kMaxLargeLeaves);
        const std::vector<int32_t> order = Policy(seed, n, 0, 1).order;
        std::vector<std::vector<double>> curves;
        for (double share :
             {1.0, 0.0, 1e-300, 1e308, std::numeric_limits<double>::infinity(), kNaN, -1.0})
            curves.emplace_back(n, share);
        curves.emplace_back();
        curves.emplace_back();
        for (int32_t r = 0; r < n; ++r) {
            curves[7].push_back(1 / (1.0 + r));
            curves[8].push_back(random.below(3) ? random.uniform() : kNaN);
        }
        for (const std::vector<double>& survival : curves)
            for (int32_t last : {0, 1, 2, 127, 128, 129, n - 1}) {
                check_division(forest, questions, order, last, survival);
                check_division(forest, of_large, order, last, survival);
            }
    }
}

TEST(rows_that_stay_are_read_seldom_and_rows_that_quit_are_left_out) {
    Trees<float> trees;
    Random random(1);
    for (int32_t t = 0; t < 100; ++t) {
        grow_leaves(trees, random, {.special = false}, 8);
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    const auto divide = [&](double kept) {
        std::vector<double> survival;
        for (int32_t r = 0; r < 100; ++r) survival.push_back(std::pow(kept, r));
        return Divider<float>(forest, questions, natural_order(100), 100, survival,
                              costs_of(forest), WalkCost::kPlain)
            .divide(1e6);
    };
    const Division all = divide(1.0), most = divide(0.98), few = divide(0.7);
    CHECK_EQUAL(all.segments.size(), 1u);  // nobody quits
    CHECK(most.segments.size() > all.segments.size());
    CHECK(few.segments[0].end < most.segments[0].end);
    CHECK(few.cost < most.cost && most.cost < all.cost);
    CHECK(few.cost > 0);
}

// What a segment needs, counted from its layout.
TEST(segments_need_what_their_layout_has) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
        Trees<float> trees;
        if (seed >= 2) trees.n_features = 400;  // wide rows
        Random random(seed);
        constexpr int32_t kTrees = 150;
        for (int32_t t = 0; t < kTrees; ++t) {
            grow_leaves(trees, random, {.special = seed % 2 == 1}, 1 + random.below(20));
            trees.end_tree();
        }
        const Forest<float> forest = trees.forest();
        const Questions<float> questions(forest);
        const std::vector<int32_t> order = Policy(seed, kTrees, 0, 1).order;
        // All rows stay, so there is one segment of as many trees as a segment may have.
        for (int32_t last : {1, 7, kMaxSegmentTrees}) {
            const std::vector<double> survival(last, 1.0);
            const Division found = Divider<float>(forest, questions, order, last, survival,
                                                  costs_of(forest), WalkCost::kAny)
                                       .divide(64);
            CHECK_EQUAL(found.segments.size(), 1u);
            const MaskedTrees laid_out =
                lay_out(forest, questions, std::span<const int32_t>(order).first(last), false);
            Needs needs = needs_of(laid_out);
            --needs.questions;  // the one that is never so
            needs.far = far_line_cost(trees.n_features) * lines_of(laid_out.features);
            CHECK_EQUAL(needs.far > 0, seed >= 2);
            CHECK(std::abs(found.cost - mask_cost(64, needs)) < 1e-6);
        }
    }
}

// Trees of 300 leaves: many rows are evaluated on masks, few rows are walked.
TEST(large_trees_are_on_masks_while_there_are_many_rows) {
    Trees<float> trees;
    trees.n_features = 3;
    Random random(5);
    constexpr int32_t kTrees = 24;
    for (int32_t t = 0; t < kTrees; ++t) {
        grow_leaves(trees, random, {.special = false}, 300);
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest, kMaxCategoryBytes, kMaxLargeLeaves);
    const auto divide = [&](double n) {
        const std::vector<double> survival(kTrees, 1.0);
        return Divider<float>(forest, questions, natural_order(kTrees), kTrees, survival,
                              costs_of(forest), WalkCost::kPlain)
            .divide(n);
    };
    const Division many = divide(1e6), few = divide(2);
    for (const Steps& steps : many.segments) CHECK(steps.masked);
    for (const Steps& steps : few.segments) CHECK(!steps.masked);
    CHECK(many.cost / 1e6 < 0.5 * few.cost / 2);
    // A segment asks no more questions than masks may have.
    const MaskedTrees all = lay_out(forest, questions, natural_order(kTrees), false);
    CHECK(all.n_questions < kMaxQuestions);
    const Needs needs = needs_of(all);
    CHECK(needs.planes == 0 && needs.large.slab > needs.large.one_word);
    CHECK(mask_cost(64, needs) < mask_cost(65, needs));
}

TEST(slabs_of_one_word_are_counted) {
    for (int32_t n : {1, 16, 17, 64, 513, 576, 1100})
        CHECK_EQUAL(Times::of(n).ones, n % kSlab > 0 && n % kSlab <= 64 ? 1 : 0);
    for (int32_t n : {0, 65, 512, 577, 1024}) CHECK_EQUAL(Times::of(n).ones, 0);
}

TEST(lines_are_those_that_hold_a_feature) {
    const std::vector<int32_t> none, features{0, 3, 15, 16, 64, 79, 80};
    CHECK_EQUAL(lines_of(none), 0);
    CHECK_EQUAL(lines_of(features), 4);
}

TEST(small_batches_have_long_segments) {
    Trees<float> trees;
    Random random(2);
    for (int32_t t = 0; t < 100; ++t) {
        grow_leaves(trees, random, {.special = false}, 16);
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    std::vector<double> survival;
    for (int32_t r = 0; r < 100; ++r) survival.push_back(std::pow(0.95, r));
    const Divider<float> divider(forest, questions, natural_order(100), 100, survival,
                                 costs_of(forest), WalkCost::kPlain);
    CHECK(divider.divide(64).segments.size() < divider.divide(1e6).segments.size());
    CHECK(divider.divide(64).cost < divider.divide(128).cost);
}

TEST(a_walk_costs_what_its_row_and_its_trees_do) {
    Trees<float> trees;
    Random random(2);
    for (int32_t t = 0; t < 100; ++t) {
        grow_leaves(trees, random, {.special = false}, 16);
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    // Some 20 rows of 2^20 come to the second half.
    std::vector<double> survival(100, 1);
    std::fill(survival.begin() + 50, survival.end(), 2e-5);
    const auto divider = [&](double walk, double row) {
        return Divider<float>(forest, questions, natural_order(100), 100, survival,
                              costs_of(forest), walk, row);
    };
    CHECK_EQUAL(divider(64, 30).walk_cost(0, 50), 30 + 64 * 50.0 / kWalksAtOnce);
    CHECK_EQUAL(divider(64, 80).walk_cost(50, 66), 80 + 64.0);
    const Divider<float> slow = divider(500, 20), fast = divider(64, 20), late = divider(64, 9000);
    CHECK(fast.divide(16).cost < slow.divide(16).cost);
    CHECK(fast.divide(16).cost < late.divide(16).cost);
    CHECK_EQUAL(fast.divide(1 << 20).cost, slow.divide(1 << 20).cost);  // as on any machine
}

// What one row costs, by the kernels that it goes through.
TEST(a_row_costs_what_its_kernels_do) {
    const auto trees_of = [](int32_t depth, int64_t n_features) {
        Trees<float> trees;
        trees.n_features = n_features;
        Random random(depth);
        for (int32_t t = 0; t < 20; ++t) {
            grow(trees, random, {.leaf_stop = 0, .special = false}, depth);
            trees.end_tree();
        }
        return trees;
    };
    const RowKernels plain{nullptr, nullptr, false}, side_by_side{nullptr, nullptr, true};
    const RowTrees three(trees_of(3, 6).forest()), six(trees_of(6, 6).forest());
    CHECK_EQUAL(walk_cost(six, plain), 2 * walk_cost(three, plain));
    CHECK_EQUAL(walk_cost(three, side_by_side), WalkCost::kFlat);
    CHECK_EQUAL(walk_cost(six, side_by_side), WalkCost::kNarrow);
    const RowTrees large(trees_of(9, 6).forest());  // not in a near cache
    CHECK_EQUAL(walk_cost(large, plain), walk_cost(large, side_by_side));
    const RowTrees wide(trees_of(6, kNearFeatures + 1).forest());  // nor are rows
    CHECK_EQUAL(walk_cost(wide, plain), WalkCost::kPlain);

    const CodedCost cost{
        .small_tree = 2, .any_tree = 3, .wide = 5, .column = 7, .long_column = 11, .categories = 0};
    const auto coded = [](const Trees<float>& trees) {
        const Forest<float> forest = trees.forest();
        return lay_out_coded<float>(forest, Questions<float>(forest),
                                    natural_order(trees.n_trees()));
    };
    CHECK_EQUAL(cost.tree(coded(trees_of(5, 6))), 2.0);
    CHECK_EQUAL(cost.tree(coded(trees_of(6, 6))), 3.0);
    Trees<float> stumps;  // a feature each, of one cut or 17
    stumps.n_features = CodedTrees::kCodes / 2 + 1;
    const auto add = [&](int32_t feature, float cut) {
        stumps.add_stump(feature, cut, kDefaultLeft, 1, 2);
    };
    for (int32_t f = 0; f < CodedTrees::kCodes / 2; ++f) add(f, 0.5f);
    for (int32_t i = 0; i < 16; ++i) add(0, static_cast<float>(i + 1));
    CHECK_EQUAL(cost.tree(coded(stumps)), 2.0);
    CHECK_EQUAL(cost.encoding(coded(stumps)), 128 * 7.0 + 11);
    add(CodedTrees::kCodes / 2, 0.5f);
    CHECK_EQUAL(cost.tree(coded(stumps)), 2.0 * 5);
}

TEST(few_rows_are_walked_where_masks_have_many_questions) {
    CHECK(rows_to_walk(100, {50, 500, 10}) > rows_to_walk(100, {5, 20, 10}));
    CHECK(rows_to_walk(100, {50, 500, 10}) > rows_to_walk(200, {50, 500, 10}));
    CHECK(rows_to_walk(1, {1000, 100000, 1}) <= 32);
    CHECK_EQUAL(rows_to_walk(1e9, {1, 1, 1}), 0);
}

}  // namespace
