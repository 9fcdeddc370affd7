// Outputs within a tolerance, for Python: fitting, and estimates of rows that quit.
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>
#include <utility>
#include <variant>

#include "core/estimates.hpp"
#include "core/parallel.hpp"
#include "fit/stopping.hpp"
#include "python/arrays.hpp"
#include "python/fit_arguments.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

constexpr int64_t kChunk = 4096;  // rows that a thread takes at once

// A fit, and the arrays that it refers to.
template <class Score>
struct HeldFit {
    Matrix<Score> values;
    Vector<double> full, low, high;
    double start, width;
    Vector<int32_t> order;
    Vector<double> costs;
    StoppingFit<Score, ToleranceLoss> fit;
};

// A fit on scores of either type behind one Python class.
class AnyToleranceFit {
  public:
    template <class Score>
    using Pointer = std::unique_ptr<HeldFit<Score>>;
    using Variant = std::variant<Pointer<float>, Pointer<double>>;
    explicit AnyToleranceFit(Variant held) : held_(std::move(held)) {}

    auto sweep(double penalty, int threads) {
        return std::visit(
            [=](auto& held) {
                auto& fit = held->fit;
                {
                    nb::gil_scoped_release release;
                    fit.sweep(penalty, penalty, threads);
                }
                auto lower = to_numpy(fit.lower()), upper = to_numpy(fit.upper());
                return std::tuple(lower, upper, fit.differing(), fit.steps());
            },
            held_);
    }

    void set_bounds(Vector<double> low, Vector<double> high) {
        std::visit(
            [&](auto& held) {
                require(low.shape(0) == held->low.shape(0) && high.shape(0) == low.shape(0),
                        "low and high must have as many entries as before");
                held->low = low;
                held->high = high;
                held->fit.set_loss({held->start, held->width, span(low), span(high)});
            },
            held_);
    }

    // The forecasts, which no longer change: slope (T,), begin (T + 1,), knots and offsets.
    auto freeze(int threads) {
        return std::visit(
            [=](auto& held) {
                held->fit.freeze(threads);
                std::vector<double> slope, knot, offset;
                std::vector<int64_t> begin = {0};
                for (const ScoreForecast& forecast : held->fit.forecasts()) {
                    slope.push_back(forecast.slope);
                    knot.insert(knot.end(), forecast.centre.begin(), forecast.centre.end());
                    offset.insert(offset.end(), forecast.mean.begin(), forecast.mean.end());
                    begin.push_back(static_cast<int64_t>(knot.size()));
                }
                return std::tuple(to_numpy(slope), to_numpy(begin), to_numpy(knot),
                                  to_numpy(offset));
            },
            held_);
    }

  private:
    Variant held_;
};

template <class Score>
void bind_constructor(nb::class_<AnyToleranceFit>& cls) {
    cls.def(
        "__init__",
        [](AnyToleranceFit* self, Matrix<Score> values, double base, Vector<double> full,
           double start, double width, Vector<double> low, Vector<double> high,
           Vector<int32_t> order, Vector<double> costs, int64_t fewest_rows, int64_t most_bins,
           int64_t rows_per_bin, double pseudo_rows, double trend_rows, double forecast_share) {
            check_order(static_cast<int64_t>(values.shape(0)), order);
            require(full.shape(0) == values.shape(1) && costs.shape(0) == values.shape(0),
                    "full must have one entry per row, costs one per base model");
            require(values.shape(1) < (size_t{1} << 31), "at most 2^31 rows");
            require(low.shape(0) >= 2 && high.shape(0) == low.shape(0) && width > 0,
                    "low and high must have two entries or more each, and width be positive");
            const Smoothing smoothing{fewest_rows, most_bins,  rows_per_bin,
                                      pseudo_rows, trend_rows, forecast_share};
            const StoppingProblem<ToleranceLoss> problem{static_cast<int64_t>(values.shape(1)),
                                                         base,
                                                         {start, width, span(low), span(high)},
                                                         span(order),
                                                         span(full),
                                                         span(costs),
                                                         true,
                                                         true,
                                                         smoothing};
            new (self) AnyToleranceFit(std::unique_ptr<HeldFit<Score>>(
                new HeldFit<Score>{values, full, low, high, start, width, order, costs,
                                   StoppingFit<Score, ToleranceLoss>(problem, values.data())}));
        },
        "values"_a.noconvert(), "base"_a, "full"_a, "start"_a, "width"_a, "low"_a, "high"_a,
        "order"_a, "costs"_a, nb::kw_only(), "fewest_rows"_a, "most_bins"_a, "rows_per_bin"_a,
        "pseudo_rows"_a, "trend_rows"_a, "forecast_share"_a);
}

}  // namespace

void bind_tolerance(nb::module_& m) {
    nb::class_<AnyToleranceFit> fit(m, "ToleranceFit",
                                    "Thresholds for outputs within a tolerance; not thread-safe.");
    bind_constructor<float>(fit);
    bind_constructor<double>(fit);
    fit.def("sweep", &AnyToleranceFit::sweep, "penalty"_a, "threads"_a,
            "(lower, upper, rows off by more than the tolerance, base models of all rows).");
    fit.def("set_bounds", &AnyToleranceFit::set_bounds, "low"_a, "high"_a,
            "Other bounds of the full score, from the next sweep on.");
    fit.def("freeze", &AnyToleranceFit::freeze, "threads"_a,
            "Keep the forecasts as they are from now on, and return them: slope (T,), begin "
            "(T + 1,), knots and offsets.");
    m.def(
        "estimate_scores",
        [](Vector<int32_t> steps, Vector<double> score, Vector<double> slope, Vector<int64_t> begin,
           Vector<double> knot, Vector<double> offset, int threads) {
            require(steps.shape(0) == score.shape(0), "steps and score must have equal lengths");
            require(begin.shape(0) == slope.shape(0) + 1 && knot.shape(0) == offset.shape(0),
                    "begin must have one entry more than slope, and each knot an offset");
            require(begin.data()[0] == 0 &&
                        begin.data()[slope.shape(0)] == static_cast<int64_t>(knot.shape(0)),
                    "begin must start at 0 and end at the number of knots");
            for (size_t r = 0; r < slope.shape(0); ++r)
                require(begin.data()[r] <= begin.data()[r + 1], "begin must never fall");
            const EstimatesView view{span(slope), span(begin), span(knot), span(offset)};
            const auto n = static_cast<int64_t>(steps.shape(0));
            double* data;
            auto out = new_vector<double>(n, data);
            const int32_t* const taken = steps.data();
            const double* const sum = score.data();
            {
                nb::gil_scoped_release release;
                parallel_for(n, kChunk, threads, [=](int64_t from, int64_t to) {
                    for (int64_t i = from; i < to; ++i) data[i] = view(taken[i], sum[i]);
                });
            }
            return out;
        },
        "steps"_a, "score"_a, "slope"_a, "begin"_a, "knot"_a, "offset"_a, "threads"_a,
        "(N,) full scores that are expected of rows that took `steps` and have the running sum "
        "`score`; complete rows keep theirs.");
}

}  // namespace qwyc
