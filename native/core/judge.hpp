// Early decisions against full ones: rows counted, and the evidence against each limit of a budget.
// src/qwyc/policy/counts.py and src/qwyc/promise/limits.py have the same counts in Python.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/rate_test.hpp"

namespace qwyc {

// Rows that were decided twice, (n,) each. Decisions are those of TwoClasses: 0 and 1.
struct CheckedRows {
    std::span<const uint8_t> decided, full;  // early, and by all base models
    std::span<const int32_t> steps;          // base models evaluated for the early decision
};

// Sums over rows.
struct RowCounts {
    std::vector<int64_t> by_class;     // (2,) by the full decision
    std::vector<int64_t> differences;  // (2,) of rows that differ, by the early decision
    std::vector<int64_t> exits;        // (B,) by the bin of the steps
    int64_t steps;
    double cost;
};

struct StepTables {
    std::vector<int32_t> bin;  // (T + 1,) of a number of steps
    std::vector<double> cost;  // (T + 1,) of a number of steps
};

// Costs are added one by one, so that the total does not depend on how rows are grouped.
inline void count_rows(const CheckedRows& rows, const StepTables& tables, RowCounts& counts) {
    const auto n = static_cast<int64_t>(rows.full.size());
    int64_t positive = 0, lost = 0, gained = 0;
    for (int64_t i = 0; i < n; ++i) {
        positive += rows.full[i];
        lost += rows.full[i] & ~rows.decided[i] & 1;
        gained += rows.decided[i] & ~rows.full[i] & 1;
    }
    counts.by_class[0] += n - positive;
    counts.by_class[1] += positive;
    counts.differences[0] += lost;
    counts.differences[1] += gained;
    int64_t* exits = counts.exits.data();
    int64_t evaluated = 0;
    double cost = counts.cost;
    for (const int32_t s : rows.steps) {
        ++exits[tables.bin[s]];
        evaluated += s;
        cost += tables.cost[s];
    }
    counts.steps += evaluated;
    counts.cost = cost;
}

// A limit of a budget: the rows that it counts, and how often they may differ.
struct LimitTest {
    int among;                     // rows of this full decision; -1: of every class
    uint32_t kinds;                // bit k: a row counts as different where it was decided k early
    std::optional<RateTest> test;  // none where no row may differ
};

// The rows that a limit counts, in their order.
struct LimitRows {
    std::vector<uint8_t> differs;  // (m,)
    std::vector<int64_t> at;       // (m,) where they are; empty where all rows count

    void find(const CheckedRows& rows, const LimitTest& limit) {
        const size_t n = rows.full.size();
        differs.resize(n);
        at.clear();
        // Bytes only, so that the loop is vectorised.
        const uint8_t as_negative = limit.kinds & 1, as_positive = limit.kinds >> 1 & 1;
        for (size_t i = 0; i < n; ++i) {
            const uint8_t early = rows.decided[i], full = rows.full[i];
            differs[i] = (early & ~full & as_positive) | (full & ~early & as_negative);
        }
        if (limit.among < 0) return;
        size_t m = 0;
        for (size_t i = 0; i < n; ++i) {
            if (rows.full[i] != limit.among) continue;
            differs[m++] = differs[i];
            at.push_back(static_cast<int64_t>(i));
        }
        differs.resize(m);
    }
};

struct JudgeState {
    RowCounts counts;
    std::vector<RateTestState> tests;  // by limit; without meaning where there is no test
    std::vector<int64_t> raised;       // by limit: checked rows when it was broken; -1: it was not
};

// Counts rows, and looks after each of them whether a limit is broken.
class Judge {
  public:
    Judge(std::vector<LimitTest> limits, StepTables tables, double needed)
        : limits_(std::move(limits)), tables_(std::move(tables)), needed_(needed) {}

    void add(const CheckedRows& rows, JudgeState& state) {
        const int64_t before = state.counts.by_class[0] + state.counts.by_class[1];
        count_rows(rows, tables_, state.counts);
        for (size_t i = 0; i < limits_.size(); ++i) {
            counted_.find(rows, limits_[i]);
            const int64_t reached = advance(limits_[i], state.tests[i]);
            if (reached < 0 || state.raised[i] >= 0) continue;
            const int64_t row = counted_.at.empty() ? reached : counted_.at[reached - 1] + 1;
            state.raised[i] = before + row;
        }
    }

    const std::vector<LimitTest>& limits() const { return limits_; }
    const StepTables& tables() const { return tables_; }

  private:
    // After how many of the rows that count the limit is broken, or -1.
    int64_t advance(const LimitTest& limit, RateTestState& state) const {
        if (limit.test) return limit.test->advance(state, counted_.differs, needed_);
        const auto& differs = counted_.differs;
        const auto first = std::find(differs.begin(), differs.end(), uint8_t{1});
        return first == differs.end() ? -1 : first - differs.begin() + 1;
    }

    std::vector<LimitTest> limits_;
    StepTables tables_;
    double needed_;
    LimitRows counted_;  // of one limit; kept for its memory
};

}  // namespace qwyc
