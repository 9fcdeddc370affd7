// The C interface of include/qwyc.h. No exception leaves it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "capi/model.hpp"
#include "capi/one_line.hpp"
#include "core/parallel.hpp"
#include "qwyc.h"

using qwyc::RowsView;
using qwyc::capi::ArgumentError;
using qwyc::capi::Model;
using qwyc::capi::one_line;
using qwyc::files::Container;
using qwyc::files::FileBytes;

struct qwyc_model {
    explicit qwyc_model(const Container& file) : model(file) {}
    const Model model;
};

namespace {

constexpr const char* kNoMemory = "there is not enough memory";

struct LastError {
    std::string text;
    const char* shown = "";
};
LastError& last_error() {
    thread_local LastError mine;
    return mine;
}

qwyc_status fail(qwyc_status status, const char* prefix, const char* what) noexcept {
    LastError& error = last_error();
    try {
        error.text = one_line(std::string(prefix) + what);
        error.shown = error.text.c_str();
    } catch (...) {
        error.shown = kNoMemory;
    }
    return status;
}

qwyc_status fail_to_read(const char* prefix, const std::error_code& code) noexcept {
    try {
        return fail(QWYC_ERROR_READ, prefix,
                    ("the file cannot be read: " + code.message()).c_str());
    } catch (...) {
        return fail(QWYC_ERROR_READ, prefix, "the file cannot be read");
    }
}

// Runs `body` and turns what it throws into a status and a message.
template <class Body>
qwyc_status guarded(const Body& body, const char* prefix = "") noexcept {
    try {
        body();
        return QWYC_OK;
    } catch (const ArgumentError& error) {
        return fail(QWYC_ERROR_ARGUMENT, prefix, error.what());
    } catch (const qwyc::capi::RowsError& error) {
        return fail(QWYC_ERROR_ROWS, prefix, error.what());
    } catch (const qwyc::capi::CategoryError& error) {
        return fail(QWYC_ERROR_CATEGORY, prefix, error.what());
    } catch (const qwyc::files::UnsupportedError& error) {
        return fail(QWYC_ERROR_UNSUPPORTED, prefix, error.what());
    } catch (const qwyc::files::FileError& error) {
        return fail(QWYC_ERROR_FILE, prefix, error.what());
    } catch (const std::system_error& error) {
        return fail_to_read(prefix, error.code());
    } catch (const std::bad_alloc&) {
        return fail(QWYC_ERROR_MEMORY, prefix, kNoMemory);
    } catch (const std::length_error&) {
        return fail(QWYC_ERROR_MEMORY, prefix, kNoMemory);
    } catch (const std::exception& error) {
        return fail(QWYC_ERROR_INTERNAL, prefix, error.what());
    } catch (...) {
        return fail(QWYC_ERROR_INTERNAL, prefix, "an unknown error");
    }
}

void require(bool ok, const char* what) {
    if (!ok) throw ArgumentError(what);
}

const Model& checked(const qwyc_model* model) {
    require(model != nullptr, "model is NULL; load one with qwyc_load");
    return model->model;
}

int thread_count(int32_t threads) {
    require(threads >= 0, "threads must be 1 or more, or 0 for one per processor");
    if (threads > 0) return threads;
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void check_columns(const Model& model, int64_t n_columns) {
    if (n_columns != model.schema().n_features)
        throw ArgumentError("rows have " + std::to_string(n_columns) + " columns; the model has " +
                            std::to_string(model.schema().n_features) + " features");
}

template <class In>
const In* aligned(const void* data, bool needed) {
    require(data != nullptr || !needed, "data is NULL");
    require(reinterpret_cast<uintptr_t>(data) % alignof(In) == 0,
            "data is not aligned for its type; copy it first");
    return static_cast<const In*>(data);
}

template <class In>
RowsView<In> view_of(const qwyc_rows& rows) {
    const bool any = rows.n_rows > 0 && rows.n_columns > 0;
    int64_t row = rows.row_stride, column = rows.column_stride;
    if (row == 0 && column == 0) row = rows.n_columns, column = 1;
    // Strides may be anything where there are not two rows, or two columns, to count from.
    if (rows.n_columns <= 1) column = 1;
    if (rows.n_rows <= 1) row = column == 1 ? std::max<int64_t>(rows.n_columns, 1) : 1;
    return {aligned<In>(rows.data, any), rows.n_rows, rows.n_columns, row, column};
}

// Calls use(model, view, threads) once everything about the rows has been checked.
template <class Use>
void with_rows(const qwyc_model* handle, const qwyc_rows* rows, int32_t threads, const Use& use) {
    const Model& model = checked(handle);
    require(rows != nullptr, "rows is NULL");
    require(rows->n_rows >= 0, "n_rows must not be negative");
    check_columns(model, rows->n_columns);
    const int count = thread_count(threads);
    require(rows->type == QWYC_FLOAT32 || rows->type == QWYC_FLOAT64,
            "type must be QWYC_FLOAT32 or QWYC_FLOAT64");
    if (rows->type == QWYC_FLOAT32) {
        const auto view = view_of<float>(*rows);
        if (rows->n_rows > 0) use(model, view, count);
    } else {
        const auto view = view_of<double>(*rows);
        if (rows->n_rows > 0) use(model, view, count);
    }
}

void need_output(const void* out, const qwyc_rows* rows) {
    require(out != nullptr || (rows && rows->n_rows == 0), "the output array is NULL");
}

template <class Load>
qwyc_status load(const Load& read, qwyc_model** model, const char* prefix) noexcept {
    return guarded(
        [&] {
            const qwyc::PlainFloats plain;  // the header holds numbers
            require(model != nullptr, "model is NULL; pass the address of a pointer");
            *model = nullptr;
            try {
                Container file(read());
                std::unique_ptr<qwyc_model> made;
                try {
                    made = std::make_unique<qwyc_model>(file);
                } catch (...) {
                    file.check_checksum();  // of a damaged file, that it is damaged is the error
                    throw;
                }
                file.check_checksum();
                *model = made.release();
            } catch (const std::invalid_argument& error) {  // of the constructors in core/
                throw qwyc::files::FileError("not a valid qwyc file: " + std::string(error.what()));
            }
        },
        prefix);
}

// Columns that lie apart, copied in blocks to rows of the model's type.
template <class Real>
void decide_columns(const Model& model, const qwyc_column* columns, int64_t n, int threads,
                    const qwyc::capi::Wanted& out) {
    const int64_t width = model.schema().n_features, K = model.n_scores();
    constexpr int64_t kRows = 4096;
    std::vector<Real> copy;  // of each thread, by column
    qwyc::parallel_for(n, kRows, threads, [&, copy](int64_t begin, int64_t end) mutable {
        const int64_t some = end - begin;
        copy.resize(static_cast<size_t>(kRows * width));
        for (int64_t j = 0; j < width; ++j) {
            Real* const to = copy.data() + j * some;
            const auto cast = [](auto x) { return static_cast<Real>(x); };
            if (columns[j].type == QWYC_FLOAT32)
                std::transform(static_cast<const float*>(columns[j].data) + begin,
                               static_cast<const float*>(columns[j].data) + end, to, cast);
            else
                std::transform(static_cast<const double*>(columns[j].data) + begin,
                               static_cast<const double*>(columns[j].data) + end, to, cast);
        }
        model.decide(
            RowsView<Real>{copy.data(), some, width, 1, some},
            {out.label ? out.label + begin : nullptr, out.steps ? out.steps + begin : nullptr,
             out.score ? out.score + begin * K : nullptr},
            1, begin);
    });
}

template <class In>
qwyc_status decide_one(const qwyc_model* model, const In* row, int32_t* label, int32_t* steps,
                       double* score) noexcept {
    return guarded([&] {
        require(row != nullptr, "row is NULL");
        checked(model).decide_one(row, {label, steps, score});
    });
}

template <class Value>
qwyc_status code_of(const qwyc_model* model, int64_t feature, Value value, double* code) noexcept {
    return guarded([&] {
        const qwyc::PlainFloats plain;
        require(code != nullptr, "code is NULL");
        *code = checked(model).code_of(feature, value);
    });
}

}  // namespace

extern "C" {

const char* qwyc_version(void) {
    return QWYC_LIBRARY_VERSION;
}
int32_t qwyc_abi_version(void) {
    return QWYC_ABI_VERSION;
}
int32_t qwyc_oldest_format(void) {
    return qwyc::files::kOldestFormat;
}
int32_t qwyc_newest_format(void) {
    return qwyc::files::kNewestFormat;
}
const char* qwyc_last_error(void) {
    return last_error().shown;
}

qwyc_status qwyc_load(const char* path, qwyc_model** model) {
    if (!path || !*path) {
        if (model) *model = nullptr;
        return fail(QWYC_ERROR_ARGUMENT, "", "path is NULL or empty");
    }
    std::string prefix;
    try {
        prefix = one_line(path, 1000) + ": ";
    } catch (...) {
        if (model) *model = nullptr;
        return fail(QWYC_ERROR_MEMORY, "", kNoMemory);
    }
    return load([&] { return qwyc::files::read_file(path); }, model, prefix.c_str());
}

qwyc_status qwyc_load_memory(const void* bytes, size_t size, qwyc_model** model) {
    return load(
        [&] {
            require(bytes != nullptr || size == 0, "bytes is NULL");
            FileBytes copy(size);
            if (size > 0) std::memcpy(copy.data(), bytes, size);
            return copy;
        },
        model, "");
}

void qwyc_free(qwyc_model* model) {
    delete model;
}

qwyc_kind qwyc_kind_of(const qwyc_model* model) {
    return model ? static_cast<qwyc_kind>(model->model.kind()) : 0;
}
int64_t qwyc_n_features(const qwyc_model* model) {
    return model ? model->model.schema().n_features : 0;
}
int64_t qwyc_n_models(const qwyc_model* model) {
    return model ? model->model.n_models() : 0;
}
int64_t qwyc_n_classes(const qwyc_model* model) {
    return model ? static_cast<int64_t>(model->model.classes().size()) : 0;
}
int64_t qwyc_n_scores(const qwyc_model* model) {
    return model ? model->model.n_scores() : 0;
}

const char* qwyc_feature_name(const qwyc_model* model, int64_t feature) {
    if (!model || feature < 0 || feature >= model->model.schema().n_features) return nullptr;
    const auto& names = model->model.schema().names;
    return names ? (*names)[static_cast<size_t>(feature)].c_str() : nullptr;
}
const char* qwyc_class_name(const qwyc_model* model, int64_t label) {
    if (!model || label < 0 || label >= qwyc_n_classes(model)) return nullptr;
    return model->model.classes()[static_cast<size_t>(label)].text.c_str();
}
const char* qwyc_certificate(const qwyc_model* model) {
    if (!model || model->model.certificate().empty()) return nullptr;
    return model->model.certificate().c_str();
}
double qwyc_tolerance(const qwyc_model* model) {
    return model ? model->model.tolerance() : 0.0;
}

qwyc_status qwyc_code_of_text(const qwyc_model* model, int64_t feature, const char* text,
                              double* code) {
    return code_of(model, feature, text, code);
}
qwyc_status qwyc_code_of_integer(const qwyc_model* model, int64_t feature, int64_t value,
                                 double* code) {
    return code_of(model, feature, value, code);
}
qwyc_status qwyc_code_of_number(const qwyc_model* model, int64_t feature, double value,
                                double* code) {
    return code_of(model, feature, value, code);
}

qwyc_status qwyc_decide(const qwyc_model* model, const qwyc_rows* rows, int32_t threads,
                        int32_t* label, int32_t* steps, double* score) {
    return guarded([&] {
        with_rows(model, rows, threads, [&](const Model& with, const auto& view, int count) {
            with.decide(view, {label, steps, score}, count);
        });
    });
}

qwyc_status qwyc_decide_columns(const qwyc_model* model, const qwyc_column* columns,
                                int64_t n_columns, int64_t n_rows, int32_t threads, int32_t* label,
                                int32_t* steps, double* score) {
    return guarded([&] {
        const Model& with = checked(model);
        require(n_rows >= 0, "n_rows must not be negative");
        check_columns(with, n_columns);
        require(columns != nullptr || n_columns == 0, "columns is NULL");
        for (int64_t j = 0; j < n_columns; ++j) {
            require(columns[j].type == QWYC_FLOAT32 || columns[j].type == QWYC_FLOAT64,
                    "the type of a column must be QWYC_FLOAT32 or QWYC_FLOAT64");
            if (columns[j].type == QWYC_FLOAT32)
                aligned<float>(columns[j].data, n_rows > 0);
            else
                aligned<double>(columns[j].data, n_rows > 0);
        }
        const int count = thread_count(threads);
        if (with.schema().single)
            decide_columns<float>(with, columns, n_rows, count, {label, steps, score});
        else
            decide_columns<double>(with, columns, n_rows, count, {label, steps, score});
    });
}

qwyc_status qwyc_decide_one_f32(const qwyc_model* model, const float* row, int32_t* label,
                                int32_t* steps, double* score) {
    return decide_one(model, row, label, steps, score);
}
qwyc_status qwyc_decide_one_f64(const qwyc_model* model, const double* row, int32_t* label,
                                int32_t* steps, double* score) {
    return decide_one(model, row, label, steps, score);
}

qwyc_status qwyc_decide_full(const qwyc_model* model, const qwyc_rows* rows, int32_t threads,
                             int32_t* label, double* score) {
    return guarded([&] {
        with_rows(model, rows, threads, [&](const Model& with, const auto& view, int count) {
            with.decide_full(view, label, score, count);
        });
    });
}

qwyc_status qwyc_probabilities(const qwyc_model* model, const qwyc_rows* rows, int32_t threads,
                               double* probability) {
    return guarded([&] {
        need_output(probability, rows);
        with_rows(model, rows, threads, [&](const Model& with, const auto& view, int count) {
            with.probabilities(view, probability, count);
        });
    });
}

qwyc_status qwyc_values(const qwyc_model* model, const qwyc_rows* rows, int32_t threads,
                        double* value) {
    return guarded([&] {
        need_output(value, rows);
        with_rows(model, rows, threads, [&](const Model& with, const auto& view, int count) {
            with.values(view, value, count);
        });
    });
}

}  // extern "C"
