// Early decisions against full ones: rows counted, and the rows that a limit is about.
// src/qwyc/policy/counts.py and src/qwyc/promise/limits.py have the same in Python.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/target.hpp"

namespace qwyc {

// What was decided about n rows, (n,) each: early, and by all base models.
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
    RowCounts counts{std::vector<int64_t>(TwoClasses::kClasses),
                     std::vector<int64_t>(TwoClasses::kDifferences), std::vector<int64_t>(n_bins),
                     0, cost_before};
    for (size_t i = 0; i < rows.full.size(); ++i) {
        ++counts.by_class[rows.full[i]];
        const int kind = TwoClasses::difference(rows.decided[i], rows.full[i]);
        if (kind >= 0) ++counts.differences[kind];
        ++counts.exits[bin[steps[i]]];
        counts.steps += steps[i];
        counts.cost += cost[steps[i]];
    }
    return counts;
}

// The rows that a limit counts, in their order: all of them, or those of one class.
struct LimitRows {
    std::vector<uint8_t> differs;  // (m,) whether a row differs in one of the ways that count
    std::vector<int64_t> at;       // (m,) where they are; empty where all rows count
};

// among: a full decision; -1 for rows of every class. kinds: bit k stands for differences of way k.
inline LimitRows limit_rows(const CheckedRows& rows, int among, uint32_t kinds) {
    LimitRows found;
    found.differs.reserve(rows.full.size());
    for (size_t i = 0; i < rows.full.size(); ++i) {
        if (among >= 0 && rows.full[i] != among) continue;
        const int kind = TwoClasses::difference(rows.decided[i], rows.full[i]);
        found.differs.push_back(kind >= 0 && (kinds >> kind & 1) != 0);
        if (among >= 0) found.at.push_back(static_cast<int64_t>(i));
    }
    return found;
}

}  // namespace qwyc
