// Fitting, and policies over known scores, for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "bindings.hpp"
#include "fit.hpp"
#include "gram.hpp"
#include "stopping.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

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

void bind_fitting(nb::module_& m) {
    bind_matrix_functions<float>(m);
    bind_matrix_functions<double>(m);
    bind_stopping<float>(m, "StoppingFit32");
    bind_stopping<double>(m, "StoppingFit64");
}

}  // namespace qwyc
