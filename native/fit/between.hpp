// Where a threshold goes between two observed running sums.
#pragma once

namespace qwyc {

// Halfway between two neighbouring sums; `fallback` (one of them) where no number lies between.
inline double between(double a, double b, double fallback) {
    const double middle = 0.5 * a + 0.5 * b;
    return a < middle && middle < b ? middle : fallback;
}

}  // namespace qwyc
