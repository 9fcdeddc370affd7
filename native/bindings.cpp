// The only file that knows Python: argument checks, the GIL, and arrays in and out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "fit.hpp"
#include "forest.hpp"
#include "gram.hpp"
#include "quit.hpp"
#include "score.hpp"
#include "stopping.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace qwyc {
namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutVector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <class T>
using OutMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <class T>
std::span<const T> span(const Vector<T>& array) {
    return {array.data(), array.shape(0)};
}

// A new NumPy array that owns its memory; `data` gives access for filling it.
template <class T>
OutVector<T> new_vector(int64_t n, T*& data) {
    data = new T[static_cast<size_t>(n)];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return OutVector<T>(data, {static_cast<size_t>(n)}, owner);
}

template <class T>
OutMatrix<T> new_matrix(int64_t rows, int64_t columns, T*& data) {
    data = new T[static_cast<size_t>(rows) * static_cast<size_t>(columns)];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return OutMatrix<T>(data, {static_cast<size_t>(rows), static_cast<size_t>(columns)}, owner);
}

template <class T>
OutVector<T> to_numpy(const std::vector<T>& values) {
    T* data;
    auto out = new_vector<T>(static_cast<int64_t>(values.size()), data);
    std::copy(values.begin(), values.end(), data);
    return out;
}

void require(bool ok, const char* message) {
    if (!ok) throw std::invalid_argument(message);
}

void check_order(int64_t n_models, const Vector<int32_t>& order) {
    require(static_cast<int64_t>(order.shape(0)) == n_models,
            "order must have one entry per base model");
    std::vector<bool> seen(n_models, false);
    for (int32_t t : span(order)) {
        require(t >= 0 && t < n_models && !seen[t], "order must name every base model once");
        seen[t] = true;
    }
}

PolicyView policy_view(int64_t n_models, const Vector<int32_t>& order, const Vector<double>& lower,
                       const Vector<double>& upper, double threshold) {
    check_order(n_models, order);
    require(lower.shape(0) == order.shape(0) && upper.shape(0) == order.shape(0),
            "lower and upper must have one entry per base model");
    return {span(order), span(lower), span(upper), threshold};
}

using DecisionArrays = std::tuple<OutVector<uint8_t>, OutVector<int32_t>, OutVector<double>>;

// Allocates the three result arrays, lets `run` fill them without the GIL, returns them.
template <class Run>
DecisionArrays collect_decisions(int64_t n, Run run) {
    DecisionsOut out{};
    auto positive = new_vector<uint8_t>(n, out.positive);
    auto steps = new_vector<int32_t>(n, out.steps);
    auto score = new_vector<double>(n, out.score);
    {
        nb::gil_scoped_release release;
        run(out);
    }
    return {std::move(positive), std::move(steps), std::move(score)};
}

// A forest of either row type behind one Python class.
class AnyForest {
  public:
    using Variant = std::variant<Forest<float>, Forest<double>>;
    explicit AnyForest(Variant forest) : forest_(std::move(forest)) {}

    int64_t n_models() const {
        return std::visit([](const auto& f) { return f.n_trees(); }, forest_);
    }

    template <class Real>
    const Forest<Real>& get(const Matrix<Real>& rows) const {
        const auto* forest = std::get_if<Forest<Real>>(&forest_);
        require(forest != nullptr, "rows must have the dtype of the thresholds");
        require(static_cast<int64_t>(rows.shape(1)) == forest->n_features(),
                "rows must have one column per feature");
        return *forest;
    }

  private:
    Variant forest_;
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
            require(summation >= 0 && summation <= 2, "unknown summation");
            const FlatTrees<Real> flat{span(node_begin), span(leaf_begin),     span(feature),
                                       span(threshold),  span(left),           span(right),
                                       span(flags),      span(category_begin), span(category_words),
                                       span(leaf_value), span(leaf_other)};
            const Rules rules{static_cast<Summation>(summation), less_equal, truncates, base,
                              divisor};
            new (self) AnyForest(Forest<Real>(flat, n_features, rules));
        },
        "node_begin"_a, "leaf_begin"_a, "feature"_a, "threshold"_a.noconvert(), "left"_a, "right"_a,
        "flags"_a, "category_begin"_a, "category_words"_a, "leaf_value"_a, "leaf_other"_a,
        nb::kw_only(), "n_features"_a, "summation"_a, "less_equal"_a, "truncates"_a, "base"_a,
        "divisor"_a);
}

template <class Real>
void bind_forest_methods(nb::class_<AnyForest>& cls) {
    cls.def(
        "score_matrix",
        [](const AnyForest& self, Matrix<Real> rows, int threads) {
            const auto& forest = self.get(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            float* values;
            double* full;
            auto out_values = new_matrix<float>(forest.n_trees(), n, values);
            auto out_full = new_vector<double>(n, full);
            {
                nb::gil_scoped_release release;
                score(forest, rows.data(), n, values, full, threads);
            }
            return std::make_tuple(std::move(out_values), std::move(out_full));
        },
        "rows"_a.noconvert(), "threads"_a,
        "(T, N) scores by base model and (N,) full scores of rows (N, n_features).");
    cls.def(
        "score_full",
        [](const AnyForest& self, Matrix<Real> rows, int threads) {
            const auto& forest = self.get(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            double* full;
            auto out = new_vector<double>(n, full);
            {
                nb::gil_scoped_release release;
                score<Real>(forest, rows.data(), n, nullptr, full, threads);
            }
            return out;
        },
        "rows"_a.noconvert(), "threads"_a, "(N,) full scores of rows (N, n_features).");
    cls.def(
        "decide",
        [](const AnyForest& self, Matrix<Real> rows, Vector<int32_t> order, Vector<double> lower,
           Vector<double> upper, double threshold, int threads) {
            const auto& forest = self.get(rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            const auto policy = policy_view(forest.n_trees(), order, lower, upper, threshold);
            return collect_decisions(n, [&](const DecisionsOut& out) {
                decide(forest, policy, rows.data(), n, out, threads);
            });
        },
        "rows"_a.noconvert(), "order"_a, "lower"_a, "upper"_a, "threshold"_a, "threads"_a,
        "(N,) positive, steps and score of rows (N, n_features), quitting early.");
}

template <class Real>
void bind_forest_costs(nb::class_<AnyForest>& cls) {
    cls.def(
        "mean_path_lengths",
        [](const AnyForest& self, Matrix<Real> rows, int threads) {
            const auto& forest = self.get(rows);
            double* data;
            auto out = new_vector<double>(forest.n_trees(), data);
            {
                nb::gil_scoped_release release;
                mean_path_lengths(forest, rows.data(), static_cast<int64_t>(rows.shape(0)), data,
                                  threads);
            }
            return out;
        },
        "rows"_a.noconvert(), "threads"_a,
        "(T,) mean number of nodes that rows visit in each tree.");
    cls.def(
        "measure_seconds",
        [](const AnyForest& self, Matrix<Real> rows, int repeats) {
            const auto& forest = self.get(rows);
            require(rows.shape(0) > 0 && repeats > 0, "rows and repeats must not be none");
            double* data;
            auto out = new_vector<double>(forest.n_trees(), data);
            {
                nb::gil_scoped_release release;
                measure_seconds(forest, rows.data(), static_cast<int64_t>(rows.shape(0)), repeats,
                                data);
            }
            return out;
        },
        "rows"_a.noconvert(), "repeats"_a,
        "(T,) median seconds that each tree takes for a row here.");
}

// A StoppingFit, and the arrays that it looks at.
template <class Score>
class StoppingHolder {
  public:
    StoppingHolder(Matrix<Score> values, double base, Vector<double> full, double threshold,
                   Vector<int32_t> order, Vector<double> costs, bool negative, bool positive,
                   const Smoothing& smoothing)
        : values_(values),
          full_(full),
          order_(order),
          costs_(costs),
          fit_({static_cast<int64_t>(values.shape(1)), base, threshold, span(order_), span(full_),
                span(costs_), negative, positive, smoothing},
               values_.data()) {}

    auto sweep(double price_negative, double price_positive, int threads) {
        {
            nb::gil_scoped_release release;
            fit_.sweep(price_negative, price_positive, threads);
        }
        auto lower = to_numpy(fit_.lower()), upper = to_numpy(fit_.upper());
        return std::tuple(lower, upper, fit_.differing(), fit_.steps());
    }

  private:
    Matrix<Score> values_;
    Vector<double> full_;
    Vector<int32_t> order_;
    Vector<double> costs_;
    StoppingFit<Score> fit_;
};

template <class Score>
void bind_stopping(nb::module_& m, const char* name) {
    nb::class_<StoppingHolder<Score>>(m, name, "Thresholds by optimal stopping; not thread-safe.")
        .def(
            "__init__",
            [](StoppingHolder<Score>* self, Matrix<Score> values, double base, Vector<double> full,
               double threshold, Vector<int32_t> order, Vector<double> costs, bool negative,
               bool positive,
               std::tuple<int64_t, int64_t, int64_t, double, double, double> smoothing) {
                const auto [fewest, bins, per_bin, pseudo, trend, share] = smoothing;
                check_order(static_cast<int64_t>(values.shape(0)), order);
                require(full.shape(0) == values.shape(1) && costs.shape(0) == values.shape(0),
                        "full must have one entry per row, costs one per base model");
                require(values.shape(1) < (size_t{1} << 31), "at most 2^31 rows");
                new (self) StoppingHolder<Score>(
                    values, base, full, threshold, order, costs, negative, positive,
                    Smoothing{fewest, bins, per_bin, pseudo, trend, share});
            },
            "values"_a.noconvert(), "base"_a, "full"_a, "threshold"_a, "order"_a, "costs"_a,
            "quit_negative"_a, "quit_positive"_a, "smoothing"_a)
        .def("sweep", &StoppingHolder<Score>::sweep, "price_negative"_a, "price_positive"_a,
             "threads"_a, "(lower, upper, rows decided differently, base models of all rows).");
}

template <class Score>
void bind_matrix_functions(nb::module_& m) {
    m.def(
        "gram",
        [](Matrix<Score> values, std::optional<Vector<double>> centre,
           std::optional<Vector<double>> scale, int threads) {
            require(!centre || centre->shape(0) == values.shape(0),
                    "centre must have one entry per base model");
            require(!scale || scale->shape(0) == values.shape(1),
                    "scale must have one entry per row");
            const auto n_models = static_cast<int64_t>(values.shape(0));
            double* data;
            auto out = new_matrix<double>(n_models, n_models, data);
            {
                nb::gil_scoped_release release;
                gram(values.data(), n_models, static_cast<int64_t>(values.shape(1)),
                     centre ? centre->data() : nullptr, scale ? scale->data() : nullptr, data,
                     threads);
            }
            return out;
        },
        "values"_a.noconvert(), "centre"_a, "scale"_a, "threads"_a,
        "(T, T) inner products of base models (T, N), less centre (T,), times scale (N,) per row.");
    m.def(
        "apply_fan",
        [](Matrix<Score> values, double base, Vector<double> full, Vector<int32_t> order,
           Vector<int64_t> bin_begin, Vector<int64_t> bin, Vector<double> lower,
           Vector<double> upper, double bin_width, double threshold, int threads) {
            const auto n = static_cast<int64_t>(values.shape(1));
            require(static_cast<int64_t>(full.shape(0)) == n, "full must have one entry per row");
            check_order(static_cast<int64_t>(values.shape(0)), order);
            require(
                bin_begin.shape(0) == order.shape(0) + 1 && bin_width > 0,
                "bin_begin must have one entry more than there are steps, bin_width be positive");
            require(bin.shape(0) == lower.shape(0) && bin.shape(0) == upper.shape(0) &&
                        bin_begin.data()[order.shape(0)] == static_cast<int64_t>(bin.shape(0)),
                    "bins, lower and upper must have equal lengths");
            for (size_t r = 0; r < order.shape(0); ++r)
                require(bin_begin.data()[0] == 0 && bin_begin.data()[r] <= bin_begin.data()[r + 1],
                        "bin_begin must start at 0 and never fall");
            const FanView policy{span(order), span(bin_begin), span(bin), span(lower),
                                 span(upper), bin_width,       threshold};
            return collect_decisions(n, [&](const DecisionsOut& out) {
                apply_fan(policy, values.data(), base, full.data(), n, out, threads);
            });
        },
        "values"_a.noconvert(), "base"_a, "full"_a, "order"_a, "bin_begin"_a, "bin"_a, "lower"_a,
        "upper"_a, "bin_width"_a, "threshold"_a, "threads"_a,
        "As apply_policy, with thresholds by step and bin of the running sum.");
    m.def(
        "apply_policy",
        [](Matrix<Score> values, double base, Vector<double> full, Vector<int32_t> order,
           Vector<double> lower, Vector<double> upper, double threshold, int threads) {
            const auto n = static_cast<int64_t>(values.shape(1));
            require(static_cast<int64_t>(full.shape(0)) == n, "full must have one entry per row");
            const auto policy =
                policy_view(static_cast<int64_t>(values.shape(0)), order, lower, upper, threshold);
            return collect_decisions(n, [&](const DecisionsOut& out) {
                apply(policy, values.data(), base, full.data(), n, out, threads);
            });
        },
        "values"_a.noconvert(), "base"_a, "full"_a, "order"_a, "lower"_a, "upper"_a, "threshold"_a,
        "threads"_a, "(N,) positive, steps and score from scores (T, N) that are known already.");
    m.def(
        "fit_thresholds",
        [](Matrix<Score> values, double base, Vector<uint8_t> positive, Vector<double> costs,
           Vector<int32_t> order, int64_t budget, bool quit_negative, bool quit_positive,
           bool split_budget, int threads, nb::typed<nb::callable, void(int64_t)> progress) {
            const FitProblem problem{static_cast<int64_t>(values.shape(0)),
                                     static_cast<int64_t>(values.shape(1)),
                                     base,
                                     span(positive),
                                     span(costs),
                                     budget,
                                     quit_negative,
                                     quit_positive,
                                     split_budget};
            require(problem.n_models > 0, "there must be a base model");
            require(problem.n_rows < (int64_t{1} << 31), "at most 2^31 rows");
            require(static_cast<int64_t>(positive.shape(0)) == problem.n_rows,
                    "positive must have one entry per row");
            require(static_cast<int64_t>(costs.shape(0)) == problem.n_models,
                    "costs must have one entry per base model");
            if (order.shape(0) > 0) check_order(problem.n_models, order);
            const Progress report = [&progress](int64_t done) {
                nb::gil_scoped_acquire acquire;
                if (PyErr_CheckSignals() != 0) throw nb::python_error();
                progress(done);
            };
            FitResult result;
            {
                nb::gil_scoped_release release;
                result = fit(problem, values.data(), span(order), threads, report);
            }
            return std::make_tuple(to_numpy(result.order), to_numpy(result.lower),
                                   to_numpy(result.upper));
        },
        "values"_a.noconvert(), "base"_a, "positive"_a, "costs"_a, "order"_a, "budget"_a,
        "quit_negative"_a, "quit_positive"_a, "split_budget"_a, "threads"_a, "progress"_a,
        "Order (T,), lower (T,) and upper (T,) fitted on scores (T, N); an empty order is chosen "
        "by "
        "Algorithm 1. `progress` is called with the number of steps done.");
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The native core of qwyc. Use the functions of the package instead.";
    nb::class_<AnyForest> forest(m, "Forest",
                                 "A tree ensemble, checked and laid out for evaluation.");
    bind_forest_constructor<float>(forest);
    bind_forest_constructor<double>(forest);
    forest.def_prop_ro("n_models", &AnyForest::n_models, "Number of base models, T.");
    bind_forest_methods<float>(forest);
    bind_forest_methods<double>(forest);
    bind_forest_costs<float>(forest);
    bind_forest_costs<double>(forest);
    bind_matrix_functions<float>(m);
    bind_matrix_functions<double>(m);
    bind_stopping<float>(m, "StoppingFit32");
    bind_stopping<double>(m, "StoppingFit64");
    m.def(
        "exp_f32", [](float x) { return std::exp(x); }, "x"_a,
        "e to the x in float32, as the C library rounds it.");
    m.def(
        "log_f32", [](float x) { return std::log(x); }, "x"_a,
        "The natural logarithm in float32, as the C library rounds it.");
}

}  // namespace qwyc
