// A forest laid out for evaluation in one order of its trees.
//
// Values are first encoded as one-byte codes. All values between two neighbouring thresholds of a
// feature take the same branches, so trees need only the rank of a value among the thresholds.
// Comparing codes is exact for any input type, and 32 or 64 of them fit a register. Missing values
// and categories are codes too, so a split is one comparison, or one test of membership in a set of
// codes.
//
// Trees of up to 256 leaves are lists of such splits ("small"); larger ones are walked node by node
// on the values themselves ("deep").
#pragma once

#include <cstdint>
#include <vector>

#include "core/categories.hpp"
#include "core/cuts.hpp"
#include "core/forest.hpp"

namespace qwyc {

inline constexpr int32_t kChunk = 512;           // rows that a tree is evaluated on at once
inline constexpr int32_t kMaxSmallLeaves = 256;  // of a small tree: a leaf's number is a byte

// One byte per row. Bytes hold the code minus 128, because kernels compare signed bytes.
struct Column {
    int32_t feature;
    bool categorical;
    bool zero_is_missing;
    uint8_t missing;        // code of a missing value: 0, below all others, or 255, above
    uint8_t lowest;         // numeric: code of the values below cut `first`
    int32_t first, count;   // numeric: the cuts that this column distinguishes
    int64_t classes_begin;  // categorical: class of each code, in CategoryTables::class_of
    int32_t classes_count;
    int32_t first_use, last_use;  // steps
};

// A split of a small tree. Leaves are numbered from the left; a row is at a node exactly when its
// number is the first of the node's leaves, and going right adds the number of leaves on the left.
struct Split {
    int32_t column;
    int32_t set;    // categorical: 32 bytes in Plan::sets, bit per code: goes right; otherwise -1
    int8_t rank;    // goes right where the (signed) code is greater
    uint8_t first;  // the node's first leaf
    uint8_t left;   // leaves on the left
};

struct SmallTree {
    int32_t split_begin, split_end;  // in Plan::splits, parents before children
    int32_t leaf_begin;              // in Plan::step_value and Plan::leaf_value, by leaf number
    int32_t n_leaves;
    bool oblivious;  // every level asks one question: `left` is the bit that going right sets
};

// The parts of a plan that do not depend on the type of the rows.
struct SmallTrees {
    std::vector<Column> columns;   // in the order in which steps first need them
    std::vector<SmallTree> small;  // (T,) by step; n_leaves 0 where the tree is deep
    std::vector<Split> splits;
    std::vector<uint8_t> sets;      // 32 bytes each
    std::vector<float> step_value;  // by leaf
    std::vector<double> leaf_value, leaf_other;
};

template <class Real>
struct Plan : SmallTrees {
    const Forest<Real>* forest;
    std::vector<int32_t> order;    // (T,) tree at each step
    std::vector<Cuts<Real>> cuts;  // (n_features,)
    CategoryTables categories;

    Plan(const Forest<Real>& forest, std::span<const int32_t> order,
         int64_t max_category_bytes = kMaxCategoryBytes);

    int32_t n_steps() const { return static_cast<int32_t>(order.size()); }
};

extern template struct Plan<float>;
extern template struct Plan<double>;

}  // namespace qwyc
