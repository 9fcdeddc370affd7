// A judge of checked rows and its state, for Python.
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/judge.hpp"
#include "python/arrays.hpp"

namespace qwyc {

// A state of a test as Python keeps it: rows, count, the parts apart and joint, whether there is
// one part.
using TestTuple =
    std::tuple<int64_t, int64_t, std::vector<double>, double, std::vector<double>, double, bool>;

inline RateTestState state_of(const RateTest& test, TestTuple known) {
    auto& [rows, count, apart, apart_unspent, joint, joint_unspent, one_part] = known;
    require(apart.size() == test.n_alternatives() && joint.size() == test.n_alternatives(),
            "there must be one value per alternative");
    return {rows,
            count,
            {std::move(apart), apart_unspent},
            {std::move(joint), joint_unspent},
            one_part};
}

inline TestTuple tuple_of(const RateTestState& state) {
    const Starts& joint = state.one_part ? state.apart : state.joint;
    return {state.rows,  state.count,   state.apart.value, state.apart.unspent,
            joint.value, joint.unspent, state.one_part};
}

// Whether all numbers are in [0, end).
template <class T>
bool are_below(std::span<const T> numbers, T end) {
    T least = 0, most = 0;  // without a branch in the loop, which is on the way of every check
    for (const T x : numbers) {
        least = std::min(least, x);
        most = std::max(most, x);
    }
    return least >= 0 && most < end;
}

// A judge and the state that it changes. Callers have a lock of their own.
class RunningJudge {
  public:
    using Limit = std::tuple<int, uint32_t, const RateTest*>;  // among, kinds, test or none
    using State = std::tuple<std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>,
                             int64_t, double, std::vector<std::optional<TestTuple>>,
                             std::vector<std::optional<int64_t>>>;

    RunningJudge(const std::vector<Limit>& limits, std::vector<int32_t> bin,
                 std::vector<double> cost, double needed)
        : n_bins_(bin.empty() ? 0 : 1 + *std::max_element(bin.begin(), bin.end())),
          judge_(tests_of(limits), {std::move(bin), std::move(cost)}, needed) {
        const StepTables& tables = judge_.tables();
        require(n_bins_ > 0 && tables.bin.size() == tables.cost.size() &&
                    are_below(std::span<const int32_t>(tables.bin), n_bins_),
                "every number of steps must have a bin and a cost");
    }

    State get() const {
        const auto& [by_class, differences, exits, steps, cost] = state_.counts;
        State found{by_class, differences, exits, steps, cost, {}, {}};
        for (size_t i = 0; i < state_.tests.size(); ++i) {
            const bool has_test = judge_.limits()[i].test.has_value();
            const int64_t raised = state_.raised[i];
            std::get<5>(found).push_back(has_test ? std::optional(tuple_of(state_.tests[i]))
                                                  : std::nullopt);
            std::get<6>(found).push_back(raised < 0 ? std::nullopt : std::optional(raised));
        }
        return found;
    }

    void set(State given) {
        auto& [by_class, differences, exits, steps, cost, tests, raised] = given;
        const auto& limits = judge_.limits();
        require(by_class.size() == 2 && differences.size() == 2 &&
                    exits.size() == static_cast<size_t>(n_bins_) && tests.size() == limits.size() &&
                    raised.size() == limits.size(),
                "the state is of another judge");
        JudgeState state{
            {std::move(by_class), std::move(differences), std::move(exits), steps, cost}, {}, {}};
        for (size_t i = 0; i < limits.size(); ++i) {
            require(tests[i].has_value() == limits[i].test.has_value(),
                    "a limit has a different kind of test");
            state.tests.push_back(tests[i] ? state_of(*limits[i].test, std::move(*tests[i]))
                                           : RateTestState{});
            state.raised.push_back(raised[i].value_or(-1));
        }
        state_ = std::move(state);
    }

    void add(const CheckedRows& rows) {
        require(rows.decided.size() == rows.full.size() && rows.steps.size() == rows.full.size(),
                "every row must be decided twice, and have steps");
        require(are_below<uint8_t>(rows.decided, 2) && are_below<uint8_t>(rows.full, 2),
                "there are two classes");
        require(are_below(rows.steps, static_cast<int32_t>(judge_.tables().bin.size())),
                "there are not so many steps");
        require(state_.tests.size() == judge_.limits().size(), "the state is not set");
        judge_.add(rows, state_);
    }

  private:
    static std::vector<LimitTest> tests_of(const std::vector<Limit>& limits) {
        std::vector<LimitTest> tests;
        for (const auto& [among, kinds, test] : limits)
            tests.push_back({among, kinds, test ? std::optional(*test) : std::nullopt});
        return tests;
    }

    int32_t n_bins_;
    Judge judge_;
    JudgeState state_;
};

}  // namespace qwyc
