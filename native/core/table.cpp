#include "core/table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace qwyc {

namespace {

constexpr int64_t kExactInteger = int64_t{1} << 53;

inline bool bit_at(const uint8_t* bits, int64_t i) {
    return bits[i / 8] >> i % 8 & 1;
}

// Cells that follow each other, and go to consecutive places.
struct Range {
    int64_t begin, n;

    int64_t cell(int64_t k) const { return begin + k; }
    static int64_t place(int64_t k) { return k; }
};

// Some cells, which go to the places row[0..n).
struct Picked {
    const int32_t* row;
    int64_t before, n;  // before: the cells of the chunk before place 0; may be negative

    int64_t cell(int64_t k) const { return row[k] + before; }
    int64_t place(int64_t k) const { return row[k]; }
};

// Cells of a chunk, counted from its first.
template <class Cells>
struct Part {
    const ColumnChunk& chunk;
    const Column& column;
    Cells cells;

    // Calls use(i, place) for each cell.
    template <class Use>
    void each(const Use& use) const {
        for (int64_t k = 0; k < cells.n; ++k) use(cells.cell(k), cells.place(k));
    }

    bool is_null(int64_t i) const {
        return (chunk.valid && !bit_at(chunk.valid, chunk.first + i)) ||
               (chunk.null && chunk.null[i]);
    }
    bool has_nulls() const { return chunk.valid || chunk.null; }
};

template <class Number>
inline Number number_at(const ColumnChunk& chunk, int64_t i) {
    Number x;
    std::memcpy(&x, chunk.data + (chunk.first + i) * chunk.stride, sizeof x);
    return x;
}

// Calls use(number_of), which gives the number of a cell; most often they lie one after the other.
template <class Number, class Use>
inline auto with_numbers(const ColumnChunk& chunk, const Use& use) {
    if (chunk.stride == sizeof(Number) &&
        reinterpret_cast<uintptr_t>(chunk.data) % sizeof(Number) == 0) {
        const auto* const from = reinterpret_cast<const Number*>(chunk.data) + chunk.first;
        return use([from](int64_t i) { return from[i]; });
    }
    return use([&chunk](int64_t i) { return number_at<Number>(chunk, i); });
}

// Whether one of the codes is refused. Counted as numbers, which compilers do for several at once.
template <class Cells, class Out>
bool any_refused(const Part<Cells>& part, const Out* out) {
    std::conditional_t<sizeof(Out) == 4, int32_t, int64_t> found = 0;
    part.each([&](int64_t, int64_t place) { found |= out[place] == static_cast<Out>(kRefused); });
    return found != 0;
}

// The codes of a list as Out, for many cells: as many as a power of two, past the list that of a
// null.
template <class Out>
class ShortList {
  public:
    static constexpr uint64_t kMost = 1024;

    explicit ShortList(const std::vector<double>& codes) : size_(std::bit_ceil(codes.size())) {
        for (uint64_t i = 0; i < size_; ++i)
            code_[i] = static_cast<Out>(codes[std::min<uint64_t>(i, codes.size() - 1)]);
    }

    // The codes of all cells, unless a position is past the list.
    template <class Cells, class Number>
    bool read(const Part<Cells>& part, const Number& number_of, Out* out) const {
        uint64_t bits = 0;
        part.each([&](int64_t i, int64_t) { bits |= unsigned_of(number_of(i)); });
        if (bits >= size_) return false;
        part.each([&](int64_t i, int64_t place) { out[place] = code_[unsigned_of(number_of(i))]; });
        return true;
    }

  private:
    template <class Number>
    static auto unsigned_of(Number number) {
        return static_cast<std::make_unsigned_t<Number>>(number);
    }

    const uint64_t size_;
    Out code_[kMost];
};

template <class Number, class Cells, class Out>
bool read_codes(const Part<Cells>& part, Out* out) {
    const double* const codes = part.chunk.codes->data();
    const auto null = static_cast<uint64_t>(part.chunk.codes->size() - 1);  // the last code
    const bool may_refuse = std::find(codes, codes + null + 1, kRefused) != codes + null + 1;
    bool refused = false;
    with_numbers<Number>(part.chunk, [&](const auto& number_of) {
        // No position is negative; as unsigned numbers those are past the end too.
        const auto code_of = [&](int64_t i) {
            return codes[std::min(static_cast<uint64_t>(static_cast<int64_t>(number_of(i))), null)];
        };
        if (!part.has_nulls()) {
            const bool many =
                null < ShortList<Out>::kMost && part.cells.n > static_cast<int64_t>(null);
            if (!(many && ShortList<Out>(*part.chunk.codes).read(part, number_of, out)))
                part.each(
                    [&](int64_t i, int64_t place) { out[place] = static_cast<Out>(code_of(i)); });
            refused = may_refuse && any_refused(part, out);
            return;
        }
        part.each([&](int64_t i, int64_t place) {
            const double code = part.is_null(i) ? codes[null] : code_of(i);
            refused |= code == kRefused;
            out[place] = static_cast<Out>(code);
        });
    });
    return !refused;
}

// Whether an integer is past 2^53, so that a float64 may not hold it.
template <class Number>
inline bool is_large(Number x) {
    if constexpr (std::is_signed_v<Number>)
        return static_cast<uint64_t>(x) + kExactInteger > 2 * uint64_t{kExactInteger};
    return x > Number{kExactInteger};
}

template <class Number, class Cells, class Out>
bool read_numbers(const Part<Cells>& part, Out* out) {
    if constexpr (std::is_integral_v<Number>)
        if (part.chunk.codes) return read_codes<Number>(part, out);
    const bool has_nulls = part.has_nulls();
    bool large = false;
    with_numbers<Number>(part.chunk, [&](const auto& number_of) {
        part.each([&](int64_t i, int64_t place) { out[place] = static_cast<Out>(number_of(i)); });
        if constexpr (std::is_integral_v<Number> && sizeof(Number) == 8) {
            if (!part.column.checks.refuses_large_integers) return;
            part.each([&](int64_t i, int64_t) {
                large |= is_large(number_of(i)) && !(has_nulls && part.is_null(i));
            });
        }
    });
    if (has_nulls)
        part.each([&](int64_t i, int64_t place) {
            if (part.is_null(i)) out[place] = std::numeric_limits<Out>::quiet_NaN();
        });
    return !large;
}

template <class Cells, class Out>
bool read_bits(const Part<Cells>& part, Out* out) {
    part.each([&](int64_t i, int64_t place) {
        const bool yes = bit_at(part.chunk.data, part.chunk.first + i);
        out[place] =
            part.is_null(i) ? std::numeric_limits<Out>::quiet_NaN() : static_cast<Out>(yes);
    });
    return true;
}

template <class Cells, class Out>
bool read_bools(const Part<Cells>& part, Out* out) {
    part.each([&](int64_t i, int64_t place) {
        const bool yes = number_at<uint8_t>(part.chunk, i) != 0;
        out[place] =
            part.is_null(i) ? std::numeric_limits<Out>::quiet_NaN() : static_cast<Out>(yes);
    });
    return true;
}

// The code of a text with offsets.
template <class Offset>
struct TextAt {
    template <class Out>
    static auto kernel(const TextKernels& kernels) {
        const auto& reads = kernels.reads(Out());
        return sizeof(Offset) == 4 ? reads.text32 : reads.text64;
    }

    [[gnu::always_inline]] double operator()(const TextCodes& texts, const ColumnChunk& chunk,
                                             int64_t i) const {
        Offset offset[2];  // which need not be aligned
        std::memcpy(offset, chunk.data + (chunk.first + i) * sizeof(Offset), sizeof offset);
        const auto* const begin = reinterpret_cast<const char*>(chunk.bytes) + offset[0];
        const auto size = static_cast<size_t>(offset[1] - offset[0]);
        // Before all but the first texts there are others.
        return offset[0] >= 8 ? texts.of_behind(begin, size) : texts.of({begin, size});
    }
};

// The code of a text with a view, 16 bytes: a length of 32 bits, and then the text itself if it has
// up to 12 bytes; otherwise its first four bytes, the number of a block and an offset in it.
struct ViewAt {
    template <class Out>
    static auto kernel(const TextKernels& kernels) {
        return kernels.reads(Out()).views;
    }

    [[gnu::always_inline]] double operator()(const TextCodes& texts, const ColumnChunk& chunk,
                                             int64_t i) const {
        const uint8_t* const view = chunk.data + 16 * (chunk.first + i);
        int32_t part[4];
        std::memcpy(part, view, sizeof part);
        const bool is_here = part[0] <= 12;
        const uint8_t* const block = chunk.blocks[is_here ? 0 : part[2]];  // there is always one
        const uint8_t* const begin = is_here ? view + 4 : block + part[3];
        return texts.of_ahead(reinterpret_cast<const char*>(begin), static_cast<size_t>(part[0]));
    }
};

TextCells text_cells(const Part<Range>& part) {
    const ColumnChunk& chunk = part.chunk;
    return {chunk.data,  chunk.bytes, chunk.blocks, chunk.block_bytes, chunk.first,
            chunk.valid, chunk.null,  nullptr,      part.cells.begin,  part.cells.n};
}
TextCells text_cells(const Part<Picked>& part) {
    const ColumnChunk& chunk = part.chunk;
    return {chunk.data,  chunk.bytes, chunk.blocks,   chunk.block_bytes, chunk.first,
            chunk.valid, chunk.null,  part.cells.row, part.cells.before, part.cells.n};
}

template <class At, class Cells, class Out>
bool read_texts(const Part<Cells>& part, Out* out) {
    const TextCodes& texts = *part.column.texts;
    if (const ShortTexts* const known = texts.short_texts())
        return At::template kernel<Out>(texts.kernels())(*known, text_cells(part), out);
    const bool has_nulls = part.has_nulls();
    bool refused = false;
    part.each([&](int64_t i, int64_t place) {
        const double code =
            has_nulls && part.is_null(i) ? texts.null() : At()(texts, part.chunk, i);
        refused |= code == kRefused;
        out[place] = static_cast<Out>(code);
    });
    return !refused;
}

template <class Out>
bool read_foreign(const Part<Range>& part, Out* out) {
    return part.chunk.foreign->read(nullptr, part.cells.begin, part.cells.n, out);
}
template <class Out>
bool read_foreign(const Part<Picked>& part, Out* out) {
    return part.chunk.foreign->read(part.cells.row, part.cells.before, part.cells.n, out);
}

template <class Cells, class Out>
bool read_part(const Part<Cells>& part, Out* out) {
    switch (part.chunk.cell) {
        case Cell::kFloat32:
            return read_numbers<float>(part, out);
        case Cell::kFloat64:
            return read_numbers<double>(part, out);
        case Cell::kInt8:
            return read_numbers<int8_t>(part, out);
        case Cell::kInt16:
            return read_numbers<int16_t>(part, out);
        case Cell::kInt32:
            return read_numbers<int32_t>(part, out);
        case Cell::kInt64:
            return read_numbers<int64_t>(part, out);
        case Cell::kUInt8:
            return read_numbers<uint8_t>(part, out);
        case Cell::kUInt16:
            return read_numbers<uint16_t>(part, out);
        case Cell::kUInt32:
            return read_numbers<uint32_t>(part, out);
        case Cell::kUInt64:
            return read_numbers<uint64_t>(part, out);
        case Cell::kBool:
            return read_bools(part, out);
        case Cell::kBit:
            return read_bits(part, out);
        case Cell::kText32:
            return read_texts<TextAt<int32_t>>(part, out);
        case Cell::kText64:
            return read_texts<TextAt<int64_t>>(part, out);
        case Cell::kTextView:
            return read_texts<ViewAt>(part, out);
        case Cell::kForeign:
            return read_foreign(part, out);
    }
    return false;
}

// Cells that mean missing become NaN.
template <class Cells, class Out>
void mark_missing(const Checks& checks, const Cells& cells, Out* x) {
    if (!checks.has_missing()) return;
    const auto missing = static_cast<Out>(checks.missing);
    for (int64_t k = 0; k < cells.n; ++k) {
        Out& here = x[cells.place(k)];
        if (here == missing) here = std::numeric_limits<Out>::quiet_NaN();
    }
}

template <class Out>
bool check(const Checks& checks, int64_t n, const Out* x) {
    bool refused = false;
    if (checks.refuses_nan)
        for (int64_t i = 0; i < n; ++i) refused |= x[i] != x[i];
    if (checks.refuses_infinity)
        for (int64_t i = 0; i < n; ++i) refused |= std::abs(x[i]) > std::numeric_limits<Out>::max();
    return !refused;
}

// The chunk that a row is in, or the end.
auto chunk_at(const Column& column, int64_t row) {
    return std::partition_point(column.chunks.begin(), column.chunks.end(),
                                [&](const ColumnChunk& c) { return c.at + c.n <= row; });
}

template <class Out>
constexpr Cell kCellOf = std::is_same_v<Out, float> ? Cell::kFloat32 : Cell::kFloat64;

// Whether cells are numbers of type Out, one after the other, that none of them is null.
template <class Out>
bool lies_as(const ColumnChunk& chunk) {
    return chunk.cell == kCellOf<Out> && chunk.stride == sizeof(Out) && !chunk.valid &&
           !chunk.null && reinterpret_cast<uintptr_t>(chunk.data) % alignof(Out) == 0;
}

}  // namespace

template <class Out>
bool Column::lies_as() const {
    return !checks.has_missing() &&
           std::all_of(chunks.begin(), chunks.end(),
                       [](const ColumnChunk& chunk) { return qwyc::lies_as<Out>(chunk); });
}

template <class Out>
const Out* Column::find(int64_t begin, int64_t end) const {
    const auto chunk = chunk_at(*this, begin);
    if (chunk == chunks.end() || chunk->at + chunk->n < end || checks.has_missing() ||
        !qwyc::lies_as<Out>(*chunk))
        return nullptr;
    return reinterpret_cast<const Out*>(chunk->data) + chunk->first + (begin - chunk->at);
}

template <class Out>
bool Column::takes(const Out* values, int64_t n) const {
    return check(checks, n, values);
}

template <class Out>
bool Column::read(int64_t begin, int64_t end, Out* out) const {
    for (auto chunk = chunk_at(*this, begin); chunk != chunks.end() && chunk->at < end; ++chunk) {
        const int64_t from = std::max(begin, chunk->at), to = std::min(end, chunk->at + chunk->n);
        const Part<Range> part{*chunk, *this, {from - chunk->at, to - from}};
        if (!read_part(part, out + (from - begin))) return false;
    }
    mark_missing(checks, Range{begin, end - begin}, out);
    return check(checks, end - begin, out);
}

template <class Out>
void Column::read_some(int64_t first, const int32_t* row, int64_t n, Out* out) const {
    for (int64_t i = 0, end; i < n; i = end) {
        const auto chunk = chunk_at(*this, first + row[i]);
        const int64_t before = first - chunk->at;
        for (end = i + 1; end < n; ++end) {
            const int64_t cell = row[end] + before;
            if (cell < 0 || cell >= chunk->n) break;
        }
        static_cast<void>(read_part(Part<Picked>{*chunk, *this, {row + i, before, end - i}}, out));
    }
    mark_missing(checks, Picked{row, 0, n}, out);
}

template <class Out>
bool Table::read(int64_t begin, int64_t end, Out* out, int64_t stride) const {
    if (refused_) return false;
    for (const Column& column : columns_) {
        if (column.chunks.empty())
            std::fill_n(out, end - begin, Out(0));
        else if (!column.read(begin, end, out))
            return false;
        out += stride;
    }
    return true;
}

#define QWYC_INSTANTIATE(Out)                                                      \
    template bool Column::lies_as<Out>() const;                                    \
    template const Out* Column::find(int64_t, int64_t) const;                      \
    template bool Column::takes(const Out*, int64_t) const;                        \
    template bool Column::read(int64_t, int64_t, Out*) const;                      \
    template void Column::read_some(int64_t, const int32_t*, int64_t, Out*) const; \
    template bool Table::read(int64_t, int64_t, Out*, int64_t) const;
QWYC_INSTANTIATE(float)
QWYC_INSTANTIATE(double)

}  // namespace qwyc
