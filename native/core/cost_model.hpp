// What evaluation costs, in nanoseconds, and how steps are divided accordingly. Costs were measured
// on a 2023 Xeon with AVX-512. Only their ratios matter, and only for speed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/questions.hpp"

namespace qwyc {

// For one row of many.
struct RowCost {
    static constexpr double kRow = 2.0, kFeature = 0.12;  // to read a row again, and its features
    static constexpr double kQuestion = 0.027, kTree = 0.29;
    static constexpr double kWalkedTree = 12.0;  // too large for masks

    // In full: sums are not tested, and rows are read once.
    static constexpr double kFullTree = 0.17;
};

// For up to 64 rows at once, however few they are.
struct WordCost {
    static constexpr double kWord = 40, kFeature = 8, kQuestion = 1.7, kTree = 40;
    static constexpr double kWalkedTree = 15;  // a small tree, for each row
};

// The most rows for which walking trees one row at a time costs less than masks.
inline int32_t rows_to_walk(int32_t n_trees, int32_t n_questions, int32_t n_features) {
    const double masks = WordCost::kWord + WordCost::kFeature * n_features +
                         WordCost::kQuestion * n_questions + WordCost::kTree * n_trees;
    const double most = masks / (WordCost::kWalkedTree * n_trees + 10);
    return most < 32 ? static_cast<int32_t>(most) : 32;
}

struct Steps {
    int32_t begin, end;
};

struct Division {
    std::vector<Steps> segments;
    double cost;  // of one row of many, until it has quit or has taken all of these steps
};

// The cheapest division of steps [0, last) into segments, given the share of rows that reach each
// step. A long segment evaluates rows that have quit; a short one reads rows more often. The steps
// of a segment are all on masks or all walked.
template <class Real>
Division cut_into_segments(const Forest<Real>& forest, const Questions<Real>& questions,
                           std::span<const int32_t> order, int32_t last,
                           std::span<const double> survival);

}  // namespace qwyc
