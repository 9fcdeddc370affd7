// Rows as they lie in memory, and copies of them in C order, a block at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/parallel.hpp"

namespace qwyc {

// n rows of `width` numbers. Strides count numbers, not bytes: number j of row i is
// data[i * row_stride + j * column_stride]. In C order column_stride is 1, in Fortran order
// row_stride is 1; the other stride is larger than it has to be for a part of a wider array.
template <class In>
struct RowsView {
    const In* data;
    int64_t n, width, row_stride, column_stride;

    // Whether the rows follow each other in C order without gaps.
    bool is_contiguous() const {
        return (column_stride == 1 || width <= 1) && (row_stride == width || n <= 1);
    }
    const In* row(int64_t i) const { return data + i * row_stride; }
    RowsView part(int64_t begin, int64_t end) const {
        return {data + begin * row_stride, end - begin, width, row_stride, column_stride};
    }
};

// Copies rows to out, (n, width) in C order.
template <class In>
void copy_rows(const RowsView<In>& rows, In* out) {
    if (rows.column_stride == 1) {
        for (int64_t i = 0; i < rows.n; ++i)
            std::copy_n(rows.data + i * rows.row_stride, rows.width, out + i * rows.width);
        return;
    }
    // Rows at once: the numbers of one column that share a cache line.
    constexpr int64_t kTile = 64 / sizeof(In);
    for (int64_t begin = 0; begin < rows.n; begin += kTile) {
        const RowsView<In> tile = rows.part(begin, std::min(begin + kTile, rows.n));
        In* to = out + begin * rows.width;
        for (int64_t j = 0; j < tile.width; ++j) {
            const In* column = tile.data + j * tile.column_stride;
            for (int64_t i = 0; i < tile.n; ++i)
                to[i * tile.width + j] = column[i * tile.row_stride];
        }
    }
}

// Rows of a block: a share for each thread, and at most some thousand.
inline int64_t rows_to_copy(int64_t n, int64_t width, int64_t bytes_each, int threads) {
    constexpr int64_t kBytes = 1 << 20, kLeast = 256, kMost = 16384;
    const int64_t fits = kBytes / (bytes_each * std::max<int64_t>(width, 1));
    const int64_t share = n / std::max(threads, 1) + 1;
    return (std::min(std::clamp(fits, kLeast, kMost), share) + kLeast - 1) / kLeast * kLeast;
}

// Calls run(rows, begin, n, threads) with rows in C order, until all rows of a view were passed:
// all at once where they are in C order, otherwise copies of a block, from several threads at once.
template <class In, class Run>
void with_contiguous(const RowsView<In>& rows, int threads, const Run& run) {
    if (rows.is_contiguous()) return run(rows.data, int64_t{0}, rows.n, threads);
    const int64_t block = rows_to_copy(rows.n, rows.width, sizeof(In), threads);
    std::vector<In> copy;  // of each thread
    parallel_for(rows.n, block, threads, [&, copy](int64_t begin, int64_t end) mutable {
        copy.resize(std::min(block, rows.n) * rows.width);
        copy_rows(rows.part(begin, end), copy.data());
        run(static_cast<const In*>(copy.data()), begin, end - begin, 1);
    });
}

}  // namespace qwyc
