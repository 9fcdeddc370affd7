// Helpers of both engines.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/kernels.hpp"
#include "core/mask_kernels.hpp"
#include "core/row_trees.hpp"
#include "core/scratch.hpp"

namespace qwyc {

inline int32_t words_of(int32_t n) {
    return (n + 63) / 64;
}

// What values of type In are compared as. Cuts between doubles can be rounded for floats, so only
// doubles of a forest that compares doubles must be compared as such.
template <class In, class Real>
using TileValue =
    std::conditional_t<std::is_same_v<In, double> && std::is_same_v<Real, double>, double, float>;

// The answers of n <= kSlab rows, with space for the planes after them, in the thread's scratch.
// `more` rows follow these n, in `row` or in memory.
template <class In, class Real>
uint64_t* answer(const MaskKernels& kernels, const MaskedTrees& trees, const RowsView<In>& rows,
                 const int32_t* row, int32_t n, int32_t more) {
    using V = TileValue<In, Real>;
    Scratch& mine = scratch();
    auto* const tile =
        reinterpret_cast<V*>(mine.tile.of(static_cast<size_t>(trees.n_slots) * 64 * sizeof(V)));
    uint64_t* const masks = mine.masks.of(static_cast<size_t>(trees.n_masks()) * kSlabWords);
    kernels.answer<In, V>()(trees, rows, row, n, more, tile, masks);
    return masks;
}

// The number of rows, so far apart in either direction, whose offsets fit 32 bits, as kernels that
// walk need; at least one.
inline int64_t max_rows_in_int32(int64_t row_stride) {
    const int64_t apart = std::max<int64_t>(std::abs(row_stride), 1);
    return std::max<int64_t>(std::numeric_limits<int32_t>::max() / apart, 1);
}

// Row i, its values one after the other; copied to the thread's scratch where they are not.
template <class In>
const In* one_row(const RowsView<In>& rows, int64_t i) {
    const In* const row = rows.row(i);
    if (rows.column_stride == 1) return row;
    auto* const copy = reinterpret_cast<In*>(scratch().rows.of(rows.width * sizeof(In)));
    for (int64_t f = 0; f < rows.width; ++f) copy[f] = row[f * rows.column_stride];
    return copy;
}

// Some rows as the kernels that walk take them: row i is rows + row[i] * width, or rows + i * width
// without a list. Rows whose values are not one after the other are copied to the thread's scratch.
template <class In>
struct Rowwise {
    const In* rows;
    const int32_t* row;
    int64_t width;

    Rowwise(const RowsView<In>& view, const int32_t* some, int32_t n)
        : rows(view.data), row(some), width(view.row_stride) {
        if (view.column_stride == 1) return;
        auto* const copy = reinterpret_cast<In*>(
            scratch().rows.of(n * std::max<int64_t>(view.width, 1) * sizeof(In)));
        for (int64_t f = 0; f < view.width; ++f)
            for (int32_t i = 0; i < n; ++i)
                copy[i * view.width + f] = view.row(some ? some[i] : i)[f * view.column_stride];
        rows = copy, row = nullptr, width = view.width;
    }
};

// Walks one row through trees at steps of an order.
template <class Real>
struct RowWalker {
    const Forest<Real>& forest;
    const RowTrees& trees;
    const RowKernels& kernels;

    // The leaves in the trees at steps [begin, end), at most kWalksAtOnce.
    template <class In>
    void operator()(const int32_t* order, int32_t begin, int32_t end, const In* row,
                    int32_t* leaf) const {
        if constexpr (std::is_same_v<In, TileValue<In, Real>>) {
            if (trees.usable) {
                kernels.walk<In>()(trees, order + begin, end - begin, row, leaf);
                return;
            }
        }
        constexpr int32_t kAtOnce = 8;
        for (int32_t at = begin; at < end; at += kAtOnce, leaf += kAtOnce) {
            for (int32_t k = 0; k < kAtOnce; ++k)
                leaf[k] = at + k < end ? forest.root(order[at + k]) : -1;
            forest.template walk<kAtOnce>(leaf, row);
            for (int32_t k = 0; k < kAtOnce; ++k) leaf[k] = ~leaf[k];
        }
    }
};

// Calls `use` with a row as it is walked fastest: doubles that a forest compares as floats are
// converted first.
template <class Real, class In, class Use>
auto with_values(const RowTrees& trees, const In* row, int64_t width, const Use& use) {
    if constexpr (!std::is_same_v<In, TileValue<In, Real>>) {
        if (trees.usable) {
            float* const copy = scratch().values.of(width);
            for (int64_t f = 0; f < width; ++f) copy[f] = static_cast<float>(row[f]);
            return use(static_cast<const float*>(copy));
        }
    }
    return use(row);
}

}  // namespace qwyc
