// Thresholds as cuts: ranks among them, and cuts that are rounded to floats.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/cuts.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

// The rank of x as the documentation of Cuts says that it is found.
template <class Real>
int32_t rank_of(const Cuts<Real>& cuts, Real x) {
    if (cuts.cells == 0) {
        int32_t rank = 0;
        for (int32_t half = 1 << cuts.halvings >> 1; half > 0; half >>= 1)
            rank += x >= cuts.cut.at(rank + half - 1) ? half : 0;
        return rank;
    }
    const Real cell = (x - cuts.low) * cuts.scale, last = Real(cuts.cells - 1);
    const int32_t first =
        cuts.start.at(static_cast<size_t>(cell > 0 ? (cell < last ? cell : last) : 0));
    int32_t rank = first;
    for (int32_t j = 0; j < cuts.probes; ++j) rank += x >= cuts.cut.at(first + j) ? 1 : 0;
    return rank;
}

template <class Real>
Cuts<Real> check_ranks(const std::vector<Real>& values) {
    constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    Cuts<Real> cuts;
    cuts.cut = values;
    cuts.finish();
    const std::set<Real> distinct(values.begin(), values.end());
    CHECK_EQUAL(cuts.count, static_cast<int32_t>(distinct.size()));
    CHECK(std::is_sorted(cuts.cut.begin(), cuts.cut.begin() + cuts.count));
    CHECK(std::all_of(cuts.cut.begin() + cuts.count, cuts.cut.end(),
                      [](Real x) { return std::isnan(x); }));
    std::vector<Real> asked = {0,
                               1,
                               -1,
                               kInfinity,
                               -kInfinity,
                               std::numeric_limits<Real>::denorm_min(),
                               std::numeric_limits<Real>::max(),
                               std::numeric_limits<Real>::lowest()};
    for (Real x : distinct)
        for (Real near : {x, std::nextafter(x, kInfinity), std::nextafter(x, -kInfinity)})
            asked.push_back(near);
    for (Real x : asked) {
        const auto at_most =
            std::count_if(distinct.begin(), distinct.end(), [x](Real cut) { return cut <= x; });
        CHECK_EQUAL(rank_of(cuts, x), static_cast<int32_t>(at_most));
    }
    return cuts;
}

template <class Real>
void check_cuts() {
    constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    check_ranks<Real>({});
    check_ranks<Real>({0});
    check_ranks<Real>({3, 3, 3, -1});
    check_ranks<Real>({-kInfinity, kInfinity});
    check_ranks<Real>({-kInfinity, 0, 1, 2, 3, kInfinity});
    check_ranks<Real>({std::numeric_limits<Real>::max(), std::numeric_limits<Real>::lowest(), 0});
    check_ranks<Real>(
        {std::numeric_limits<Real>::denorm_min(), 0, -std::numeric_limits<Real>::denorm_min(), 1});
    Random random(1);
    for (int32_t n : {2, 3, 7, 8, 9, 60, 254, 255, 256, 1000}) {
        std::vector<Real> even, uneven;
        for (int32_t i = 0; i < n; ++i) {
            even.push_back(static_cast<Real>(random.normal()));
            uneven.push_back(static_cast<Real>(std::pow(10.0, -30 * random.uniform())));
        }
        const Cuts<Real> on_grid = check_ranks(even);
        if (n >= 60) CHECK(on_grid.cells > 0);
        check_ranks(uneven);
    }
}

TEST(ranks_among_cuts) {
    check_cuts<float>();
    check_cuts<double>();
}

TEST(cuts_far_from_even_are_found_by_halving) {
    std::vector<float> clustered = {-7, -1};
    for (int i = 0; i < 60; ++i) clustered.push_back(std::pow(10.0f, -6.0f + 0.1f * float(i)));
    CHECK_EQUAL(check_ranks(clustered).cells, 0);
}

TEST(a_cut_says_left_as_the_threshold_does) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (float threshold : {0.0f, -0.0f, 1.5f, -3e38f, 1e-45f, -kInfinity}) {
        for (float x : {threshold, std::nextafter(threshold, kInfinity),
                        std::nextafter(threshold, -kInfinity), 0.0f, -kInfinity, kInfinity}) {
            CHECK_EQUAL(x < cut_of(threshold, false), x < threshold);
            CHECK_EQUAL(x < cut_of(threshold, true), x <= threshold);
        }
        CHECK(!always_left(threshold, true));
    }
    CHECK(always_left(kInfinity, true));
    CHECK(!always_left(kInfinity, false));  // x < infinity is false for infinity
}

TEST(a_cut_between_doubles_is_the_same_for_every_float) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr auto kDenormal = static_cast<double>(std::numeric_limits<float>::denorm_min());
    std::vector<double> cuts = {0.0,        -0.0,       0.1,
                                -0.1,       1e300,      -1e300,
                                1e-300,     -1e-300,    3.5e38,
                                -3.5e38,    1e-40,      -1e-40,
                                16777217.0, kDenormal,  kDenormal / 2,
                                kInfinity,  -kInfinity, std::numeric_limits<float>::max()};
    for (size_t i = cuts.size(); i-- > 0;)
        for (double way : {kInfinity, -kInfinity}) cuts.push_back(std::nextafter(cuts[i], way));
    for (double cut : cuts) {
        const float rounded = single_cut(cut);
        for (float near : {static_cast<float>(cut), rounded, 0.0f})
            for (float x : {near, std::nextafter(near, static_cast<float>(kInfinity)),
                            std::nextafter(near, static_cast<float>(-kInfinity))})
                CHECK_EQUAL(x >= rounded, x >= cut);
        CHECK(!(std::numeric_limits<float>::quiet_NaN() >= rounded));
    }
    for (float cut : {0.1f, -0.0f, 1e-45f, static_cast<float>(kInfinity)})
        CHECK(check::same(single_cut(cut), cut));
}

}  // namespace
