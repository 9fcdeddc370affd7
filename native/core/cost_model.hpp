// What evaluation costs, in nanoseconds, and how steps are divided accordingly. Costs were measured
// on a 2023 Xeon with AVX-512. Only their ratios matter, and only for speed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/coded_trees.hpp"
#include "core/large_trees.hpp"
#include "core/mask_kernels.hpp"
#include "core/masked_trees.hpp"
#include "core/questions.hpp"
#include "core/row_trees.hpp"

namespace qwyc {

// For a slab of up to kSlab rows, for each of its words of up to 64 rows, and for up to kFew rows
// at once; however few they are.
struct MaskCost {
    struct Of {
        double rows, feature, question, tree;  // to begin, and for each that the rows need
    };
    static constexpr Of kSlab{30, 0, 0, 1};
    static constexpr Of kWord{60, 8, 1.7, 15.5};
    static constexpr Of kFew{50, 2, 0.85, 9.5};
    static constexpr double kSplit = 0.42, kReachSplit = 1.8;  // of a slab, to make planes
    static constexpr double kFullTree = 8;  // of a word in full: sums are not tested
};

constexpr double kFarLine = 4;          // a cache line of one row, where rows are wide:
constexpr int64_t kNearFeatures = 256;  // of more features
constexpr int32_t kLineFeatures = 16;   // floats of a cache line

// For one row of many.
struct RowCost {
    static constexpr double kRow = MaskCost::kWord.rows / 64,
                            kFeature = MaskCost::kWord.feature / 64;
    static constexpr double kQuestion = MaskCost::kWord.question / 64;
    static constexpr double kFullTree = (MaskCost::kFullTree + MaskCost::kSlab.tree / 8) / 64;
};

// One row of many, through a tree that is walked, of more than kMaxMaskedLeaves leaves: for each
// level of the tree, and through a tree of whatever depth.
constexpr double kDeepLevel = 1.6;
constexpr double kDeepTree = 12;
constexpr double kDeepSlab = 150;  // to begin such a tree, for a slab

// For a row of a few that are walked tree by tree.
struct WalkCost {
    static constexpr double kRow = 20;
    // kWalksAtOnce trees: whose comparisons are side by side, of up to 32 features and of more; of
    // plain comparisons, if few features fit registers and if not; any.
    static constexpr double kOblivious = 70, kFlat = 95, kWideFlat = 105;
    static constexpr double kNarrow = 130, kPlain = 150, kAny = 500;
    // The two before it are of trees of up to so many entries on average. Without comparisons side
    // by side, such trees cost this for each of their levels, unless rows are wide: a step down
    // then waits for a cache line.
    static constexpr double kNearEntries = 2 * kMaxMaskedLeaves, kLevel = 20;
};
double walk_cost(const RowTrees& trees, const RowKernels& kernels);

// What some trees need of each row.
struct Needs {
    int32_t features = 0, questions = 0, trees = 0;
    double planes = 0;  // nanoseconds to make them, for a slab
    LargeCost large{};  // of large trees, beside what all trees take
    int32_t late = 0;   // trees that only a few rows of a word reach before they quit
    double far = 0;     // nanoseconds to fetch the cache lines of one row, where rows are wide

    Needs& operator+=(const Needs& other);
};

// Nanoseconds to fetch a cache line of one row. A block of wide rows does not fit the second-level
// cache, so every pass over it fetches the lines that it looks at.
inline double far_line_cost(int64_t n_features) {
    return n_features > kNearFeatures ? kFarLine : 0;
}

// Cache lines of a row of floats that hold these features, which ascend.
int32_t lines_of(std::span<const int32_t> features);

// Nanoseconds to make the planes of a tree that is not large, for a slab.
double planes_cost(const MaskedTree& tree);
Needs needs_of(const MaskedTrees& trees);

// What one tree needs.
struct TreeCost {
    double planes = 0;
    LargeCost large;
};
TreeCost tree_cost(const MaskedTree& tree);

// How often each part of MaskCost arises; ones: slabs of a single word.
struct Times {
    double slabs = 0, words = 0, few = 0, ones = 0;
    static Times of(double n_rows);
};

// Nanoseconds for rows through trees on masks.
double mask_cost(const Times& times, const Needs& needs);
inline double mask_cost(double n_rows, const Needs& needs) {
    return mask_cost(Times::of(n_rows), needs);
}

// The most rows for which walking trees one row at a time costs less than masks, given the
// nanoseconds that one row takes then.
int32_t rows_to_walk(double one_row, const Needs& needs);

// How many rows of a batch reach a step. Their number varies from batch to batch: 64 rows take one
// word, and 64 on average often two.
class RowsAtStep {
  public:
    // n rows, of which each gets there with probability `share`.
    RowsAtStep(double n, double share);

    double mean() const { return mean_; }
    double slabs() const { return times_.slabs; }
    bool few() const { return walks_ && up_to_[kMaxWalkedRows].share > 0; }

    // Nanoseconds on average through trees on masks; or walked, where few() and so few rows are
    // left that it costs less, if a walk takes `one_row`.
    double cost(const Needs& needs) const { return mask_cost(times_, needs); }
    double cost(const Needs& needs, double one_row) const;

  private:
    void add(double n_rows, double probability);

    // Of more rows, none are expected to be walked: what that costs is not the same on all
    // machines, and the cost of a row of many must be.
    static constexpr double kMostToWalk = 1 << 16;

    double mean_;
    bool walks_;
    Times times_;
    struct UpTo {
        double share = 0, rows = 0;
    };
    UpTo up_to_[kMaxWalkedRows + 1];  // of batches with 1 to so many rows
};

struct Steps {
    int32_t begin, end;
    bool masked;  // evaluated on masks; otherwise walked

    auto operator<=>(const Steps&) const = default;
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
    // survival: (last,) or longer, the share of rows that reach each step. costs: (T,) by tree.
    // walk: nanoseconds in which a row walks kWalksAtOnce trees, walked_row: those to begin. A
    // large tree that `questions` has on masks may be walked too.
    Divider(const Forest<Real>& forest, const Questions<Real>& questions,
            std::span<const int32_t> order, int32_t last, std::span<const double> survival,
            std::span<const TreeCost> costs, double walk, double walked_row = WalkCost::kRow);

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
        uint16_t features = 0, questions = 0, lines = 0;
    };
    const New& fresh(int32_t r, int32_t back) const;
    bool masked(int32_t r) const { return masked_[r] != 0; }

    // Lets `use` have every end of a segment of one kind that begins at step a, and its cost for
    // these rows.
    template <class Use>
    void each_masked(int32_t a, const RowsAtStep& rows, const Use& use) const;
    template <class Use>
    void each_walked(int32_t a, const RowsAtStep& rows, const Use& use) const;

    int32_t last_;
    double walk_, walked_row_;      // nanoseconds for kWalksAtOnce trees, and to begin
    double far_line_;               // and for a cache line of a row
    std::vector<uint8_t> masked_;   // by step
    std::vector<TreeCost> costs_;   // by step
    std::vector<double> deep_;      // by step, nanoseconds for one of many rows; 0 if small
    std::vector<double> survival_;  // by step, and 0 at the end; never rising
    std::vector<New> fresh_;        // (last, kMaxSegmentTrees)
};

}  // namespace qwyc
