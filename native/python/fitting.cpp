// Fitting, and policies over known scores, for Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "core/path.hpp"
#include "fit/algorithms.hpp"
#include "fit/fan_order.hpp"
#include "fit/gram.hpp"
#include "fit/stopping.hpp"
#include "python/arrays.hpp"
#include "python/fit_arguments.hpp"
#include "python/path_arrays.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

// A StoppingFit, and the arrays that it refers to.
template <class Score>
struct HeldFit {
    Matrix<Score> values;
    Vector<double> full;
    Vector<int32_t> order;
    Vector<double> costs;
    StoppingFit<Score> fit;
};

// A fit on scores of either type behind one Python class.
class AnyStoppingFit {
  public:
    template <class Score>
    using Pointer = std::unique_ptr<HeldFit<Score>>;
    using Variant = std::variant<Pointer<float>, Pointer<double>>;
    explicit AnyStoppingFit(Variant held) : held_(std::move(held)) {}

    auto sweep(double penalty_negative, double penalty_positive, int threads) {
        return std::visit(
            [=](auto& held) {
                auto& fit = held->fit;
                {
                    nb::gil_scoped_release release;
                    fit.sweep(penalty_negative, penalty_positive, threads);
                }
                auto lower = to_numpy(fit.lower()), upper = to_numpy(fit.upper());
                return std::tuple(lower, upper, fit.differing(), fit.steps());
            },
            held_);
    }

  private:
    Variant held_;
};

template <class Score>
void bind_stopping_constructor(nb::class_<AnyStoppingFit>& cls) {
    cls.def(
        "__init__",
        [](AnyStoppingFit* self, Matrix<Score> values, double base, Vector<double> full,
           double threshold, Vector<int32_t> order, Vector<double> costs, bool quit_negative,
           bool quit_positive, int64_t fewest_rows, int64_t most_bins, int64_t rows_per_bin,
           double pseudo_rows, double trend_rows, double forecast_share) {
            check_order(static_cast<int64_t>(values.shape(0)), order);
            require(full.shape(0) == values.shape(1) && costs.shape(0) == values.shape(0),
                    "full must have one entry per row, costs one per base model");
            require(values.shape(1) < (size_t{1} << 31), "at most 2^31 rows");
            const Smoothing smoothing{fewest_rows, most_bins,  rows_per_bin,
                                      pseudo_rows, trend_rows, forecast_share};
            const StoppingProblem<ClassLoss> problem{static_cast<int64_t>(values.shape(1)),
                                                     base,
                                                     {{threshold}},
                                                     span(order),
                                                     span(full),
                                                     span(costs),
                                                     quit_negative,
                                                     quit_positive,
                                                     smoothing};
            new (self) AnyStoppingFit(std::unique_ptr<HeldFit<Score>>(new HeldFit<Score>{
                values, full, order, costs, StoppingFit<Score>(problem, values.data())}));
        },
        "values"_a.noconvert(), "base"_a, "full"_a, "threshold"_a, "order"_a, "costs"_a,
        "quit_negative"_a, "quit_positive"_a, nb::kw_only(), "fewest_rows"_a, "most_bins"_a,
        "rows_per_bin"_a, "pseudo_rows"_a, "trend_rows"_a, "forecast_share"_a);
}

template <class Score>
void bind_fan_order(nb::module_& m) {
    m.def(
        "fan_order",
        [](Matrix<Score> values, double base, Vector<double> full, Vector<double> costs,
           Vector<double> parts, Vector<int64_t> need_begin, Vector<int32_t> need, double threshold,
           double gamma, double bin_width, bool quit_negative, bool quit_positive, int threads,
           nb::typed<nb::callable, void(int64_t)> progress) {
            const FanOrderProblem problem{static_cast<int64_t>(values.shape(0)),
                                          static_cast<int64_t>(values.shape(1)),
                                          base,
                                          span(full),
                                          {span(costs), span(parts), span(need_begin), span(need)},
                                          threshold,
                                          gamma,
                                          bin_width,
                                          quit_negative,
                                          quit_positive};
            require(problem.n_models > 0 && problem.n_rows > 0,
                    "there must be a base model and a row");
            require(problem.n_rows < (int64_t{1} << 31), "at most 2^31 rows");
            require(static_cast<int64_t>(full.shape(0)) == problem.n_rows &&
                        static_cast<int64_t>(costs.shape(0)) == problem.n_models,
                    "full must have one entry per row, costs one per base model");
            require(gamma >= 0 && gamma < kInf && bin_width > 0,
                    "gamma must be a number of at least 0, bin_width be positive");
            check_needs(problem.costs);
            const Progress report = reporting(progress);
            std::vector<int32_t> order;
            {
                nb::gil_scoped_release release;
                order = fan_order(problem, values.data(), threads, report);
            }
            return to_numpy(order);
        },
        "values"_a.noconvert(), "base"_a, "full"_a, "costs"_a, "parts"_a, "need_begin"_a, "need"_a,
        "threshold"_a, "gamma"_a, "bin_width"_a, "quit_negative"_a, "quit_positive"_a, "threads"_a,
        "progress"_a,
        "Order (T,) by Algorithm 1 with Fan's rule, on scores (T, N); costs as in fit_thresholds. "
        "`progress` is called with the number of steps done.");
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
            const auto policy = fan_view(static_cast<int64_t>(values.shape(0)), order, bin_begin,
                                         bin, lower, upper, bin_width, threshold);
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
        "count_path",
        [](Matrix<Score> values, double base, Vector<double> full, Vector<int32_t> order,
           Matrix<double> lower, Matrix<double> upper, double threshold,
           std::optional<Vector<int64_t>> rows, bool with_wrong, int threads,
           std::string_view isa) {
            const auto stride = static_cast<int64_t>(values.shape(1));
            const PathView path =
                path_view(static_cast<int64_t>(values.shape(0)), order, lower, upper, threshold);
            require(static_cast<int64_t>(full.shape(0)) == stride,
                    "full must have one entry per row");
            if (rows)
                for (int64_t row : span(*rows))
                    require(row >= 0 && row < stride, "rows must be numbers of rows");
            const int64_t n = rows ? static_cast<int64_t>(rows->shape(0)) : stride;
            PathArrays out(path, n, with_wrong);
            {
                nb::gil_scoped_release release;
                count_path(path, values.data(), base, full.data(), stride,
                           rows ? rows->data() : nullptr, n, out.out, threads, isa);
            }
            return std::tuple(out.stops, out.differences, out.wrong);
        },
        "values"_a.noconvert(), "base"_a, "full"_a, "order"_a, "lower"_a, "upper"_a, "threshold"_a,
        "rows"_a.none(), "with_wrong"_a, "threads"_a, "isa"_a = "",
        "What K policies along one order do over scores (T, N) that are known already, or over "
        "some rows of them: (K, T) rows by the steps that they took, (K, 2) differences and, if "
        "asked for, (n, ceil(K / 63)) the policies that decide a row differently, a bit each.");
    m.def(
        "fit_thresholds",
        [](Matrix<Score> values, double base, Vector<uint8_t> positive, Vector<double> costs,
           Vector<double> parts, Vector<int64_t> need_begin, Vector<int32_t> need,
           Vector<int32_t> order, int64_t budget, bool quit_negative, bool quit_positive,
           bool split_budget, int threads, nb::typed<nb::callable, void(int64_t)> progress) {
            const FitProblem problem{static_cast<int64_t>(values.shape(0)),
                                     static_cast<int64_t>(values.shape(1)),
                                     base,
                                     span(positive),
                                     {span(costs), span(parts), span(need_begin), span(need)},
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
            check_needs(problem.costs);
            if (order.shape(0) > 0) check_order(problem.n_models, order);
            const Progress report = reporting(progress);
            FitResult result;
            {
                nb::gil_scoped_release release;
                result = fit(problem, values.data(), span(order), threads, report);
            }
            return std::make_tuple(to_numpy(result.order), to_numpy(result.lower),
                                   to_numpy(result.upper));
        },
        "values"_a.noconvert(), "base"_a, "positive"_a, "costs"_a, "parts"_a, "need_begin"_a,
        "need"_a, "order"_a, "budget"_a, "quit_negative"_a, "quit_positive"_a, "split_budget"_a,
        "threads"_a, "progress"_a,
        "Order (T,), lower (T,) and upper (T,) fitted on scores (T, N); an empty order is chosen "
        "by "
        "Algorithm 1. Base model t needs parts need[need_begin[t]:need_begin[t + 1]], which the "
        "first to need them pays for. `progress` is called with the number of steps done.");
}

}  // namespace

void bind_fitting(nb::module_& m) {
    bind_matrix_functions<float>(m);
    bind_matrix_functions<double>(m);
    bind_fan_order<float>(m);
    bind_fan_order<double>(m);

    nb::class_<AnyStoppingFit> stopping(m, "StoppingFit",
                                        "Thresholds by optimal stopping; not thread-safe.");
    bind_stopping_constructor<float>(stopping);
    bind_stopping_constructor<double>(stopping);
    stopping.def("sweep", &AnyStoppingFit::sweep, "penalty_negative"_a, "penalty_positive"_a,
                 "threads"_a, "(lower, upper, rows decided differently, base models of all rows).");
    bind_leads(m);
    bind_tolerance(m);
}

}  // namespace qwyc
