// Helpers of both engines.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "core/kernels.hpp"

namespace qwyc {

inline constexpr int32_t kMaxScalarRows = 6;  // up to so many rows, walking is faster than kernels
inline constexpr int32_t kWalksAtOnce = 8;    // trees that one row walks at once

inline int32_t words_of(int32_t n) {
    return (n + 63) / 64;
}

// Columns in an order in which those of one feature follow each other.
inline void sort_by_feature(const SmallTrees& trees, std::vector<int32_t>& columns) {
    std::stable_sort(columns.begin(), columns.end(), [&](int32_t a, int32_t b) {
        return trees.columns[a].feature < trees.columns[b].feature;
    });
}

// The number of rows of a width whose offsets fit 32 bits, as kernels need.
inline int64_t max_rows_in_int32(int64_t width) {
    return std::numeric_limits<int32_t>::max() / std::max<int64_t>(width, 1);
}

// The leaves that one row reaches in the trees at steps [begin, end) of an order, at most
// kWalksAtOnce.
template <class In, class Real>
inline void walk_trees(const Forest<Real>& forest, const int32_t* order, int32_t begin, int32_t end,
                       const In* row, int32_t* leaf) {
    for (int32_t k = 0; k < kWalksAtOnce; ++k)
        leaf[k] = begin + k < end ? forest.root(order[begin + k]) : -1;
    forest.template walk<kWalksAtOnce>(leaf, row);
    for (int32_t k = 0; k < kWalksAtOnce; ++k) leaf[k] = ~leaf[k];
}

}  // namespace qwyc
