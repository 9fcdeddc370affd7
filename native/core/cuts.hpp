// The thresholds of one feature as cuts, and how the rank of a value among them is found.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace qwyc {

// The sorted thresholds of one feature ("cuts", for x < cut), and how to find a value's rank among
// them, the number of cuts <= x. With a grid: cell = (x - low) * scale, cut to [0, cells), is
// monotone in x, so cuts in earlier cells are <= x and cuts in later cells > x; at most `probes`
// cuts share a cell and are compared one by one. Without a grid (cells is 0): by halving.
template <class Real>
struct Cuts {
    std::vector<Real> cut;       // (count + padding,) ascending, then NaN, which no x reaches
    std::vector<int32_t> start;  // (cells,) the first cut in each cell
    Real low = 0, scale = 0;
    int32_t count = 0, cells = 0, probes = 0, halvings = 0;

    // Takes `cut` as it was filled, in any order and with repetitions, and makes all the rest.
    void finish();
};

// A split sends x left where x < cut_of(threshold), for either rule of comparison.
template <class Real>
Real cut_of(Real threshold, bool less_equal) {
    return less_equal ? std::nextafter(threshold, std::numeric_limits<Real>::infinity())
                      : threshold;
}

// x <= infinity holds for every number: there is no cut.
template <class Real>
bool always_left(Real threshold, bool less_equal) {
    return less_equal && threshold == std::numeric_limits<Real>::infinity();
}

// The least float at or above a cut: x >= cut is the same for every float x.
template <class Real>
float single_cut(Real cut) {
    const auto rounded = static_cast<float>(cut);
    return static_cast<Real>(rounded) < cut
               ? std::nextafter(rounded, std::numeric_limits<float>::infinity())
               : rounded;
}

extern template struct Cuts<float>;
extern template struct Cuts<double>;

}  // namespace qwyc
