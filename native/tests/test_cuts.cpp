// Thresholds as cuts.
#include <random>
#include <vector>

#include "core/cuts.hpp"
#include "tests/check.hpp"

using namespace qwyc;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Real>
std::vector<Real> hostile_values() {
    using Limits = std::numeric_limits<Real>;
    std::vector<Real> values{0,
                             Real(-0.0),
                             1,
                             -1,
                             Limits::denorm_min(),
                             -Limits::denorm_min(),
                             Limits::min(),
                             Limits::max(),
                             Limits::lowest(),
                             Limits::infinity(),
                             -Limits::infinity()};
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    for (int i = 0; i < 100; ++i) values.push_back(static_cast<Real>(normal(random)));
    for (size_t i = 0, n = values.size(); i < n; ++i) {
        values.push_back(std::nextafter(values[i], Limits::infinity()));
        values.push_back(std::nextafter(values[i], -Limits::infinity()));
    }
    return values;
}

template <class Real>
void check_rules_of_comparison() {
    const std::vector<Real> values = hostile_values<Real>();
    for (Real threshold : values)
        for (Real x : values) {
            CHECK((x < cut_of(threshold, false)) == (x < threshold));
            const bool left = always_left(threshold, true) || x < cut_of(threshold, true);
            CHECK(left == (x <= threshold));
            CHECK(!always_left(threshold, false));
        }
}

}  // namespace

TEST(both_rules_of_comparison_are_cuts) {
    check_rules_of_comparison<float>();
    check_rules_of_comparison<double>();
}

TEST(a_cut_between_doubles_is_rounded_for_floats) {
    std::vector<double> cuts = hostile_values<double>();
    for (float value : hostile_values<float>()) {
        cuts.push_back(value);
        cuts.push_back(std::nextafter(static_cast<double>(value), kInfinity));
        cuts.push_back(std::nextafter(static_cast<double>(value), -kInfinity));
    }
    for (double cut : cuts)
        for (float x : hostile_values<float>())
            CHECK((x >= single_cut(cut)) == (static_cast<double>(x) >= cut));
    for (float cut : hostile_values<float>()) CHECK(single_cut(cut) == cut);
}
