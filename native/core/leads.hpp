// Leads of many classes: after a step the class with the largest running sum leads, the first of
// equal ones, and its lead is the distance to the runner-up.
#pragma once

#include <cstdint>
#include <span>

#include "core/rule.hpp"

namespace qwyc {

// The two largest of some sums, equal ones counted each.
struct TopTwo {
    double best, second;

    // At least 0; 0 as well where sums are infinite and have no distance.
    double lead() const { return best - second > 0 ? best - second : 0.0; }
};

// It does not look for the class, since most rows do not quit after most steps. Vectors of two are
// what every 64-bit processor has; on plain numbers compilers make branches, which are
// mispredicted.
inline TopTwo top_two(int32_t n_classes, const double* sums) {
    using Pair [[gnu::vector_size(16)]] = double;
    const auto larger = [](Pair a, Pair b) { return a > b ? a : b; };
    const auto smaller = [](Pair a, Pair b) { return a < b ? a : b; };
    Pair best = {-kInf, -kInf}, second = best;
    const auto add = [&](Pair sum) {
        second = larger(smaller(best, sum), second);
        best = larger(sum, best);
    };
    int32_t k = 0;
    for (; k + 2 <= n_classes; k += 2) add(Pair{sums[k], sums[k + 1]});
    if (k < n_classes) add(Pair{sums[k], -kInf});
    const Pair other = {best[1], best[0]};
    const Pair seconds = larger(second, Pair{second[1], second[0]});
    return {larger(best, other)[0], larger(smaller(best, other), seconds)[0]};
}

// The first class that has the largest sum.
inline int32_t first_with(int32_t n_classes, const double* sums, double best) {
    for (int32_t k = 0; k < n_classes; ++k)
        if (sums[k] == best) return k;
    return 0;
}

struct Leader {
    int32_t index;
    double lead;
};

inline Leader leader_of(int32_t n_classes, const double* sums) {
    const TopTwo top = top_two(n_classes, sums);
    return {first_with(n_classes, sums, top.best), top.lead()};
}

// Thresholds on the lead. A row quits for the class that leads where its lead exceeds the class's
// threshold; at the last step the full scores decide. If it goes on, classes that are behind by
// more than the step's `drop` are ruled out: their sums become -inf.
// A filter for one class, `only`: a row quits for the best other class where that is ahead of
// `only` by more than the step's threshold, which is the same for all classes and any number.
struct LeadPolicyView {
    std::span<const int32_t> order;  // (T,)
    std::span<const double> lead;    // (T, K) at least 0; inf where nothing quits
    int32_t n_classes;
    std::span<const double> drop =
        {};             // (T,) at least 0; inf, or empty, where nothing is ruled out
    int32_t only = -1;  // the class of a filter; -1: rows quit for any class
};

// The first class that has the largest sum besides `only`, of all where that is -1; `stride` from
// one sum to the next.
inline int32_t best_other(int32_t n_classes, int32_t only, const double* sums, int64_t stride = 1) {
    int32_t best = only == 0 ? 1 : 0;
    for (int32_t k = best + 1; k < n_classes; ++k)
        if (k != only && sums[k * stride] > sums[best * stride]) best = k;
    return best;
}

// Rules classes out; `stride` from one sum to the next.
inline void rule_out(int32_t n_classes, double best, double drop, double* sums,
                     int64_t stride = 1) {
    for (int32_t k = 0; k < n_classes; ++k)
        if (best - sums[k * stride] > drop) sums[k * stride] = -kInf;
}

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
