// Sparse matrices for Python.
#include "python/sparse.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <cstring>

using namespace nanobind::literals;

namespace qwyc {
namespace {

template <class Column, class Value>
void bind_constructor(nb::class_<HeldSparse>& cls) {
    cls.def(
        "__init__",
        [](HeldSparse* self, Vector<Value> data, Vector<Column> indices, Vector<int64_t> indptr,
           int64_t n_columns, double absent) {
            auto begin = std::make_shared<std::vector<int64_t>>(indptr.data(),
                                                                indptr.data() + indptr.shape(0));
            const SparseRows rows{n_columns, *begin, span(indices), span(data), absent};
            {
                nb::gil_scoped_release release;
                rows.check();
            }
            new (self) HeldSparse{rows, std::move(begin), nb::cast(indices), nb::cast(data)};
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a,
        "absent"_a);
}

// Rows [from, to) of a slice without gaps.
HeldSparse sliced(const HeldSparse& self, const nb::slice& slice) {
    const auto [start, stop, step, length] = slice.compute(self.n_rows());
    require(step == 1, "rows of a sparse matrix are sliced in steps of 1");
    const auto from = static_cast<int64_t>(start);
    return self.part(from, from + static_cast<int64_t>(length));
}

// Rows at any places, whose entries are copied.
HeldSparse taken(const HeldSparse& self, const Vector<int64_t>& places) {
    for (int64_t i : span(places))
        require(i >= 0 && i < self.n_rows(), "places must be those of rows");
    auto begin = std::make_shared<std::vector<int64_t>>(1, 0);
    for (int64_t i : span(places))
        begin->push_back(begin->back() + self.rows.begin[i + 1] - self.rows.begin[i]);
    HeldSparse out{self.rows, begin, {}, {}};
    out.rows.begin = *begin;
    const auto copied = [&]<class T>(std::span<const T> from, nb::object& owner) {
        T* data;
        auto array = new_vector<T>(begin->back(), data);
        T* to = data;
        for (int64_t i : span(places))
            to = std::copy(from.begin() + self.rows.begin[i], from.begin() + self.rows.begin[i + 1],
                           to);
        owner = nb::cast(array);
        return std::span<const T>(data, begin->back());
    };
    std::visit([&](auto from) { out.rows.column = copied(from, out.column); }, self.rows.column);
    std::visit([&](auto from) { out.rows.value = copied(from, out.value); }, self.rows.value);
    return out;
}

// (n, slots) in Fortran order.
template <class In>
nb::object dense(const HeldSparse& self, const ColumnSlots& slots) {
    const int64_t n = self.n_rows(), width = slots.n_slots();
    In* data;
    auto out = new_matrix<In>(width, n, data);
    {
        nb::gil_scoped_release release;
        in_tiles(self.rows, slots, sizeof(In) == 4, 1, [&](const auto& tile, int64_t begin) {
            for (int64_t j = 0; j < width; ++j)
                std::transform(tile.column(j), tile.column(j) + tile.n, data + j * n + begin,
                               [](auto x) { return static_cast<In>(x); });
        });
    }
    return nb::cast(out).attr("T");
}

uint64_t mixed(uint64_t state) {
    state += 0x9E3779B97F4A7C15u;
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9u;
    state = (state ^ state >> 27) * 0x94D049BB133111EBu;
    return state ^ state >> 31;
}

// A hash for each row, (n,), of the values that are not those of absent entries: they are added up,
// so the order of entries does not matter.
template <class Real>
OutVector<uint64_t> hashes(const HeldSparse& self) {
    uint64_t* out;
    auto array = new_vector<uint64_t>(self.n_rows(), out);
    nb::gil_scoped_release release;
    const SparseRows& rows = self.rows;
    const auto bits_of = [](double number) {
        uint64_t bits;
        number += 0.0;  // -0.0 counts as 0.0
        std::memcpy(&bits, &number, sizeof bits);
        return std::isnan(number) ? uint64_t{0x7FF8000000000000} : bits;
    };
    const uint64_t nothing = bits_of(rows.absent);
    rows.visit([&](const auto& column, const auto& value) {
        std::vector<int64_t> order;
        for (int64_t i = 0; i < rows.n_rows(); ++i) {
            order.clear();
            for (int64_t k = rows.begin[i]; k < rows.begin[i + 1]; ++k) order.push_back(k);
            const auto before = [&](int64_t a, int64_t b) {
                return column[a] != column[b] ? column[a] < column[b] : a < b;
            };
            if (!std::is_sorted(order.begin(), order.end(), before))
                std::sort(order.begin(), order.end(), before);
            uint64_t state = static_cast<uint64_t>(rows.n_columns);
            for (size_t a = 0, b = 0; a < order.size(); a = b) {
                auto sum = value[order[a]];
                for (b = a + 1; b < order.size() && column[order[b]] == column[order[a]]; ++b)
                    sum += value[order[b]];
                const uint64_t bits = bits_of(static_cast<double>(static_cast<Real>(sum)));
                if (bits != nothing)
                    state += mixed(bits ^ mixed(static_cast<uint64_t>(column[order[a]])));
            }
            out[i] = mixed(state);
        }
    });
    return array;
}

}  // namespace

void bind_sparse(nb::module_& m) {
    nb::class_<ColumnSlots>(m, "ColumnSlots", "The columns that trees look at.")
        .def(
            "__init__",
            [](ColumnSlots* self, int64_t n_columns, Vector<int32_t> used) {
                require(n_columns >= 0, "there must not be fewer than 0 columns");
                new (self) ColumnSlots(n_columns, span(used));
            },
            "n_columns"_a, "used"_a)
        .def("__len__", &ColumnSlots::n_slots);
    nb::class_<HeldSparse> rows(m, "SparseRows", "Rows of a sparse matrix, read where they lie.");
    bind_constructor<int32_t, float>(rows);
    bind_constructor<int32_t, double>(rows);
    bind_constructor<int64_t, float>(rows);
    bind_constructor<int64_t, double>(rows);
    rows.def("__len__", &HeldSparse::n_rows)
        .def_prop_ro(
            "shape",
            [](const HeldSparse& self) {
                return nb::make_tuple(self.n_rows(), self.rows.n_columns);
            },
            nb::sig("def shape(self) -> tuple[int, int]"))
        .def("__getitem__", &sliced, "rows"_a)
        .def("__getitem__", &taken, "rows"_a)
        .def("dense32", &dense<float>, "slots"_a,
             nb::sig("def dense32(self, slots: ColumnSlots) -> NDArray[numpy.float32]"),
             "(N, slots) float32: the columns in use, in Fortran order.")
        .def("dense64", &dense<double>, "slots"_a,
             nb::sig("def dense64(self, slots: ColumnSlots) -> NDArray[numpy.float64]"),
             "(N, slots) float64: the columns in use, in Fortran order.")
        .def("hashes32", &hashes<float>, "(N,) a hash of each row, by its values in float32.")
        .def("hashes64", &hashes<double>, "(N,) a hash of each row, by its values in float64.");
}

}  // namespace qwyc
