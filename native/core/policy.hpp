// Policies, and what they decide: evaluate base models in an order, stop a row as soon as a rule
// says so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

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

// Policies that hold their own arrays. Engines are written for any of them.
class ThresholdPolicy {
  public:
    using View = PolicyView;

    explicit ThresholdPolicy(const View& policy)
        : order_(policy.order.begin(), policy.order.end()),
          lower_(policy.rule.lower.begin(), policy.rule.lower.end()),
          upper_(policy.rule.upper.begin(), policy.rule.upper.end()),
          view_{order_, {lower_, upper_}, policy.target} {}

    // In this order, without quitting.
    explicit ThresholdPolicy(std::vector<int32_t> order)
        : order_(std::move(order)),
          lower_(order_.size(), -kInf),
          upper_(order_.size(), kInf),
          view_{order_, {lower_, upper_}, {0.0}} {}

    // view_ refers to this object's own vectors.
    ThresholdPolicy(const ThresholdPolicy&) = delete;
    ThresholdPolicy& operator=(const ThresholdPolicy&) = delete;

    const PolicyView& view() const { return view_; }
    std::span<const int32_t> order() const { return view_.order; }
    const ThresholdRule& rule() const { return view_.rule; }
    const TwoClasses& target() const { return view_.target; }

  private:
    std::vector<int32_t> order_;
    std::vector<double> lower_, upper_;
    PolicyView view_;  // of the three above
};

class FanPolicy {
  public:
    using View = FanView;

    explicit FanPolicy(const View& policy)
        : order_(policy.order.begin(), policy.order.end()),
          rule_(policy.bins, order_.size()),
          target_(policy.target) {}

    std::span<const int32_t> order() const { return order_; }
    const FanRule& rule() const { return rule_; }
    const TwoClasses& target() const { return target_; }

  private:
    std::vector<int32_t> order_;
    FanRule rule_;
    TwoClasses target_;
};

// The step from which on no row quits: the last step has no rule, the full score decides there.
template <class Policy>
int32_t quit_end(const Policy& policy) {
    int32_t end = std::max(static_cast<int32_t>(policy.order().size()) - 1, 0);
    while (end > 0 && !policy.rule().can_quit(end - 1)) --end;
    return end;
}

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
