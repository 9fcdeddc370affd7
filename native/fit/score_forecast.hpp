// What the running sum at a step says about the full score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/target.hpp"

namespace qwyc {

// How much an outlook is smoothed, and how far it is believed.
struct Smoothing {
    int64_t fewest_rows;  // a step that fewer rows reach keeps its thresholds
    int64_t most_bins, rows_per_bin;
    double pseudo_rows;  // weight of the pooled deviation in a bin's
    double trend_rows;   // weight of the line in a bin's mean
    double share;        // of the outlook in a price; the rest is the row's own full decision
};

// Sums are on a scale: what is closer than this is equal but for rounding, and stays together.
inline double rounding(double least, double most) {
    return 1e-9 * (most - least);
}

// The full score given the running sum at one step, estimated from the rows that reach it: a line
// through all of them, and by how much bins of them are off it, linear between their centres;
// the deviation is constant in a bin.
struct Outlook {
    double slope = 0;               // of the line, which goes through (0, 0)
    std::vector<double> centre;     // (bins,) ascending: mean running sum of the bin's rows
    std::vector<double> mean;       // (bins,) mean of the bin's full scores less the line
    std::vector<double> deviation;  // (bins,) of the full score, drawn to the pooled one

    // From rows in order of their running sums. `full` (n,) are their full scores, and are lost.
    void fit(std::span<const double> sums, std::span<double> full, const Smoothing& smoothing);

    // The probability that a row with this running sum ends negative. `next` is the first
    // bin whose centre is above the sum.
    double below(double sum, size_t next, const TwoClasses& target) const;
    size_t next(double sum) const;
};

}  // namespace qwyc
