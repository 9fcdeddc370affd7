// The objects behind the Python classes: forests and engines of either row type.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "core/engine.hpp"
#include "python/arrays.hpp"

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

}  // namespace qwyc
