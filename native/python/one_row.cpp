// One row at a time for Python.
#include <utility>
#include <variant>
#include <vector>

#include "python/class_engines.hpp"
#include "python/few_rows.hpp"
#include "python/picked_rows.hpp"

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
          plain_row_(std::move(plain_row)),
          finite_only_(finite_only),
          max_exact_integer_(max_exact_integer) {}

    nb::object predict(nb::handle row) const {
        Decided decided;
        return predict(row, decided);
    }
    nb::object predict(nb::handle row, Decided& decided) const {
        decided.plain =
            with_numbers(row, [&](const auto* numbers) { return decide(numbers, decided); });
        return decided.plain ? label_[decided.index] : fallback_(row);
    }

    // Appends the numbers of a row; false where it is not a row of plain numbers.
    bool append(nb::handle row, std::vector<double>& out) const {
        return with_numbers(row, [&](const auto* numbers) {
            out.insert(out.end(), numbers, numbers + quitter_.n_features);
            return true;
        });
    }

    // The Python objects that it refers to.
    std::vector<nb::object*> held() {
        std::vector<nb::object*> all{&fallback_, &plain_row_};
        for (nb::object& label : label_) all.push_back(&label);
        return all;
    }

  private:
    // Whether `use`, called with the contiguous numbers of a row, took it. False for a row that is
    // not plain numbers.
    template <class Use>
    bool with_numbers(nb::handle row, const Use& use) const {
        // Subclasses, such as masked arrays, may hold more than numbers.
        if (row.type().is(plain_row_)) return with_array(row.ptr(), use);
        if (PyList_CheckExact(row.ptr()) || PyTuple_CheckExact(row.ptr()))
            return with_sequence(row.ptr(), use);
        return false;
    }

    template <class Use>
    bool with_array(PyObject* row, const Use& use) const {
        Py_buffer view;
        if (PyObject_GetBuffer(row, &view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
            PyErr_Clear();
            return false;
        }
        const bool fits = view.ndim == 1 && view.shape[0] == quitter_.n_features &&
                          view.itemsize != 0 && view.strides[0] % view.itemsize == 0 &&
                          reinterpret_cast<uintptr_t>(view.buf) % view.itemsize == 0;
        const char* format = fits && view.format ? view.format : "";
        const char type = format[0] != 0 && format[1] == 0 ? format[0] : 0;
        bool taken = false;
        if (type == 'f') taken = with_strided<float>(view, use);
        if (type == 'd') taken = with_strided<double>(view, use);
        PyBuffer_Release(&view);
        return taken;
    }

    template <class In, class Use>
    static bool with_strided(const Py_buffer& view, const Use& use) {
        const In* values = static_cast<const In*>(view.buf);
        const int64_t step = view.strides[0] / view.itemsize, n = view.shape[0];
        if (step == 1 || n < 2) return use(values);
        RowCopy<In> copy(n);
        for (int64_t j = 0; j < n; ++j) copy[j] = values[j * step];
        return use(static_cast<const In*>(copy.data()));
    }

    // A list or tuple of Python's own floats and integers.
    template <class Use>
    bool with_sequence(PyObject* row, const Use& use) const {
        const int64_t n = quitter_.n_features;
        if (PySequence_Fast_GET_SIZE(row) != n) return false;
        RowCopy<double> copy(n);
        for (int64_t j = 0; j < n; ++j)
            if (!read_item(row, j, copy[j])) return false;
        if (PySequence_Fast_GET_SIZE(row) != n) return false;
        return use(static_cast<const double*>(copy.data()));
    }

    // Entry j of a list or tuple; false where it is not a number, or the list has become shorter.
    // Without the GIL another thread may change a list at any time, so only a reference of our own
    // keeps its entry alive.
    bool read_item(PyObject* row, int64_t j, double& out) const {
#if defined(Py_GIL_DISABLED)  // Python 3.13 and later, which has PyList_GetItemRef
        if (PyList_CheckExact(row)) {
            const nb::object value = nb::steal(PyList_GetItemRef(row, j));
            if (!value.is_valid()) PyErr_Clear();
            return value.is_valid() && read_number(value.ptr(), out);
        }
#endif
        return read_number(PySequence_Fast_GET_ITEM(row, j), out);
    }

    // False where `value` is not a number, or is an integer that may be rounded on the way.
    bool read_number(PyObject* value, double& out) const {
        if (PyFloat_CheckExact(value)) {
            out = PyFloat_AS_DOUBLE(value);
            return true;
        }
        if (!PyLong_CheckExact(value)) return false;
        int overflow = 0;
        const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        out = static_cast<double>(whole);
        return !overflow && whole <= max_exact_integer_ && whole >= -max_exact_integer_;
    }

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
    nb::object fallback_, plain_row_;
    bool finite_only_;
    int64_t max_exact_integer_;  // integers up to here are the same in any type that rows may have
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

// For Python's garbage collector: the callables that these classes hold usually refer to the owner.
template <class Self>
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (const nb::object* held : nb::inst_ptr<Self>(self)->held()) Py_VISIT(held->ptr());
    return 0;
}
template <class Self>
int clear(PyObject* self) {
    for (nb::object* held : nb::inst_ptr<Self>(self)->held()) held->reset();
    return 0;
}
template <class Self>
PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<Self>)},
                           {Py_tp_clear, reinterpret_cast<void*>(clear<Self>)},
                           {0, nullptr}};

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
