// Trees of K classes for Python: many rows at once.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "core/parallel.hpp"
#include "python/class_engines.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

template <class T>
using OutCube = nb::ndarray<nb::numpy, T, nb::ndim<3>>;
using ClassDecisions = std::tuple<OutVector<int32_t>, OutVector<int32_t>, OutMatrix<double>>;

Ties ties_of(int kind, double scale) {
    require(kind >= 0 && kind <= 5, "unknown ties");
    return {static_cast<Ties::Kind>(kind), scale};
}

template <class Real>
void bind_constructor(nb::class_<AnyClassForest>& cls) {
    cls.def(
        "__init__",
        [](AnyClassForest* self, Vector<int64_t> node_begin, Vector<int64_t> leaf_begin,
           Vector<int32_t> feature, Vector<Real> threshold, Vector<int32_t> left,
           Vector<int32_t> right, Vector<uint8_t> flags, Vector<int64_t> category_begin,
           Vector<uint32_t> category_words, Vector<double> leaves, Vector<int32_t> tree_class,
           Vector<int64_t> step_begin, Vector<double> start, int64_t n_features, int summation,
           bool less_equal, bool truncates, double divisor, int ties, double ties_scale,
           double scale) {
            require(summation >= 0 && summation <= 4, "unknown summation");
            require(start.shape(0) < (size_t{1} << 20), "there must be fewer than 2^20 classes");
            const FlatTrees<Real> flat{span(node_begin),
                                       span(leaf_begin),
                                       span(feature),
                                       span(threshold),
                                       span(left),
                                       span(right),
                                       span(flags),
                                       span(category_begin),
                                       span(category_words),
                                       {},
                                       {}};
            const Rules rules{
                static_cast<Summation>(summation), less_equal, truncates, 0.0, divisor, scale};
            const ClassArrays classes{static_cast<int32_t>(start.shape(0)),
                                      span(tree_class),
                                      span(step_begin),
                                      span(leaves),
                                      span(start),
                                      ties_of(ties, ties_scale)};
            new (self) AnyClassForest(
                std::make_shared<ClassModel<Real>>(flat, n_features, rules, classes));
        },
        "node_begin"_a, "leaf_begin"_a, "feature"_a, "threshold"_a.noconvert(), "left"_a, "right"_a,
        "flags"_a, "category_begin"_a, "category_words"_a, "leaves"_a, "tree_class"_a,
        "step_begin"_a, "start"_a, nb::kw_only(), "n_features"_a, "summation"_a, "less_equal"_a,
        "truncates"_a, "divisor"_a, "ties"_a, "ties_scale"_a, "scale"_a = 1.0);
}

template <class In>
void check(const AnyClassForest& forest, const Rows<In>& rows) {
    require(static_cast<int64_t>(rows.shape(1)) == forest.n_features(),
            "rows must have one column per feature");
}

template <class In>
void bind_methods(nb::class_<AnyClassForest>& cls) {
    cls.def(
        "score_matrix",
        [](const AnyClassForest& self, Rows<In> rows, int threads, std::string_view isa) {
            check(self, rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            const size_t R = self.n_models(), K = self.n_classes();
            auto* const values = new float[R * n * K];
            nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<float*>(p); });
            double* full;
            auto out_full = new_matrix<double>(n, K, full);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) { m->full().score(view(rows), values, full, threads, isa); },
                    self.model);
            }
            return std::make_tuple(OutCube<float>(values, {R, static_cast<size_t>(n), K}, owner),
                                   std::move(out_full));
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(R, N, K) scores by base model and (N, K) full scores of rows (N, n_features).");
    cls.def(
        "score_full",
        [](const AnyClassForest& self, Rows<In> rows, int threads, std::string_view isa) {
            check(self, rows);
            const auto n = static_cast<int64_t>(rows.shape(0));
            double* full;
            auto out = new_matrix<double>(n, self.n_classes(), full);
            {
                nb::gil_scoped_release release;
                std::visit(
                    [&](auto& m) { m->full().score(view(rows), nullptr, full, threads, isa); },
                    self.model);
            }
            return out;
        },
        "rows"_a.noconvert(), "threads"_a, "isa"_a = "",
        "(N, K) full scores of rows (N, n_features).");
}

void bind_sparse_methods(nb::class_<AnyClassForest>& cls) {
    cls.def(
        "score_matrix_sparse",
        [](const AnyClassForest& self, const HeldSparse& held, const ColumnSlots& slots,
           int threads) {
            held.check(slots, self.n_features());
            const int64_t n = held.n_rows(), R = self.n_models(), K = self.n_classes();
            auto* const values = new float[static_cast<size_t>(R * n * K)];
            nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<float*>(p); });
            double* full;
            auto out_full = new_matrix<double>(n, K, full);
            {
                nb::gil_scoped_release release;
                self.in_tiles(held, slots, threads, [&](auto& engine, const auto& rows, int64_t i) {
                    std::vector<float> block(R * rows.n * K);
                    engine.score(rows, block.data(), full + i * K, 1);
                    for (int64_t r = 0; r < R; ++r)
                        std::copy_n(block.data() + r * rows.n * K, rows.n * K,
                                    values + (r * n + i) * K);
                });
            }
            return std::make_tuple(OutCube<float>(values,
                                                  {static_cast<size_t>(R), static_cast<size_t>(n),
                                                   static_cast<size_t>(K)},
                                                  owner),
                                   std::move(out_full));
        },
        "rows"_a, "slots"_a, "threads"_a,
        "(R, N, K) scores by base model and (N, K) full scores of sparse rows.");
    cls.def(
        "score_full_sparse",
        [](const AnyClassForest& self, const HeldSparse& held, const ColumnSlots& slots,
           int threads) {
            held.check(slots, self.n_features());
            const int64_t K = self.n_classes();
            double* full;
            auto out = new_matrix<double>(held.n_rows(), K, full);
            {
                nb::gil_scoped_release release;
                self.in_tiles(held, slots, threads, [&](auto& engine, const auto& rows, int64_t i) {
                    engine.score(rows, nullptr, full + i * K, 1);
                });
            }
            return out;
        },
        "rows"_a, "slots"_a, "threads"_a, "(N, K) full scores of sparse rows.");
}

// Allocates the result arrays, lets `run` fill them without the GIL, returns them.
template <class Run>
ClassDecisions collect(int64_t n, int32_t n_classes, bool scores, const Run& run) {
    ClassDecisionsOut out{};
    auto label = new_vector<int32_t>(n, out.label);
    auto steps = new_vector<int32_t>(n, out.steps);
    auto score = new_matrix<double>(scores ? n : 0, n_classes, out.score);
    if (!scores) out.score = nullptr;
    {
        nb::gil_scoped_release release;
        run(out);
    }
    return {std::move(label), std::move(steps), std::move(score)};
}

template <class In>
void bind_decide(nb::class_<AnyLeadQuitter>& cls) {
    cls.def(
        "decide",
        [](const AnyLeadQuitter& self, Rows<In> rows, int threads, bool scores,
           std::string_view isa) {
            require(static_cast<int64_t>(rows.shape(1)) == self.n_features,
                    "rows must have one column per feature");
            return collect(
                static_cast<int64_t>(rows.shape(0)), self.n_classes, scores,
                [&](const ClassDecisionsOut& out) { self.decide(view(rows), out, threads, isa); });
        },
        "rows"_a.noconvert(), "threads"_a, "scores"_a = true, "isa"_a = "",
        "(N,) indices of classes and steps, and (N, K) scores, of rows (N, n_features), quitting "
        "early; (0, K) scores where none are wanted.");
}

void bind_ties(nb::module_& m) {
    m.def(
        "decide_classes",
        [](Matrix<double> full, int kind, double scale) {
            const Ties ties = ties_of(kind, scale);
            require(full.shape(1) > 0, "there must be a class");
            const auto n = static_cast<int64_t>(full.shape(0));
            const auto K = static_cast<int32_t>(full.shape(1));
            int64_t* label;
            auto out = new_vector<int64_t>(n, label);
            {
                nb::gil_scoped_release release;
                for (int64_t i = 0; i < n; ++i) label[i] = ties.decide(full.data() + i * K, K);
            }
            return out;
        },
        "full"_a, "kind"_a, "scale"_a, "(N,) the class that full scores (N, K) decide.");
    m.def(
        "class_probabilities",
        [](Matrix<double> full, int kind, double scale, int threads) {
            const Ties ties = ties_of(kind, scale);
            require(full.shape(1) > 0, "there must be a class");
            const auto n = static_cast<int64_t>(full.shape(0));
            const auto K = static_cast<int32_t>(full.shape(1));
            double* data;
            auto out = new_matrix<double>(n, K, data);
            {
                nb::gil_scoped_release release;
                const double* const scores = full.data();
                parallel_for(n, 512, threads, [=](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i)
                        ties.probabilities(scores + i * K, K, data + i * K);
                });
            }
            return out;
        },
        "full"_a, "kind"_a, "scale"_a, "threads"_a,
        "(N, K) what the source compares, of full scores (N, K).");
}

}  // namespace

void bind_class_trees(nb::module_& m) {
    bind_ties(m);
    nb::class_<AnyClassForest> forest(m, "ClassForest",
                                      "Trees of K classes, checked and laid out for evaluation.");
    bind_constructor<float>(forest);
    bind_constructor<double>(forest);
    forest.def_prop_ro(
        "expected_cost",
        [](const AnyClassForest& self) {
            nb::gil_scoped_release release;
            return std::visit([](const auto& m) { return m->full().expected_cost(); }, self.model);
        },
        "Nanoseconds that full scores take, one row of many, by the cost model.");
    bind_methods<float>(forest);
    bind_methods<double>(forest);
    bind_sparse_methods(forest);

    nb::class_<AnyLeadQuitter> quitter(m, "LeadQuitter",
                                       "Trees of K classes laid out for a policy on leads.");
    quitter.def(
        "__init__",
        [](AnyLeadQuitter* self, const AnyClassForest& forest, Vector<int32_t> order,
           Matrix<double> lead, Vector<double> drop, std::optional<Vector<double>> survival,
           int32_t only) {
            const auto shares = survival ? span(*survival) : std::span<const double>{};
            check_order(forest.n_models(), order);
            require(lead.shape(0) == order.shape(0) &&
                        static_cast<int32_t>(lead.shape(1)) == forest.n_classes(),
                    "lead must have a row per base model and a column per class");
            for (size_t i = 0; i < lead.size(); ++i)
                require(lead.data()[i] >= 0 || (only >= 0 && lead.data()[i] < 0),
                        "lead must be numbers of at least 0");
            require(only >= -1 && only < forest.n_classes(), "only must be a class, or -1");
            require(drop.shape(0) == order.shape(0), "drop must have one entry per base model");
            for (double limit : span(drop))
                require(limit >= 0, "drop must be numbers of at least 0");
            require(!survival || shares.size() == order.shape(0),
                    "survival must have one entry per step");
            new (self) AnyLeadQuitter(AnyLeadQuitter::of(
                forest,
                {span(order), {lead.data(), lead.size()}, forest.n_classes(), span(drop), only},
                shares));
        },
        "forest"_a, "order"_a, "lead"_a, "drop"_a, "survival"_a = nb::none(), "only"_a = -1);
    quitter.def_prop_ro("expected_cost", &AnyLeadQuitter::expected_cost,
                        "Nanoseconds that a decision takes, one row of many, by the cost model.");
    bind_decide<float>(quitter);
    bind_decide<double>(quitter);
    quitter.def(
        "decide_sparse",
        [](const AnyLeadQuitter& self, const HeldSparse& rows, const ColumnSlots& slots,
           int threads) {
            return collect(rows.n_rows(), self.n_classes, true, [&](const ClassDecisionsOut& out) {
                self.decide(rows, slots, out, threads);
            });
        },
        "rows"_a, "slots"_a, "threads"_a, "The same for sparse rows.");
    quitter.def(
        "decide_table",
        [](const AnyLeadQuitter& self, const HeldTable& table,
           int threads) -> std::optional<ClassDecisions> {
            require(table.n_features() == self.n_features,
                    "a table must have one column per feature");
            bool read = false;
            ClassDecisions found = collect(
                table.n_rows(), self.n_classes, true,
                [&](const ClassDecisionsOut& out) { read = self.decide(table, out, threads); });
            if (!read) return std::nullopt;
            return found;
        },
        "table"_a, "threads"_a, "The same for the rows of a table; None if a value is refused.");
}

}  // namespace qwyc
