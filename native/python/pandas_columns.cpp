// Columns as pandas keeps them: arrays of Python objects, and blocks of numbers.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "python/tables.hpp"
#include "python/text_objects.hpp"

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

// Writes the codes of objects at once. Returns false where one is neither text nor missing; no text
// is refused.
template <class Out>
bool write_codes(HeldTable& table, Column& column, const Objects& objects) {
    const int64_t n = table.n_rows();
    const std::shared_ptr<Out[]> codes = std::make_unique_for_overwrite<Out[]>(n);
    if (!objects.read(nullptr, 0, n, codes.get())) return false;
    const ColumnChunk chunk{.cell = sizeof(Out) == 4 ? Cell::kFloat32 : Cell::kFloat64,
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
    const ColumnChunk chunk{.cell = Cell::kForeign, .at = 0, .n = n, .foreign = cells};
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
    const ColumnChunk chunk{.cell = *cell,
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
            const ColumnChunk chunk{.cell = *cell,
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
