#include <bit>
#include <cmath>

#include "core/parallel.hpp"
#include "core/policy.hpp"

namespace qwyc {

namespace {

// Rows that are looked at together, step by step, dropping the rows that quit: their running sums
// stay in the first cache.
constexpr int32_t kBlock = 128;

// What a rule says of a row after a step.
enum class Outcome { kContinue, kNegative, kPositive, kInFull };

// The paper's rule: two thresholds per step.
struct ThresholdRule {
    const PolicyView& policy;

    Outcome operator()(int32_t r, double sum) const {
        if (sum < policy.lower[r]) return Outcome::kNegative;
        return sum > policy.upper[r] ? Outcome::kPositive : Outcome::kContinue;
    }
};

// Fan's rule: two thresholds per step and bin. A hash table per step, all in one array: open
// addressing, at most half full. Searching the bins, which are few hundreds a step, by halves takes
// two to four times as long.
class FanRule {
  public:
    explicit FanRule(const FanView& policy) : bin_width_(policy.bin_width) {
        const size_t n_steps = policy.order.size();
        for (size_t r = 0; r < n_steps; ++r) {
            const int64_t first = policy.bin_begin[r], last = policy.bin_begin[r + 1];
            const auto size =
                static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * (last - first) + 1)));
            table_.push_back({static_cast<int64_t>(slots_.size()), size - 1});
            slots_.resize(slots_.size() + size);
            for (int64_t b = first; b < last; ++b) {
                Slot& slot = slots_[find(table_.back(), policy.bin[b])];
                slot = {policy.bin[b], policy.lower[b], policy.upper[b], true};
            }
        }
    }

    Outcome operator()(int32_t r, double sum) const {
        const double bin = std::floor(sum / bin_width_);
        if (!(std::abs(bin) < 0x1p62)) return Outcome::kInFull;  // no integer, so never seen
        const Slot& slot = slots_[find(table_[r], static_cast<int64_t>(bin))];
        if (!slot.used) return Outcome::kInFull;
        if (sum < slot.lower) return Outcome::kNegative;
        return sum > slot.upper ? Outcome::kPositive : Outcome::kContinue;
    }

  private:
    struct Slot {
        int64_t bin = 0;
        double lower = 0, upper = 0;
        bool used = false;
    };
    struct Table {
        int64_t begin, mask;
    };

    // The slot that holds `bin`, or the free one where it would go.
    int64_t find(const Table& table, int64_t bin) const {
        uint64_t at = static_cast<uint64_t>(bin) * 0x9e3779b97f4a7c15u >> 20;
        for (;; ++at) {
            const int64_t slot = table.begin + static_cast<int64_t>(at & table.mask);
            if (!slots_[slot].used || slots_[slot].bin == bin) return slot;
        }
    }

    double bin_width_;
    std::vector<Table> table_;  // (T,)
    std::vector<Slot> slots_;
};

// rule(r, sum) says what becomes of a row after step r. The last step has no rule: there the full
// score decides, as it does where the rule wants a row in full.
template <class Rule, class Score>
void apply_rule(std::span<const int32_t> order, double threshold, const Rule& rule,
                const Score* values, double base, const double* full, int64_t n,
                const DecisionsOut& out, int threads) {
    const auto n_models = static_cast<int32_t>(order.size());
    const auto complete = [=](int64_t i) {
        out.score[i] = full[i];
        out.positive[i] = full[i] >= threshold;
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
                    out.positive[begin + j] = outcome == Outcome::kPositive;
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
    apply_rule(policy.order, policy.threshold, ThresholdRule{policy}, values, base, full, n, out,
               threads);
}

template <class Score>
void apply_fan(const FanView& policy, const Score* values, double base, const double* full,
               int64_t n, const DecisionsOut& out, int threads) {
    apply_rule(policy.order, policy.threshold, FanRule(policy), values, base, full, n, out,
               threads);
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
