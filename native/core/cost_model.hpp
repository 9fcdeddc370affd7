// What evaluation costs, in nanoseconds, and how steps are divided accordingly. Costs were measured
// on a 2023 Xeon with AVX-512. Only their ratios matter, and only for speed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/masked_trees.hpp"
#include "core/questions.hpp"
#include "core/row_trees.hpp"

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
    static constexpr double kWord = 60, kFeature = 8, kQuestion = 1.7, kTree = 32;
};

// For up to kFew rows at once.
struct FewCost {
    static constexpr double kRows = 50, kFeature = 2, kQuestion = 0.85, kTree = 24;
};

// For a row of a few that are walked tree by tree.
struct WalkCost {
    static constexpr double kRow = 20;
    // kWalksAtOnce trees: of plain comparisons, if few features fit registers and if not; any.
    static constexpr double kNarrow = 55, kPlain = 75, kAny = 500;
};
inline double walk_cost(const RowTrees& trees) {
    if (!trees.usable) return WalkCost::kAny;
    return trees.n_features <= 64 ? WalkCost::kNarrow : WalkCost::kPlain;
}

// What some trees need of each row.
struct Needs {
    int32_t features = 0, questions = 0, trees = 0;
};
inline Needs needs_of(const MaskedTrees& trees) {
    return {static_cast<int32_t>(trees.features.size()), trees.n_questions, trees.n_trees()};
}

// Nanoseconds for n rows at once through trees on masks.
double mask_cost(double n, const Needs& needs);

// The most rows for which walking trees one row at a time costs less than masks, given the
// nanoseconds that one row takes then.
int32_t rows_to_walk(double one_row, const Needs& needs);

struct Steps {
    int32_t begin, end;
};

struct Division {
    std::vector<Steps> segments;
    double cost;  // of a batch, until rows have quit or have taken all of these steps
};

// Divides steps [0, last) of an order into segments, after which rows that have quit are left out.
// The steps of a segment are all on masks or all walked.
template <class Real>
class Divider {
  public:
    // survival: (last,) or longer, the share of rows that reach each step. walk: nanoseconds in
    // which a row walks kWalksAtOnce trees.
    Divider(const Forest<Real>& forest, const Questions<Real>& questions,
            std::span<const int32_t> order, int32_t last, std::span<const double> survival,
            double walk);

    // The cheapest division for batches of n rows. A long segment evaluates rows that have quit; a
    // short one reads rows more often, and asks again what was asked before.
    Division divide(double n) const;

    // The share of rows that are expected at a step of the order.
    double survival(int32_t step) const { return survival_[step]; }

    // Nanoseconds for one row that walks from step `begin` until it has quit or is at step `end`.
    double walk_cost(int32_t begin, int32_t end) const;

  private:
    // What a segment that begins at step r - back needs for step r and has not needed before.
    struct New {
        uint16_t features = 0, questions = 0;
    };
    const New& fresh(int32_t r, int32_t back) const;
    bool masked(int32_t r) const { return masked_[r] != 0; }

    int32_t last_;
    double walk_;                   // nanoseconds for kWalksAtOnce trees
    std::vector<uint8_t> masked_;   // by step
    std::vector<double> survival_;  // by step, and 0 at the end; never rising
    std::vector<New> fresh_;        // (last, kMaxSegmentTrees)
};

}  // namespace qwyc
