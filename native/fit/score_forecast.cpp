#include "fit/score_forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace qwyc {

namespace {

// The normal distribution's cumulative function on a grid, linear in between (error below 1e-5).
// Computed with the four basic operations only, so that it is the same on every machine; library
// versions of erfc differ.
constexpr double kPhiEnd = 8.0;
constexpr int kPhiPerUnit = 64;
constexpr int kPhiCells = 2 * static_cast<int>(kPhiEnd) * kPhiPerUnit;

std::array<double, kPhiCells + 1> make_phi_table() {
    // The density's ratio from grid point to grid point is exp(-x h - h^2 / 2), |x h| <= 1/8.
    const double h = 1.0 / kPhiPerUnit;
    const auto exp_small = [](double y) {
        double term = 1, sum = 1;
        for (int k = 1; k < 20; ++k) sum += term *= y / k;
        return sum;
    };
    std::array<double, kPhiCells + 1> density{}, table{};
    const int middle = kPhiCells / 2;
    density[middle] = 1.0;
    for (int i = middle; i < kPhiCells; ++i) {
        const double x = (i - middle) * h;
        density[i + 1] = density[i] * exp_small(-x * h - h * h / 2);
    }
    for (int i = 0; i < middle; ++i) density[i] = density[kPhiCells - i];
    for (int i = 0; i < kPhiCells; ++i) {
        const double centre = density[i] * exp_small(-(-kPhiEnd + i * h) * h / 2 - h * h / 8);
        table[i + 1] = table[i] + (density[i] + 4 * centre + density[i + 1]) / 6;  // Simpson
    }
    for (int i = 0; i <= kPhiCells; ++i) table[i] /= table[kPhiCells];
    return table;
}

double phi(double z) {
    static const auto table = make_phi_table();
    const double at = (z + kPhiEnd) * kPhiPerUnit;
    if (!(at > 0)) return 0;
    if (at >= kPhiCells) return 1;
    const int cell = static_cast<int>(at);
    return table[cell] + (at - cell) * (table[cell + 1] - table[cell]);
}

}  // namespace

size_t ScoreForecast::bin_above(double sum) const {
    return std::upper_bound(centre.begin(), centre.end(), sum) - centre.begin();
}

double ScoreForecast::deviation_at(double sum, size_t next_bin) const {
    const size_t left = next_bin == 0 ? 0 : next_bin - 1;
    const size_t right = std::min(next_bin, centre.size() - 1);
    const double width = centre[right] - centre[left];
    const double share = width > 0 ? (sum - centre[left]) / width : 0.0;
    return share < 0.5 ? deviation[left] : deviation[right];
}

double ScoreForecast::probability_negative(double sum, size_t next_bin,
                                           const TwoClasses& target) const {
    const double m = expected(sum, next_bin), s = deviation_at(sum, next_bin);
    if (!(s > 0)) return target.is_negative(m) ? 1.0 : 0.0;
    return phi((target.threshold - m) / s);
}

double ScoreForecast::probability_outside(double sum, size_t next_bin, double low,
                                          double high) const {
    const double m = expected(sum, next_bin), s = deviation_at(sum, next_bin);
    if (!(s > 0)) return m < low || m > high ? 1.0 : 0.0;
    return 1 - (phi((high - m) / s) - phi((low - m) / s));
}

// Bins have about the same number of rows; equal sums are in one bin.
void ScoreForecast::fit(std::span<const double> sums, std::span<double> full,
                        const Smoothing& smoothing) {
    const auto n = static_cast<int64_t>(sums.size());
    const auto& [fewest_rows, most_bins, rows_per_bin, pseudo_rows, trend_rows, forecast_share] =
        smoothing;
    const double tie = rounding(sums.front(), sums.back());
    const int64_t wanted =
        std::max<int64_t>(1, std::min(most_bins, n / std::max<int64_t>(1, rows_per_bin)));
    std::vector<int64_t> edge = {0};  // (bins + 1,)
    for (int64_t b = 1; b <= wanted; ++b) {
        int64_t to = std::max(b * n / wanted, edge.back());
        while (to > 0 && to < n && sums[to] - sums[to - 1] <= tie) ++to;
        if (to > edge.back()) edge.push_back(to);
    }
    const auto bins = static_cast<int64_t>(edge.size()) - 1;
    centre.assign(bins, 0.0);
    mean.assign(bins, 0.0);
    deviation.assign(bins, 0.0);
    // The least squares line; trend_rows is its weight, in rows, in the mean of a bin.
    double sum_g = 0, sum_f = 0, square_g = 0, product = 0;
    for (int64_t j = 0; j < n; ++j) {
        sum_g += sums[j];
        sum_f += full[j];
    }
    const double rows = static_cast<double>(n), mean_g = sum_g / rows, mean_f = sum_f / rows;
    for (int64_t j = 0; j < n; ++j) {
        const double gap = sums[j] - mean_g;
        square_g += gap * gap;
        product += gap * (full[j] - mean_f);
    }
    slope = square_g > 0 ? product / square_g : 0.0;
    double pooled = 0;
    for (int64_t j = 0; j < n; ++j) full[j] -= slope * sums[j];
    for (int64_t b = 0; b < bins; ++b) {
        const int64_t from = edge[b], to = edge[b + 1];
        double sum_bin = 0, off = 0, square = 0;
        for (int64_t j = from; j < to; ++j) {
            sum_bin += sums[j];
            off += full[j];
        }
        const auto count = static_cast<double>(to - from);
        centre[b] = sum_bin / count;
        mean[b] = (off + trend_rows * (mean_f - slope * mean_g)) / (count + trend_rows);
        for (int64_t j = from; j < to; ++j) {
            const double gap = full[j] - mean[b];
            square += gap * gap;
        }
        deviation[b] = square;
        pooled += square;
    }
    pooled /= static_cast<double>(n);
    for (int64_t b = 0; b < bins; ++b) {
        const auto count = static_cast<double>(edge[b + 1] - edge[b]);
        deviation[b] = std::sqrt((deviation[b] + pseudo_rows * pooled) / (count + pseudo_rows));
    }
}

}  // namespace qwyc
