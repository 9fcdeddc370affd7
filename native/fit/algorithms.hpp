// Algorithms 1 and 2 of the paper: the order of the base models and two thresholds per step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace qwyc {

// What base models cost. A part that several of them need is paid for by the first that needs it.
struct CostsView {
    std::span<const double> own;    // (T,) without shared parts
    std::span<const double> parts;  // (P,); where it is empty, so may the next two be
    // Base model t needs the parts need[need_begin[t]] to need[need_begin[t + 1] - 1].
    std::span<const int64_t> need_begin;  // (T + 1,)
    std::span<const int32_t> need;
};

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

// Called after every step with the number of steps done; what it throws ends the fit.
using Progress = std::function<void(int64_t)>;

// values: (T, N) by base model. An empty `order` means Algorithm 1 chooses it; otherwise the given
// permutation is kept and only the thresholds are fitted (Algorithm 2 at every step).
template <class Score>
FitResult fit(const FitProblem& problem, const Score* values, std::span<const int32_t> order,
              int threads, const Progress& progress);

}  // namespace qwyc
