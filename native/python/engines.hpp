// The objects behind the Python classes: base models and engines of either row type.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "core/engine.hpp"
#include "core/lattice_engine.hpp"
#include "python/arrays.hpp"
#include "python/sparse.hpp"
#include "python/tables.hpp"
#include "python/watcher.hpp"

namespace qwyc {

// A forest and the engine for its full scores, which is made on first use.
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

    double expected_cost() const {
        nb::gil_scoped_release release;
        return std::visit([](const auto& m) { return m->full().expected_cost(); }, model);
    }

    int64_t n_walked() const {
        nb::gil_scoped_release release;  // others may be waiting for the layout too
        return std::visit([](const auto& m) { return m->full().n_walked(); }, model);
    }

    template <class Array>
    void check(const Array& rows) const {
        const int64_t n_features =
            std::visit([](const auto& m) { return m->forest.n_features(); }, model);
        require(static_cast<int64_t>(rows.shape(1)) == n_features,
                "rows must have one column per feature");
    }

    // Of sparse rows. The forest has the columns in use only.
    void check(const HeldSparse& held, const ColumnSlots& slots) const {
        held.check(slots, std::visit([](const auto& m) { return m->forest.n_features(); }, model));
    }

    // Calls use(engine, rows, begin) with dense rows of the columns in use, a block at a time.
    template <class Use>
    void in_tiles(const HeldSparse& held, const ColumnSlots& slots, int threads,
                  const Use& use) const {
        std::visit(
            [&]<class Real>(const Pointer<Real>& m) {
                const auto& engine = m->full();
                qwyc::in_tiles(held.rows, slots, std::is_same_v<Real, float>, threads,
                               [&](const auto& rows, int64_t begin) { use(engine, rows, begin); });
            },
            model);
    }

    Variant model;
};

// Lattices and the engine for their full scores.
template <class Real>
struct LatticeModel {
    LatticeModel(const FlatLattices<Real>& flat, int64_t n_features, double base)
        : lattices(flat, n_features, base), full(lattices) {}

    const Lattices<Real> lattices;
    const LatticeEngine<Real> full;
};

// Lattices of either row type behind one Python class.
class AnyLattices {
  public:
    template <class Real>
    using Pointer = std::shared_ptr<LatticeModel<Real>>;
    using Variant = std::variant<Pointer<float>, Pointer<double>>;
    explicit AnyLattices(Variant model) : model(std::move(model)) {}

    // What `get` gives for the lattices.
    template <class Get>
    auto visit(Get get) const {
        return std::visit([&](const auto& m) { return get(m->lattices); }, model);
    }
    int64_t n_models() const {
        return visit([](const auto& lattices) { return lattices.n_models(); });
    }
    int64_t n_calibrators() const {
        return visit([](const auto& lattices) {
            return static_cast<int64_t>(lattices.calibrators().size());
        });
    }

    template <class Array>
    void check(const Array& rows) const {
        require(static_cast<int64_t>(rows.shape(1)) ==
                    visit([](const auto& lattices) { return lattices.n_features(); }),
                "rows must have one column per feature");
    }

    Variant model;
};

// Decisions under one policy, for base models of any kind and either row type.
template <class Policy>
class QuitterOf {
  public:
    // An engine, and what it refers to.
    template <class ModelOf, class Engine>
    struct Held {
        std::shared_ptr<ModelOf> model;
        Engine engine;
    };
    template <class Real>
    using HeldTrees = Held<Model<Real>, QuitEngine<Real, Policy>>;
    template <class Real>
    using HeldLattices = Held<LatticeModel<Real>, LatticeEngine<Real, Policy>>;
    std::variant<std::shared_ptr<HeldTrees<float>>, std::shared_ptr<HeldTrees<double>>,
                 std::shared_ptr<HeldLattices<float>>, std::shared_ptr<HeldLattices<double>>>
        held;
    int64_t n_features;
    std::shared_ptr<Watcher> watcher = nullptr;  // of rows that are decided; usually there is none

    // Rows of any strides. Trees read them as they lie; lattices take C order, so others are copied
    // in blocks.
    template <class In>
    void decide(const RowsView<In>& rows, const DecisionsOut& out, int threads,
                std::string_view isa = "") const {
        std::visit([&](const auto& held) { decide(held->engine, rows, out, threads, isa); }, held);
        if (watcher) watcher->see(rows, out, threads);
    }

    // Rows of a table, a block at a time. Returns false where a value is refused; `out` then holds
    // nothing of use.
    bool decide(const HeldTable& table, const DecisionsOut& out, int threads) const {
        if (watcher)  // sees all rows of a call at once
            return table.single ? decide_all<float>(table, out, threads)
                                : decide_all<double>(table, out, threads);
        return table.in_blocks(threads, [&](const auto& rows, int64_t begin) {
            decide(rows, {out.positive + begin, out.steps + begin, out.score + begin}, 1);
        });
    }

    // Sparse rows of trees that have the columns in use only, a block at a time.
    void decide(const HeldSparse& sparse, const ColumnSlots& slots, const DecisionsOut& out,
                int threads) const {
        sparse.check(slots, n_features);
        const bool single = std::visit(
            [](const auto& held) {
                return std::is_same_v<typename decltype(held->engine)::Value, float>;
            },
            held);
        in_tiles(sparse.rows, slots, single, threads, [&](const auto& rows, int64_t begin) {
            decide(rows, {out.positive + begin, out.steps + begin, out.score + begin}, 1);
        });
    }

    // By the cost model, in nanoseconds; nothing for lattices.
    std::optional<double> expected_cost() const {
        return std::visit(
            [](const auto& held) -> std::optional<double> {
                if constexpr (requires { held->engine.expected_cost(); })
                    return held->engine.expected_cost();
                else
                    return std::nullopt;
            },
            held);
    }

    // Full scores, (n,), of rows in C order.
    template <class In>
    void score_full(const In* rows, int64_t n, double* full, int threads) const {
        std::visit([&](const auto& held) { score_full(*held->model, rows, n, full, threads); },
                   held);
    }

    // survival: see QuitEngine; lattices do not use it.
    static QuitterOf of(const AnyForest& forest, const typename Policy::View& policy,
                        std::span<const double> survival = {}) {
        return std::visit(
            [&]<class Real>(const std::shared_ptr<Model<Real>>& model) {
                nb::gil_scoped_release release;
                return QuitterOf{
                    std::shared_ptr<HeldTrees<Real>>(new HeldTrees<Real>{
                        model, QuitEngine<Real, Policy>(model->full(), policy, survival)}),
                    model->forest.n_features()};
            },
            forest.model);
    }

    static QuitterOf of(const AnyLattices& lattices, const typename Policy::View& policy,
                        std::span<const double> = {}) {
        return std::visit(
            [&]<class Real>(const std::shared_ptr<LatticeModel<Real>>& model) {
                nb::gil_scoped_release release;
                return QuitterOf{std::shared_ptr<HeldLattices<Real>>(new HeldLattices<Real>{
                                     model, LatticeEngine<Real, Policy>(model->lattices, policy)}),
                                 model->lattices.n_features()};
            },
            lattices.model);
    }

  private:
    template <class In>
    bool decide_all(const HeldTable& table, const DecisionsOut& out, int threads) const {
        std::vector<In> rows(table.n_features() * table.n_rows());
        if (!table.read_all(rows.data(), threads)) return false;
        decide(RowsView<In>{rows.data(), table.n_rows(), n_features, 1, table.n_rows()}, out,
               threads);
        return true;
    }

    template <class Real, class In>
    void score_full(Model<Real>& model, const In* rows, int64_t n, double* full,
                    int threads) const {
        model.full().score(RowsView<In>{rows, n, n_features, n_features, 1}, nullptr, full, threads,
                           "");
    }
    template <class Real, class In>
    void score_full(LatticeModel<Real>& model, const In* rows, int64_t n, double* full,
                    int threads) const {
        model.full.score(rows, n, nullptr, full, threads, "");
    }

    template <class Real, class In>
    static void decide(const QuitEngine<Real, Policy>& engine, const RowsView<In>& rows,
                       const DecisionsOut& out, int threads, std::string_view isa) {
        engine.decide(rows, out, threads, isa);
    }
    template <class Real, class In>
    static void decide(const LatticeEngine<Real, Policy>& engine, const RowsView<In>& rows,
                       const DecisionsOut& out, int threads, std::string_view isa) {
        with_contiguous(rows, threads, [&](const In* some, int64_t begin, int64_t n, int threads) {
            engine.decide(some, n, {out.positive + begin, out.steps + begin, out.score + begin},
                          threads, isa);
        });
    }
};

using AnyQuitter = QuitterOf<ThresholdPolicy>;
using AnyFanQuitter = QuitterOf<FanPolicy>;

}  // namespace qwyc
