// Forests and engines for Python: many rows at once.
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <memory>

#include "core/parallel.hpp"
#include "python/engines.hpp"
#include "python/path_arrays.hpp"
#include "python/sparse.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

template <class Real>
void bind_forest_constructor(nb::class_<AnyForest>& cls) {
    cls.def(
        "__init__",
        [](AnyForest* self, Vector<int64_t> node_begin, Vector<int64_t> leaf_begin,
           Vector<int32_t> feature, Vector<Real> threshold, Vector<int32_t> left,
           Vector<int32_t> right, Vector<uint8_t> flags, Vector<int64_t> category_begin,
           Vector<uint32_t> category_words, Vector<double> leaf_value, Vector<double> leaf_other,
           int64_t n_features, int summation, bool less_equal, bool truncates, double base,
           double divisor, double scale) {
            require(summation >= 0 && summation <= 4, "unknown summation");
            const FlatTrees<Real> flat{span(node_begin), span(leaf_begin),     span(feature),
                                       span(threshold),  span(left),           span(right),
                                       span(flags),      span(category_begin), span(category_words),
                                       span(leaf_value), span(leaf_other)};
            const Rules rules{
                static_cast<Summation>(summation), less_equal, truncates, base, divisor, scale};
            new (self) AnyForest(std::make_shared<Model<Real>>(flat, n_features, rules));
        },
        "node_begin"_a, "leaf_begin"_a, "feature"_a, "threshold"_a.noconvert(), "left"_a, "right"_a,
        "flags"_a, "category_begin"_a, "category_words"_a, "leaf_value"_a, "leaf_other"_a,
        nb::kw_only(), "n_features"_a, "summation"_a, "less_equal"_a, "truncates"_a, "base"_a,
        "divisor"_a, "scale"_a = 1.0);
}

template <class In>
void bind_forest_methods(nb::class_<AnyForest>& cls) {
    cls.def(
        "score_matrix",
        [](const AnyForest& self, Rows<In> rows, int threads, std::string_view isa) {
            self.check(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            float* values;
            double* full;
            auto out_values = new_matrix<float>(self.n_models(), n, values);
            auto out_full = new_vector<double>(n, full);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) { m->full().score(view(rows), values, full, threads, isa); },
                    self.model);
            }
            return std::make_tuple(std::move(out_values), std::move(out_full));
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(T, N) scores by base model and (N,) full scores of rows (N, n_features).");
    cls.def(
        "score_full",
        [](const AnyForest& self, Rows<In> rows, int threads, std::string_view isa) {
            self.check(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            double* full;
            auto out = new_vector<double>(n, full);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) { m->full().score(view(rows), nullptr, full, threads, isa); },
                    self.model);
            }
            return out;
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(N,) full scores of rows (N, n_features).");
    cls.def(
        "count_path",
        [](const AnyForest& self, Rows<In> rows, Vector<int32_t> order, Matrix<double> lower,
           Matrix<double> upper, double threshold, bool with_wrong, int threads,
           std::string_view isa) {
            self.check(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            const PathView path = path_view(self.n_models(), order, lower, upper, threshold);
            double* full;
            auto out_full = new_vector<double>(n, full);
            PathArrays counts(path, n, with_wrong);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) {
                        m->full().count_path(view(rows), path, full, counts.out, threads, isa);
                    },
                    self.model);
            }
            return std::make_tuple(std::move(out_full), std::move(counts.stops),
                                   std::move(counts.differences), std::move(counts.wrong));
        },
        "rows"_a.noconvert(), "order"_a, "lower"_a, "upper"_a, "threshold"_a, "with_wrong"_a,
        "threads"_a, "isa"_a = "",
        "(N,) full scores of rows (N, n_features), and what `count_path` says about their scores.");
    cls.def(
        "mean_path_lengths",
        [](const AnyForest& self, Matrix<In> rows, int threads) {
            self.check(rows);
            double* data;
            auto out = new_vector<double>(self.n_models(), data);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) {
                        const auto& trees = m->forest;
                        const auto n = static_cast<int64_t>(rows.shape(0));
                        parallel_for(trees.n_trees(), 1, threads, [&](int64_t t, int64_t) {
                            data[t] = trees.mean_path_length(t, rows.data(), n);
                        });
                    },
                    self.model);
            }
            return out;
        },
        "rows"_a.noconvert(), "threads"_a,
        "(T,) mean number of nodes that rows visit in each tree.");
    cls.def(
        "measure_seconds",
        [](const AnyForest& self, Rows<In> rows, int repeats) {
            self.check(rows);
            require(rows.shape(0) > 0 && repeats > 0, "rows and repeats must not be none");
            double* data;
            auto out = new_vector<double>(self.n_models(), data);
            {
                nb::gil_scoped_release release;
                std::visit([&](auto& m) { m->full().measure(view(rows), repeats, data); },
                           self.model);
            }
            return out;
        },
        "rows"_a.noconvert(), "repeats"_a,
        "(T,) median seconds that each tree takes for a row here.");
}

void bind_sparse_methods(nb::class_<AnyForest>& cls) {
    cls.def(
        "score_matrix_sparse",
        [](const AnyForest& self, const HeldSparse& held, const ColumnSlots& slots, int threads) {
            self.check(held, slots);
            const int64_t n = held.n_rows(), T = self.n_models();
            float* values;
            double* full;
            auto out_values = new_matrix<float>(T, n, values);
            auto out_full = new_vector<double>(n, full);
            {
                nb::gil_scoped_release release;
                self.in_tiles(held, slots, threads, [&](auto& engine, const auto& rows, int64_t i) {
                    std::vector<float> block(T * rows.n);
                    engine.score(rows, block.data(), full + i, 1);
                    for (int64_t t = 0; t < T; ++t)
                        std::copy_n(block.data() + t * rows.n, rows.n, values + t * n + i);
                });
            }
            return std::make_tuple(std::move(out_values), std::move(out_full));
        },
        "rows"_a, "slots"_a, "threads"_a,
        "(T, N) scores by base model and (N,) full scores of sparse rows.");
    cls.def(
        "score_full_sparse",
        [](const AnyForest& self, const HeldSparse& held, const ColumnSlots& slots, int threads) {
            self.check(held, slots);
            double* full;
            auto out = new_vector<double>(held.n_rows(), full);
            {
                nb::gil_scoped_release release;
                self.in_tiles(held, slots, threads, [&](auto& engine, const auto& rows, int64_t i) {
                    engine.score(rows, nullptr, full + i, 1);
                });
            }
            return out;
        },
        "rows"_a, "slots"_a, "threads"_a, "(N,) full scores of sparse rows.");
}

}  // namespace

void bind_forest(nb::module_& m) {
    nb::class_<AnyForest> forest(m, "Forest",
                                 "A tree ensemble, checked and laid out for evaluation.");
    bind_forest_constructor<float>(forest);
    bind_forest_constructor<double>(forest);
    forest.def_prop_ro("expected_cost", &AnyForest::expected_cost,
                       "Nanoseconds that a full score takes, one row of many, by the cost model.");
    forest.def_prop_ro("n_walked", &AnyForest::n_walked,
                       "Trees that are walked node by node, not compared for many rows at once.");
    bind_forest_methods<float>(forest);
    bind_forest_methods<double>(forest);
    bind_sparse_methods(forest);
}

}  // namespace qwyc
