// Algorithm 1 with the rule of Fan et al. in place of two thresholds per step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fit/search.hpp"

namespace qwyc {

// Bins that the running sums of one step may span; an array of them is held by each thread.
inline constexpr int64_t kMostBins = int64_t{1} << 22;

struct FanOrderProblem {
    int64_t n_models, n_rows;
    double base;                         // what every running sum starts from
    std::span<const double> full;        // (N,) full scores
    CostsView costs;                     // c_t, given what is chosen already
    double threshold, gamma, bin_width;  // gamma >= 0 and finite, bin_width > 0
    bool quit_negative, quit_positive;   // which early decisions are allowed
};

// The order, (T,). values: (T, N) by base model. At each step and for each base model not yet used,
// means and deviations of (running sum - full score) are taken by bin over the undecided rows.
// Throws std::invalid_argument where sums span more than kMostBins.
template <class Score>
std::vector<int32_t> fan_order(const FanOrderProblem& problem, const Score* values, int threads,
                               const Progress& progress);

}  // namespace qwyc
