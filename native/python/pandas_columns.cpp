// Columns as pandas keeps them: arrays of Python objects, and blocks of numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/tables.hpp"

namespace qwyc {
namespace {

// The memory of a Python object while this lives. Raises no error where there is none.
class ArrayMemory {
  public:
    explicit ArrayMemory(PyObject* object)
        : held_(PyObject_GetBuffer(object, &view_, PyBUF_FORMAT | PyBUF_STRIDES) == 0) {
        if (!held_) PyErr_Clear();
    }
    ~ArrayMemory() {
        if (held_) PyBuffer_Release(&view_);
    }
    ArrayMemory(const ArrayMemory&) = delete;
    ArrayMemory& operator=(const ArrayMemory&) = delete;

    explicit operator bool() const { return held_; }
    const Py_buffer* operator->() const { return &view_; }
    std::string_view format() const { return view_.format ? view_.format : ""; }

  private:
    Py_buffer view_;
    bool held_;
};

// A str whose characters lie in it. Old versions of Python have others.
inline bool is_text(PyObject* object) {
#if PY_VERSION_HEX < 0x030C0000
    return PyUnicode_CheckExact(object) && PyUnicode_IS_READY(object);
#else
    return PyUnicode_CheckExact(object);
#endif
}

inline bool is_missing(PyObject* object) {
    return !object || object == Py_None ||
           (PyFloat_CheckExact(object) && std::isnan(PyFloat_AS_DOUBLE(object)));
}

// The characters of a str as UTF-8, without a call of Python, which would keep them in the object.
std::string utf8_of(PyObject* object) {
    std::string text;
    const auto n = PyUnicode_GET_LENGTH(object);
    for (Py_ssize_t i = 0; i < n; ++i) {
        const auto c = static_cast<uint32_t>(
            PyUnicode_READ(PyUnicode_KIND(object), PyUnicode_DATA(object), i));
        const auto rest = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
        if (c < 0x80) {
            text += static_cast<char>(c);
        } else if (c < 0x800) {
            text += static_cast<char>(0xc0 | c >> 6), rest(0);
        } else if (c < 0x10000) {  // halves of pairs, too: no category has bytes like these
            text += static_cast<char>(0xe0 | c >> 12), rest(6), rest(0);
        } else {
            text += static_cast<char>(0xf0 | c >> 18), rest(12), rest(6), rest(0);
        }
    }
    return text;
}

// An array of Python objects that are the text of categories. Objects are read without a call of
// Python, by any thread, as long as the thread that waits for it has Python's lock.
class Objects : public ForeignCells {
  public:
    Objects(const char* at, Py_ssize_t stride, int64_t n, std::shared_ptr<const TextCodes> texts)
        : at_(at), stride_(stride), n_(n), texts_(std::move(texts)) {
        Seen seen;
        int64_t hits = 0;
        for (int64_t i = 0; i < std::min(n_, kSample); ++i) hits += seen.has(object_at(i));
        repeat_ = hits >= kSample / 4 * 3;
    }

    // Whether the first values repeat as objects.
    bool repeat() const { return repeat_; }

    // Whether all values are text or missing.
    bool are_texts() const {
        bool strange = false;
        for (int64_t i = 0; i < n_; ++i) {
            PyObject* const object = object_at(i);
            if (!(object && is_text(object))) [[unlikely]]
                strange |= !is_missing(object);
        }
        return !strange;
    }

    bool read(const int32_t* row, int64_t before, int64_t n, float* out) const override {
        return read_as(row, before, n, out);
    }
    bool read(const int32_t* row, int64_t before, int64_t n, double* out) const override {
        return read_as(row, before, n, out);
    }

  private:
    static constexpr int64_t kSample = 256, kAhead = 16, kAtOnce = 64;

    // The codes of objects that were seen, by their address.
    struct Seen {
        static constexpr size_t kKept = 256;
        struct Kept {
            PyObject* object = nullptr;
            double code = 0;
        };
        Kept kept[kKept];

        Kept& of(PyObject* object) {
            return kept[reinterpret_cast<uintptr_t>(object) / 16 % kKept];
        }
        bool has(PyObject* object) { return std::exchange(of(object).object, object) == object; }
    };

    PyObject* object_at(int64_t i) const {
        PyObject* object;
        std::memcpy(&object, at_ + i * stride_, sizeof object);
        return object;
    }

    template <class Out>
    bool read_as(const int32_t* row, int64_t before, int64_t n, Out* out) const {
        if (row)
            return read_cells(
                n, [=](int64_t k) { return before + row[k]; }, [=](int64_t k) { return row[k]; },
                out);
        return read_cells(
            n, [=](int64_t k) { return before + k; }, [](int64_t k) { return k; }, out);
    }

    // Where values repeat as objects, as they do in text that pandas reads from CSV, an object that
    // was seen before is not looked at again. Otherwise each is read as text, and fetched from
    // memory some rows ahead.
    template <class CellAt, class PlaceAt, class Out>
    bool read_cells(int64_t n, const CellAt& cell, const PlaceAt& place, Out* out) const {
        const TextCodes& texts = *texts_;
        bool refused = false;
        if (repeat_ && n >= kSample) {
            Seen seen;
            for (int64_t k = 0; k < n; ++k) {
                PyObject* const object = object_at(cell(k));
                auto& kept = seen.of(object);
                if (kept.object != object || !object) kept = {object, code_of(texts, object)};
                refused |= kept.code == kRefused;
                out[place(k)] = static_cast<Out>(kept.code);
            }
            return !refused;
        }
        const auto fetch = [&](int64_t k) {
            const auto* const ahead =
                reinterpret_cast<const char*>(object_at(cell(std::min(k + kAhead, n - 1))));
            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + sizeof(PyASCIIObject));  // its characters
        };
        const ShortTexts* const known = texts.short_texts();
        for (int64_t begin = 0, end; begin < n; begin = end) {
            end = std::min(begin + kAtOnce, n);
            TextSpan spans[kAtOnce];
            bool plain = known != nullptr;
            for (int64_t k = begin; known && k < end; ++k) {
                fetch(k);
                PyObject* const object = object_at(cell(k));
                plain &= is_plain(object);
                spans[k - begin] = plain ? span_of(object) : TextSpan{nullptr, 0};
            }
            if (plain) {
                Out codes[kAtOnce];
                refused |= !texts.kernels().reads(Out()).spans(
                    *known, {.data = reinterpret_cast<const uint8_t*>(spans), .n = end - begin},
                    codes);
                for (int64_t k = begin; k < end; ++k) out[place(k)] = codes[k - begin];
                continue;
            }
            for (int64_t k = begin; k < end; ++k) {
                if (!known) fetch(k);
                const double code = code_of(texts, object_at(cell(k)));
                refused |= code == kRefused;
                out[place(k)] = static_cast<Out>(code);
            }
        }
        return !refused;
    }

    // A text whose characters follow its header, of more than eight bytes.
    static bool is_plain(PyObject* object) {
        return object && PyUnicode_CheckExact(object) && PyUnicode_IS_COMPACT_ASCII(object);
    }
    static TextSpan span_of(PyObject* object) {
        return {reinterpret_cast<const char*>(reinterpret_cast<PyASCIIObject*>(object) + 1),
                static_cast<uint64_t>(PyUnicode_GET_LENGTH(object))};
    }

    [[gnu::always_inline]] static double code_of(const TextCodes& texts, PyObject* object) {
        if (is_plain(object)) [[likely]] {
            const TextSpan text = span_of(object);
            return texts.of_behind(text.begin, text.size);
        }
        return code_of_other(texts, object);
    }
    [[gnu::noinline]] static double code_of_other(const TextCodes& texts, PyObject* object) {
        if (is_missing(object)) return texts.null();
        return is_text(object) ? texts.of(utf8_of(object)) : kRefused;
    }

    const char* const at_;
    const int64_t stride_, n_;
    const std::shared_ptr<const TextCodes> texts_;
    bool repeat_ = false;
};

// Writes the codes of objects at once. Returns false where one is neither text nor missing; no text
// is refused.
template <class Out>
bool write_codes(HeldTable& table, Column& column, const Objects& objects) {
    const int64_t n = table.n_rows();
    const std::shared_ptr<Out[]> codes = std::make_unique_for_overwrite<Out[]>(n);
    if (!objects.read(nullptr, 0, n, codes.get())) return false;
    const Chunk chunk{.cell = sizeof(Out) == 4 ? Cell::kFloat32 : Cell::kFloat64,
                      .at = 0,
                      .n = n,
                      .stride = sizeof(Out),
                      .data = reinterpret_cast<const uint8_t*>(codes.get())};
    table.written.push_back(codes);
    column.chunks.assign(n > 0 ? 1 : 0, chunk);
    return true;
}

// What NumPy's numbers of a format are; nothing for formats of more than one letter, such as those
// of another byte order.
std::optional<Cell> cell_of_format(std::string_view format, Py_ssize_t size) {
    if (format.size() != 1) return std::nullopt;
    const char letter = format[0];
    if (letter == '?') return Cell::kBool;
    if (letter == 'f') return Cell::kFloat32;
    if (letter == 'd') return Cell::kFloat64;
    const bool is_signed = std::string_view("bhilq").find(letter) != std::string_view::npos;
    if (!is_signed && std::string_view("BHILQ").find(letter) == std::string_view::npos)
        return std::nullopt;
    const Cell first = is_signed ? Cell::kInt8 : Cell::kUInt8;
    const int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    return static_cast<Cell>(static_cast<int>(first) + log);
}

// The column of a feature as objects, which nothing holds yet.
bool add_cells(HeldTable& table, int64_t feature, const char* at, Py_ssize_t stride,
               const std::shared_ptr<TextCodes>& texts) {
    const int64_t n = table.n_rows();
    const auto cells = std::make_shared<Objects>(at, stride, n, texts);
    Column& column = table.column(feature);
    column.refuses_categories = texts->refuses();
    // Memory is slow, so objects are looked at once if all differ: where any text is taken, now,
    // since some may be no text; otherwise when they are read, and what is no text is refused.
    if (!cells->repeat() && !column.refuses_categories)
        return table.single ? write_codes<float>(table, column, *cells)
                            : write_codes<double>(table, column, *cells);
    if (!column.refuses_categories && !cells->are_texts()) return false;
    const Chunk chunk{.cell = Cell::kForeign, .at = 0, .n = n, .foreign = cells};
    column.chunks.assign(n > 0 ? 1 : 0, chunk);
    table.has_objects = true;
    return true;
}

// Names of attributes, made once.
struct Names {
    PyObject* const values = PyUnicode_InternFromString("values");
    PyObject* const mgr_locs = PyUnicode_InternFromString("mgr_locs");
    PyObject* const indexer = PyUnicode_InternFromString("indexer");
    PyObject* const dtype = PyUnicode_InternFromString("dtype");
    PyObject* const categories = PyUnicode_InternFromString("categories");
    PyObject* const codes = PyUnicode_InternFromString("_codes");
    PyObject* const array = PyUnicode_InternFromString("__arrow_array__");
    PyObject* const stream = PyUnicode_InternFromString("__arrow_c_stream__");
};
nb::object attribute(const nb::handle& of, PyObject* name) {
    nb::object found = nb::steal(PyObject_GetAttr(of.ptr(), name));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}
nb::object call(const nb::handle& of, PyObject* name) {
    nb::object found = nb::steal(PyObject_CallMethodNoArgs(of.ptr(), name));
    if (!found.is_valid()) throw nb::python_error();
    return found;
}

// An array of pandas that holds one of Arrow. Returns false where it is not read here.
bool add_arrow_array(HeldTable& table, const nb::object& values, const TakenColumns::Of& column,
                     const Names& names) {
    const nb::object chunked = call(values, names.array);
    if (!PyObject_HasAttr(chunked.ptr(), names.stream)) return false;  // of old versions
    return add_arrow(table, call(chunked, names.stream), column.column, true, {}).empty();
}

// An array of pandas whose categories were looked at before. Returns false for others.
bool add_categories(HeldTable& table, const nb::object& values, const TakenColumns::Of& column,
                    const Names& names) {
    const std::shared_ptr<const TakenColumns::Known> known = column.known;
    if (!known || !values.type().is(known->type)) return false;
    const nb::object index = attribute(attribute(values, names.dtype), names.categories);
    if (!index.is(known->index)) return false;
    nb::object codes = attribute(values, names.codes);
    const ArrayMemory held(codes.ptr());
    if (!held || held->ndim != 1 || held->shape[0] != table.n_rows()) return false;
    const auto cell = cell_of_format(held.format(), held->itemsize);
    if (!cell || *cell < Cell::kInt8 || *cell > Cell::kUInt64) return false;
    const Chunk chunk{.cell = *cell,
                      .at = 0,
                      .n = table.n_rows(),
                      .stride = held->strides[0],
                      .data = static_cast<const uint8_t*>(held->buf),
                      .codes = known->codes.codes};
    table.column(column.feature).refuses_categories = known->codes.refuses;
    table.column(column.feature).chunks.assign(1, chunk);
    table.owners.push_back(std::move(codes));
    return true;
}

}  // namespace

bool add_objects(HeldTable& table, int64_t feature, const nb::object& objects,
                 std::shared_ptr<TextCodes> texts) {
    check_feature(table, feature);
    const ArrayMemory held(objects.ptr());
    require(held && held->ndim == 1 && held->shape[0] == table.n_rows() && held.format() == "O",
            "a column of objects must have one object per row");
    if (!add_cells(table, feature, static_cast<const char*>(held->buf), held->strides[0], texts))
        return false;
    table.owners.push_back(objects);
    return true;
}

std::optional<nb::list> add_blocks(HeldTable& table, const nb::object& blocks,
                                   const TakenColumns& taken) {
    static const Names names;
    for (const TakenColumns::Of& column : taken.columns)
        if (column.feature != -1) check_feature(table, column.feature);
    nb::list others;
    const auto width = static_cast<int64_t>(taken.columns.size());
    int64_t n_found = 0;
    for (nb::handle block : blocks) {
        const nb::object values = attribute(block, names.values);
        const nb::object place = attribute(attribute(block, names.mgr_locs), names.indexer);
        Py_ssize_t first = 0, step = 1;
        nb::object positions;  // of columns, where they do not follow from `first` and `step`
        if (PySlice_Check(place.ptr())) {
            Py_ssize_t end;
            if (PySlice_Unpack(place.ptr(), &first, &end, &step) != 0) throw nb::python_error();
        } else {
            positions = place;
        }
        const auto position_of = [&](int64_t i) {
            const int64_t at =
                positions.is_valid() ? nb::cast<int64_t>(positions[i]) : first + i * step;
            require(at >= 0 && at < width, "a block has a column that the frame does not have");
            ++n_found;
            return at;
        };
        if (!PyObject_CheckBuffer(values.ptr())) {  // one column, of a type of pandas
            if (static_cast<int64_t>(nb::len(values)) != table.n_rows()) return std::nullopt;
            const int64_t at = position_of(0);
            const TakenColumns::Of& column = taken.columns[at];
            if (column.feature < 0) continue;
            const bool is_arrow =
                column.arrow && PySet_Contains(taken.arrow_types.ptr(), values.type().ptr()) == 1;
            if (!(is_arrow && add_arrow_array(table, values, column, names)) &&
                !add_categories(table, values, column, names))
                others.append(nb::make_tuple(at, values));
            continue;
        }
        const ArrayMemory held(values.ptr());
        if (!held || held->ndim != 2 || held->shape[1] != table.n_rows()) return std::nullopt;
        const auto cell = cell_of_format(held.format(), held->itemsize);
        const bool readable = cell && held->strides[1] % held->itemsize == 0;
        const bool are_objects = held.format() == "O";
        for (int64_t i = 0; i < held->shape[0]; ++i) {
            const int64_t at = position_of(i);
            const TakenColumns::Of& column = taken.columns[at];
            if (column.feature < 0) continue;
            const auto* const begin = static_cast<const uint8_t*>(held->buf) + i * held->strides[0];
            if (are_objects && column.objects &&
                add_cells(table, column.feature, reinterpret_cast<const char*>(begin),
                          held->strides[1], column.column.texts[0]))
                continue;
            if (!readable || !column.numbers) {
                others.append(nb::make_tuple(at, values[i]));
                continue;
            }
            const Chunk chunk{.cell = *cell,
                              .at = 0,
                              .n = table.n_rows(),
                              .stride = held->strides[1],
                              .data = begin};
            table.column(column.feature).chunks.assign(1, chunk);
        }
        if (readable || are_objects) table.owners.push_back(values);
    }
    if (n_found != width) return std::nullopt;
    return others;
}

}  // namespace qwyc
