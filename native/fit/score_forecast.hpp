// A forecast of the full score from the running sum at a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/estimates.hpp"
#include "core/target.hpp"

namespace qwyc {

// How a forecast is smoothed, and how much weight it has.
struct Smoothing {
    int64_t fewest_rows;  // a step that fewer rows reach keeps its thresholds
    int64_t most_bins, rows_per_bin;
    double pseudo_rows;     // weight of the pooled deviation in a bin's
    double trend_rows;      // weight of the line in a bin's mean
    double forecast_share;  // weight of the forecast against the row's own full decision
};

// Sums that differ by no more than this differ by rounding only, and are treated as equal.
inline double rounding(double least, double most) {
    return 1e-9 * (most - least);
}

// The full score given the running sum at one step, estimated from the rows that reach it: the
// least squares line through all of them, plus the mean distance of each bin from it, interpolated
// between the centres of the bins. The standard deviation is constant within a bin.
struct ScoreForecast {
    double slope = 0;               // of the line; its intercept is in `mean`
    std::vector<double> centre;     // (bins,) ascending: mean running sum of the bin's rows
    std::vector<double> mean;       // (bins,) mean of the bin's full scores less the line
    std::vector<double> deviation;  // (bins,) of the full score, shrunk to the pooled one

    // Fits rows sorted by running sum. `full` (n,), their full scores, is overwritten.
    void fit(std::span<const double> sums, std::span<double> full, const Smoothing& smoothing);

    // The probability that the full score of a row with this running sum decides negative.
    // next_bin: the first bin whose centre is above the sum, as `bin_above` gives it.
    double probability_negative(double sum, size_t next_bin, const TwoClasses& target) const;
    // The probability that it is below `low` or above `high`.
    double probability_outside(double sum, size_t next_bin, double low, double high) const;
    // The mean of the full score.
    double expected(double sum, size_t next_bin) const {
        return estimated_score(slope, centre, mean, sum, next_bin);
    }
    size_t bin_above(double sum) const;

  private:
    double deviation_at(double sum, size_t next_bin) const;
};

}  // namespace qwyc
