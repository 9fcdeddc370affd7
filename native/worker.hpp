// What the engines' workers share: scratch space, encoding, and walks through deep trees.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels.hpp"

namespace qwyc {

inline constexpr int32_t kFew = 8;    // rows up to which walking beats whole registers
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

template <class In, class Real>
void encode(const Kernels& kernels, const Plan<Real>& plan, std::span<const int32_t> columns,
            const In* rows, int64_t width, const int32_t* row, int32_t n, uint8_t* codes,
            int64_t stride) {
    if constexpr (std::is_same_v<In, float> && std::is_same_v<Real, float>)
        kernels.encode_ff(plan, columns, rows, width, row, n, codes, stride);
    else if constexpr (std::is_same_v<Real, float>)
        kernels.encode_df(plan, columns, rows, width, row, n, codes, stride);
    else if constexpr (std::is_same_v<In, float>)
        kernels.encode_fd(plan, columns, rows, width, row, n, codes, stride);
    else
        kernels.encode_dd(plan, columns, rows, width, row, n, codes, stride);
}

// The leaves that rows row[0..n) (0..n without a list) reach in one tree, out: (n,).
template <class In, class Real>
void walk_rows(const Forest<Real>& forest, int32_t tree, const In* rows, int64_t width,
               const int32_t* row, int32_t n, int32_t* out) {
    const In* of_walk[kWalks];
    for (int32_t begin = 0; begin < n; begin += kWalks) {
        const int32_t here = std::min(kWalks, n - begin);
        int32_t at[kWalks];
        for (int32_t k = 0; k < kWalks; ++k) {
            const int32_t i = begin + std::min(k, here - 1);
            at[k] = k < here ? forest.root(tree) : -1;
            of_walk[k] = rows + (row ? row[i] : i) * width;
        }
        forest.template walk<kWalks>(at, of_walk);
        for (int32_t k = 0; k < here; ++k) out[begin + k] = ~at[k];
    }
}

// The leaves that one row reaches in the trees at steps [begin, end) of an order, at most kWalks.
template <class In, class Real>
inline void walk_trees(const Forest<Real>& forest, const int32_t* order, int32_t begin, int32_t end,
                       const In* row, int32_t* leaf) {
    const In* of_walk[kWalks];
    for (int32_t k = 0; k < kWalks; ++k) {
        leaf[k] = begin + k < end ? forest.root(order[begin + k]) : -1;
        of_walk[k] = row;
    }
    forest.template walk<kWalks>(leaf, of_walk);
    for (int32_t k = 0; k < kWalks; ++k) leaf[k] = ~leaf[k];
}

}  // namespace qwyc
