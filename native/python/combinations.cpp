// Columns that are computed from combinations of categories, for Python.
#include "core/combinations.hpp"

#include "core/parallel.hpp"
#include "core/rows_view.hpp"
#include "python/arrays.hpp"

using namespace nanobind::literals;

namespace qwyc {

namespace {

constexpr int64_t kChunk = 256;  // rows that a thread takes at once

OutMatrix<float> expand(const Combinations& self, Rows<double> rows, int threads) {
    require(static_cast<int64_t>(rows.shape(1)) == self.n_features(),
            "rows have another number of columns than the model");
    const auto n = static_cast<int64_t>(rows.shape(0));
    float* data;
    auto out = new_matrix<float>(n, self.n_columns(), data);
    {
        nb::gil_scoped_release release;
        with_contiguous(view(rows), threads,
                        [&](const double* given, int64_t first, int64_t m, int workers) {
                            parallel_for(m, kChunk, workers, [&](int64_t begin, int64_t end) {
                                self.expand(given + begin * self.n_features(), end - begin,
                                            data + (first + begin) * self.n_columns());
                            });
                        });
    }
    return out;
}

}  // namespace

void bind_combinations(nb::module_& m) {
    nb::class_<Combinations>(m, "Combinations",
                             "CatBoost's statistics of combinations of categories.")
        .def(
            "__init__",
            [](Combinations* self, Vector<int64_t> code_begin, Vector<uint32_t> code_hash,
               Vector<uint8_t> is_category, Vector<int64_t> part_begin, Vector<uint8_t> part_kind,
               Vector<int32_t> part_feature, Vector<double> part_value, Vector<int32_t> table_of,
               Vector<int64_t> key_begin, Vector<uint64_t> key, Vector<int32_t> column_table,
               Vector<int64_t> value_begin, Vector<float> value) {
                new (self)
                    Combinations({span(code_begin), span(code_hash), span(is_category),
                                  span(part_begin), span(part_kind), span(part_feature),
                                  span(part_value), span(table_of), span(key_begin), span(key),
                                  span(column_table), span(value_begin), span(value)});
            },
            "code_begin"_a, "code_hash"_a, "is_category"_a, "part_begin"_a, "part_kind"_a,
            "part_feature"_a, "part_value"_a, "table_of"_a, "key_begin"_a, "key"_a,
            "column_table"_a, "value_begin"_a, "value"_a)
        .def("expand", &expand, "rows"_a.noconvert(), "threads"_a,
             "(N, n_features + D) float32: rows (N, n_features), and a column for each statistic.");
}

}  // namespace qwyc
