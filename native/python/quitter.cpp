// Decisions under one policy for Python: many rows at once.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include "python/engines.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

template <class Quitter, class In>
void bind_decide(nb::class_<Quitter>& cls) {
    cls.def(
        "decide",
        [](const Quitter& self, Rows<In> rows, int threads, std::string_view isa) {
            require(static_cast<int64_t>(rows.shape(1)) == self.n_features,
                    "rows must have one column per feature");
            const auto n = static_cast<int64_t>(rows.shape(0));
            return collect_decisions(
                n, [&](const DecisionsOut& out) { self.decide(view(rows), out, threads, isa); });
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(N,) positive, steps and score of rows (N, n_features), quitting early.");
}

// Rows of a table. None where a value is refused.
template <class Quitter>
void bind_decide_table(nb::class_<Quitter>& cls) {
    cls.def(
        "decide_table",
        [](const Quitter& self, const HeldTable& table,
           int threads) -> std::optional<DecisionArrays> {
            require(table.n_features() == self.n_features,
                    "a table must have one column per feature");
            bool read = false;
            DecisionArrays found = collect_decisions(table.n_rows(), [&](const DecisionsOut& out) {
                read = self.decide(table, out, threads);
            });
            if (!read) return std::nullopt;
            return found;
        },
        "table"_a, "threads"_a, "(N,) positive, steps and score of the rows of a table.");
}

template <class Quitter>
void bind_decide_sparse(nb::class_<Quitter>& cls) {
    cls.def(
        "decide_sparse",
        [](const Quitter& self, const HeldSparse& rows, const ColumnSlots& slots, int threads) {
            return collect_decisions(rows.n_rows(), [&](const DecisionsOut& out) {
                self.decide(rows, slots, out, threads);
            });
        },
        "rows"_a, "slots"_a, "threads"_a, "(N,) positive, steps and score of sparse rows.");
}

template <class Models>
void bind_constructor(nb::class_<AnyQuitter>& cls) {
    cls.def(
        "__init__",
        [](AnyQuitter* self, const Models& models, Vector<int32_t> order, Vector<double> lower,
           Vector<double> upper, double threshold, std::optional<Vector<double>> survival) {
            const auto shares = survival ? span(*survival) : std::span<const double>{};
            require(!survival || shares.size() == order.shape(0),
                    "survival must have one entry per step");
            new (self) AnyQuitter(AnyQuitter::of(
                models, policy_view(models.n_models(), order, lower, upper, threshold), shares));
        },
        "base_models"_a, "order"_a, "lower"_a, "upper"_a, "threshold"_a, "survival"_a = nb::none());
}

template <class Models>
void bind_fan_constructor(nb::class_<AnyFanQuitter>& cls) {
    cls.def(
        "__init__",
        [](AnyFanQuitter* self, const Models& models, Vector<int32_t> order,
           Vector<int64_t> bin_begin, Vector<int64_t> bin, Vector<double> lower,
           Vector<double> upper, double bin_width, double threshold) {
            new (self) AnyFanQuitter(
                AnyFanQuitter::of(models, fan_view(models.n_models(), order, bin_begin, bin, lower,
                                                   upper, bin_width, threshold)));
        },
        "base_models"_a, "order"_a, "bin_begin"_a, "bin"_a, "lower"_a, "upper"_a, "bin_width"_a,
        "threshold"_a);
}

}  // namespace

void bind_quitter(nb::module_& m) {
    nb::class_<AnyQuitter> quitter(m, "Quitter", "Base models laid out for one policy.");
    bind_constructor<AnyForest>(quitter);
    bind_constructor<AnyLattices>(quitter);
    quitter.def_prop_ro(
        "expected_cost", &AnyQuitter::expected_cost,
        "Nanoseconds that a decision takes, one row of many, by the cost model; None "
        "for lattices.");
    bind_decide<AnyQuitter, float>(quitter);
    bind_decide<AnyQuitter, double>(quitter);
    bind_decide_table(quitter);
    bind_decide_sparse(quitter);

    nb::class_<AnyFanQuitter> fan(m, "FanQuitter",
                                  "Base models laid out for thresholds by step and bin.");
    bind_fan_constructor<AnyForest>(fan);
    bind_fan_constructor<AnyLattices>(fan);
    bind_decide<AnyFanQuitter, float>(fan);
    bind_decide<AnyFanQuitter, double>(fan);
    bind_decide_table(fan);
    bind_decide_sparse(fan);
}

}  // namespace qwyc
