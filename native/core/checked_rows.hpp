// Early decisions against full ones: rows counted, and the rows that a limit is about.
// src/qwyc/policy/counts.py and src/qwyc/promise/limits.py have the same in Python.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/target.hpp"

namespace qwyc {

// What was decided about n rows, (n,) each: early, and by all base models. Decisions are those of
// TwoClasses: 0 and 1.
struct CheckedRows {
    std::span<const uint8_t> decided, full;
};

// Sums over rows.
struct RowCounts {
    std::vector<int64_t> by_class;     // by the full decision
    std::vector<int64_t> differences;  // by the way in which the early decision differs
    std::vector<int64_t> exits;        // by the bin of the steps
    int64_t steps = 0;
    double cost = 0;
};

// steps: (n,) base models evaluated. bin and cost: (T + 1,) of a number of steps. Costs are added
// one by one to `cost_before`, so that the total does not depend on how rows are grouped.
inline RowCounts count_rows(const CheckedRows& rows, std::span<const int32_t> steps,
                            std::span<const int32_t> bin, std::span<const double> cost,
                            double cost_before, size_t n_bins) {
    const auto n = static_cast<int64_t>(rows.full.size());
    int64_t positive = 0, lost = 0, gained = 0;
    for (int64_t i = 0; i < n; ++i) {
        positive += rows.full[i];
        lost += rows.full[i] & ~rows.decided[i] & 1;
        gained += rows.decided[i] & ~rows.full[i] & 1;
    }
    std::vector<int64_t> exits(n_bins);
    int64_t evaluated = 0;
    double total = cost_before;
    for (const int32_t s : steps) {
        ++exits[bin[s]];
        evaluated += s;
        total += cost[s];
    }
    return {{n - positive, positive}, {lost, gained}, std::move(exits), evaluated, total};
}

// The rows that a limit counts, in their order: all of them, or those of one class.
struct LimitRows {
    std::vector<uint8_t> differs;  // (m,) whether a row differs in one of the ways that count
    std::vector<int64_t> at;       // (m,) where they are; empty where all rows count
};

// among: a full decision; -1 for rows of every class. kinds: bit k stands for differences of way k.
inline LimitRows limit_rows(const CheckedRows& rows, int among, uint32_t kinds) {
    const size_t n = rows.full.size();
    LimitRows found{std::vector<uint8_t>(n), {}};
    for (size_t i = 0; i < n; ++i) {
        const uint32_t counts = kinds >> rows.decided[i] & 1;  // the way is the early decision
        found.differs[i] = static_cast<uint8_t>((rows.decided[i] ^ rows.full[i]) & counts);
    }
    if (among < 0) return found;
    size_t m = 0;
    for (size_t i = 0; i < n; ++i) {
        if (rows.full[i] != among) continue;
        found.differs[m++] = found.differs[i];
        found.at.push_back(static_cast<int64_t>(i));
    }
    found.differs.resize(m);
    return found;
}

}  // namespace qwyc
