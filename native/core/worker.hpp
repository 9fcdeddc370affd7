// Helpers of both engines.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/coded_trees.hpp"
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
// `more` rows follow these n, in `row` or in memory. `some`: the only questions that compare
// numbers and are answered, or null: all.
template <class In, class Real>
uint64_t* answer(const MaskKernels& kernels, const MaskedTrees& trees, const RowsView<In>& rows,
                 const int32_t* row, int32_t n, int32_t more, const SomeQuestions* some = nullptr) {
    using V = TileValue<In, Real>;
    Scratch& mine = scratch();
    auto* const tile =
        reinterpret_cast<V*>(mine.tile.of(static_cast<size_t>(trees.n_slots) * 64 * sizeof(V)));
    uint64_t* const masks = mine.masks.of(static_cast<size_t>(trees.n_masks()) * kSlabWords);
    if (some)
        kernels.answer_some<In, V>()(trees, *some, rows, row, n, more, tile, masks);
    else
        kernels.answer<In, V>()(trees, rows, row, n, more, tile, masks);
    return masks;
}

// The number of rows, so far apart in either direction, whose offsets fit 32 bits, as kernels that
// walk need; at least one.
inline int64_t max_rows_in_int32(int64_t row_stride) {
    const int64_t apart = std::max<int64_t>(std::abs(row_stride), 1);
    return std::max<int64_t>(std::numeric_limits<int32_t>::max() / apart, 1);
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
        for (int64_t f = 0; f < view.width; ++f) {
            const In* const from = view.column(f);
            for (int32_t i = 0; i < n; ++i)
                copy[i * view.width + f] = from[(some ? some[i] : i) * view.row_stride];
        }
        rows = copy, row = nullptr, width = view.width;
    }
};

// Whether n rows walk the nodes of the forest rather than `trees`.
inline bool node_by_node(const RowTrees& trees, int32_t n) {
    return !trees.usable || (n == 1 && trees.at_once < kWalksAtOnce);
}

// Walks rows through trees at steps of an order.
template <class Real>
struct RowWalker {
    const Forest<Real>& forest;
    const RowTrees& trees;
    const RowKernels& kernels;

    // The leaves of n <= kRowsWalked rows in the trees at steps [begin, end), at most kWalksAtOnce.
    // leaf: (n, kWalksAtOnce)
    template <class In>
    void operator()(const int32_t* order, int32_t begin, int32_t end, const In* const* row,
                    int32_t n, int32_t* leaf) const {
        if constexpr (std::is_same_v<In, TileValue<In, Real>>) {
            if (!node_by_node(trees, n)) {
                kernels.walk<In>()(trees, order + begin, end - begin, row, n, leaf);
                return;
            }
        }
        constexpr int32_t kAtOnce = kFewWalks;
        for (int32_t i = 0; i < n; ++i)
            for (int32_t at = begin; at < end; at += kAtOnce) {
                int32_t* const here = leaf + i * kWalksAtOnce + at - begin;
                for (int32_t k = 0; k < kAtOnce; ++k)
                    here[k] = at + k < end ? forest.root(order[at + k]) : -1;
                forest.template walk<kAtOnce>(here, row[i]);
                for (int32_t k = 0; k < kAtOnce; ++k) here[k] = ~here[k];
            }
    }
};

// Calls `use` with n <= kMaxWalkedRows rows, those at row[0..n) or the first ones, as they are
// walked fastest: an array of pointers to rows, in the thread's scratch where they must be copied.
// Doubles that a forest compares as floats are converted.
template <class Real, class In, class Use>
auto with_values(const RowTrees& trees, const RowsView<In>& rows, const int32_t* row, int32_t n,
                 const Use& use) {
    const auto copied = [&]<class V>(V* copy) {
        const V* to[kMaxWalkedRows];
        for (int32_t i = 0; i < n; ++i) {
            const int64_t at = row ? row[i] : i;
            to[i] = copy;
            if (rows.column_stride == 1) {  // many values at a time
                const In* const from = rows.row(at);
                for (int64_t f = 0; f < rows.width; ++f) copy[f] = static_cast<V>(from[f]);
            } else {
                for (int64_t f = 0; f < rows.width; ++f)
                    copy[f] = static_cast<V>(rows.column(f)[at * rows.row_stride]);
            }
            copy += rows.width;
        }
        return use(to);
    };
    if constexpr (!std::is_same_v<In, TileValue<In, Real>>)
        if (!node_by_node(trees, n)) return copied(scratch().values.of(n * rows.width));
    if (rows.column_stride != 1)
        return copied(reinterpret_cast<In*>(scratch().rows.of(n * rows.width * sizeof(In))));
    const In* to[kMaxWalkedRows];
    for (int32_t i = 0; i < n; ++i) to[i] = rows.row(row ? row[i] : i);
    return use(to);
}

// As RowWalker, for rows of codes.
struct CodeWalker {
    const CodedTrees& trees;
    const CodedKernels& kernels;

    void operator()(const int32_t* order, int32_t begin, int32_t end, const uint8_t* const* line,
                    int32_t n, int32_t* leaf) const {
        for (int32_t i = 0; i < n; ++i)
            kernels.leaves(trees, line[i], order + begin, end - begin, leaf + i * kWalksAtOnce);
    }
};

// As with_values, for the codes of rows.
template <class Real, class In, class Use>
auto with_codes(const CodedTrees& trees, const CodedKernels& kernels, const RowsView<In>& rows,
                const int32_t* row, int32_t n, const Use& use) {
    const auto encode = kernels.template encode<In, TileValue<In, Real>>();
    const uint8_t* to[kMaxWalkedRows];
    uint8_t* line = scratch().lines.of(static_cast<size_t>(n) * CodedTrees::kLine);
    for (int32_t i = 0; i < n; ++i, line += CodedTrees::kLine) {
        const int64_t at = row ? row[i] : i;
        const In* values = rows.column_stride == 1 ? rows.row(at) : nullptr;
        if (!values) {
            auto* const copy = reinterpret_cast<In*>(scratch().rows.of(rows.width * sizeof(In)));
            for (int64_t f = 0; f < rows.width; ++f) copy[f] = rows.column(f)[at * rows.row_stride];
            values = copy;
        }
        encode(trees, values, line);
        to[i] = line;
    }
    return use(to);
}

// Calls `use` with rows as with_values has them, or their codes, and with what walks them.
template <class Real, class In, class Use>
auto with_walk(const Forest<Real>& forest, const RowTrees& trees, const RowWay& way,
               const RowsView<In>& rows, const int32_t* row, int32_t n, const Use& use) {
    if (way.coded) {
        const CodeWalker walk{*way.coded, *coded_kernels()};
        return with_codes<Real>(*way.coded, walk.kernels, rows, row, n,
                                [&](auto* lines) { return use(lines, walk); });
    }
    const RowWalker<Real> walk{forest, trees, row_kernels()};
    return with_values<Real>(trees, rows, row, n, [&](auto* values) { return use(values, walk); });
}

}  // namespace qwyc
