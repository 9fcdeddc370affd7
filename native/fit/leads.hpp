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

// Of two classes or more. No branches, since which class leads is hard to predict: each line is one
// instruction such as maxsd. With a constant number of classes the loop is unrolled.
// sum_of(k) is the sum of class k, and is called once for each.
template <class SumOf>
Leader leader_by(int32_t n_classes, SumOf sum_of) {
    double best = sum_of(0), second = -kInf;
    int32_t index = 0;
    for (int32_t k = 1; k < n_classes; ++k) {
        const double sum = sum_of(k);
        const double lower = best < sum ? best : sum;
        index = sum > best ? k : index;
        second = lower > second ? lower : second;
        best = sum > best ? sum : best;
    }
    const double lead = best - second;
    return {index, lead > 0 ? lead : 0.0};
}

inline Leader leader_of(int32_t n_classes, const double* sums) {
    return leader_by(n_classes, [sums](int32_t k) { return sums[k]; });
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
