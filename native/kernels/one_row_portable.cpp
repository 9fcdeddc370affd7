// One row through many trees at once, for any machine. AVX2 uses it too.
#include <algorithm>

#include "core/row_trees.hpp"
#include "kernels/targets.hpp"

namespace qwyc::portable {

namespace {

template <class V>
void walk(const RowTrees& trees, const int32_t* tree, int32_t n, const V* row, int32_t* leaf) {
    const V* const cuts = trees.cuts<V>();
    const uint32_t* const words = trees.word.data();
    int32_t begin[kWalksAtOnce], at[kWalksAtOnce], levels = 0;
    for (int32_t k = 0; k < kWalksAtOnce; ++k) {
        const int32_t t = tree[k < n ? k : 0];
        begin[k] = at[k] = trees.begin[t];
        levels = std::max(levels, trees.levels[t]);
    }
    for (; levels > 0; --levels)
#pragma GCC unroll 16
        for (int32_t k = 0; k < kWalksAtOnce; ++k) {
            const uint32_t word = words[at[k]];
            const V cut = cuts[at[k]];
            const V x = row[word & ((1u << RowTrees::kRowFeatureBits) - 1)];
            const bool missing_right = (word & RowTrees::kMissingRight) != 0;
            const bool right = (x >= cut) | (!(x < cut) & missing_right);
            at[k] = begin[k] + static_cast<int32_t>(word >> RowTrees::kChildShift) + right;
        }
    for (int32_t k = 0; k < n; ++k) leaf[k] = trees.leaf[at[k]];
}

}  // namespace

extern const RowKernels row_table;
const RowKernels row_table{walk<float>, walk<double>};

}  // namespace qwyc::portable
