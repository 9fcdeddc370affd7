// Algorithms 1 and 2, optimal stopping, the score forecast and the Gram matrix on small cases.
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "fit/algorithms.hpp"
#include "fit/between.hpp"
#include "fit/gram.hpp"
#include "fit/stopping.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

// Base models by row, values[t][i], as the fits take them: (T, N) in one array.
struct Sample {
    std::vector<double> values, full, costs;
    std::vector<uint8_t> positive;
    int64_t n_models, n_rows;

    explicit Sample(const std::vector<std::vector<double>>& models)
        : n_models(static_cast<int64_t>(models.size())),
          n_rows(static_cast<int64_t>(models[0].size())) {
        full.assign(n_rows, 0.0);
        for (const auto& model : models)
            for (int64_t i = 0; i < n_rows; ++i) {
                values.push_back(model[i]);
                full[i] += model[i];
            }
        for (double score : full) positive.push_back(score >= 0);
        costs.assign(n_models, 1.0);
    }
    FitProblem problem(int64_t budget) const {
        return {n_models, n_rows, 0.0, positive, {costs, {}, {}, {}}, budget, true, true, false};
    }
    FitResult fit(const FitProblem& problem, std::span<const int32_t> order = {},
                  int threads = 2) const {
        return qwyc::fit(problem, values.data(), order, threads, [](int64_t) {});
    }
    Decided decide(const FitResult& result) const {
        Decided decided(n_rows);
        const PolicyView policy{result.order, {result.lower, result.upper}, {0.0}};
        apply(policy, values.data(), 0.0, full.data(), n_rows, decided.out(), 1);
        return decided;
    }
};

Sample random_sample(uint64_t seed, int64_t n_rows, int64_t n_models) {
    Random random(seed);
    std::vector<std::vector<double>> models(n_models, std::vector<double>(n_rows));
    for (int64_t i = 0; i < n_rows; ++i) {
        const double signal = random.normal();
        for (auto& model : models) model[i] = 0.3 * signal + 0.5 * random.normal();
    }
    return Sample(models);
}

TEST(the_papers_appendix_example) {
    const Sample sample(
        {{1, -1, 0, 0, 0, 0, 0, 0}, {0, 0, 1, 1, -1, 0, 0, 0}, {0, 0, 0, 0, -1, 1, -1, -1}});
    const FitResult result = sample.fit(sample.problem(0));
    CHECK_EQUAL(result.order[0], 2);  // f_3 first: four rows quit after it
    const Decided decided = sample.decide(result);
    CHECK(decided.positive == sample.positive);
    CHECK_EQUAL(std::accumulate(decided.steps.begin(), decided.steps.end(), 0), 12);
}

TEST(thresholds_lie_between_the_sums_that_they_separate) {
    // One base model decides; the second never changes a sign.
    const Sample sample({{-3, -1, 1, 4}, {0.5, 0.5, 0.5, 0.5}});
    const std::vector<int32_t> order = {0, 1};
    const FitResult both = sample.fit(sample.problem(0), order);
    CHECK_EQUAL(both.lower[0], 0.0);  // between -1 and 1
    CHECK_EQUAL(both.upper[0], 0.0);
    CHECK_EQUAL(both.lower[1], -kInf);  // the last step has none
    CHECK_EQUAL(both.upper[1], kInf);
    FitProblem negative = sample.problem(0);
    negative.quit_positive = false;
    CHECK_EQUAL(sample.fit(negative, order).lower[0], 0.0);
    CHECK_EQUAL(sample.fit(negative, order).upper[0], kInf);
    FitProblem positive = sample.problem(0);
    positive.quit_negative = false;
    CHECK_EQUAL(sample.fit(positive, order).lower[0], -kInf);
    CHECK_EQUAL(sample.fit(positive, order).upper[0], 0.0);
}

TEST(a_budget_lets_rows_be_decided_differently) {
    // Row 1 looks negative after the first base model and is positive in full.
    const Sample sample({{-3, -2, 1, 4}, {0, 5, 0, 0}});
    const std::vector<int32_t> order = {0, 1};
    const FitResult strict = sample.fit(sample.problem(0), order);
    CHECK_EQUAL(strict.lower[0], -2.5);  // row 0 quits
    CHECK_EQUAL(strict.upper[0], -2.5);  // all others are positive
    // With one row: every sum below that of row 2 quits negative.
    const FitResult loose = sample.fit(sample.problem(1), order);
    CHECK_EQUAL(loose.lower[0], -0.5);
    CHECK((sample.decide(loose).positive == std::vector<uint8_t>{0, 0, 1, 1}));
    FitProblem split = sample.problem(1);  // half of one row is none for negative quits
    split.split_budget = true;
    CHECK_EQUAL(sample.fit(split, order).lower[0], -2.5);
}

TEST(a_budget_that_covers_a_class_lets_every_row_quit) {
    const Sample one_positive({{-3, -2, 4}, {0, 0, 0}});
    const std::vector<int32_t> order = {0, 1};
    const FitResult low = one_positive.fit(one_positive.problem(1), order);
    CHECK_EQUAL(low.lower[0], std::nextafter(4.0, kInf));
    CHECK_EQUAL(low.upper[0], kInf);
    const Sample one_negative({{-3, 2, 4}, {0, 0, 0}});
    FitProblem positive = one_negative.problem(1);
    positive.quit_negative = false;
    const FitResult high = one_negative.fit(positive, order);
    CHECK_EQUAL(high.lower[0], -kInf);
    CHECK_EQUAL(high.upper[0], std::nextafter(-3.0, -kInf));
}

TEST(costs_decide_between_equals) {
    Sample sample({{1, -1}, {1, -1}});
    CHECK((sample.fit(sample.problem(0)).order == std::vector<int32_t>{0, 1}));
    sample.costs = {2, 1};
    CHECK((sample.fit(sample.problem(0)).order == std::vector<int32_t>{1, 0}));
}

TEST(a_shared_part_is_paid_for_once) {
    // Base model 0 comes first: four of six rows quit after it. Then 1 and 2 let the same rows
    // quit. By itself 2 costs less, but its part is new, whereas 0 has paid for the part of 1.
    const Sample sample({{5, -5, 6, -6, 0, 0}, {0, 0, 0, 0, 1, -1}, {0, 0, 0, 0, 1, -1}});
    FitProblem problem = sample.problem(0);
    const std::vector<double> own = {1, 2, 1.5}, parts = {3, 1};
    const std::vector<int64_t> need_begin = {0, 1, 2, 3};
    const std::vector<int32_t> need = {0, 0, 1};
    problem.costs = {own, {}, {}, {}};
    CHECK((sample.fit(problem).order == std::vector<int32_t>{0, 2, 1}));
    problem.costs = {own, parts, need_begin, need};
    CHECK((sample.fit(problem).order == std::vector<int32_t>{0, 1, 2}));
    const std::vector<double> dear = {8, 1};  // now 2 comes first: 2.5 x 6 / 2 against 9 x 6 / 4
    problem.costs = {own, dear, need_begin, need};
    CHECK((sample.fit(problem).order == std::vector<int32_t>{2, 0, 1}));
}

TEST(fits_keep_their_budget_and_do_not_depend_on_threads) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
        const Sample sample = random_sample(seed, 3000, 12);  // enough rows for select()'s sample
        for (int64_t budget : {0, 10, 300}) {
            const FitResult result = sample.fit(sample.problem(budget), {}, 3);
            const FitResult again = sample.fit(sample.problem(budget), {}, 1);
            CHECK_ALL_EQUAL(result.order, again.order, "order");
            CHECK_ALL_EQUAL(result.lower, again.lower, "lower");
            CHECK_ALL_EQUAL(result.upper, again.upper, "upper");
            const Decided decided = sample.decide(result);
            int64_t differing = 0, steps = 0;
            for (int64_t i = 0; i < sample.n_rows; ++i) {
                differing += decided.positive[i] != sample.positive[i];
                steps += decided.steps[i];
            }
            CHECK(differing <= budget);
            CHECK(steps < sample.n_rows * sample.n_models);
            for (size_t r = 0; r < result.lower.size(); ++r)
                CHECK(result.lower[r] <= result.upper[r]);
        }
    }
}

TEST(progress_is_reported_and_may_end_a_fit) {
    const Sample sample = random_sample(1, 50, 4);
    std::vector<int64_t> reported;
    qwyc::fit(sample.problem(0), sample.values.data(), {}, 1,
              [&](int64_t done) { reported.push_back(done); });
    CHECK(!reported.empty() && reported.back() == 4);
    const auto stop = [](int64_t) { throw std::runtime_error("interrupted"); };
    CHECK_THROWS(qwyc::fit(sample.problem(0), sample.values.data(), {}, 2, stop), "interrupted");
}

// ---- optimal stopping ------------------------------------------------------------------------

Smoothing believe_rows() {  // a row's own full decision is all that counts
    return {.fewest_rows = 1,
            .most_bins = 8,
            .rows_per_bin = 1,
            .pseudo_rows = 1,
            .trend_rows = 1,
            .forecast_share = 0};
}

struct Stopping {
    Stopping(const Sample& sample, const Smoothing& smoothing, bool negative = true,
             bool positive = true)
        : order(sample.n_models),
          fit((std::iota(order.begin(), order.end(), 0), StoppingProblem<ClassLoss>{sample.n_rows,
                                                                                    0.0,
                                                                                    {{0.0}},
                                                                                    order,
                                                                                    sample.full,
                                                                                    sample.costs,
                                                                                    negative,
                                                                                    positive,
                                                                                    smoothing}),
              sample.values.data()) {}
    std::vector<int32_t> order;
    StoppingFit<double> fit;
};

TEST(rows_quit_where_going_on_costs_more_than_the_penalty) {
    const Sample sample({{-2, -1, 1, 2}, {-0.1, -0.1, 0.1, 0.1}});
    Stopping both(sample, believe_rows());
    both.fit.sweep(10, 10, 2);
    CHECK_EQUAL(both.fit.lower()[0], 0.0);
    CHECK_EQUAL(both.fit.upper()[0], 0.0);
    CHECK_EQUAL(both.fit.differing(), 0);
    CHECK_EQUAL(both.fit.steps(), 4);
    Stopping negative(sample, believe_rows(), true, false);
    negative.fit.sweep(10, 10, 1);
    CHECK_EQUAL(negative.fit.lower()[0], 0.0);
    CHECK_EQUAL(negative.fit.upper()[0], kInf);
    CHECK_EQUAL(negative.fit.steps(), 6);
}

TEST(rows_quit_where_their_output_is_close_enough) {
    // Rows 1 and 2 are known after the first base model; the score of rows 0 and 3 moves by 3.
    const Sample sample({{-2, -1, 1, 2}, {-3, 0, 0, 3}});
    std::vector<int32_t> order = {0, 1};
    const std::vector<double> low = {-101, 99}, high = {-99, 101};  // the score itself, within 1
    const StoppingProblem<ToleranceLoss> problem{sample.n_rows, 0.0,         {-100, 200, low, high},
                                                 order,         sample.full, sample.costs,
                                                 true,          true,        believe_rows()};
    StoppingFit<double, ToleranceLoss> fit(problem, sample.values.data());
    fit.sweep(0.5, 0.5, 1);  // going on costs 1, more than any mistake
    CHECK_EQUAL(fit.steps(), 4);
    fit.freeze(1);
    CHECK_EQUAL(fit.steps(), 8);
    CHECK_EQUAL(fit.differing(), 0);
    const ScoreForecast& forecast = fit.forecasts()[0];
    const ToleranceLoss::Bounds bounds = problem.loss.bounds(5.0);
    CHECK_EQUAL(bounds.low, 4.0);
    CHECK_EQUAL(bounds.high, 6.0);
    const double expected = forecast.expected(1.0, forecast.bin_above(1.0));
    CHECK(!problem.loss.differs(forecast, Outcome::kNegative, 1.0, expected + 0.9));
    CHECK(problem.loss.differs(forecast, Outcome::kNegative, 1.0, expected + 1.1));
}

TEST(estimates_are_a_line_and_offsets_between_knots) {
    const std::vector<double> slope = {2, 1, 1}, knot = {0, 1, 5}, offset = {10, 20, 7};
    const std::vector<int64_t> begin = {0, 2, 3, 3};
    const EstimatesView view{slope, begin, knot, offset};
    CHECK_EQUAL(view(1, 0.5), 1 + 15.0);
    CHECK_EQUAL(view(1, -1.0), -2 + 10.0);
    CHECK_EQUAL(view(1, 3.0), 6 + 20.0);
    CHECK_EQUAL(view(2, 4.0), 4 + 7.0);
    CHECK_EQUAL(view(3, 4.0), 4.0);  // complete
}

TEST(rows_that_gain_nothing_go_on) {
    const Sample sample({{-2, -1, 1, 2}, {-0.1, -0.1, 0.1, 0.1}});
    Stopping positive(sample, believe_rows(), false, true);
    positive.fit.sweep(1, 1, 1);  // what a wrong quit costs is what going on costs
    CHECK_EQUAL(positive.fit.upper()[0], 0.0);
    Stopping negative(sample, believe_rows(), true, false);
    negative.fit.sweep(1, 1, 1);
    CHECK_EQUAL(negative.fit.lower()[0], 0.0);
}

TEST(a_high_penalty_keeps_rows_and_a_low_one_gives_them_up) {
    // After the first base model row 1 is the second lowest; in full it is positive.
    const Sample sample({{-2, -1, -0.5, 2}, {-0.1, 5, -0.1, 0.1}});
    Stopping cautious(sample, believe_rows(), true, false);
    cautious.fit.sweep(10, 10, 1);
    CHECK_EQUAL(cautious.fit.lower()[0], -1.5);  // row 0 alone
    CHECK_EQUAL(cautious.fit.differing(), 0);
    // Quitting saves 1 per row; for rows 1 and 3, positive in full, it costs 1.5. The first three
    // rows together gain most, 1.5.
    Stopping bold(sample, believe_rows(), true, false);
    bold.fit.sweep(1.5, 1.5, 1);
    CHECK_EQUAL(bold.fit.lower()[0], 0.75);  // between rows 2 and 3
    CHECK_EQUAL(bold.fit.differing(), 1);
    CHECK_EQUAL(bold.fit.steps(), 5);
}

TEST(steps_that_few_rows_reach_keep_their_thresholds) {
    const Sample sample({{-2, -1, 1, 2}, {0, 0, 0, 0}});
    Smoothing smoothing = believe_rows();
    smoothing.fewest_rows = 5;
    Stopping stopping(sample, smoothing);
    stopping.fit.sweep(10, 10, 1);
    CHECK_EQUAL(stopping.fit.lower()[0], -kInf);
    CHECK_EQUAL(stopping.fit.upper()[0], kInf);
    CHECK_EQUAL(stopping.fit.steps(), 8);
}

TEST(sweeps_do_not_depend_on_threads_and_count_what_the_policy_does) {
    const Smoothing smoothing{70, 96, 10, 50.0, 20.0, 0.5};
    for (uint64_t seed = 0; seed < 3; ++seed) {
        const Sample sample = random_sample(seed, 5000, 20);
        Stopping one(sample, smoothing), three(sample, smoothing);
        for (double penalty : {2000.0, 100.0, 10.0}) {
            one.fit.sweep(penalty, 2 * penalty, 1);
            three.fit.sweep(penalty, 2 * penalty, 3);
            CHECK_ALL_EQUAL(one.fit.lower(), three.fit.lower(), "lower");
            CHECK_ALL_EQUAL(one.fit.upper(), three.fit.upper(), "upper");
            const Decided decided = sample.decide({one.order, one.fit.lower(), one.fit.upper()});
            int64_t differing = 0, steps = 0;
            for (int64_t i = 0; i < sample.n_rows; ++i) {
                differing += decided.positive[i] != sample.positive[i];
                steps += decided.steps[i];
            }
            CHECK_EQUAL(one.fit.differing(), differing);
            CHECK_EQUAL(one.fit.steps(), steps);
        }
        CHECK(one.fit.steps() < 15 * sample.n_rows);
    }
}

// ---- the score forecast ----------------------------------------------------------------------

TEST(a_forecast_follows_the_line_and_its_spread) {
    // Full scores are twice the sum, give or take 1.
    std::vector<double> sums, full;
    for (int i = -200; i <= 200; ++i) {
        sums.push_back(i * 0.01);
        full.push_back(2 * i * 0.01 + (i % 2 ? 1 : -1));
    }
    ScoreForecast forecast;
    forecast.fit(sums, full, {1, 8, 1, 50, 20, 0.5});
    CHECK(std::abs(forecast.slope - 2) < 0.05);
    const auto negative = [&](double sum, double threshold) {
        return forecast.probability_negative(sum, forecast.bin_above(sum), {threshold});
    };
    CHECK(std::abs(negative(0, 0) - 0.5) < 0.05);
    CHECK(std::abs(negative(0.5, 1 + 1.0) - 0.8413) < 0.05);  // one deviation above the mean
    CHECK(negative(-2, 10) > 0.999 && negative(2, -10) < 0.001);
    for (double sum = -3; sum < 3; sum += 0.05)  // falls as the sum rises
        CHECK(negative(sum, 0) >= negative(sum + 0.05, 0) - 0.02);
}

TEST(a_forecast_without_spread_is_sure) {
    const std::vector<double> sums = {0, 1, 2, 3};
    std::vector<double> full = {0, 1, 2, 3};
    ScoreForecast forecast;
    forecast.fit(sums, full, {1, 1, 1, 0, 0, 0.5});
    const size_t next = forecast.bin_above(1.0);
    CHECK(forecast.probability_negative(1.0, next, {5.0}) > 0.999);
    CHECK(forecast.probability_negative(1.0, next, {-5.0}) < 0.001);
}

// ---- the rest --------------------------------------------------------------------------------

template <class Score>
void check_gram(int64_t n_models, int64_t n) {
    Random random(n);
    std::vector<Score> values(n_models * n);
    for (Score& value : values) value = static_cast<Score>(random.below(17) - 8);
    std::vector<double> centre(n_models), scale(n);
    for (double& x : centre) x = random.below(5);
    for (double& x : scale) x = random.below(3);
    for (int threads : {1, 3})
        for (bool plain : {true, false}) {
            std::vector<double> found(n_models * n_models, -1), expected(n_models * n_models, 0);
            gram(values.data(), n_models, n, plain ? nullptr : centre.data(),
                 plain ? nullptr : scale.data(), found.data(), threads);
            for (int64_t a = 0; a < n_models; ++a)
                for (int64_t b = 0; b < n_models; ++b)
                    for (int64_t i = 0; i < n; ++i) {
                        const double by = plain ? 1 : scale[i];
                        const double x = (values[a * n + i] - (plain ? 0 : centre[a])) * by;
                        const double y = (values[b * n + i] - (plain ? 0 : centre[b])) * by;
                        expected[a * n_models + b] += x * y;  // integers: exact in any order
                    }
            CHECK_ALL_EQUAL(found, expected, "gram");
        }
}

TEST(gram_equals_a_triple_loop) {
    for (const auto& [n_models, n] :
         {std::pair(1, 1), std::pair(3, 511), std::pair(7, 512), std::pair(9, 1300)}) {
        check_gram<float>(n_models, n);
        check_gram<double>(n_models, n);
    }
}

TEST(a_threshold_goes_halfway_or_stays_on_a_sum) {
    CHECK_EQUAL(between(1, 2, 2), 1.5);
    const double next = std::nextafter(1.0, 2.0);
    CHECK_EQUAL(between(1, next, next), next);
    CHECK_EQUAL(between(-1e308, 1e308, 1e308), 0.0);  // no overflow on the way
}

}  // namespace
