// Some rows of a table as engines take them: columns of numbers where they lie, and the others when
// they are needed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/rows_view.hpp"
#include "core/scratch.hpp"
#include "core/table.hpp"

namespace qwyc {

// What a table's columns have in common, for values of type In.
struct TableLayout {
    int64_t found = 0;         // columns that need not be converted
    int64_t converted = 0;     // others
    bool keeps_all = true;     // all values mean as In what they mean themselves
    int64_t rows_at_once = 0;  // of a block

    template <class In>
    static TableLayout of(const Table& table, int threads) {
        constexpr int64_t kMost = 65536;     // of columns that lie in memory
        constexpr int64_t kBytes = 3 << 19;  // of others: most are used once, when they are written
        TableLayout layout;
        for (int64_t j = 0; j < table.n_features(); ++j) {
            const Column& column = table.column(j);
            if (column.chunks.empty()) continue;
            ++(column.lies_as<In>() ? layout.found : layout.converted);
            layout.keeps_all = layout.keeps_all && keeps_values<In>(column);
        }
        const int64_t n = table.n_rows(), share = n / std::max(threads, 1) + 1;
        layout.rows_at_once = layout.converted > 0
                                  ? rows_to_copy(n, layout.converted, sizeof(In), threads, kBytes)
                                  : std::min(kMost, (share + 255) / 256 * 256);
        return layout;
    }

  private:
    // Numbers are not rounded, and none becomes infinite or means missing only then.
    template <class In>
    static bool keeps_values(const Column& column) {
        if (column.checks.has_missing() || column.checks.refuses_infinity) return false;
        return std::all_of(
            column.chunks.begin(), column.chunks.end(), [](const ColumnChunk& chunk) {
                return chunk.codes || chunk.is_text() || keeps_numbers<In>(chunk.cell);
            });
    }

    template <class In>
    static bool keeps_numbers(Cell cell) {
        constexpr bool kWide = sizeof(In) == 8;
        switch (cell) {
            case Cell::kInt64:
            case Cell::kUInt64:
                return false;
            case Cell::kFloat64:
            case Cell::kInt32:
            case Cell::kUInt32:
                return kWide;
            default:
                return true;
        }
    }
};

// Rows [begin, end) of a table. Columns that are converted are in the thread's scratch: one such
// object at a time.
template <class In>
class TableBlock : public Columns<In> {
  public:
    TableBlock(const Table& table, int64_t begin, int64_t end)
        : table_(table), begin_(begin), n_(end - begin) {
        const int64_t width = table.n_features();
        this->at_.resize(width);
        std::vector<int32_t> copied;
        bool any_empty = false;
        for (int64_t j = 0; j < width; ++j) {
            const Column& column = table.column(j);
            if (column.chunks.empty())
                any_empty = true;
            else if (!(this->at_[j] = column.find<In>(begin, end)))
                copied.push_back(static_cast<int32_t>(j));
            else if (column.refuses() && !column.takes(this->at_[j], n_))
                refused_ = true;
        }
        const size_t stride = (n_ + kAligned - 1) / kAligned * kAligned;
        copy_ = reinterpret_cast<In*>(
            scratch().columns.of((copied.size() + any_empty) * stride * sizeof(In)));
        In* to = copy_;
        if (any_empty) {
            std::fill_n(to, n_, In(0));
            for (const In*& at : this->at_)
                if (!at) at = to;
            to += stride;
        }
        for (int32_t j : copied) {
            this->at_[j] = to;
            if (!table.column(j).refuses())
                this->late_.push_back(j);
            else if (refused_ || !table.column(j).read(begin, end, to))
                refused_ = true;
            to += stride;
        }
    }

    bool is_refused() const { return refused_ || table_.is_refused(); }
    RowsView<In> rows() { return RowsView<In>::apart(*this, n_, table_.n_features()); }

    void write(std::span<const int32_t> features, int64_t first, const int32_t* row,
               int64_t n) override {
        if (n == 0) return;
        // Rows that follow each other are read faster, although some of them are not needed.
        const bool dense = row && row[n - 1] - row[0] < n * kDense && std::is_sorted(row, row + n);
        for (int32_t feature : features) {
            if (!std::binary_search(this->late_.begin(), this->late_.end(), feature)) continue;
            const Column& column = table_.column(feature);
            In* const to = const_cast<In*>(this->at_[feature]) + first;
            if (row && !dense)
                column.read_some(begin_ + first, row, n, to);
            else if (row)
                read(column, first + row[0], first + row[n - 1] + 1, to + row[0]);
            else
                read(column, first, first + n, to);
        }
    }

  private:
    static constexpr int64_t kAligned = 64 / sizeof(In);
    static constexpr int64_t kDense = 2;

    void read(const Column& column, int64_t begin, int64_t end, In* to) const {
        static_cast<void>(column.read(begin_ + begin, begin_ + end, to));  // nothing is refused
    }

    const Table& table_;
    int64_t begin_, n_;
    In* copy_;
    bool refused_ = false;
};

}  // namespace qwyc
