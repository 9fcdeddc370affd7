// A table as it lies in memory, column by column, and its values as a model takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/text_codes.hpp"

namespace qwyc {

// What a cell of a column is. Text is offsets of 32 or 64 bits into bytes, or Arrow's views.
enum class Cell : uint8_t {
    kFloat32,
    kFloat64,
    kInt8,
    kInt16,
    kInt32,
    kInt64,
    kUInt8,
    kUInt16,
    kUInt32,
    kUInt64,
    kBool,  // a byte; all but 0 are true
    kBit,
    kText32,
    kText64,
    kTextView,
    kForeign,  // categories that only their owner reads
};

// The codes of cells that only their owner can read, such as Python objects. Several threads read
// at once.
class ForeignCells {
  public:
    virtual ~ForeignCells() = default;

    // Cells before + row[0..n), to out[row[0..n)]; without `row` those from `before` on, to
    // out[0..n). Returns false where a value is refused.
    virtual bool read(const int32_t* row, int64_t before, int64_t n, float* out) const = 0;
    virtual bool read(const int32_t* row, int64_t before, int64_t n, double* out) const = 0;
};

// Some consecutive cells of a column.
struct ColumnChunk {
    Cell cell;
    int64_t at;  // the row of its first cell
    int64_t n;
    int64_t first = 0;                       // cells before these, in `data` and `valid`
    int64_t stride = 0;                      // of numbers: bytes from one to the next
    const uint8_t* data = nullptr;           // numbers, or offsets or views of text
    const uint8_t* bytes = nullptr;          // of text with offsets
    const uint8_t* const* blocks = nullptr;  // of text with views; at least one
    const int64_t* block_bytes = nullptr;    // of each; null where no text is in a block
    const uint8_t* valid = nullptr;          // bit a cell; null: there are no nulls
    const uint8_t* null = nullptr;           // byte a cell, from the first of these on; or null
    // Numbers are positions in it; floats are codes themselves.
    std::shared_ptr<std::vector<double>> codes = nullptr;
    std::shared_ptr<const ForeignCells> foreign = nullptr;

    bool is_text() const { return cell >= Cell::kText32; }
};

// Which values of a column are refused, and which mean missing.
struct Checks {
    double missing;            // means missing, besides NaN
    bool refuses_nan = false;  // missing values, too
    bool refuses_infinity = false;
    bool refuses_large_integers = false;  // past 2^53

    bool has_missing() const { return missing == missing; }
    bool refuse_some() const { return refuses_nan || refuses_infinity || refuses_large_integers; }
};

struct Column {
    std::vector<ColumnChunk> chunks;
    std::shared_ptr<const TextCodes> texts;  // of categories
    Checks checks;
    bool refuses_categories = false;

    // Whether a value may be refused, so that all of them have to be read.
    bool refuses() const { return refuses_categories || checks.refuse_some(); }

    // Whether all cells are numbers of type Out in memory, so that they need not be converted.
    template <class Out>
    bool lies_as() const;

    // Where the numbers of rows [begin, end) are in memory, if they are one after the other and
    // need not be converted; otherwise null.
    template <class Out>
    const Out* find(int64_t begin, int64_t end) const;

    // Whether none of the numbers found in memory is refused.
    template <class Out>
    bool takes(const Out* values, int64_t n) const;

    // Rows [begin, end). Returns false where a value is refused.
    template <class Out>
    bool read(int64_t begin, int64_t end, Out* out) const;

    // Rows first + row[0..n), to out[row[0..n)]. Refuses nothing.
    template <class Out>
    void read_some(int64_t first, const int32_t* row, int64_t n, Out* out) const;
};

class Table {
  public:
    Table(int64_t n_rows, int64_t n_features) : n_rows_(n_rows), columns_(n_features) {}

    int64_t n_rows() const { return n_rows_; }
    int64_t n_features() const { return static_cast<int64_t>(columns_.size()); }
    Column& column(int64_t feature) { return columns_[feature]; }
    const Column& column(int64_t feature) const { return columns_[feature]; }
    void refuse() { refused_ = true; }  // a value is known to be refused
    bool is_refused() const { return refused_; }

    // Rows [begin, end), column by column, `stride` from one column to the next. Columns that the
    // table does not have are 0. Returns false where a value is refused.
    template <class Out>
    bool read(int64_t begin, int64_t end, Out* out, int64_t stride) const;

  private:
    int64_t n_rows_;
    bool refused_ = false;
    std::vector<Column> columns_;  // by feature; empty where it is not needed
};

}  // namespace qwyc
