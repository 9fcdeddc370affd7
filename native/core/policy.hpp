// Quitting: evaluate base models in policy order, stop a row as soon as a threshold is crossed.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace qwyc {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

struct PolicyView {
    std::span<const int32_t> order;        // (T,) the paper's pi
    std::span<const double> lower, upper;  // (T,) eps- and eps+; quit where sum < lower or > upper
    double threshold;                      // beta: a complete row is positive where score >= beta
};

// One entry per row.
struct DecisionsOut {
    uint8_t* positive;  // 1 positive, 0 negative
    int32_t* steps;     // base models evaluated; T means complete
    double* score;      // the full score where complete, otherwise the running sum at the quit
};

// Over scores that are known already: values (T, n) by base model, full (n,).
template <class Score>
void apply(const PolicyView& policy, const Score* values, double base, const double* full,
           int64_t n, const DecisionsOut& out, int threads);

// The rule of Fan et al. (2002): thresholds by step and by bin of the running sum.
struct FanView {
    std::span<const int32_t> order;        // (T,)
    std::span<const int64_t> bin_begin;    // (T,) or more: step r owns bins [r] to [r + 1]
    std::span<const int64_t> bin;          // floor(running sum / bin_width), each once a step
    std::span<const double> lower, upper;  // by bin: quit where sum < lower or > upper
    double bin_width;
    double threshold;
};

// As `apply` above; a row whose bin was never seen is evaluated in full.
template <class Score>
void apply_fan(const FanView& policy, const Score* values, double base, const double* full,
               int64_t n, const DecisionsOut& out, int threads);

}  // namespace qwyc
