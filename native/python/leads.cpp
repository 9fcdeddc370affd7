// Policies on the lead of many classes, for Python: applied to known scores, and fitted.
#include "core/leads.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "fit/lead_search.hpp"
#include "fit/lead_stopping.hpp"
#include "python/fit_arguments.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

template <class T>
using Cube = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

constexpr size_t kMostClasses = 65535;  // that a fit holds in two bytes

// Scores (T, N, K), and what every function checks of them.
template <class Score>
void check_scores(const Cube<Score>& values, const Vector<double>& base) {
    require(values.shape(0) > 0 && values.shape(2) >= 2 && values.shape(2) < (size_t{1} << 31),
            "values must have a base model and two classes");
    require(values.shape(1) < (size_t{1} << 31), "at most 2^31 rows");
    require(base.shape(0) == values.shape(2), "base must have one entry per class");
}

template <class Score>
void check_full(const Cube<Score>& values, const Matrix<double>& full) {
    require(full.shape(0) == values.shape(1) && full.shape(1) == values.shape(2),
            "full must have a row per row and a column per class");
}

template <class Score>
void bind_apply_leads(nb::module_& m) {
    m.def(
        "apply_leads",
        [](Cube<Score> values, Vector<double> base, Matrix<double> full, Vector<int32_t> order,
           Matrix<double> lead, Vector<double> drop, int threads, int32_t only) {
            check_scores(values, base);
            check_full(values, full);
            require(drop.shape(0) == values.shape(0), "drop must have one entry per base model");
            check_order(static_cast<int64_t>(values.shape(0)), order);
            require(lead.shape(0) == values.shape(0) && lead.shape(1) == values.shape(2),
                    "lead must have a row per base model and a column per class");
            const auto n = static_cast<int64_t>(values.shape(1));
            const auto n_classes = static_cast<int32_t>(values.shape(2));
            require(only >= -1 && only < n_classes, "only must be a class, or -1");
            LeadDecisionsOut out{};
            auto label = new_vector<int64_t>(n, out.label);
            auto steps = new_vector<int32_t>(n, out.steps);
            auto score = new_matrix<double>(n, n_classes, out.score);
            {
                nb::gil_scoped_release release;
                const LeadPolicyView policy{
                    span(order), {lead.data(), lead.size()}, n_classes, span(drop), only};
                apply_leads(policy, values.data(), base.data(), full.data(), n, out, threads);
            }
            return std::tuple(label, steps, score);
        },
        "values"_a.noconvert(), "base"_a, "full"_a, "order"_a, "lead"_a, "drop"_a, "threads"_a,
        "only"_a = -1,
        "(N,) labels and steps, and (N, K) scores, from scores (T, N, K) that are known already.");
}

template <class Score>
void bind_search_leads(nb::module_& m) {
    m.def(
        "search_leads",
        [](Cube<Score> values, Vector<double> base, Vector<int32_t> winner, Vector<double> costs,
           Vector<double> parts, Vector<int64_t> need_begin, Vector<int32_t> need,
           Vector<int32_t> order, int64_t budget, int threads,
           nb::typed<nb::callable, void(int64_t)> progress) {
            check_scores(values, base);
            const LeadSearchProblem problem{
                static_cast<int64_t>(values.shape(0)),
                static_cast<int64_t>(values.shape(1)),
                static_cast<int32_t>(values.shape(2)),
                span(base),
                span(winner),
                {span(costs), span(parts), span(need_begin), span(need)},
                budget};
            require(winner.shape(0) == values.shape(1) && costs.shape(0) == values.shape(0),
                    "winner must have one entry per row, costs one per base model");
            require(budget >= 0, "budget must not be negative");
            check_needs(problem.costs);
            if (order.shape(0) > 0) check_order(problem.n_models, order);
            const Progress report = reporting(progress);
            LeadSearchResult result;
            {
                nb::gil_scoped_release release;
                result = search_leads(problem, values.data(), span(order), threads, report);
            }
            return std::tuple(to_numpy(result.order), to_numpy(result.lead));
        },
        "values"_a.noconvert(), "base"_a, "winner"_a, "costs"_a, "parts"_a, "need_begin"_a,
        "need"_a, "order"_a, "budget"_a, "threads"_a, "progress"_a,
        "Order (T,) and thresholds (T,) on the lead, fitted on scores (T, N, K); an empty order is "
        "chosen by Algorithm 1. Costs as in fit_thresholds.");
}

template <class Score>
void bind_lead_constructor(nb::class_<LeadFit>& cls) {
    cls.def(
        "__init__",
        [](LeadFit* self, Cube<Score> values, Vector<double> base, Matrix<double> full,
           Vector<int32_t> order, Vector<double> costs, Vector<int32_t> pool, Vector<double> weight,
           int threads, int64_t fewest_rows, int64_t most_bins, int64_t rows_per_bin,
           double pseudo_rows, double trend_rows, double forecast_share) {
            check_scores(values, base);
            check_full(values, full);
            check_order(static_cast<int64_t>(values.shape(0)), order);
            require(costs.shape(0) == values.shape(0), "costs must have one entry per base model");
            require(values.shape(2) <= kMostClasses, "there must be at most 65,535 classes");
            require(pool.shape(0) == base.shape(0) && weight.shape(0) == base.shape(0),
                    "pool and weight must have one entry per class");
            for (int32_t p : span(pool))
                require(p >= 0 && p < static_cast<int64_t>(pool.shape(0)),
                        "pool must number the pools from 0");
            const LeadProblem problem{static_cast<int64_t>(values.shape(1)),
                                      static_cast<int32_t>(values.shape(2)),
                                      span(base),
                                      span(order),
                                      {full.data(), full.size()},
                                      span(costs),
                                      span(pool),
                                      span(weight),
                                      {std::max<int64_t>(fewest_rows, 1), most_bins, rows_per_bin,
                                       pseudo_rows, trend_rows, forecast_share}};
            nb::gil_scoped_release release;
            new (self) LeadFit(problem, values.data(), threads);
        },
        "values"_a.noconvert(), "base"_a, "full"_a, "order"_a, "costs"_a, "pool"_a, "weight"_a,
        "threads"_a, nb::kw_only(), "fewest_rows"_a, "most_bins"_a, "rows_per_bin"_a,
        "pseudo_rows"_a, "trend_rows"_a, "forecast_share"_a);
}

}  // namespace

void bind_leads(nb::module_& m) {
    bind_apply_leads<float>(m);
    bind_apply_leads<double>(m);
    bind_search_leads<float>(m);
    bind_search_leads<double>(m);
    nb::class_<LeadFit> fit(m, "LeadFit",
                            "Thresholds on leads by optimal stopping; not thread-safe.");
    bind_lead_constructor<float>(fit);
    bind_lead_constructor<double>(fit);
    fit.def(
        "sweep",
        [](LeadFit& self, double penalty, int threads) {
            {
                nb::gil_scoped_release release;
                self.sweep(penalty, threads);
            }
            double* data;
            const std::vector<double>& found = self.thresholds();
            const int64_t pools = self.n_pools();
            auto out = new_matrix<double>(static_cast<int64_t>(found.size()) / pools, pools, data);
            std::copy(found.begin(), found.end(), data);
            return std::tuple(out, self.differing(), self.steps());
        },
        "penalty"_a, "threads"_a,
        "(thresholds (T, pools), rows decided differently, base models of all rows).");
}

}  // namespace qwyc
