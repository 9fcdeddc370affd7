// Forests and engines for Python.
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "bindings.hpp"
#include "engine.hpp"
#include "parallel.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

// A forest and the engine for its full scores, which is made when it is first asked for.
template <class Real>
class Model {
  public:
    Model(const FlatTrees<Real>& flat, int64_t n_features, const Rules& rules)
        : forest(flat, n_features, rules) {}

    const FullEngine<Real>& full() {
        std::call_once(once_, [this] { full_.emplace(forest); });
        return *full_;
    }

    const Forest<Real> forest;

  private:
    std::once_flag once_;
    std::optional<FullEngine<Real>> full_;
};

// A forest of either row type behind one Python class.
class AnyForest {
  public:
    template <class Real>
    using Pointer = std::shared_ptr<Model<Real>>;
    using Variant = std::variant<Pointer<float>, Pointer<double>>;
    explicit AnyForest(Variant model) : model(std::move(model)) {}

    int64_t n_models() const {
        return std::visit([](const auto& m) { return m->forest.n_trees(); }, model);
    }

    int64_t n_walked() const {
        nb::gil_scoped_release release;  // others may be waiting for the layout too
        return std::visit([](const auto& m) { return m->full().n_walked(); }, model);
    }

    template <class In>
    void check(const Matrix<In>& rows) const {
        const int64_t n_features =
            std::visit([](const auto& m) { return m->forest.n_features(); }, model);
        require(static_cast<int64_t>(rows.shape(1)) == n_features,
                "rows must have one column per feature");
    }

    Variant model;
};

// Decisions under one policy, for either row type.
class AnyQuitter {
  public:
    template <class Real>
    struct Held {
        std::shared_ptr<Model<Real>> model;
        QuitEngine<Real> engine;
    };
    template <class Real>
    using Pointer = std::shared_ptr<Held<Real>>;
    std::variant<Pointer<float>, Pointer<double>> held;
    int64_t n_features;

    static AnyQuitter of(const AnyForest& forest, const PolicyView& policy) {
        return std::visit(
            [&]<class Real>(const std::shared_ptr<Model<Real>>& model) {
                nb::gil_scoped_release release;
                return AnyQuitter{std::shared_ptr<Held<Real>>(new Held<Real>{
                                      model, QuitEngine<Real>(model->full(), policy)}),
                                  model->forest.n_features()};
            },
            forest.model);
    }
};

template <class Real>
void bind_forest_constructor(nb::class_<AnyForest>& cls) {
    cls.def(
        "__init__",
        [](AnyForest* self, Vector<int64_t> node_begin, Vector<int64_t> leaf_begin,
           Vector<int32_t> feature, Vector<Real> threshold, Vector<int32_t> left,
           Vector<int32_t> right, Vector<uint8_t> flags, Vector<int64_t> category_begin,
           Vector<uint32_t> category_words, Vector<double> leaf_value, Vector<double> leaf_other,
           int64_t n_features, int summation, bool less_equal, bool truncates, double base,
           double divisor) {
            require(summation >= 0 && summation <= 4, "unknown summation");
            const FlatTrees<Real> flat{span(node_begin), span(leaf_begin),     span(feature),
                                       span(threshold),  span(left),           span(right),
                                       span(flags),      span(category_begin), span(category_words),
                                       span(leaf_value), span(leaf_other)};
            const Rules rules{static_cast<Summation>(summation), less_equal, truncates, base,
                              divisor};
            new (self) AnyForest(std::make_shared<Model<Real>>(flat, n_features, rules));
        },
        "node_begin"_a, "leaf_begin"_a, "feature"_a, "threshold"_a.noconvert(), "left"_a, "right"_a,
        "flags"_a, "category_begin"_a, "category_words"_a, "leaf_value"_a, "leaf_other"_a,
        nb::kw_only(), "n_features"_a, "summation"_a, "less_equal"_a, "truncates"_a, "base"_a,
        "divisor"_a);
}

template <class In>
void bind_forest_methods(nb::class_<AnyForest>& cls) {
    cls.def(
        "score_matrix",
        [](const AnyForest& self, Matrix<In> rows, int threads, std::string_view isa) {
            self.check(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            float* values;
            double* full;
            auto out_values = new_matrix<float>(self.n_models(), n, values);
            auto out_full = new_vector<double>(n, full);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) { m->full().score(rows.data(), n, values, full, threads, isa); },
                    self.model);
            }
            return std::make_tuple(std::move(out_values), std::move(out_full));
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(T, N) scores by base model and (N,) full scores of rows (N, n_features).");
    cls.def(
        "score_full",
        [](const AnyForest& self, Matrix<In> rows, int threads, std::string_view isa) {
            self.check(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            double* full;
            auto out = new_vector<double>(n, full);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) { m->full().score(rows.data(), n, nullptr, full, threads, isa); },
                    self.model);
            }
            return out;
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(N,) full scores of rows (N, n_features).");
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
        [](const AnyForest& self, Matrix<In> rows, int repeats) {
            self.check(rows);
            require(rows.shape(0) > 0 && repeats > 0, "rows and repeats must not be none");
            double* data;
            auto out = new_vector<double>(self.n_models(), data);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) {
                        m->full().measure(rows.data(), static_cast<int64_t>(rows.shape(0)), repeats,
                                          data);
                    },
                    self.model);
            }
            return out;
        },
        "rows"_a.noconvert(), "repeats"_a,
        "(T,) median seconds that each tree takes for a row here.");
}

// One row at a time from Python, with as little in between as can be. Rows that need more than
// their numbers looked at go to `otherwise`, as does whatever is not a plain row of numbers.
class OneRow {
  public:
    OneRow(const AnyQuitter& quitter, nb::object negative, nb::object positive,
           nb::object otherwise, nb::object plain_row, bool finite_only)
        : quitter_(quitter),
          label_{std::move(negative), std::move(positive)},
          otherwise_(std::move(otherwise)),
          plain_row_(std::move(plain_row)),
          finite_only_(finite_only) {}

    nb::object predict(nb::handle row) const {
        Py_buffer view;
        // Subclasses, such as masked arrays, may mean more than their numbers say.
        if (row.type().is(plain_row_) &&
            PyObject_GetBuffer(row.ptr(), &view, PyBUF_FORMAT | PyBUF_ND) == 0) {
            const bool fits = view.ndim == 1 && view.shape[0] == quitter_.n_features &&
                              view.itemsize != 0 &&
                              reinterpret_cast<uintptr_t>(view.buf) % view.itemsize == 0;
            const char* format = fits && view.format ? view.format : "";
            const char type = format[0] != 0 && format[1] == 0 ? format[0] : 0;
            int positive = -1;
            if (type == 'f') positive = decide(static_cast<const float*>(view.buf));
            if (type == 'd') positive = decide(static_cast<const double*>(view.buf));
            PyBuffer_Release(&view);
            if (positive >= 0) return label_[positive];
        }
        PyErr_Clear();
        return otherwise_(row);
    }

    // For Python's collector of cycles: `otherwise` usually knows who owns this.
    static int traverse(PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        if (!nb::inst_ready(self)) return 0;
        const OneRow* one = nb::inst_ptr<OneRow>(self);
        for (const nb::object* held :
             {&one->label_[0], &one->label_[1], &one->otherwise_, &one->plain_row_})
            Py_VISIT(held->ptr());
        return 0;
    }
    static int clear(PyObject* self) {
        OneRow* one = nb::inst_ptr<OneRow>(self);
        for (nb::object* held :
             {&one->label_[0], &one->label_[1], &one->otherwise_, &one->plain_row_})
            held->reset();
        return 0;
    }

  private:
    // 1 or 0; -1 where the row holds what must be looked at.
    template <class In>
    int decide(const In* row) const {
        const PlainFloats plain;
        if (finite_only_ && !all_finite(row)) return -1;
        uint8_t positive = 0;
        int32_t steps = 0;
        double score = 0;
        const DecisionsOut out{&positive, &steps, &score};
        std::visit(
            [&](const auto& held) {
                auto state = held->engine.start_one();
                if (held->engine.walk_some(state, row, kHeld, out)) return;
                // A row that takes long lets other threads of Python on.
                nb::gil_scoped_release release;
                held->engine.walk_on(state, row, out);
            },
            quitter_.held);
        return positive;
    }

    // As the model reads them: a double may be too large for its float.
    template <class In>
    bool all_finite(const In* row) const {
        return std::visit(
            [&]<class Real>(const AnyQuitter::Pointer<Real>&) {
                for (int64_t j = 0; j < quitter_.n_features; ++j)
                    if (!std::isfinite(static_cast<Real>(row[j]))) return false;
                return true;
            },
            quitter_.held);
    }

    static constexpr int32_t kHeld = 32;  // steps, less than letting go of the GIL would take

    AnyQuitter quitter_;
    nb::object label_[2], otherwise_, plain_row_;
    bool finite_only_;
};

template <class In>
void bind_quitter_methods(nb::class_<AnyQuitter>& cls) {
    cls.def(
        "decide",
        [](const AnyQuitter& self, Matrix<In> rows, int threads, std::string_view isa) {
            require(static_cast<int64_t>(rows.shape(1)) == self.n_features,
                    "rows must have one column per feature");
            const auto n = static_cast<int64_t>(rows.shape(0));
            return collect_decisions(n, [&](const DecisionsOut& out) {
                std::visit(
                    [&](auto& held) { held->engine.decide(rows.data(), n, out, threads, isa); },
                    self.held);
            });
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(N,) positive, steps and score of rows (N, n_features), quitting early.");
}

}  // namespace

void bind_forest(nb::module_& m) {
    nb::class_<AnyForest> forest(m, "Forest",
                                 "A tree ensemble, checked and laid out for evaluation.");
    bind_forest_constructor<float>(forest);
    bind_forest_constructor<double>(forest);
    forest.def_prop_ro("n_walked", &AnyForest::n_walked,
                       "Trees that are walked node by node, not compared for many rows at once.");
    bind_forest_methods<float>(forest);
    bind_forest_methods<double>(forest);

    nb::class_<AnyQuitter> quitter(m, "Quitter", "A forest laid out for one policy.");
    quitter.def(
        "__init__",
        [](AnyQuitter* self, const AnyForest& trees, Vector<int32_t> order, Vector<double> lower,
           Vector<double> upper, double threshold) {
            new (self) AnyQuitter(AnyQuitter::of(
                trees, policy_view(trees.n_models(), order, lower, upper, threshold)));
        },
        "forest"_a, "order"_a, "lower"_a, "upper"_a, "threshold"_a);
    bind_quitter_methods<float>(quitter);
    bind_quitter_methods<double>(quitter);

    static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(OneRow::traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(OneRow::clear)},
                                  {0, nullptr}};
    nb::class_<OneRow>(m, "OneRow", nb::type_slots(slots), "Decides one row at a time.")
        .def(nb::init<const AnyQuitter&, nb::object, nb::object, nb::object, nb::object, bool>(),
             "quitter"_a, "negative"_a, "positive"_a, "otherwise"_a, "plain_row"_a, "finite_only"_a)
        .def("predict", &OneRow::predict, "row"_a, "The class of one row, (n_features,).");
}

}  // namespace qwyc
