// Policies, and what they decide: evaluate base models in an order, stop a row as soon as a rule
// says so.
#pragma once

#include <cstdint>
#include <span>

#include "core/rule.hpp"
#include "core/target.hpp"

namespace qwyc {

struct PolicyView {
    std::span<const int32_t> order;  // (T,) the paper's pi
    ThresholdRule rule;
    TwoClasses target;
};

struct FanView {
    std::span<const int32_t> order;  // (T,)
    FanBins bins;
    TwoClasses target;
};

// One entry per row.
struct DecisionsOut {
    uint8_t* positive;  // the target's decision: 1 positive, 0 negative
    int32_t* steps;     // base models evaluated; T means complete
    double* score;      // the full score where complete, otherwise the running sum at the quit
};

// Over scores that are known already: values (T, n) by base model, full (n,). The last step has no
// rule: there the full score decides.
template <class Score>
void apply(const PolicyView& policy, const Score* values, double base, const double* full,
           int64_t n, const DecisionsOut& out, int threads);
template <class Score>
void apply_fan(const FanView& policy, const Score* values, double base, const double* full,
               int64_t n, const DecisionsOut& out, int threads);

}  // namespace qwyc
