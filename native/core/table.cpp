#include "core/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

namespace qwyc {

namespace {

constexpr int64_t kExactInteger = int64_t{1} << 53;

inline bool bit_at(const uint8_t* bits, int64_t i) {
    return bits[i / 8] >> i % 8 & 1;
}

// Cells [begin, end) of a chunk, counted from its first.
struct Part {
    const Chunk& chunk;
    int64_t begin, end;
    const Column& column;

    bool is_null(int64_t i) const {
        return (chunk.valid && !bit_at(chunk.valid, chunk.first + i)) ||
               (chunk.null && chunk.null[i]);
    }
    bool has_nulls() const { return chunk.valid || chunk.null; }
};

template <class Number>
inline Number number_at(const Chunk& chunk, int64_t i) {
    Number x;
    std::memcpy(&x, chunk.data + (chunk.first + i) * chunk.stride, sizeof x);
    return x;
}

template <class Number, class Out>
bool read_codes(const Part& part, Out* out) {
    const std::vector<double>& codes = *part.chunk.codes;  // the last is that of a null
    const auto n_codes = static_cast<int64_t>(codes.size()) - 1;
    bool refused = false;
    for (int64_t i = part.begin; i < part.end; ++i) {
        const auto index = static_cast<int64_t>(number_at<Number>(part.chunk, i));
        const bool known = index >= 0 && index < n_codes && !part.is_null(i);
        const double code = codes[known ? index : n_codes];
        refused |= code == kRefused;
        *out++ = static_cast<Out>(code);
    }
    return !refused;
}

template <class Number, class Out>
bool read_numbers(const Part& part, Out* out) {
    if constexpr (std::is_integral_v<Number>)
        if (part.chunk.codes) return read_codes<Number>(part, out);
    const Chunk& chunk = part.chunk;
    const int64_t n = part.end - part.begin;
    if (chunk.stride == sizeof(Number) &&
        reinterpret_cast<uintptr_t>(chunk.data) % sizeof(Number) == 0) {
        const auto* const from =
            reinterpret_cast<const Number*>(chunk.data) + chunk.first + part.begin;
        for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(from[i]);
    } else {
        for (int64_t i = 0; i < n; ++i)
            out[i] = static_cast<Out>(number_at<Number>(chunk, part.begin + i));
    }
    if (part.has_nulls())
        for (int64_t i = 0; i < n; ++i)
            if (part.is_null(part.begin + i)) out[i] = std::numeric_limits<Out>::quiet_NaN();
    if constexpr (std::is_integral_v<Number> && sizeof(Number) == 8) {
        if (!part.column.checks.refuses_large_integers) return true;
        bool large = false;
        for (int64_t i = part.begin; i < part.end; ++i) {
            const auto x = number_at<Number>(chunk, i);
            bool past = x > static_cast<Number>(kExactInteger);
            if constexpr (std::is_signed_v<Number>) past |= x < -kExactInteger;
            large |= past && !part.is_null(i);
        }
        return !large;
    }
    return true;
}

template <class Out>
bool read_bits(const Part& part, Out* out) {
    for (int64_t i = part.begin; i < part.end; ++i) {
        const bool yes = bit_at(part.chunk.data, part.chunk.first + i);
        *out++ = part.is_null(i) ? std::numeric_limits<Out>::quiet_NaN() : static_cast<Out>(yes);
    }
    return true;
}

template <class Out>
bool read_bools(const Part& part, Out* out) {
    for (int64_t i = part.begin; i < part.end; ++i) {
        const bool yes = number_at<uint8_t>(part.chunk, i) != 0;
        *out++ = part.is_null(i) ? std::numeric_limits<Out>::quiet_NaN() : static_cast<Out>(yes);
    }
    return true;
}

template <class Offset>
inline std::string_view text_at(const Chunk& chunk, int64_t i) {
    Offset offset[2];  // which need not be aligned
    std::memcpy(offset, chunk.data + (chunk.first + i) * sizeof(Offset), sizeof offset);
    return {reinterpret_cast<const char*>(chunk.bytes) + offset[0],
            static_cast<size_t>(offset[1] - offset[0])};
}

// 16 bytes: a length of 32 bits, and then the text itself if it has up to 12 bytes; otherwise its
// first four bytes, the number of a block and an offset in it.
inline std::string_view view_at(const Chunk& chunk, int64_t i) {
    const uint8_t* const view = chunk.data + 16 * (chunk.first + i);
    int32_t part[4];
    std::memcpy(part, view, sizeof part);
    const auto size = static_cast<size_t>(part[0]);
    const uint8_t* const begin = size <= 12 ? view + 4 : chunk.blocks[part[2]] + part[3];
    return {reinterpret_cast<const char*>(begin), size};
}

template <class Out, class At>
bool read_texts(const Part& part, Out* out, const At& at) {
    const TextCodes& texts = *part.column.texts;
    bool refused = false;
    for (int64_t i = part.begin; i < part.end; ++i) {
        const double code = part.is_null(i) ? texts.null() : texts.of(at(part.chunk, i));
        refused |= code == kRefused;
        *out++ = static_cast<Out>(code);
    }
    return !refused;
}

template <class Out>
bool read_part(const Part& part, Out* out) {
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
            return read_texts(part, out, text_at<int32_t>);
        case Cell::kText64:
            return read_texts(part, out, text_at<int64_t>);
        case Cell::kTextView:
            return read_texts(part, out, view_at);
    }
    return false;
}

template <class Out>
bool check(const Checks& checks, int64_t n, Out* x) {
    if (checks.missing == checks.missing) {
        const auto missing = static_cast<Out>(checks.missing);
        for (int64_t i = 0; i < n; ++i)
            if (x[i] == missing) x[i] = std::numeric_limits<Out>::quiet_NaN();
    }
    bool refused = false;
    if (checks.refuses_nan)
        for (int64_t i = 0; i < n; ++i) refused |= x[i] != x[i];
    if (checks.refuses_infinity)
        for (int64_t i = 0; i < n; ++i) refused |= std::abs(x[i]) > std::numeric_limits<Out>::max();
    return !refused;
}

template <class Out>
bool read_column(const Column& column, int64_t begin, int64_t end, Out* out) {
    auto chunk = std::partition_point(column.chunks.begin(), column.chunks.end(),
                                      [&](const Chunk& c) { return c.at + c.n <= begin; });
    for (; chunk != column.chunks.end() && chunk->at < end; ++chunk) {
        const int64_t from = std::max(begin, chunk->at), to = std::min(end, chunk->at + chunk->n);
        const Part part{*chunk, from - chunk->at, to - chunk->at, column};
        if (!read_part(part, out + (from - begin))) return false;
    }
    return check(column.checks, end - begin, out);
}

}  // namespace

template <class Out>
bool Table::read(int64_t begin, int64_t end, Out* out, int64_t stride) const {
    if (refused_) return false;
    for (const Column& column : columns_) {
        if (column.chunks.empty())
            std::fill_n(out, end - begin, Out(0));
        else if (!read_column(column, begin, end, out))
            return false;
        out += stride;
    }
    return true;
}

template bool Table::read(int64_t, int64_t, float*, int64_t) const;
template bool Table::read(int64_t, int64_t, double*, int64_t) const;

}  // namespace qwyc
