// The objects behind the Python classes for trees of K classes: models and engines of either row
// type.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "core/class_engine.hpp"
#include "core/float_mode.hpp"
#include "python/arrays.hpp"
#include "python/sparse.hpp"
#include "python/tables.hpp"

namespace qwyc {

// A forest and the engine for its full scores, which is made on first use.
template <class Real>
class ClassModel {
  public:
    ClassModel(const FlatTrees<Real>& flat, int64_t n_features, const Rules& rules,
               const ClassArrays& classes)
        : forest(flat, n_features, rules, classes) {}

    const ClassEngine<Real>& full() {
        std::call_once(once_, [this] { full_.emplace(forest); });
        return *full_;
    }

    const ClassForest<Real> forest;

  private:
    std::once_flag once_;
    std::optional<ClassEngine<Real>> full_;
};

class AnyClassForest {
  public:
    template <class Real>
    using Pointer = std::shared_ptr<ClassModel<Real>>;
    using Variant = std::variant<Pointer<float>, Pointer<double>>;
    explicit AnyClassForest(Variant model) : model(std::move(model)) {}

    // What `get` gives for the forest.
    template <class Get>
    auto visit(Get get) const {
        return std::visit([&](const auto& m) { return get(m->forest); }, model);
    }
    int32_t n_models() const {
        return visit([](const auto& forest) { return forest.n_steps(); });
    }
    int32_t n_classes() const {
        return visit([](const auto& forest) { return forest.n_classes(); });
    }
    int64_t n_features() const {
        return visit([](const auto& forest) { return forest.n_features(); });
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

// Decisions under one policy on leads, for either row type.
class AnyLeadQuitter {
  public:
    template <class Real>
    struct Held {
        std::shared_ptr<ClassModel<Real>> model;
        LeadEngine<Real> engine;
        Held(std::shared_ptr<ClassModel<Real>> model, const LeadPolicyView& policy,
             std::span<const double> survival)
            : model(std::move(model)), engine(this->model->full(), policy, survival) {}
    };
    std::variant<std::shared_ptr<Held<float>>, std::shared_ptr<Held<double>>> held;
    int64_t n_features;
    int32_t n_classes;

    static AnyLeadQuitter of(const AnyClassForest& forest, const LeadPolicyView& policy,
                             std::span<const double> survival) {
        return std::visit(
            [&]<class Real>(const std::shared_ptr<ClassModel<Real>>& model) {
                nb::gil_scoped_release release;
                return AnyLeadQuitter{std::make_shared<Held<Real>>(model, policy, survival),
                                      model->forest.n_features(), model->forest.n_classes()};
            },
            forest.model);
    }

    template <class In>
    void decide(const RowsView<In>& rows, const ClassDecisionsOut& out, int threads,
                std::string_view isa = "") const {
        std::visit([&](const auto& held) { held->engine.decide(rows, out, threads, isa); }, held);
    }

    // Rows of a table, a block at a time. Returns false where a value is refused; `out` then holds
    // nothing of use.
    bool decide(const HeldTable& table, const ClassDecisionsOut& out, int threads) const {
        return table.in_blocks(threads, [&](const auto& rows, int64_t begin) {
            decide(rows,
                   {out.label + begin, out.steps ? out.steps + begin : nullptr,
                    out.score ? out.score + begin * n_classes : nullptr},
                   1);
        });
    }

    // Sparse rows of trees that have the columns in use only, a block at a time.
    void decide(const HeldSparse& sparse, const ColumnSlots& slots, const ClassDecisionsOut& out,
                int threads) const {
        sparse.check(slots, n_features);
        in_tiles(sparse.rows, slots, held.index() == 0, threads,
                 [&](const auto& rows, int64_t begin) {
                     decide(rows,
                            {out.label + begin, out.steps ? out.steps + begin : nullptr,
                             out.score ? out.score + begin * n_classes : nullptr},
                            1);
                 });
    }

    double expected_cost() const {
        return std::visit([](const auto& held) { return held->engine.expected_cost(); }, held);
    }
};

}  // namespace qwyc
