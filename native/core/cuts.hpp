// Thresholds as cuts: both rules of comparison become one.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace qwyc {

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
    if constexpr (std::is_same_v<Real, float>) return cut;
    const auto rounded = static_cast<float>(cut);
    return static_cast<Real>(rounded) < cut
               ? std::nextafter(rounded, std::numeric_limits<float>::infinity())
               : rounded;
}

}  // namespace qwyc
