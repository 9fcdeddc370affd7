#include "core/parallel.hpp"
#include "core/policy.hpp"

namespace qwyc {

namespace {

// Rows that are evaluated together, step by step; their running sums fit the first-level cache.
constexpr int32_t kBlock = 128;

// rule(r, sum) is the outcome for a row after step r.
template <class Rule, DecisionTarget Target, class Score>
void apply_rule(std::span<const int32_t> order, const Rule& rule, const Target& target,
                const Score* values, double base, const double* full, int64_t n,
                const DecisionsOut& out, int threads) {
    const auto n_models = static_cast<int32_t>(order.size());
    const auto complete = [=](int64_t i) {
        out.score[i] = full[i];
        out.positive[i] = target.decide(full[i]);
        out.steps[i] = n_models;
    };
    parallel_for(n, kBlock, threads, [=, &rule](int64_t begin, int64_t end) {
        int32_t undecided[kBlock];  // counted from `begin`, ascending
        double sum[kBlock];         // running sums, by the same count
        auto n_undecided = static_cast<int32_t>(end - begin);
        for (int32_t j = 0; j < n_undecided; ++j) undecided[j] = j, sum[j] = base;

        for (int32_t r = 0; r + 1 < n_models && n_undecided > 0; ++r) {
            const Score* column = values + order[r] * n + begin;
            int32_t kept = 0;
            for (int32_t k = 0; k < n_undecided; ++k) {
                const int32_t j = undecided[k];
                sum[j] += column[j];
                const Outcome outcome = rule(r, sum[j]);
                undecided[kept] = j;
                kept += outcome == Outcome::kContinue;
                if (outcome == Outcome::kInFull) {
                    complete(begin + j);
                } else if (outcome != Outcome::kContinue) {
                    out.positive[begin + j] = Target::decision_of(outcome);
                    out.steps[begin + j] = r + 1;
                    out.score[begin + j] = sum[j];
                }
            }
            n_undecided = kept;
        }
        for (int32_t k = 0; k < n_undecided; ++k) complete(begin + undecided[k]);
    });
}

}  // namespace

template <class Score>
void apply(const PolicyView& policy, const Score* values, double base, const double* full,
           int64_t n, const DecisionsOut& out, int threads) {
    apply_rule(policy.order, policy.rule, policy.target, values, base, full, n, out, threads);
}

template <class Score>
void apply_fan(const FanView& policy, const Score* values, double base, const double* full,
               int64_t n, const DecisionsOut& out, int threads) {
    apply_rule(policy.order, FanRule(policy.bins, policy.order.size()), policy.target, values, base,
               full, n, out, threads);
}

template void apply(const PolicyView&, const float*, double, const double*, int64_t,
                    const DecisionsOut&, int);
template void apply(const PolicyView&, const double*, double, const double*, int64_t,
                    const DecisionsOut&, int);
template void apply_fan(const FanView&, const float*, double, const double*, int64_t,
                        const DecisionsOut&, int);
template void apply_fan(const FanView&, const double*, double, const double*, int64_t,
                        const DecisionsOut&, int);

}  // namespace qwyc
