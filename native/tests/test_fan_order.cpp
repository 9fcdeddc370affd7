// Algorithm 1 with Fan's rule on small cases. tests/policy/test_fan_order.py compares it with the
// oracle.
#include <numeric>

#include "fit/fan_order.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

// Two base models, (2, 4). The second one alone is nearly the full score.
struct Sample {
    std::vector<double> values = {0.1, -0.1, 0.1, -0.1, -3, -2, 2, 3},
                        full = {-2.9, -2.1, 2.1, 2.9}, costs = {1, 1};

    FanOrderProblem problem() const {
        return {2, 4, 0.0, full, {costs, {}, {}, {}}, 0.0, 1.0, 1.0, true, true};
    }
    std::vector<int32_t> order(const FanOrderProblem& problem, int threads = 2) const {
        return fan_order(problem, values.data(), threads, [](int64_t) {});
    }
};

TEST(what_lets_more_rows_quit_comes_first) {
    Sample sample;
    // After the first base model two rows of either class are in each bin; after the second each
    // row has a bin of its own, and quits.
    CHECK((sample.order(sample.problem()) == std::vector<int32_t>{1, 0}));
    FanOrderProblem never = sample.problem();
    never.quit_negative = never.quit_positive = false;
    CHECK((sample.order(never) == std::vector<int32_t>{0, 1}));
    FanOrderProblem wide = sample.problem();  // two bins, of one class each after the second
    wide.bin_width = 100, wide.gamma = 2;
    CHECK((sample.order(wide) == std::vector<int32_t>{1, 0}));
}

TEST(parts_are_paid_for_once) {
    // Base models 0 and 1 are the same; 1 needs a part that 2 needs too.
    const std::vector<double> half = {-1, -2, 1, 2}, none = {0, 0, 0, 0};
    std::vector<double> values;
    for (const auto* model : {&half, &half, &none})
        values.insert(values.end(), model->begin(), model->end());
    std::vector<double> full(4);
    for (int i = 0; i < 4; ++i) full[i] = 2 * half[i];
    const std::vector<double> own = {1.5, 1, 1}, part = {1};
    const std::vector<int64_t> need_begin = {0, 0, 1, 2};
    const std::vector<int32_t> need = {0, 0};
    const FanOrderProblem problem{3,   4,   0.0, full, {own, part, need_begin, need},
                                  0.0, 0.0, 0.5, true, true};
    const auto order = fan_order(problem, values.data(), 1, [](int64_t) {});
    CHECK_EQUAL(order[0], 0);  // 1.5 for four rows, instead of 2
}

TEST(any_number_of_threads_finds_the_same_order) {
    Random random(3);
    constexpr int64_t kModels = 12, kRows = 900;
    std::vector<float> values(kModels * kRows);
    std::vector<double> full(kRows, 0.25), costs(kModels, 1.0);
    for (int64_t i = 0; i < kRows; ++i) {
        const double signal = random.normal();
        for (int64_t t = 0; t < kModels; ++t) {
            values[t * kRows + i] = static_cast<float>(0.05 * t * signal + 0.3 * random.normal());
            full[i] += values[t * kRows + i];
        }
    }
    const FanOrderProblem problem{kModels, kRows, 0.25, full, {costs, {}, {}, {}},
                                  0.1,     1.0,   0.05, true, true};
    std::vector<int64_t> steps;
    const auto expected =
        fan_order(problem, values.data(), 1, [&](int64_t done) { steps.push_back(done); });
    std::vector<int32_t> sorted = expected, all(kModels);
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    CHECK(sorted == all && expected != all);
    CHECK(std::is_sorted(steps.begin(), steps.end()) && steps.back() == kModels);
    for (int threads : {2, 3, 8})
        CHECK(fan_order(problem, values.data(), threads, [](int64_t) {}) == expected);
}

TEST(too_many_bins_are_refused) {
    Sample sample;
    for (double width : {1e-7, 1e-200, 1e-320}) {
        FanOrderProblem problem = sample.problem();
        problem.bin_width = width;
        CHECK_THROWS(sample.order(problem), "bin_width is too small");
    }
    FanOrderProblem most = sample.problem();  // 6 / width and a few bins
    most.bin_width = 6.0 / static_cast<double>(kMostBins - 2);
    CHECK_EQUAL(sample.order(most).size(), 2u);
}

}  // namespace
