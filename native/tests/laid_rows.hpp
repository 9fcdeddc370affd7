// Rows in every layout that engines read, and rows that lie on and beside the cuts of a forest.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/rows_view.hpp"
#include "tests/forests.hpp"

namespace qwyc::tests {

struct Layout {
    const char* name;
    int64_t row_stride, column_stride;
};

// Layouts of n rows: in C order, in Fortran order, as parts of larger arrays, and backwards.
inline std::vector<Layout> layouts(int64_t n, int64_t width) {
    return {{"rows", width, 1},
            {"spaced rows", width + 3, 1},
            {"columns", 1, n},
            {"spaced columns", 1, n + 5},
            {"every second column", 2 * width + 1, 2},
            {"rows backwards", -width, 1},
            {"columns backwards", 1, -n}};
}

// The first n rows of an array in C order, in memory that begins and ends with them: a sanitizer
// finds reads before the first number and past the last.
template <class In>
class LaidRows {
  public:
    LaidRows(const std::vector<In>& rows, int64_t n, int64_t width, const Layout& layout)
        : n_(n), width_(width), layout_(layout) {
        if (n == 0 || width == 0) return;
        const int64_t down = (n - 1) * layout.row_stride,
                      across = (width - 1) * layout.column_stride;
        first_ = -(std::min<int64_t>(down, 0) + std::min<int64_t>(across, 0));
        memory_.assign(std::abs(down) + std::abs(across) + 1, In(777));
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < width; ++j)
                memory_[first_ + i * layout.row_stride + j * layout.column_stride] =
                    rows[i * width + j];
    }

    RowsView<In> view() const {
        return {memory_.data() + first_, n_, width_, layout_.row_stride, layout_.column_stride};
    }

  private:
    int64_t n_, width_, first_ = 0;
    Layout layout_;
    std::vector<In> memory_;
};

// Rows in C order, as they are.
template <class In>
RowsView<In> in_c_order(const std::vector<In>& rows, int64_t n, int64_t width) {
    return {rows.data(), n, width, width, 1};
}

// Replaces some thresholds by infinities, zeros of both signs, denormals and the largest numbers.
template <class Real>
void make_thresholds_odd(Trees<Real>& trees, uint64_t seed) {
    using Limits = std::numeric_limits<Real>;
    std::vector<Real> odd = {Limits::infinity(),
                             -Limits::infinity(),
                             Limits::max(),
                             Limits::lowest(),
                             Limits::denorm_min(),
                             -Limits::denorm_min(),
                             Real(0),
                             -Real(0),
                             static_cast<Real>(1e-40),
                             Real(1e-35f),
                             static_cast<Real>(0.1)};
    if constexpr (std::is_same_v<Real, double>)  // beyond and between floats
        odd.insert(odd.end(), {1e300, -1e300, 1e-300, -1e-300, 3.5e38, -3.5e38, 16777217.0});
    Random random(seed);
    for (Real& at : trees.threshold)
        if (random.below(5) == 0) at = odd[random.below(static_cast<int32_t>(odd.size()))];
}

// (n, n_features): for each feature numbers on its thresholds and beside them, in the precision of
// the rows and of the forest; NaN of both signs, infinities, zeros, denormals; category codes, also
// with a fraction, below zero and above all sets.
template <class In, class Real>
std::vector<In> hostile_rows(const Trees<Real>& trees, uint64_t seed, int64_t n) {
    using Limits = std::numeric_limits<In>;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr auto kDenormal = static_cast<double>(std::numeric_limits<float>::denorm_min());
    const In nan = Limits::quiet_NaN();
    std::vector<In> odd = {nan,
                           std::copysign(nan, In(-1)),
                           Limits::denorm_min(),
                           -Limits::denorm_min(),
                           Limits::max(),
                           Limits::lowest()};
    for (double x : {kInfinity,  -kInfinity, 0.0,        -0.0,         kDenormal, -kDenormal, 1e-40,
                     1e-36,      -1e-36,     1e-35,      -1e-35,       -0.5,      -0.999,     -1.0,
                     -1.5,       0.5,        3.7,        31.5,         63.0,      64.0,       69.0,
                     16777215.0, 16777216.0, 16777217.0, 2147483648.0, 1e30,      -1e30})
        odd.push_back(static_cast<In>(x));
    for (In x : {In(1e-35f), In(-1e-35f)})
        for (double way : {kInfinity, -kInfinity})
            odd.push_back(std::nextafter(x, static_cast<In>(way)));
    std::vector<std::vector<In>> beside(trees.n_features, odd);
    for (size_t i = 0; i < trees.feature.size(); ++i) {
        const Real at = trees.threshold[i];
        std::vector<In>& of_feature = beside[trees.feature[i]];
        for (Real x :
             {at, std::nextafter(at, Real(kInfinity)), std::nextafter(at, Real(-kInfinity))}) {
            const auto near = static_cast<In>(x);
            for (In y :
                 {near, std::nextafter(near, In(kInfinity)), std::nextafter(near, In(-kInfinity))})
                of_feature.push_back(y);
            // Half way to the next float, where a double is rounded.
            const auto up =
                std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity());
            of_feature.push_back(
                static_cast<In>((static_cast<double>(static_cast<float>(x)) + up) / 2));
        }
    }
    Random random(seed);
    std::vector<In> rows(n * trees.n_features);
    for (size_t i = 0; i < rows.size(); ++i) {
        const std::vector<In>& near = beside[i % trees.n_features];
        const double kind = random.uniform();
        if (kind < 0.15)
            rows[i] = odd[random.below(static_cast<int32_t>(odd.size()))];
        else if (kind < 0.5)
            rows[i] = near[random.below(static_cast<int32_t>(near.size()))];
        else if (kind < 0.7)
            rows[i] = static_cast<In>(random.below(80));
        else
            rows[i] = static_cast<In>(random.normal());
    }
    return rows;
}

}  // namespace qwyc::tests
