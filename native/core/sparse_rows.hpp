// Rows of a sparse matrix (CSR) as they lie in memory, and some of their columns as dense tiles, a
// block of rows at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/parallel.hpp"
#include "core/rows_view.hpp"

namespace qwyc {

// CSR. The entries of row i are those from begin[i] up to begin[i + 1], in any order; entries of
// one column are added up.
struct SparseRows {
    int64_t n_columns = 0;
    std::span<const int64_t> begin;                                           // (n + 1,)
    std::variant<std::span<const int32_t>, std::span<const int64_t>> column;  // (entries,)
    std::variant<std::span<const float>, std::span<const double>> value;      // (entries,)
    double absent = 0;  // what a column without an entry holds; may be NaN

    int64_t n_rows() const { return static_cast<int64_t>(begin.size()) - 1; }
    bool is_single() const { return value.index() == 0; }

    SparseRows part(int64_t from, int64_t to) const {
        SparseRows some(*this);
        some.begin = begin.subspan(from, to - from + 1);
        return some;
    }

    // Calls use(column, value) with the arrays of entries.
    template <class Use>
    auto visit(const Use& use) const {
        return std::visit(use, column, value);
    }

    // Throws where an entry does not lie in the arrays, or in no column.
    void check() const {
        const auto require = [](bool ok, const char* message) {
            if (!ok) throw std::invalid_argument(message);
        };
        require(!begin.empty(),
                "indptr is empty; it must have one number more than there are rows");
        require(begin.front() >= 0, "indptr begins with a negative number");
        for (size_t i = 1; i < begin.size(); ++i)
            require(begin[i - 1] <= begin[i], "indptr falls; it must not");
        visit([&](const auto& column, const auto& value) {
            const auto least = static_cast<int64_t>(std::min(column.size(), value.size()));
            require(begin.back() <= least, "indptr ends beyond the entries of indices and data");
            const auto all = column.subspan(begin.front(), begin.back() - begin.front());
            bool inside = true;
            for (const auto j : all) inside &= j >= 0 && j < n_columns;
            require(inside, "indices has a number that is no column");
        });
    }
};

// The columns that trees look at, numbered from 0 in ascending order.
struct ColumnSlots {
    std::vector<int32_t> slot;  // (n_columns,) -1: no tree looks at it
    std::vector<int32_t> used;  // (slots,) the column of each

    ColumnSlots(int64_t n_columns, std::span<const int32_t> columns)
        : slot(n_columns, -1), used(columns.begin(), columns.end()) {
        for (size_t i = 0; i < used.size(); ++i) {
            if (used[i] < 0 || used[i] >= n_columns || (i > 0 && used[i - 1] >= used[i]))
                throw std::invalid_argument("columns must be some of all, in ascending order");
            slot[used[i]] = static_cast<int32_t>(i);
        }
    }

    int64_t n_columns() const { return static_cast<int64_t>(slot.size()); }
    int64_t n_slots() const { return static_cast<int64_t>(used.size()); }
};

// Dense rows of the columns in use, column by column. One thread fills the same memory again and
// again: what the block before wrote is taken back, so a block costs its entries and not its size.
template <class In>
class SparseTile {
  public:
    SparseTile(const SparseRows& rows, const ColumnSlots& slots, int64_t most_rows)
        : rows_(rows), slots_(slots), stride_(stride_of(most_rows)) {}

    // Rows [begin, end), at most `most_rows`. They are gone with the next call.
    RowsView<In> of(int64_t begin, int64_t end) {
        const auto absent = static_cast<In>(rows_.absent);
        if (tile_.empty())
            tile_.assign(std::max<int64_t>(slots_.n_slots(), 1) * stride_, absent);
        else
            each(begin_, end_, [&](int64_t at, auto) { tile_[at] = absent; });
        begin_ = begin, end_ = end;
        each(begin, end, [&](int64_t at, auto value) { tile_[at] = static_cast<In>(value); });
        return {tile_.data(), end - begin, slots_.n_slots(), 1, stride_};
    }

  private:
    // A column begins in another set of the cache than the one before it.
    static int64_t stride_of(int64_t rows) {
        constexpr int64_t kLine = 64 / sizeof(In);
        return (rows + kLine - 1) / kLine * kLine + kLine;
    }

    // Calls use(place in the tile, value) for each entry of a column in use.
    template <class Use>
    void each(int64_t begin, int64_t end, const Use& use) {
        rows_.visit([&](const auto& column, const auto& value) {
            const int32_t* const slot = slots_.slot.data();
            const auto n_columns = static_cast<uint64_t>(slots_.n_columns());
            for (int64_t i = begin; i < end; ++i) {
                const int64_t from = rows_.begin[i], to = rows_.begin[i + 1];
                int64_t last = -1;
                bool ascends = true;
                for (int64_t k = from; k < to; ++k) {
                    const int64_t j = column[k];
                    // It was checked, but the array is the caller's, who may change it.
                    if (static_cast<uint64_t>(j) >= n_columns) continue;
                    ascends &= j > last;
                    last = j;
                    if (slot[j] >= 0) use(slot[j] * stride_ + i - begin, value[k]);
                }
                if (!ascends) add_up(column.data(), value.data(), from, to, i - begin, use);
            }
        });
    }

    // The same for a row whose columns do not ascend: some may be there more than once.
    template <class Column, class Value, class Use>
    void add_up(const Column* column, const Value* value, int64_t from, int64_t to, int64_t row,
                const Use& use) {
        order_.clear();
        for (int64_t k = from; k < to; ++k) {
            const auto j = static_cast<uint64_t>(static_cast<int64_t>(column[k]));
            if (j < static_cast<uint64_t>(slots_.n_columns()) && slots_.slot[j] >= 0)
                order_.push_back({slots_.slot[j], k});
        }
        std::sort(order_.begin(), order_.end());
        for (size_t a = 0, b = 0; a < order_.size(); a = b) {
            Value sum = value[order_[a].second];
            for (b = a + 1; b < order_.size() && order_[b].first == order_[a].first; ++b)
                sum += value[order_[b].second];
            use(order_[a].first * stride_ + row, sum);
        }
    }

    SparseRows rows_;
    const ColumnSlots& slots_;
    int64_t stride_, begin_ = 0, end_ = 0;
    std::vector<In> tile_;                            // (slots, stride)
    std::vector<std::pair<int32_t, int64_t>> order_;  // slots and entries of a row
};

// Rows of a tile: so many that it fits a cache, and no more than a share for each thread.
inline int64_t rows_of_tile(int64_t n, int64_t n_slots, int64_t bytes_each, int threads) {
    constexpr int64_t kBytes = int64_t{1} << 21, kLeast = 256, kMost = 16384;
    const int64_t fits = kBytes / (bytes_each * std::max<int64_t>(n_slots, 1));
    const int64_t share = n / std::max(threads, 1) + 1;
    const int64_t rows = std::min(std::clamp(fits, kLeast, kMost), share);
    return (rows + kLeast - 1) / kLeast * kLeast;
}

// Calls use(rows, begin) with dense rows of the columns in use, a block at a time and from several
// threads at once, until all were passed. They are float where values are float or become it
// anyway (`single`), otherwise double.
template <class Use>
void in_tiles(const SparseRows& rows, const ColumnSlots& slots, bool single, int threads,
              const Use& use) {
    const auto run = [&]<class In>(In) {
        const int64_t n = rows.n_rows();
        const int64_t most = std::min(rows_of_tile(n, slots.n_slots(), sizeof(In), threads),
                                      std::max<int64_t>(n, 1));
        std::optional<SparseTile<In>> tile;  // of each thread
        parallel_for(n, most, threads, [&, tile](int64_t begin, int64_t end) mutable {
            if (!tile) tile.emplace(rows, slots, most);
            use(tile->of(begin, end), begin);
        });
    };
    if (single || rows.is_single())
        run(float{});
    else
        run(double{});
}

}  // namespace qwyc
