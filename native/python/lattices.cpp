// Lattices for Python.
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include "python/engines.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

template <class Real>
void bind_constructor(nb::class_<AnyLattices>& cls) {
    cls.def(
        "__init__",
        [](AnyLattices* self, Vector<uint8_t> calibrator_kind, Vector<int32_t> calibrator_feature,
           Vector<int64_t> point_begin, Vector<Real> point, Vector<Real> output,
           Vector<uint8_t> has_missing, Vector<Real> missing_value, Vector<Real> missing_output,
           Vector<Real> other_output, Vector<uint8_t> interpolation, Vector<double> weight,
           Vector<int64_t> input_begin, Vector<int32_t> input, Vector<int32_t> size,
           Vector<int64_t> vertex_begin, Vector<Real> vertex, int64_t n_features, double base) {
            const FlatLattices<Real> flat{span(calibrator_kind), span(calibrator_feature),
                                          span(point_begin),     span(point),
                                          span(output),          span(has_missing),
                                          span(missing_value),   span(missing_output),
                                          span(other_output),    span(interpolation),
                                          span(weight),          span(input_begin),
                                          span(input),           span(size),
                                          span(vertex_begin),    span(vertex)};
            new (self) AnyLattices(std::make_shared<LatticeModel<Real>>(flat, n_features, base));
        },
        "calibrator_kind"_a, "calibrator_feature"_a, "point_begin"_a, "point"_a.noconvert(),
        "output"_a.noconvert(), "has_missing"_a, "missing_value"_a.noconvert(),
        "missing_output"_a.noconvert(), "other_output"_a.noconvert(), "interpolation"_a, "weight"_a,
        "input_begin"_a, "input"_a, "size"_a, "vertex_begin"_a, "vertex"_a.noconvert(),
        nb::kw_only(), "n_features"_a, "base"_a);
}

using ScoresOfEither =
    std::tuple<std::variant<OutMatrix<float>, OutMatrix<double>>, OutVector<double>>;

template <class In>
void bind_methods(nb::class_<AnyLattices>& cls) {
    cls.def(
        "score_matrix",
        [](const AnyLattices& self, Matrix<In> rows, int threads, std::string_view isa) {
            self.check(rows);
            return std::visit(
                [&]<class Real>(const std::shared_ptr<LatticeModel<Real>>& m) -> ScoresOfEither {
                    const auto n = static_cast<int64_t>(rows.shape(0));
                    Real* values;
                    double* full;
                    auto out_values = new_matrix<Real>(self.n_models(), n, values);
                    auto out_full = new_vector<double>(n, full);
                    {
                        nb::gil_scoped_release release;
                        m->full.score(rows.data(), n, values, full, threads, isa);
                    }
                    return {std::move(out_values), std::move(out_full)};
                },
                self.model);
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(T, N) what each base model adds for each row, and (N,) full scores.");
    cls.def(
        "score_full",
        [](const AnyLattices& self, Rows<In> rows, int threads, std::string_view isa) {
            self.check(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            double* full;
            auto out = new_vector<double>(n, full);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](const auto& m) {
                        with_contiguous(view(rows), threads,
                                        [&](const In* some, int64_t begin, int64_t n, int threads) {
                                            m->full.score(some, n, nullptr, full + begin, threads,
                                                          isa);
                                        });
                    },
                    self.model);
            }
            return out;
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "", "(N,) full scores.");
    cls.def(
        "measure_seconds",
        [](const AnyLattices& self, Matrix<In> rows, int repeats) {
            self.check(rows);
            require(rows.shape(0) > 0 && repeats > 0, "rows and repeats must not be none");
            double *models, *calibrators;
            auto out_models = new_vector<double>(self.n_models(), models);
            auto out_calibrators = new_vector<double>(self.n_calibrators(), calibrators);
            std::fill_n(calibrators, self.n_calibrators(), 0.0);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](const auto& m) {
                        m->full.measure(rows.data(), static_cast<int64_t>(rows.shape(0)), repeats,
                                        models, calibrators);
                    },
                    self.model);
            }
            return std::make_tuple(std::move(out_models), std::move(out_calibrators));
        },
        "rows"_a.noconvert(), "repeats"_a,
        "Median seconds for a row here: (T,) of each base model, (C,) of each calibrator.");
}

}  // namespace

void bind_lattices(nb::module_& m) {
    nb::class_<AnyLattices> cls(m, "Lattices",
                                "Lattices and calibrators, checked and laid out for evaluation.");
    bind_constructor<float>(cls);
    bind_constructor<double>(cls);
    cls.def_prop_ro(
        "base",
        [](const AnyLattices& self) { return self.visit([](const auto& l) { return l.base(); }); },
        "What running sums start from.");
    cls.def_prop_ro(
        "total",
        [](const AnyLattices& self) { return self.visit([](const auto& l) { return l.total(); }); },
        "No partial sum exceeds it, in absolute value.");
    cls.def(
        "bounds",
        [](const AnyLattices& self) {
            double *least, *most;
            auto out_least = new_vector<double>(self.n_models(), least);
            auto out_most = new_vector<double>(self.n_models(), most);
            self.visit([&](const auto& lattices) {
                for (int64_t t = 0; t < lattices.n_models(); ++t)
                    std::tie(least[t], most[t]) = lattices.bounds(t);
            });
            return std::make_tuple(std::move(out_least), std::move(out_most));
        },
        "(T,) the least and (T,) the most that each base model can add.");
    cls.def(
        "operations",
        [](const AnyLattices& self) {
            double *models, *calibrators;
            auto out_models = new_vector<double>(self.n_models(), models);
            auto out_calibrators = new_vector<double>(self.n_calibrators(), calibrators);
            self.visit([&](const auto& lattices) {
                for (const auto& lattice : lattices.lattices())
                    *models++ = lattices.operations(lattice);
                for (const auto& calibrator : lattices.calibrators())
                    *calibrators++ = lattices.operations(calibrator);
            });
            return std::make_tuple(std::move(out_models), std::move(out_calibrators));
        },
        "Operations for a row: (T,) of each base model, (C,) of each calibrator.");
    bind_methods<float>(cls);
    bind_methods<double>(cls);
}

}  // namespace qwyc
