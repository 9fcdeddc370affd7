// Rows as they lie in memory, and copies of them in C order, a block at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.hpp"

namespace qwyc {

// Columns that lie apart from each other. Those that have to be converted first are written when
// they are needed, for the rows that need them. Used by one thread.
template <class In>
class Columns {
  public:
    virtual ~Columns() = default;

    const In* of(int64_t feature) const { return at_[feature]; }

    // Features whose columns are not written yet.
    std::span<const int32_t> late() const { return late_; }

    // Writes late columns for rows [first, first + n), or for first + row[0..n).
    virtual void write(std::span<const int32_t> features, int64_t first, const int32_t* row,
                       int64_t n) = 0;

  protected:
    std::vector<const In*> at_;  // by feature
    std::vector<int32_t> late_;  // ascending
};

// n rows of `width` numbers. Strides count numbers, not bytes: number j of row i is
// data[i * row_stride + j * column_stride]. In C order column_stride is 1, in Fortran order
// row_stride is 1; the other stride is larger than it has to be for a part of a wider array.
template <class In>
struct RowsView {
    const In* data;
    int64_t n, width, row_stride, column_stride;
    // Where columns lie apart: there are no data then, row_stride is 1 and column_stride 0.
    Columns<In>* columns = nullptr;
    int64_t first = 0;  // of the rows of `columns`

    static RowsView apart(Columns<In>& columns, int64_t n, int64_t width) {
        return {nullptr, n, width, 1, 0, &columns};
    }

    // Whether the rows follow each other in C order without gaps.
    bool is_contiguous() const {
        return !columns && (column_stride == 1 || width <= 1) && (row_stride == width || n <= 1);
    }
    // Where columns do not lie apart.
    const In* row(int64_t i) const { return data + i * row_stride; }
    // Number j of row i is column(j)[i * row_stride].
    const In* column(int64_t j) const {
        return columns ? columns->of(j) + first : data + j * column_stride;
    }
    RowsView part(int64_t begin, int64_t end) const {
        RowsView some(*this);
        some.n = end - begin;
        if (columns)
            some.first += begin;
        else
            some.data += begin * row_stride;
        return some;
    }
    // Has late columns written, for all rows or those at row[0..n).
    void need_all() const { need_all(nullptr, n); }
    void need_all(const int32_t* row, int64_t n) const {
        if (columns && !columns->late().empty()) columns->write(columns->late(), first, row, n);
    }
};

// Copies rows to out, (n, width) in C order.
template <class In>
void copy_rows(const RowsView<In>& rows, In* out) {
    rows.need_all();
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
            const In* column = tile.column(j);
            for (int64_t i = 0; i < tile.n; ++i)
                to[i * tile.width + j] = column[i * tile.row_stride];
        }
    }
}

// Rows of a block: a share for each thread, and at most some thousand. bytes: of all columns.
inline int64_t rows_to_copy(int64_t n, int64_t width, int64_t bytes_each, int threads,
                            int64_t bytes = 1 << 20) {
    constexpr int64_t kLeast = 256, kMost = 16384;
    const int64_t fits = bytes / (bytes_each * std::max<int64_t>(width, 1));
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
