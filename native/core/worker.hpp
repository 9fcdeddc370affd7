// What the engines' workers share: scratch space, encoding, and walks through deep trees.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "core/kernels.hpp"

namespace qwyc {

inline constexpr int32_t kFew = 6;    // rows up to which walking beats whole registers
inline constexpr int32_t kWalks = 8;  // walks in flight

inline int32_t words_of(int32_t n) {
    return (n + 63) / 64;
}

// Columns in an order in which those of one feature follow each other.
inline void sort_by_feature(const SmallTrees& trees, std::vector<int32_t>& columns) {
    std::stable_sort(columns.begin(), columns.end(), [&](int32_t a, int32_t b) {
        return trees.columns[a].feature < trees.columns[b].feature;
    });
}

// Rows that kernels can tell apart by 32-bit offsets.
inline int64_t most_rows(int64_t width) {
    return std::numeric_limits<int32_t>::max() / std::max<int64_t>(width, 1);
}

// The leaves that one row reaches in the trees at steps [begin, end) of an order, at most kWalks.
template <class In, class Real>
inline void walk_trees(const Forest<Real>& forest, const int32_t* order, int32_t begin, int32_t end,
                       const In* row, int32_t* leaf) {
    for (int32_t k = 0; k < kWalks; ++k)
        leaf[k] = begin + k < end ? forest.root(order[begin + k]) : -1;
    forest.template walk<kWalks>(leaf, row);
    for (int32_t k = 0; k < kWalks; ++k) leaf[k] = ~leaf[k];
}

}  // namespace qwyc
