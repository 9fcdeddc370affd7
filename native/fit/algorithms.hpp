// Algorithms 1 and 2 of the paper: the order of the base models and two thresholds per step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fit/search.hpp"

namespace qwyc {

struct FitProblem {
    int64_t n_models, n_rows;
    double base;                        // what every running sum starts from
    std::span<const uint8_t> positive;  // (N,) full decisions
    CostsView costs;                    // c_t, given what is chosen already
    int64_t budget;                     // rows that may be decided differently: floor(alpha N)
    bool quit_negative, quit_positive;  // which early decisions are allowed
    bool split_budget;  // at most half of what is left for negative quits (otherwise all of it)
};

struct FitResult {
    std::vector<int32_t> order;        // (T,)
    std::vector<double> lower, upper;  // (T,) -inf and +inf where nothing quits
};

// values: (T, N) by base model. An empty `order` means Algorithm 1 chooses it; otherwise the given
// permutation is kept and only the thresholds are fitted (Algorithm 2 at every step).
template <class Score>
FitResult fit(const FitProblem& problem, const Score* values, std::span<const int32_t> order,
              int threads, const Progress& progress);

}  // namespace qwyc
