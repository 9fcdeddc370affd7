// Leads of many classes: after a step the class with the largest running sum leads, the first of
// equal ones, and its lead is the distance to the runner-up.
#pragma once

#include <cstdint>
#include <span>

#include "core/rule.hpp"

namespace qwyc {

struct Leader {
    int32_t index = 0;
    double lead = 0;  // at least 0; 0 as well where sums are infinite and have no distance
};

// Of two classes or more. No branches: which class leads is hard to predict.
inline Leader leader_of(const double* sums, int32_t n_classes) {
    double best = sums[0], second = -kInf;
    int32_t index = 0;
    for (int32_t k = 1; k < n_classes; ++k) {
        const bool ahead = sums[k] > best;
        const double lower = ahead ? best : sums[k];
        second = lower > second ? lower : second;
        best = ahead ? sums[k] : best;
        index = ahead ? k : index;
    }
    const double lead = best - second;
    return {index, lead > 0 ? lead : 0.0};
}

// Thresholds on the lead. A row quits for the class that leads where its lead exceeds the class's
// threshold; at the last step the full scores decide.
struct LeadPolicyView {
    std::span<const int32_t> order;  // (T,)
    std::span<const double> lead;    // (T, K) at least 0; inf where nothing quits
    int32_t n_classes;
};

struct LeadDecisionsOut {
    int64_t* label;  // (N,)
    int32_t* steps;  // (N,)
    double* score;   // (N, K) full scores where all base models were evaluated, else running sums
};

// values: (T, N, K) by base model; base: (K,); full: (N, K).
template <class Score>
void apply_leads(const LeadPolicyView& policy, const Score* values, const double* base,
                 const double* full, int64_t n, const LeadDecisionsOut& out, int threads);

}  // namespace qwyc
