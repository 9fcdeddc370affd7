// A few rows through many trees at once, for any machine. AVX2 uses it too.
#include <algorithm>

#include "core/row_trees.hpp"
#include "kernels/targets.hpp"

namespace qwyc::portable {

namespace {

template <class V>
void walk_one(const RowTrees& trees, const int32_t* tree, int32_t n, const V* row, int32_t* leaf) {
    const RowTrees::Entry<V>* const entries = trees.entries<V>();
    int32_t begin[kWalksAtOnce], at[kWalksAtOnce], levels = 0;
    for (int32_t k = 0; k < kWalksAtOnce; ++k) {
        const int32_t t = tree[k < n ? k : 0];
        begin[k] = at[k] = trees.begin[t];
        levels = std::max(levels, trees.levels[t]);
    }
    for (; levels > 0; --levels)
#pragma GCC unroll 16
        for (int32_t k = 0; k < kWalksAtOnce; ++k) {
            const auto [cut, word] = entries[at[k]];
            const V x = row[word & ((1u << RowTrees::kRowFeatureBits) - 1)];
            const bool missing_right = (word & RowTrees::kMissingRight) != 0;
            const bool right = (x >= cut) | (!(x < cut) & missing_right);
            at[k] = begin[k] + static_cast<int32_t>(word >> RowTrees::kChildShift) + right;
        }
    for (int32_t k = 0; k < n; ++k) leaf[k] = trees.leaf[at[k]];
}

template <class V>
void walk(const RowTrees& trees, const int32_t* tree, int32_t n, const V* const* row,
          int32_t n_rows, int32_t* leaf) {
    for (int32_t i = 0; i < n_rows; ++i) walk_one(trees, tree, n, row[i], leaf + i * kWalksAtOnce);
}

}  // namespace

extern const RowKernels row_table;
const RowKernels row_table{walk<float>, walk<double>, false};

}  // namespace qwyc::portable
