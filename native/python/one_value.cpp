// The value of one row at a time, from every base model, for Python.
#include <utility>
#include <variant>
#include <vector>

#include "core/outputs.hpp"
#include "python/class_engines.hpp"
#include "python/collected.hpp"
#include "python/few_rows.hpp"
#include "python/plain_row.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

// Evaluates one row at a time, with as little overhead as possible: what the source gives for the
// full score, a float, or for K scores, a list of floats. Its quitter never quits. Rows that are
// not plain numbers are passed to the Python callable `fallback`. Outputs that native code does not
// compute are made by the callable `finish`, from what `predict` would return.
template <class Quitter>
class OneValueOf {
  public:
    OneValueOf(const Quitter& quitter, int kind, double scale, nb::object finish,
               nb::object fallback, nb::object plain_row, bool finite_only,
               int64_t max_exact_integer)
        : quitter_(quitter),
          kind_(static_cast<OutputKind>(kind)),
          scale_(scale),
          finish_(std::move(finish)),
          fallback_(std::move(fallback)),
          row_(quitter.n_features, std::move(plain_row), max_exact_integer),
          finite_only_(finite_only) {
        require(kind >= 0 && kind < kOutputKinds, "there is no such kind of output");
    }

    nb::object predict(nb::handle row) const {
        RowCopy<double> score(n_scores());
        const bool plain = row_.with_numbers(row, [&](const auto* numbers) {
            return std::visit(
                [&](const auto& held) { return evaluate(held->engine, numbers, score.data()); },
                quitter_.held);
        });
        if (!plain) return fallback_(row);
        const nb::object found = as_python(score.data());
        return finish_.is_none() ? found : finish_(found);
    }

    // The Python objects that it refers to.
    std::vector<nb::object*> held() { return {&finish_, &fallback_, row_.held()}; }

  private:
    int64_t n_scores() const {
        if constexpr (requires { quitter_.n_classes; })
            return quitter_.n_classes;
        else
            return 1;
    }

    // The outputs of a row, (n_scores,); false where it needs more checks than native code does.
    template <class Engine, class In>
    bool evaluate(const Engine& engine, const In* row, double* out) const {
        const PlainFloats plain;
        if (finite_only_ && !all_finite<typename Engine::Value>(row, quitter_.n_features))
            return false;
        int32_t steps = 0;
        LateRelease release;
        if constexpr (requires { engine.n_classes(); }) {
            release.emplace();
            engine.decide_one(row, &steps, out);
        } else {
            uint8_t positive = 0;
            decide_one(engine, row, {&positive, &steps, out}, release);
        }
        apply_output(kind_, scale_, out, n_scores(), out);
        return true;
    }

    nb::object as_python(const double* value) const {
        if constexpr (requires { quitter_.n_classes; }) {
            nb::list all;
            for (int64_t k = 0; k < n_scores(); ++k) all.append(value[k]);
            return all;
        } else {
            return nb::float_(*value);
        }
    }

    Quitter quitter_;
    OutputKind kind_;
    double scale_;
    nb::object finish_, fallback_;
    PlainRow row_;
    bool finite_only_;
};

template <class Quitter>
void bind(nb::module_& m, const char* name) {
    using Self = OneValueOf<Quitter>;
    nb::class_<Self>(m, name, nb::type_slots(collected<Self>),
                     "Evaluates one row at a time in full.")
        .def(nb::init<const Quitter&, int, double, nb::object, nb::object, nb::object, bool,
                      int64_t>(),
             "quitter"_a, "kind"_a, "scale"_a, "finish"_a.none(), "fallback"_a, "plain_row"_a,
             "finite_only"_a, "max_exact_integer"_a)
        .def("predict", &Self::predict, "row"_a.none(), "The value of one row, (n_features,).");
}

}  // namespace

void bind_one_value(nb::module_& m) {
    bind<AnyQuitter>(m, "OneValue");
    bind<AnyLeadQuitter>(m, "ClassOneValue");
}

}  // namespace qwyc
