// Engines on random forests against plain loops: every instruction set that this machine runs,
// every way to hold rows, and one row at a time.
#include <string>
#include <tuple>

#include "tests/engines.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

template <class Real, class In>
void check_forest(const Trees<Real>& trees, int64_t n, uint64_t seed, const std::string& what) {
    const EngineProblem<Real, In> problem(trees, random_rows<In>(seed, n, trees.n_features), seed);
    const auto& [policy, base, full, values] =
        std::tie(problem.policy, problem.base, problem.full, problem.values);
    const FullEngine<Real> engine(problem.forest);
    const QuitEngine<Real> quitter(engine, policy.view());
    const QuitEngine<Real, FanPolicy> fan_quitter(engine, problem.fan.view());
    for (const Layout& layout : layouts(n, trees.n_features)) {
        const LaidRows<In> laid(problem.rows, n, trees.n_features, layout);
        for (std::string_view isa : available_isas())
            for (int threads : {1, 3}) {
                const std::string context = what + " " + std::string(isa) + " seed " +
                                            std::to_string(seed) + " " + layout.name + " " +
                                            std::to_string(n);
                check_scores(engine, problem, laid.view(), threads, isa, context);
                check_decisions(quitter, problem.expected, laid.view(), threads, isa, context);
                check_decisions(fan_quitter, problem.expected_of_fan, laid.view(), threads, isa,
                                context + " Fan");
            }
    }

    Decided known(n);  // over known scores
    apply(policy.view(), values.data(), base, full.data(), n, known.out(), 2);
    check_decided(known, problem.expected, what + " known scores");
    apply_fan(problem.fan.view(), values.data(), base, full.data(), n, known.out(), 2);
    check_decided(known, problem.expected_of_fan, what + " known scores Fan");
    Decided one(n);  // one row at a time, at first for some steps only
    for (int64_t i = 0; i < n; ++i) {
        const In* row = problem.rows.data() + i * trees.n_features;
        const DecisionsOut out{&one.positive[i], &one.steps[i], &one.score[i]};
        auto state = quitter.start_one();
        bool done = false;
        for (int32_t most : {1, 3, 11}) done = done || quitter.walk_some(state, row, most, out);
        if (!done) quitter.walk_on(state, row, out);
        CHECK(check::same(engine.score_one(row), full[i]));
    }
    check_decided(one, problem.expected, what + " one row");
}

template <class Real>
void check_both(const Trees<Real>& trees, int64_t n, uint64_t seed, const std::string& what) {
    check_forest<Real, float>(trees, n, seed, what + " float rows");
    check_forest<Real, double>(trees, n, seed, what + " double rows");
}

TEST(random_forests_of_every_kind) {
    Shape shape;
    for (uint64_t seed = 0; seed < 20; ++seed) {
        shape.special = seed % 4 != 3;
        check_both(random_trees<float>(seed, shape), 300, seed, "float");
        check_both(random_trees<double>(seed, shape), 300, seed, "double");
    }
}

// Where values do not fit registers, single rows walk fewer trees at once.
TEST(plain_comparisons_of_many_features) {
    const auto grown = [](auto trees, uint64_t seed, int64_t n_features) {
        trees.n_features = n_features;
        Random random(seed);
        trees.rules = random_rules(random, 30);
        for (int32_t t = 0; t < 30; ++t) {
            grow(trees, random, {.special = false}, 6);
            trees.end_tree();
        }
        return trees;
    };
    constexpr int64_t kNarrow = RowTrees::kMaxFlatFeatures;
    const Forest<float> narrow = grown(Trees<float>{}, 0, kNarrow).forest();
    CHECK_EQUAL(RowTrees(narrow).at_once, kWalksAtOnce);
    for (uint64_t seed = 0; seed < 4; ++seed) {
        const Trees<float> trees = grown(Trees<float>{}, seed, kNarrow + 1);
        const Forest<float> forest = trees.forest();
        CHECK_EQUAL(RowTrees(forest).at_once, kFewWalks);
        check_both(trees, 100, seed, "float");
        check_both(grown(Trees<double>{}, seed, kNarrow + 1), 100, seed, "double");
    }
}

TEST(any_number_of_rows) {
    for (int64_t n : {0, 1, 2, 6, 7, 8, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1025})
        check_both(random_trees<float>(5, {.n_trees = 20}), n, n, "float");
}

TEST(many_rows_in_several_blocks_and_segments) {
    check_forest<float, float>(random_trees<float>(11, {.n_trees = 40}), 3000, 3, "float");
    check_forest<double, double>(random_trees<double>(11, {.n_trees = 40}), 3000, 3, "double");
}

TEST(walked_trees_among_small_ones) {
    Trees<float> single;
    Trees<double> wide;
    const auto fill = [](auto& trees, uint64_t seed) {
        Random random(seed);
        trees.rules = random_rules(random, 7);
        for (int32_t depth : {3, 11, 4, 10, 11, 2, 12}) {
            grow(trees, random, {.depth = depth, .leaf_stop = 0.02}, depth);
            trees.end_tree();
        }
    };
    for (uint64_t seed = 0; seed < 4; ++seed) {
        single = {}, wide = {};
        fill(single, seed);
        fill(wide, seed);
        const Forest<float> forest = single.forest();
        const FullEngine<float> engine(forest);
        const bool on_masks = engine.large_from("avx512") > 0;  // even if not where this runs
        CHECK(on_masks ? engine.n_walked() == 0 : engine.n_walked() >= 3);
        check_both(single, 700, seed, "float");
        check_both(wide, 700, seed, "double");
    }
}

// Large trees that ask the same questions again are on masks from some number of rows on.
TEST(large_trees_on_masks) {
    const auto fill = [](auto& trees, uint64_t seed) {
        Random random(seed);
        trees.n_features = 3;
        trees.rules = random_rules(random, 9);
        for (int32_t leaves : {90, 3, 128, 70, 20, 300, 64, 65, 1}) {
            grow_leaves(trees, random, {.special = seed % 2 == 0}, leaves);
            trees.end_tree();
        }
        for (int32_t depth : {7, 10}) add_oblivious(trees, random, depth, {});
    };
    for (uint64_t seed = 0; seed < 10; ++seed) {
        Trees<float> single;
        Trees<double> wide;
        fill(single, seed);
        fill(wide, seed);
        const Forest<float> forest = single.forest();
        const FullEngine<float> engine(forest);
        CHECK(engine.large_from("avx512") <= kSlab && engine.large_from("avx2") <= kSlab);
        for (std::string_view isa : available_isas()) {
            const int32_t from = engine.large_from(isa);
            CHECK(from > 1);
            for (int32_t n : {from - 1, from}) check_both(single, n, seed, "large");
        }
        check_both(single, 600, seed, "large");
        check_both(wide, 200, seed, "large double");
    }
}

TEST(large_trees_of_many_questions_are_walked) {
    Trees<double> trees;
    trees.n_features = 4;
    Random random(3);
    for (int t = 0; t < 3; ++t) {
        add_complete(trees, random, 8, [&](int32_t, int32_t) {
            return add_random_node(trees, random, {.special = false});
        });
        trees.end_tree();
    }
    for (double& at : trees.threshold) at = random.normal();
    const Forest<double> forest = trees.forest();
    CHECK(FullEngine<double>(forest).large_from("avx512") > kSlab ||
          FullEngine<double>(forest).large_from("avx512") == 0);
    check_both(trees, 600, 1, "many questions");
}

// More rows than masks hold, where one instruction set walks all trees and another walks none.
TEST(large_trees_that_some_instruction_sets_walk) {
    Trees<float> trees;
    Random random(5);
    for (int t = 0; t < 8; ++t) {
        add_complete(trees, random, 8, [&](int32_t, int32_t) {
            return add_random_node(trees, random, {.special = false});
        });
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const FullEngine<float> engine(forest);
    CHECK(engine.large_from("avx512") <= kSlab && engine.large_from("portable") > kSlab);
    check_both(trees, 1500, 1, "some walk");
}

// Small trees keep their masks where categories of large trees are too many for them.
TEST(large_trees_of_many_categories_are_walked) {
    Trees<float> trees;
    trees.n_features = 2;
    Random random(4);
    trees.add_stump(0, 0, kCategorical, -1, 1, {1, 2, 3});
    add_oblivious(trees, random, 8, {.special = false});
    for (int t = 0; t < 4; ++t) {  // each code has a class of its own
        add_complete(trees, random, 7, [&](int32_t level, int32_t place) {
            return trees.add_node(0, 0, kCategorical, {((1 << level) + place) * 3 + t});
        });
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const FullEngine<float> engine(forest);
    for (std::string_view isa : available_isas()) CHECK_EQUAL(engine.large_from(isa), 0);
    CHECK_EQUAL(engine.n_walked(), 5);
    check_both(trees, 300, 2, "many categories");
}

TEST(many_thresholds) {
    Trees<double> trees;
    trees.n_features = 2;
    Random random(2);
    for (int i = 0; i < 700; ++i)
        trees.add_stump(random.below(2), random.normal(), random.below(2) ? kDefaultLeft : 0,
                        random.normal(), random.normal());
    check_both(trees, 300, 4, "stumps");
}

TEST(trees_of_every_form) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
        Trees<float> single = trees_of_all_forms<float>(seed, 5, {.special = seed != 2}, 5);
        Trees<double> wide = trees_of_all_forms<double>(seed, 5, {.special = seed != 2}, 5);
        Random random(seed);
        for (int32_t depth : {7, 8}) {  // oblivious ones of more leaves than masks hold
            add_oblivious(single, random, depth, {});
            add_oblivious(wide, random, depth, {});
        }
        make_thresholds_odd(single, seed);
        make_thresholds_odd(wide, seed);
        check_both(single, 200, seed, "forms");
        check_both(wide, 200, seed, "forms double");
    }
}

TEST(categories_that_fit_a_byte_and_that_do_not) {
    for (int32_t n_codes : {40, 300, 2000}) {
        Trees<float> trees;
        trees.rules.truncates = true;
        Random random(n_codes);
        for (int t = 0; t < 14; ++t) {
            std::vector<int32_t> codes;
            for (int32_t code = 0; code < n_codes; ++code)
                if (random.below(2)) codes.push_back(code);
            const int flags = kCategorical | (random.below(2) ? kInSetLeft : 0) |
                              (random.below(2) ? kDefaultLeft : 0);
            trees.add_stump(random.below(2), 0, static_cast<uint8_t>(flags), random.normal(),
                            random.normal(), codes);
        }
        check_both(trees, 500, n_codes, "categories");
    }
}

TEST(infinite_thresholds) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (bool less_equal : {false, true}) {
        Trees<float> trees;
        trees.rules.less_equal = less_equal;
        for (float at : {kInfinity, -kInfinity, std::numeric_limits<float>::max(),
                         std::numeric_limits<float>::lowest(), 0.0f})
            for (uint8_t flags : {0, +kDefaultLeft}) trees.add_stump(0, at, flags, at > 0, 0.25);
        check_both(trees, 400, 1, "infinite thresholds");
    }
}

TEST(a_forest_of_leaves) {
    Trees<float> trees;
    for (double value : {0.5, -0.25, 1.0}) {
        trees.add_leaf(value);
        trees.end_tree();
    }
    check_both(trees, 100, 1, "leaves");
}

TEST(a_policy_that_never_quits_gives_full_scores) {
    const Trees<float> trees = random_trees<float>(3);
    const auto rows = random_rows<float>(3, 200, trees.n_features);
    const auto full = full_scores(trees, rows);
    Policy policy(0, trees.n_trees(), 0.1, 1);
    policy.lower.assign(policy.lower.size(), -kInf);
    policy.upper.assign(policy.upper.size(), kInf);
    const Forest<float> forest = trees.forest();
    const FullEngine<float> engine(forest);
    const QuitEngine<float> quitter(engine, policy.view());
    Decided decided(200);
    quitter.decide(in_c_order(rows, 200, trees.n_features), decided.out(), 2);
    check_decided(decided, decide_plainly(policy, step_values(trees, rows), 0, full), "never");
}

TEST(rows_in_bins_that_are_unknown_are_completed) {
    const std::vector<double> values = {0.4, 1.4, 2.4, -7.0, 1e300,  // (3, 5)
                                        1.0, 1.0, 1.0, 1.0,  1.0,    //
                                        0.0, 0.0, 0.0, 0.0,  0.0};
    const std::vector<double> full = {1.4, 2.4, 3.4, -6.0, 1e300};
    const std::vector<int32_t> order = {0, 1, 2};
    const std::vector<int64_t> begin = {0, 2, 3, 3}, bin = {0, 1, 2};
    const std::vector<double> lower = {0.5, 0.0, -kInf}, upper = {kInf, 1.3, 2.3};
    const FanView policy{order, {begin, bin, lower, upper, 1.0}, {2.0}};
    Decided found(5);
    apply_fan(policy, values.data(), 0.0, full.data(), 5, found.out(), 1);
    // Row 0 is below bin 0's lower, row 1 above bin 1's upper; no other row's bin is known.
    CHECK((found.steps == std::vector<int32_t>{1, 1, 3, 3, 3}));
    CHECK((found.positive == std::vector<uint8_t>{0, 1, 1, 0, 1}));
    CHECK((found.score == std::vector<double>{0.4, 1.4, 3.4, -6.0, 1e300}));
}

TEST(seconds_are_measured_for_every_tree) {
    const Trees<float> trees = random_trees<float>(1);
    const Forest<float> forest = trees.forest();
    const auto rows = random_rows<float>(1, 100, trees.n_features);
    std::vector<double> seconds(trees.n_trees(), -1);
    FullEngine<float>(forest).measure(in_c_order(rows, 100, trees.n_features), 3, seconds.data());
    for (double spent : seconds) CHECK(spent >= 0);
}

TEST(an_unknown_instruction_set_is_refused) {
    CHECK_THROWS(kernels("sse9"), "does not run sse9");
    CHECK_EQUAL(available_isas().back(), "portable");
    CHECK_EQUAL(kernels().isa, available_isas().front());
}

}  // namespace
