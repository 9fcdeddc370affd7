// Columns through Arrow's C data interface, whose structures these are
// (https://arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/table.hpp"

extern "C" {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
    int (*get_next)(ArrowArrayStream*, ArrowArray*);
    const char* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};

}  // extern "C"

namespace qwyc {

// An Arrow structure that is released in the end.
template <class Struct>
class Released : public Struct {
  public:
    Released() : Struct{} {}
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;
    ~Released() {
        if (this->release) this->release(this);
    }
};

using Batch = std::shared_ptr<Released<ArrowArray>>;

// The next arrays of a stream, or nothing at its end.
inline Batch next_batch(ArrowArrayStream& stream) {
    auto batch = std::make_shared<Released<ArrowArray>>();
    if (stream.get_next(&stream, batch.get()) != 0) {
        const char* why = stream.get_last_error ? stream.get_last_error(&stream) : nullptr;
        throw std::runtime_error(why ? why : "an Arrow stream cannot be read");
    }
    return batch->release ? batch : nullptr;
}

// What cells of an Arrow type are, if they can be read here.
inline std::optional<Cell> cell_of(std::string_view format) {
    constexpr std::pair<std::string_view, Cell> kKnown[] = {
        {"f", Cell::kFloat32}, {"g", Cell::kFloat64},  {"c", Cell::kInt8},  {"s", Cell::kInt16},
        {"i", Cell::kInt32},   {"l", Cell::kInt64},    {"C", Cell::kUInt8}, {"S", Cell::kUInt16},
        {"I", Cell::kUInt32},  {"L", Cell::kUInt64},   {"b", Cell::kBit},   {"u", Cell::kText32},
        {"U", Cell::kText64},  {"vu", Cell::kTextView}};
    for (const auto& [name, cell] : kKnown)
        if (name == format) return cell;
    return std::nullopt;
}

// Whether a type has a meaning of its own besides that of its storage, which its format names. The
// metadata are a number of pairs, and the length and bytes of each key and value.
inline bool is_extension(const ArrowSchema& type) {
    const char* at = type.metadata;
    const auto number = [&] {
        int32_t n;
        std::memcpy(&n, at, sizeof n);
        at += sizeof n;
        return n;
    };
    for (int32_t pairs = at ? number() : 0; pairs > 0; --pairs) {
        const int32_t n = number();
        if (std::string_view(at, n) == "ARROW:extension:name") return true;
        at += n;
        const int32_t skipped = number();
        at += skipped;
    }
    return type.dictionary && is_extension(*type.dictionary);
}

inline bool is_text(Cell cell) {
    return cell >= Cell::kText32;
}

inline int64_t bytes_of(Cell cell) {
    switch (cell) {
        case Cell::kInt8:
        case Cell::kUInt8:
            return 1;
        case Cell::kInt16:
        case Cell::kUInt16:
            return 2;
        case Cell::kFloat32:
        case Cell::kInt32:
        case Cell::kUInt32:
            return 4;
        default:
            return 8;
    }
}

// The cells of an array, without its dictionary.
inline ColumnChunk chunk_of(const ArrowArray& array, Cell cell) {
    const auto buffer = [&](int64_t i) {
        return i < array.n_buffers ? static_cast<const uint8_t*>(array.buffers[i]) : nullptr;
    };
    ColumnChunk chunk{.cell = cell,
                      .at = 0,
                      .n = array.length,
                      .first = array.offset,
                      .stride = bytes_of(cell),
                      .data = buffer(1)};
    if (array.null_count != 0) chunk.valid = buffer(0);
    if (cell == Cell::kTextView && array.n_buffers > 2) {  // the last has the sizes of the others
        chunk.blocks = reinterpret_cast<const uint8_t* const*>(array.buffers + 2);
        if (array.n_buffers > 3)
            chunk.block_bytes =
                reinterpret_cast<const int64_t*>(array.buffers[array.n_buffers - 1]);
    } else if (is_text(cell))
        chunk.bytes = buffer(2);
    if ((!chunk.data || (cell == Cell::kTextView && !chunk.blocks)) && chunk.n > 0)
        throw std::runtime_error("an Arrow array has no data");
    return chunk;
}

// Whether two arrays of a type are the same memory.
inline bool is_same(const ArrowArray& a, const ArrowArray& b) {
    return a.length == b.length && a.offset == b.offset && a.null_count == b.null_count &&
           a.n_buffers == b.n_buffers && std::equal(a.buffers, a.buffers + a.n_buffers, b.buffers);
}

// The codes of a dictionary's texts, and in the end that of a null.
inline std::shared_ptr<std::vector<double>> codes_of(const ArrowArray& dictionary, Cell cell,
                                                     std::shared_ptr<const TextCodes> texts) {
    Table table(dictionary.length, 1);
    Column& column = table.column(0);
    column.texts = texts;
    column.checks.missing = std::numeric_limits<double>::quiet_NaN();
    if (dictionary.length > 0) column.chunks.push_back(chunk_of(dictionary, cell));
    auto codes = std::make_shared<std::vector<double>>(dictionary.length + 1);
    // A text that is refused is refused where it occurs.
    static_cast<void>(table.read(0, dictionary.length, codes->data(), dictionary.length));
    codes->back() = texts->null();
    return codes;
}

}  // namespace qwyc
