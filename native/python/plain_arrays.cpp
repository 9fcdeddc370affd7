// NumPy arrays that need no conversion, and tables, for Python: the shortest way to decisions.
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "python/class_engines.hpp"
#include "python/few_rows.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

constexpr int64_t kFewRows = 4;        // up to so many, Python's lock is kept where rows are short
constexpr int64_t kOneThread = kSlab;  // up to so many rows of trees, engines use one thread
constexpr int64_t kFewLattices = 2;    // both, of lattices
constexpr int64_t kMaxThreads = 4096;

template <class Engine>
constexpr bool kIsTrees = requires(const Engine& engine) { engine.start_one(); };
template <class Engine>
constexpr bool kHasClasses = requires(const Engine& engine) { engine.n_classes(); };

// How engines write decisions: of two classes, whether a row is positive; of K, the index of its
// class.
template <class Quitter>
struct Written {
    using Index = uint8_t;
    using Out = DecisionsOut;
};
template <>
struct Written<AnyLeadQuitter> {
    using Index = int32_t;
    using Out = ClassDecisionsOut;
};

// The memory of a Python object while this lives.
class Buffer {
  public:
    Buffer(PyObject* object, int flags) : held_(PyObject_GetBuffer(object, &view_, flags) == 0) {
        if (!held_) PyErr_Clear();
    }
    ~Buffer() {
        if (held_) PyBuffer_Release(&view_);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    explicit operator bool() const { return held_; }
    const Py_buffer* operator->() const { return &view_; }

  private:
    Py_buffer view_;
    bool held_;
};

// Space for numbers that nobody asked for; on the stack for few rows.
template <class T>
class Scratch {
  public:
    explicit Scratch(int64_t n) {
        if (n > kOneThread) long_ = std::make_unique_for_overwrite<T[]>(n);
    }
    T* data() { return long_ ? long_.get() : short_; }

  private:
    T short_[kOneThread];
    std::unique_ptr<T[]> long_;
};

// Labels as a NumPy array of their dtype holds them.
class Labels {
  public:
    Labels(const nb::object& classes, bool are_objects, int32_t count)
        : dtype(classes.attr("dtype")), are_objects_(are_objects) {
        const Buffer memory(classes.ptr(), PyBUF_C_CONTIGUOUS);
        require(memory && memory->ndim == 1 && memory->shape[0] == count,
                "classes must be a label per class that a buffer holds");
        size_ = memory->itemsize;
        const auto* begin = static_cast<const char*>(memory->buf);
        bytes_.assign(begin, begin + count * size_);
        if (are_objects)
            for (int32_t i = 0; i < count; ++i) object_.push_back(nb::object(classes[i]));
    }

    // index: of each row's class. out: memory of an array of the dtype, (n,), that nobody else
    // knows.
    template <class Index>
    void write(const Index* index, int64_t n, void* out) const {
        if (are_objects_) return write_objects(index, n, static_cast<PyObject**>(out));
        if (size_ == 1) return write_as<uint8_t>(index, n, out);
        if (size_ == 4) return write_as<uint32_t>(index, n, out);
        if (size_ == 8) return write_as<uint64_t>(index, n, out);
        auto* to = static_cast<char*>(out);
        for (int64_t i = 0; i < n; ++i, to += size_)
            std::memcpy(to, bytes_.data() + index[i] * size_, size_);
    }

    const nb::object dtype;

  private:
    template <class Word>
    void write_as(const uint8_t* positive, int64_t n, void* out) const {
        Word label[2];
        std::memcpy(label, bytes_.data(), sizeof label);
        auto* to = static_cast<Word*>(out);
        for (int64_t i = 0; i < n; ++i) to[i] = label[positive[i]];
    }
    template <class Word>
    void write_as(const int32_t* index, int64_t n, void* out) const {
        auto* to = static_cast<Word*>(out);
        for (int64_t i = 0; i < n; ++i)
            std::memcpy(to + i, bytes_.data() + index[i] * sizeof(Word), sizeof(Word));
    }
    template <class Index>
    void write_objects(const Index* index, int64_t n, PyObject** out) const {
        for (int64_t i = 0; i < n; ++i) {
            Py_XDECREF(out[i]);  // None
            out[i] = nb::object(object_[index[i]]).release().ptr();
        }
    }

    bool are_objects_;
    Py_ssize_t size_;                 // of a label
    std::vector<char> bytes_;         // of all
    std::vector<nb::object> object_;  // where they are objects
};

// Decides NumPy arrays of float32 or float64, and tables, under one policy. None is the answer to
// rows that need more than a look at their numbers, and to arguments that are not sound: the caller
// goes the long way with them, which converts or refuses them.
template <class Quitter>
class PlainArrays {
    using Index = typename Written<Quitter>::Index;
    using Out = typename Written<Quitter>::Out;
    static constexpr bool kClasses = std::is_same_v<Quitter, AnyLeadQuitter>;

  public:
    PlainArrays(const Quitter& quitter, const nb::object& classes, bool are_objects,
                int32_t n_models, bool finite_only, int64_t most_rows, const nb::object& numpy,
                nb::object decisions, nb::object thread_count)
        : quitter_(quitter),
          labels_(classes, are_objects, n_classes()),
          n_models_(n_models),
          finite_only_(finite_only),
          most_rows_(most_rows),
          array_(numpy.attr("ndarray")),
          empty_(numpy.attr("empty")),
          int32_(numpy.attr("dtype")("int32")),
          float64_(numpy.attr("dtype")("float64")),
          bool_(numpy.attr("dtype")("bool")),
          decisions_(std::move(decisions)),
          thread_count_(std::move(thread_count)),
          no_arguments_(nb::steal<nb::tuple>(PyTuple_New(0))) {
        constexpr const char* kNames[] = {"label", "steps", "score", "complete", "reason"};
        for (size_t i = 0; i < names_.size(); ++i)
            names_[i] = nb::steal(PyUnicode_InternFromString(kNames[i]));
    }

    nb::object predict(nb::handle x, nb::handle threads) const {
        return with_rows(x, [&](const auto& rows, int64_t n) -> nb::object {
            Scratch<Index> index(n);
            if constexpr (kClasses) {
                if (!run(rows, {index.data(), nullptr, nullptr}, threads)) return nb::none();
            } else {
                Scratch<int32_t> steps(n);
                Scratch<double> score(n);
                if (!run(rows, {index.data(), steps.data(), score.data()}, threads))
                    return nb::none();
            }
            return label_array(index.data(), n);
        });
    }

    nb::object decide(nb::handle x, nb::handle threads) const {
        return with_rows(x, [&](const auto& rows, int64_t n) -> nb::object {
            Scratch<Index> index(n);
            const nb::object length = nb::steal(PyLong_FromLongLong(n));
            nb::object shape = length;
            if constexpr (kClasses) shape = nb::make_tuple(length, quitter_.n_classes);
            const nb::object steps = new_array(length, int32_), score = new_array(shape, float64_),
                             complete = new_array(length, bool_);
            const Buffer steps_memory = memory(steps), score_memory = memory(score),
                         complete_memory = memory(complete);
            const Out out{index.data(), static_cast<int32_t*>(steps_memory->buf),
                          static_cast<double*>(score_memory->buf)};
            if (!run(rows, out, threads)) return nb::none();
            auto* all = static_cast<uint8_t*>(complete_memory->buf);
            for (int64_t i = 0; i < n; ++i) all[i] = out.steps[i] == n_models_;
            return new_decisions(
                {label_array(index.data(), n), steps, score, complete, nb::none()});
        });
    }

  private:
    // What use(rows, n) gives for the rows of an array or a table, or None.
    template <class Use>
    nb::object with_rows(nb::handle x, const Use& use) const {
        // Subclasses, such as masked arrays, may hold more than numbers.
        if (!x.type().is(array_)) {
            const HeldTable* table = nullptr;
            if (!nb::try_cast(x, table, false) || !table) return nb::none();
            const int64_t n = table->n_rows();
            const bool fits = table->n_features() == quitter_.n_features;
            return fits && n > 0 && n <= most_rows_ ? use(*table, n) : nb::none();
        }
        const Buffer buffer(x.ptr(), PyBUF_FORMAT | PyBUF_STRIDES);
        if (!buffer || buffer->ndim != 2) return nb::none();
        const char* format = buffer->format ? buffer->format : "";
        if (format[0] == 'f' && format[1] == 0) return with_numbers<float>(buffer, use);
        if (format[0] == 'd' && format[1] == 0) return with_numbers<double>(buffer, use);
        return nb::none();
    }
    template <class In, class Use>
    nb::object with_numbers(const Buffer& buffer, const Use& use) const {
        constexpr auto kSize = static_cast<Py_ssize_t>(sizeof(In));
        const int64_t n = buffer->shape[0], width = buffer->shape[1];
        if (n == 0 || n > most_rows_ || width != quitter_.n_features) return nb::none();
        const Py_ssize_t column = width > 1 ? buffer->strides[1] : kSize;
        const Py_ssize_t row = n > 1 ? buffer->strides[0] : column == kSize ? width * kSize : kSize;
        const bool is_aligned = reinterpret_cast<uintptr_t>(buffer->buf) % alignof(In) == 0 &&
                                row % kSize == 0 && column % kSize == 0;
        const bool has_unit = column == kSize || row == kSize;
        if (!is_aligned || !has_unit || row <= 0 || column <= 0) return nb::none();
        return use(RowsView<In>{static_cast<const In*>(buffer->buf), n, width, row / kSize,
                                column / kSize},
                   n);
    }

    // False where the long way has to be gone.
    template <class In>
    bool run(const RowsView<In>& rows, const Out& out, nb::handle threads) const {
        return std::visit([&](const auto& held) { return run(held->engine, rows, out, threads); },
                          quitter_.held);
    }
    bool run(const HeldTable& table, const Out& out, nb::handle threads) const {
        const int cores = std::visit(
            [&](const auto& held) { return cores_for(held->engine, table.n_rows(), threads); },
            quitter_.held);
        if (cores <= 0) return false;
        nb::gil_scoped_release release;
        return quitter_.decide(table, out, cores);
    }
    template <class Engine, class In>
    bool run(const Engine& engine, const RowsView<In>& rows, const Out& out,
             nb::handle threads) const {
        const int cores = cores_for(engine, rows.n, threads);
        if (cores <= 0) return false;
        if constexpr (std::is_same_v<Quitter, AnyQuitter>)
            if (rows.n <= few_rows(engine)) {
                if (!run_few(engine, rows, out)) return false;
                if (quitter_.watcher) quitter_.watcher->see(rows, out, cores);
                return true;
            }
        nb::gil_scoped_release release;
        if (finite_only_ && !is_finite<typename Engine::Value>(rows, cores)) return false;
        quitter_.decide(rows, out, cores);
        return true;
    }

    // So many are decided one after the other. In full, several rows of trees may take less time
    // together.
    template <class Engine>
    static int64_t few_rows(const Engine& engine) {
        if constexpr (kIsTrees<Engine>)
            return engine.never_quits() ? 1 : kFewRows;
        else
            return kFewLattices;
    }

    template <class Engine, class In>
    bool run_few(const Engine& engine, const RowsView<In>& rows, const DecisionsOut& out) const {
        const PlainFloats plain;
        if (finite_only_ && !all_finite<typename Engine::Value>(rows)) return false;
        LateRelease release;
        for (int64_t i = 0; i < rows.n; ++i) {
            const DecisionsOut here{out.positive + i, out.steps + i, out.score + i};
            if (rows.column_stride == 1) {
                decide_one(engine, rows.data + i * rows.row_stride, here, release);
                continue;
            }
            RowCopy<In> copy(rows.width);
            copy_rows(rows.part(i, i + 1), copy.data());
            decide_one(engine, static_cast<const In*>(copy.data()), here, release);
        }
        return true;
    }

    template <class Value, class In>
    static bool is_finite(const RowsView<In>& rows, int cores) {
        std::atomic<bool> finite = true;
        parallel_for(rows.n, 4096, cores, [&](int64_t begin, int64_t end) {
            if (finite && !all_finite<Value>(rows.part(begin, end))) finite = false;
        });
        return finite;
    }

    // Threads to run on; 0 where they are not a sound number.
    template <class Engine>
    int cores_for(const Engine&, int64_t n, nb::handle threads) const {
        if (threads.is_none()) {
            constexpr bool kTrees = kIsTrees<Engine> || kHasClasses<Engine>;
            if (n <= (kTrees ? kOneThread : kFewLattices)) return 1;
            return nb::cast<int>(thread_count_(threads));
        }
        if (!PyLong_CheckExact(threads.ptr())) return 0;
        int overflow = 0;
        const long long given = PyLong_AsLongLongAndOverflow(threads.ptr(), &overflow);
        return !overflow && given >= 1 && given <= kMaxThreads ? static_cast<int>(given) : 0;
    }

    int32_t n_classes() const {
        if constexpr (kClasses)
            return quitter_.n_classes;
        else
            return 2;
    }
    nb::object label_array(const Index* index, int64_t n) const {
        nb::object labels = new_array(nb::steal(PyLong_FromLongLong(n)), labels_.dtype);
        const Buffer out = memory(labels);
        labels_.write(index, n, out->buf);
        return labels;
    }
    nb::object new_array(const nb::object& n, const nb::object& dtype) const {
        PyObject* arguments[] = {n.ptr(), dtype.ptr()};
        nb::object array = nb::steal(PyObject_Vectorcall(empty_.ptr(), arguments, 2, nullptr));
        if (!array.is_valid()) throw nb::python_error();
        return array;
    }
    // An instance of the frozen dataclass. Its own __init__ does the same, and takes as long as all
    // the rest for one row.
    nb::object new_decisions(const std::array<nb::object, 5>& values) const {
        auto* type = reinterpret_cast<PyTypeObject*>(decisions_.ptr());
        nb::object made = nb::steal(type->tp_new(type, no_arguments_.ptr(), nullptr));
        for (size_t i = 0; made.is_valid() && i < values.size(); ++i)
            if (PyObject_GenericSetAttr(made.ptr(), names_[i].ptr(), values[i].ptr()) != 0)
                made.reset();
        if (!made.is_valid()) throw nb::python_error();
        return made;
    }
    static Buffer memory(const nb::object& array) { return Buffer(array.ptr(), PyBUF_WRITABLE); }

    Quitter quitter_;
    Labels labels_;
    int32_t n_models_;
    bool finite_only_;
    int64_t most_rows_;  // of one call
    nb::object array_, empty_, int32_, float64_, bool_, decisions_, thread_count_;
    nb::tuple no_arguments_;
    std::array<nb::object, 5> names_;  // of the fields of Decisions
};

template <class Quitter>
void bind_plain_arrays(nb::module_& m, const char* name) {
    using Self = PlainArrays<Quitter>;
    nb::class_<Self>(m, name, "Decides NumPy arrays that need no conversion, and tables.")
        .def(nb::init<const Quitter&, nb::object, bool, int32_t, bool, int64_t, nb::object,
                      nb::object, nb::object>(),
             "quitter"_a, "classes"_a, "are_objects"_a, "n_models"_a, "finite_only"_a,
             "most_rows"_a, "numpy"_a, "decisions"_a, "thread_count"_a)
        .def("predict", &Self::predict, "x"_a.none(), "threads"_a.none(),
             "The class of every row, (N,); None where x needs more than a look at its numbers.")
        .def("decide", &Self::decide, "x"_a.none(), "threads"_a.none(),
             "The decisions; None in the same cases.");
}

}  // namespace

void bind_plain_arrays(nb::module_& m) {
    bind_plain_arrays<AnyQuitter>(m, "PlainArrays");
    bind_plain_arrays<AnyFanQuitter>(m, "FanPlainArrays");
    bind_plain_arrays<AnyLeadQuitter>(m, "ClassPlainArrays");
}

}  // namespace qwyc
