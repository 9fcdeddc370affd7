// Tables for Python: columns of NumPy and Arrow, read where they lie.
#include "python/tables.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "python/arrow.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

std::optional<Cell> numpy_cell(const nb::dlpack::dtype& dtype) {
    if (dtype.lanes != 1) return std::nullopt;
    const int bytes = dtype.bits / 8;
    switch (static_cast<nb::dlpack::dtype_code>(dtype.code)) {
        case nb::dlpack::dtype_code::Float:
            if (bytes == 4) return Cell::kFloat32;
            if (bytes == 8) return Cell::kFloat64;
            break;
        case nb::dlpack::dtype_code::Int:
            if (bytes == 1) return Cell::kInt8;
            if (bytes == 2) return Cell::kInt16;
            if (bytes == 4) return Cell::kInt32;
            if (bytes == 8) return Cell::kInt64;
            break;
        case nb::dlpack::dtype_code::UInt:
            if (bytes == 1) return Cell::kUInt8;
            if (bytes == 2) return Cell::kUInt16;
            if (bytes == 4) return Cell::kUInt32;
            if (bytes == 8) return Cell::kUInt64;
            break;
        case nb::dlpack::dtype_code::Bool:
            if (bytes == 1) return Cell::kBool;
            break;
        default:
            break;
    }
    return std::nullopt;
}

using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::device::cpu>;

ColumnChunk chunk_of(const HeldTable& table, const AnyVector& values) {
    const auto cell = numpy_cell(values.dtype());
    require(cell.has_value(), "a column must hold numbers that the native core reads");
    require(static_cast<int64_t>(values.shape(0)) == table.n_rows(),
            "a column must have one value per row");
    const auto size = static_cast<int64_t>(values.dtype().bits / 8);
    return {.cell = *cell,
            .at = 0,
            .n = table.n_rows(),
            .stride = values.stride(0) * size,
            .data = static_cast<const uint8_t*>(values.data())};
}

// The stream of a capsule, and its schema.
ArrowArrayStream& stream_of(const nb::handle& capsule, Released<ArrowSchema>& schema) {
    constexpr const char* kName = "arrow_array_stream";
    require(PyCapsule_IsValid(capsule.ptr(), kName), "this is no Arrow stream");
    auto& stream = *static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), kName));
    require(stream.release != nullptr, "an Arrow stream can be read once");
    if (stream.get_schema(&stream, &schema) != 0)
        throw std::runtime_error("the schema of an Arrow stream cannot be read");
    return stream;
}

PositionCodes position_codes(std::shared_ptr<std::vector<double>> codes) {
    const bool refuses = std::find(codes->begin(), codes->end(), kRefused) != codes->end();
    return {std::move(codes), refuses};
}
PositionCodes position_codes(const std::shared_ptr<TextCodes>& texts, const nb::object& capsule) {
    Released<ArrowSchema> schema;
    ArrowArrayStream& stream = stream_of(capsule, schema);
    const auto cell = cell_of(schema.format);
    require(cell && is_text(*cell), "categories must be text");
    const Batch batch = next_batch(stream);
    require(batch && !next_batch(stream), "categories must be one array");
    return position_codes(codes_of(*batch, *cell, texts));
}

template <class Out>
std::optional<OutMatrix<Out>> matrix(const HeldTable& table, int threads) {
    Out* data;
    const int64_t n = table.n_rows(), width = table.n_features();
    auto out = new_matrix<Out>(width, n, data);
    bool read;
    {
        nb::gil_scoped_release release;
        read = table.read_all(data, threads);
    }
    if (!read) return std::nullopt;
    return out;
}

// Values of one row, as Python has them. Returns false where one is neither a number nor text that
// is taken, and its feature then has no column.
bool add_row(HeldTable& table, const nb::tuple& values, const ArrowColumns& columns) {
    const auto& [features, texts] = columns;
    require(table.n_rows() == 1 && values.size() == features.size(),
            "a row must have one value per feature");
    const std::shared_ptr<double[]> memory = std::make_unique<double[]>(features.size());
    table.written.push_back(memory);
    for (size_t k = 0; k < features.size(); ++k) {
        check_feature(table, features[k]);
        double& cell = memory[k];
        ColumnChunk chunk{.cell = Cell::kFloat64,
                          .at = 0,
                          .n = 1,
                          .stride = sizeof cell,
                          .data = reinterpret_cast<const uint8_t*>(&cell)};
        PyObject* const value = nb::handle(values[k]).ptr();
        if (texts[k]) {
            if (!PyUnicode_CheckExact(value)) return false;
            Py_ssize_t size;
            const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
            if (!text) PyErr_Clear();
            cell = text ? texts[k]->of({text, static_cast<size_t>(size)}) : kRefused;
            if (cell == kRefused) return false;
        } else if (PyFloat_CheckExact(value)) {
            cell = PyFloat_AS_DOUBLE(value);
        } else if (PyLong_CheckExact(value)) {
            int overflow;
            const int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
            if (overflow) return false;
            std::memcpy(&cell, &number, sizeof cell);
            chunk.cell = Cell::kInt64;
        } else {
            return false;
        }
        table.column(features[k]).chunks.assign(1, std::move(chunk));
    }
    return true;
}

}  // namespace

std::vector<int64_t> add_arrow(HeldTable& table, const nb::handle& capsule,
                               const ArrowColumns& columns, bool one,
                               const std::vector<std::shared_ptr<PositionCodes>>& positions) {
    const auto& [features, texts] = columns;
    require(positions.empty() || positions.size() == texts.size(),
            "texts and positions must have equal lengths");
    for (int64_t feature : features) {
        check_feature(table, feature);
        table.column(feature).chunks.clear();
    }
    Released<ArrowSchema> schema;
    ArrowArrayStream& stream = stream_of(capsule, schema);
    const auto n_columns = static_cast<int64_t>(features.size());
    require(one ? n_columns == 1 : schema.n_children == n_columns,
            "an Arrow stream must have one column per feature");
    std::vector<int64_t> others;
    std::vector<std::optional<Cell>> cells, dictionary_cells;
    for (int64_t k = 0; k < n_columns; ++k) {
        const ArrowSchema& type = one ? schema : *schema.children[k];
        auto cell = cell_of(type.format);
        std::optional<Cell> values;
        if (type.dictionary) values = cell_of(type.dictionary->format);
        const bool text = cell && is_text(*cell);
        const PositionCodes* const codes = positions.empty() ? nullptr : positions[k].get();
        const bool integers = cell && *cell >= Cell::kInt8 && *cell <= Cell::kUInt64;
        const bool dictionary = integers && values && is_text(*values);
        // Text and dictionaries of text are categories; all else is numbers.
        const bool fits = (codes             ? integers && !type.dictionary
                           : type.dictionary ? dictionary && texts[k]
                                             : cell && text == !!texts[k]) &&
                          !is_extension(type);
        if (!fits) others.push_back(features[k]), cell = std::nullopt;
        cells.push_back(cell), dictionary_cells.push_back(values);
        if (!cell) continue;
        table.column(features[k]).texts = texts[k];
        table.column(features[k]).refuses_categories =
            codes ? codes->refuses : texts[k] && texts[k]->refuses();
    }
    struct Known {
        const ArrowArray* dictionary = nullptr;  // of a batch that the table keeps
        std::shared_ptr<std::vector<double>> codes;
    };
    std::vector<Known> known(features.size());
    int64_t at = 0;
    while (const Batch batch = next_batch(stream)) {
        require(at + batch->length <= table.n_rows(), "an Arrow stream has too many rows");
        for (int64_t k = 0; k < n_columns; ++k) {
            if (!cells[k] || batch->length == 0) continue;
            const ArrowArray& array = one ? *batch : *batch->children[k];
            ColumnChunk chunk = chunk_of(array, *cells[k]);
            chunk.at = at, chunk.n = batch->length;
            if (!one) {  // a batch is a structure, which may begin within its columns
                chunk.first += batch->offset;
                require(batch->length + batch->offset <= array.length, "a column is too short");
            }
            if (array.dictionary) {
                Known& last = known[k];  // chunks mostly have the same dictionary
                if (!last.dictionary || !is_same(*last.dictionary, *array.dictionary))
                    last = {array.dictionary,
                            codes_of(*array.dictionary, *dictionary_cells[k], texts[k])};
                chunk.codes = last.codes;
            } else if (!positions.empty() && positions[k]) {
                chunk.codes = positions[k]->codes;
            }
            table.column(features[k]).chunks.push_back(std::move(chunk));
        }
        at += batch->length;
        table.batches.push_back(batch);
    }
    require(at == table.n_rows(), "an Arrow stream has too few rows");
    return others;
}

void bind_tables(nb::module_& m) {
    nb::class_<TextCodes>(m, "TextCodes", "The codes of categories that are text.")
        .def(nb::init<const std::vector<std::string>&, const std::vector<double>&, double, double,
                      std::string_view>(),
             "texts"_a, "codes"_a, "unseen"_a, "null"_a, "isa"_a = "",
             "Other texts have the code `unseen`; infinity: they are refused. isa: one of "
             "`available_isas`, by default the best.");

    nb::class_<PositionCodes>(m, "PositionCodes", "The codes of positions in a list of categories.")
        .def(
            "__init__",
            [](PositionCodes* self, const std::shared_ptr<TextCodes>& texts,
               const nb::object& stream) {
                new (self) PositionCodes(position_codes(texts, stream));
            },
            "texts"_a, "stream"_a,
            "stream: an Arrow stream of the categories, one array of text without nulls.")
        .def(
            "__init__",
            [](PositionCodes* self, const std::vector<double>& codes) {
                require(!codes.empty(), "codes must end with that of a null");
                new (self)
                    PositionCodes(position_codes(std::make_shared<std::vector<double>>(codes)));
            },
            "codes"_a, "They end with the code of a null; infinity: refused.");

    nb::class_<ArrowColumns>(m, "ArrowColumns", "Features whose columns an Arrow stream may hold.")
        .def(
            "__init__",
            [](ArrowColumns* self, const std::vector<int64_t>& features,
               const std::vector<std::shared_ptr<TextCodes>>& texts) {
                require(features.size() == texts.size(),
                        "features and texts must have equal lengths");
                new (self) ArrowColumns{features, texts};
            },
            "features"_a, "texts"_a,
            nb::sig("def __init__(self, features: Sequence[int], "
                    "texts: Sequence[TextCodes | None]) -> None"),
            "texts: the codes of the texts of each feature; None: it takes numbers.");

    nb::class_<TakenColumns>(m, "TakenColumns",
                             "What features take of the columns of pandas frames.")
        .def(
            "__init__",
            [](TakenColumns* self, const std::vector<int64_t>& features,
               const std::vector<bool>& numbers, const std::vector<bool>& objects,
               const std::vector<bool>& arrow, const std::vector<std::shared_ptr<TextCodes>>& texts,
               nb::object arrow_types) {
                const size_t n = features.size();
                require(numbers.size() == n && objects.size() == n && arrow.size() == n &&
                            texts.size() == n,
                        "there must be one entry for each column");
                require(PyAnySet_Check(arrow_types.ptr()), "arrow_types must be a set");
                new (self) TakenColumns{{}, std::move(arrow_types)};
                for (size_t i = 0; i < n; ++i) {
                    require(texts[i] || !objects[i], "objects must have codes");
                    self->columns.push_back({features[i], numbers[i], objects[i], arrow[i],
                                             ArrowColumns{{features[i]}, {texts[i]}}, nullptr});
                }
            },
            "features"_a, "numbers"_a, "objects"_a, "arrow"_a, "texts"_a, "arrow_types"_a,
            nb::sig("def __init__(self, features: Sequence[int], numbers: Sequence[bool], "
                    "objects: Sequence[bool], arrow: Sequence[bool], "
                    "texts: Sequence[TextCodes | None], arrow_types: set[type]) -> None"),
            "features: the feature that takes each column of the frame, or -1. numbers, objects, "
            "arrow: whether it takes NumPy's numbers, Python objects, and arrays of Arrow. texts: "
            "the codes of its texts, or None. arrow_types: types of pandas' arrays that hold "
            "Arrow's.")
        .def(
            "keep_codes",
            [](TakenColumns& self, int64_t feature, const nb::object& type, const nb::object& index,
               const PositionCodes& codes) {
                std::shared_ptr<const TakenColumns::Known> known =
                    std::make_shared<TakenColumns::Known>(type, index, codes);
                for (TakenColumns::Of& column : self.columns)
                    if (column.feature == feature) {
                        column.known.swap(known);
                        return;
                    }
            },
            "feature"_a, "type"_a, "categories"_a, "codes"_a,
            nb::sig("def keep_codes(self, feature: int, type: type, categories: object, "
                    "codes: PositionCodes) -> None"),
            "The codes of a pandas Index of categories. Arrays of this type that have it are read "
            "from now on.");

    nb::class_<TableShape>(m, "TableShape", "Which values of each column are refused.")
        .def(
            "__init__",
            [](TableShape* self, const std::vector<bool>& refuses_nan, double missing,
               bool refuses_infinity, bool refuses_large_integers, bool single) {
                new (self) TableShape{{}, single};
                for (bool refused : refuses_nan)
                    self->checks.push_back(
                        {missing, refused, refuses_infinity, refuses_large_integers});
            },
            "refuses_nan"_a, "missing"_a, "refuses_infinity"_a, "refuses_large_integers"_a,
            "single"_a,
            "refuses_nan: one entry per feature. missing: a number that means missing. Large "
            "integers are those past 2**53. single: values become float32, otherwise float64.");

    nb::class_<HeldTable>(m, "Table", "Columns of a table, read where they lie.")
        .def(nb::init<int64_t, const TableShape&>(), "n_rows"_a, "shape"_a)
        .def("__len__", &HeldTable::n_rows)
        .def(
            "leave_out",
            [](HeldTable& self, const std::vector<int64_t>& features) {
                for (int64_t feature : features) {
                    check_feature(self, feature);
                    self.column(feature).chunks.clear();
                }
            },
            "features"_a, "Columns that need not be read: their values are 0.")
        .def(
            "add_numbers",
            [](HeldTable& self, int64_t feature, AnyVector values,
               std::optional<Vector<bool>> null) {
                check_feature(self, feature);
                ColumnChunk chunk = chunk_of(self, values);
                if (null) {
                    require(static_cast<int64_t>(null->shape(0)) == self.n_rows(),
                            "null must have one value per row");
                    chunk.null = reinterpret_cast<const uint8_t*>(null->data());
                    self.owners.push_back(nb::cast(*null));
                }
                self.owners.push_back(nb::cast(values));
                self.column(feature).chunks.assign(1, std::move(chunk));
            },
            "feature"_a, "values"_a, "null"_a = nb::none(),
            nb::sig("def add_numbers(self, feature: int, values: NDArray[numpy.generic], "
                    "null: NDArray[numpy.bool_] | None = None) -> None"),
            "The numbers of a feature, (N,), and which of them are null.")
        .def(
            "add_codes",
            [](HeldTable& self, int64_t feature, AnyVector values, const PositionCodes& codes) {
                check_feature(self, feature);
                ColumnChunk chunk = chunk_of(self, values);
                require(chunk.cell >= Cell::kInt8 && chunk.cell <= Cell::kUInt64,
                        "positions must be integers");
                chunk.codes = codes.codes;
                self.column(feature).refuses_categories = codes.refuses;
                self.owners.push_back(nb::cast(values));
                self.column(feature).chunks.assign(1, std::move(chunk));
            },
            "feature"_a, "positions"_a, "codes"_a,
            nb::sig("def add_codes(self, feature: int, positions: NDArray[numpy.generic], "
                    "codes: PositionCodes) -> None"),
            "The categories of a feature, as positions (N,) of `codes`.")
        .def("add_arrow", &add_arrow, "stream"_a, "columns"_a, "one"_a,
             "positions"_a = std::vector<std::shared_ptr<PositionCodes>>(),
             nb::sig("def add_arrow(self, stream: object, columns: ArrowColumns, one: bool, "
                     "positions: Sequence[PositionCodes | None] = []) -> list[int]"),
             "The columns of an Arrow stream, one for each feature, or one only. Columns with "
             "`positions` are integers, the positions of categories. Returns the features whose "
             "columns have a type that is not read here.")
        .def(
            "add_row", &add_row, "values"_a, "columns"_a,
            nb::sig("def add_row(self, values: tuple[object, ...], columns: ArrowColumns) -> bool"),
            "The values of the only row, one for each feature. False where one is neither a number "
            "nor text that is taken: the row is then to be added in another way.")
        .def("add_objects", &add_objects, "feature"_a, "objects"_a, "texts"_a,
             nb::sig("def add_objects(self, feature: int, objects: NDArray[numpy.generic], "
                     "texts: TextCodes) -> bool"),
             "Categories as Python objects, (N,). False where one is neither text nor missing.")
        .def("add_blocks", &add_blocks, "blocks"_a, "taken"_a,
             nb::sig("def add_blocks(self, blocks: Sequence[object], taken: TakenColumns) "
                     "-> list[tuple[int, typing.Any]] | None"),
             "The columns in the blocks of a pandas frame that need no conversion. Returns the "
             "other columns that are needed, as position and array; None if the blocks are not as "
             "they are known to be.")
        .def("matrix32", &matrix<float>, "threads"_a,
             "(n_features, N) float32, or None where a value is refused.")
        .def("matrix64", &matrix<double>, "threads"_a,
             "(n_features, N) float64, or None where a value is refused.");
}

}  // namespace qwyc
