// One row at a time for Python.
#include <utility>
#include <variant>
#include <vector>

#include "python/class_engines.hpp"
#include "python/collected.hpp"
#include "python/few_rows.hpp"
#include "python/picked_rows.hpp"
#include "python/plain_row.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

// What was decided of one row.
struct Decided {
    int32_t index = 0;  // of its class
    int32_t steps = 0;
    bool plain = false;  // a row of plain numbers; otherwise the others are not known
};

// Decides one row at a time, with as little overhead as possible. Rows that are not plain numbers,
// or that need more checks than a look at their numbers, are passed to the Python callable
// `fallback`.
template <class Quitter>
class OneRowOf {
  public:
    OneRowOf(const Quitter& quitter, std::vector<nb::object> labels, nb::object fallback,
             nb::object plain_row, bool finite_only, int64_t max_exact_integer)
        : quitter_(quitter),
          label_(std::move(labels)),
          fallback_(std::move(fallback)),
          row_(quitter.n_features, std::move(plain_row), max_exact_integer),
          finite_only_(finite_only) {}

    nb::object predict(nb::handle row) const {
        Decided decided;
        return predict(row, decided);
    }
    nb::object predict(nb::handle row, Decided& decided) const {
        decided.plain =
            row_.with_numbers(row, [&](const auto* numbers) { return decide(numbers, decided); });
        return decided.plain ? label_[decided.index] : fallback_(row);
    }

    // Appends the numbers of a row; false where it is not a row of plain numbers.
    bool append(nb::handle row, std::vector<double>& out) const {
        return row_.with_numbers(row, [&](const auto* numbers) {
            out.insert(out.end(), numbers, numbers + quitter_.n_features);
            return true;
        });
    }

    // The Python objects that it refers to.
    std::vector<nb::object*> held() {
        std::vector<nb::object*> all{&fallback_, row_.held()};
        for (nb::object& label : label_) all.push_back(&label);
        return all;
    }

  private:
    template <class In>
    bool decide(const In* row, Decided& decided) const {
        return std::visit([&](const auto& held) { return decide(held->engine, row, decided); },
                          quitter_.held);
    }
    template <class Engine, class In>
    bool decide(const Engine& engine, const In* row, Decided& decided) const {
        const PlainFloats plain;
        if (finite_only_ && !all_finite<typename Engine::Value>(row, quitter_.n_features))
            return false;
        if constexpr (requires { engine.n_classes(); }) {
            nb::gil_scoped_release release;
            decided.index = engine.decide_one(row, &decided.steps, nullptr);
        } else {
            LateRelease release;
            uint8_t positive = 0;
            double score = 0;
            decide_one(engine, row, {&positive, &decided.steps, &score}, release);
            decided.index = positive;
        }
        return true;
    }

    Quitter quitter_;
    std::vector<nb::object> label_;  // by the index of the class
    nb::object fallback_;
    PlainRow row_;
    bool finite_only_;
};

using OneRow = OneRowOf<AnyQuitter>;
using ClassOneRow = OneRowOf<AnyLeadQuitter>;

// Decides one row at a time and keeps copies of those that are picked.
class SampledOneRow {
  public:
    // `on_other(row)` is called with a picked row that is not plain numbers, and `on_full()` when
    // enough rows wait.
    SampledOneRow(const OneRow& one, nb::object picked, nb::object on_other, nb::object on_full)
        : one_(one),
          picked_(nb::cast<PickedRows*>(picked)),
          owner_(std::move(picked)),
          on_other_(std::move(on_other)),
          on_full_(std::move(on_full)) {}

    nb::object predict(nb::handle row) const {
        Decided decided;
        nb::object label = one_.predict(row, decided);
        if (picked_->pick_one()) keep(row, decided);
        return label;
    }

    std::vector<nb::object*> held() {
        auto all = one_.held();
        all.insert(all.end(), {&owner_, &on_other_, &on_full_});
        return all;
    }

  private:
    void keep(nb::handle row, const Decided& decided) const {
        std::vector<double> copy;
        const auto view_of = [](const std::vector<double>& row) {
            const auto width = static_cast<int64_t>(row.size());
            return RowsView<double>{row.data(), 1, width, width, 1};
        };
        const auto positive = static_cast<uint8_t>(decided.index);
        if (!decided.plain || !one_.append(row, copy))
            on_other_(row);
        else if (picked_->add_picked(view_of(copy), &positive, &decided.steps))
            on_full_();
    }

    OneRow one_;
    PickedRows* picked_;  // kept alive by owner_
    nb::object owner_, on_other_, on_full_;
};

}  // namespace

void bind_one_row(nb::module_& m) {
    nb::class_<OneRow>(m, "OneRow", nb::type_slots(collected<OneRow>), "Decides one row at a time.")
        .def(
            "__init__",
            [](OneRow* self, const AnyQuitter& quitter, nb::object negative, nb::object positive,
               nb::object fallback, nb::object plain_row, bool finite_only,
               int64_t max_exact_integer) {
                new (self)
                    OneRow(quitter, {std::move(negative), std::move(positive)}, std::move(fallback),
                           std::move(plain_row), finite_only, max_exact_integer);
            },
            "quitter"_a, "negative"_a, "positive"_a, "fallback"_a, "plain_row"_a, "finite_only"_a,
            "max_exact_integer"_a)
        .def("predict", nb::overload_cast<nb::handle>(&OneRow::predict, nb::const_), "row"_a.none(),
             "The class of one row, (n_features,).");
    nb::class_<ClassOneRow>(m, "ClassOneRow", nb::type_slots(collected<ClassOneRow>),
                            "Decides one row at a time among K classes.")
        .def(
            "__init__",
            [](ClassOneRow* self, const AnyLeadQuitter& quitter,
               nb::typed<nb::list, nb::any> labels, nb::object fallback, nb::object plain_row,
               bool finite_only, int64_t max_exact_integer) {
                require(static_cast<int32_t>(nb::len(labels)) == quitter.n_classes,
                        "there must be a label per class");
                std::vector<nb::object> all;
                for (nb::handle label : labels) all.push_back(nb::borrow(label));
                new (self) ClassOneRow(quitter, std::move(all), std::move(fallback),
                                       std::move(plain_row), finite_only, max_exact_integer);
            },
            "quitter"_a, "labels"_a, "fallback"_a, "plain_row"_a, "finite_only"_a,
            "max_exact_integer"_a)
        .def("predict", nb::overload_cast<nb::handle>(&ClassOneRow::predict, nb::const_),
             "row"_a.none(), "The class of one row, (n_features,).");
    nb::class_<SampledOneRow>(m, "SampledOneRow", nb::type_slots(collected<SampledOneRow>),
                              "Decides one row at a time and keeps copies of picked rows.")
        .def(nb::init<const OneRow&, nb::object, nb::object, nb::object>(), "one"_a, "picked"_a,
             "on_other"_a, "on_full"_a)
        .def("predict", &SampledOneRow::predict, "row"_a.none(),
             "The class of one row, (n_features,).");
}

}  // namespace qwyc
