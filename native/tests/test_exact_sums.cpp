// Which sums are integers (core/exact_sums.hpp).
#include <cmath>
#include <limits>
#include <vector>

#include "core/exact_sums.hpp"
#include "core/float_mode.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

// Stumps with these values, in this order, on a base. Returns which of their steps, each taken as a
// segment of its own, have integer sums.
std::vector<int32_t> exact_steps(const std::vector<double>& values, double base,
                                 double lower = -1.0, double upper = 1.0) {
    Trees<float> trees;
    trees.rules.base = base;
    for (double value : values) trees.add_stump(0, 0.5f, 0, value, 0);
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    const std::vector<int32_t> order = natural_order(trees.n_trees());
    const std::vector<double> low(order.size(), lower), high(order.size(), upper);
    const ExactUnits units(forest, order);
    std::vector<int32_t> found;
    for (int32_t step : order) {
        const MaskedTrees layout = lay_out(forest, questions, std::span(&step, 1), false);
        if (units.sums(layout, {low, high}, step)) found.push_back(step);
    }
    return found;
}

using Steps = std::vector<int32_t>;

TEST(sums_of_common_values_are_integers) {
    CHECK(exact_steps({0.1, -0.25, 1e-3, 0}, 0) == (Steps{0, 1, 2, 3}));
    CHECK(exact_steps({0.1, -0.25}, 0.5) == (Steps{0, 1}));
    CHECK(exact_steps({1e30, 3e30}, 0) == (Steps{0, 1}));
    CHECK(exact_steps({1e-30, -3e-30}, 0) == (Steps{0, 1}));
}

TEST(a_sum_that_is_rounded_ends_them) {
    CHECK(exact_steps({0.1, 1e-20, 0.1}, 0) == (Steps{0}));
    CHECK(exact_steps({1e-20, 0.1, 0.1}, 0) == (Steps{0}));
    CHECK(exact_steps({0.1}, 0.1) == (Steps{}));  // a double of 53 bits
    CHECK(exact_steps({0.1}, -0.0) == (Steps{}));
    CHECK(exact_steps({0.0}, 0.0) == (Steps{0}));
    CHECK(exact_steps({0x1p20, 0x1p-28}, 0) == (Steps{0, 1}));
    CHECK(exact_steps({0x1p20, 0x1p-32}, 0) == (Steps{0}));
}

TEST(thresholds_that_are_no_interval) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(exact_steps({0.25}, 0, 1, 1) == (Steps{0}));
    CHECK(exact_steps({0.25}, 0, -kInf, kInf) == (Steps{0}));
    CHECK(exact_steps({0.25}, 0, 1, 0.5) == (Steps{}));
    CHECK(exact_steps({0.25}, 0, nan, 1) == (Steps{}));
    CHECK(exact_steps({0.25}, 0, -1, nan) == (Steps{}));
}

TEST(windows_hold_what_goes_on) {
    Trees<float> trees;
    for (int32_t t = 0; t < 3; ++t) trees.add_stump(0, 0.5f, 0, 0.5, -0.5);
    const Forest<float> forest = trees.forest();
    const std::vector<int32_t> order = natural_order(3);
    const MaskedTrees layout = lay_out(forest, Questions<float>(forest), order, false);
    const std::vector<double> lower = {-0.5, -kInf, 0.25}, upper = {0.5, 1.0, 0.25};
    const auto found = ExactUnits(forest, order).sums(layout, {lower, upper}, 0);
    CHECK(found.has_value());
    const double step = std::ldexp(found->unit, ExactSums::kLowerBits);
    const ExactSums::Windows& windows = found->windows.at(0);
    const auto half = static_cast<int32_t>(0.5 / step);
    CHECK_EQUAL(windows.low.of[0], -half);
    CHECK_EQUAL(windows.low.of[0] + windows.width.of[0], half - 2);
    CHECK_EQUAL(windows.near_low.of[0], -half - 1);
    CHECK_EQUAL(windows.near_low.of[0] + windows.near_width.of[0], half);
    CHECK(windows.low.of[1] < -(1 << 29));
    CHECK_EQUAL(windows.width.of[2], 0);  // no sum certainly goes on
    CHECK_EQUAL(windows.low.of[2], std::numeric_limits<int32_t>::max());
    CHECK_EQUAL(windows.near_width.of[2], 3);
}

// A threshold next to zero: a sum of zero is below it, also where it is far less than a step, and
// in any mode of the thread.
TEST(a_sum_of_zero_is_below_the_smallest_threshold) {
    constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
    for (const double largest : {0.25, 0x1p30}) {
        Trees<float> trees;
        trees.add_stump(0, 0.5f, 0, largest, -largest);
        const Forest<float> forest = trees.forest();
        const std::vector<int32_t> order = natural_order(1);
        const MaskedTrees layout = lay_out(forest, Questions<float>(forest), order, false);
        const std::vector<double> lower = {kSmallest}, upper = {kInf};
#ifdef QWYC_FLOAT_MODES
        const auto before = FloatMode::get();
        FloatMode::set(before | FloatMode::kNoDenormals);
#endif
        const auto found = ExactUnits(forest, order).sums(layout, {lower, upper}, 0);
#ifdef QWYC_FLOAT_MODES
        FloatMode::set(before);
#endif
        CHECK(found.has_value());
        CHECK_EQUAL(found->windows.at(0).low.of[0], 1);
    }
}

}  // namespace
