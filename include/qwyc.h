/* libqwyc: reads `.qwyc` files and decides rows with them. C99 and C++.
 *
 *     qwyc_model *model;
 *     if (qwyc_load("fraud.qwyc", &model) != QWYC_OK) puts(qwyc_last_error());
 *     qwyc_rows rows = {data, QWYC_FLOAT32, n, qwyc_n_features(model), 0, 0};
 *     qwyc_decide(model, &rows, 1, labels, NULL, NULL);
 *     qwyc_free(model);
 *
 * A model does not change once it is loaded: any number of threads may use it at the same time.
 * Only qwyc_free must not run while another thread uses it. docs/library.md says more. */
#ifndef QWYC_H
#define QWYC_H

#include <stddef.h>
#include <stdint.h>

#if defined(QWYC_BUILDING_LIBRARY) && defined(_WIN32)
#define QWYC_API __declspec(dllexport)
#elif defined(QWYC_BUILDING_LIBRARY) && defined(__GNUC__)
#define QWYC_API __attribute__((visibility("default")))
#else
#define QWYC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A program that was compiled with this number runs with every library that returns it from
 * qwyc_abi_version. */
#define QWYC_ABI_VERSION 1

typedef int32_t qwyc_status;
enum {
    QWYC_OK = 0,
    QWYC_ERROR_ARGUMENT = 1,    /* an argument is wrong */
    QWYC_ERROR_READ = 2,        /* the file cannot be read */
    QWYC_ERROR_FILE = 3,        /* it is not a `.qwyc` file, or it is damaged */
    QWYC_ERROR_UNSUPPORTED = 4, /* the library cannot do this with the model */
    QWYC_ERROR_ROWS = 5,        /* the model refuses a value in a row */
    QWYC_ERROR_CATEGORY = 6,    /* the model refuses a category */
    QWYC_ERROR_MEMORY = 7,      /* there is not enough memory */
    QWYC_ERROR_INTERNAL = 8     /* a defect of the library */
};

typedef int32_t qwyc_type;
enum { QWYC_FLOAT32 = 1, QWYC_FLOAT64 = 2 };

typedef int32_t qwyc_kind;
enum {
    QWYC_CLASSIFIER = 1,   /* decides among classes and quits early */
    QWYC_PREDICTOR = 2,    /* a model without a policy: all base models are evaluated */
    QWYC_APPROXIMATION = 3 /* gives an output within a tolerance, and quits early */
};

typedef struct qwyc_model qwyc_model;

/* Rows as they lie in memory. Strides count numbers, not bytes: number j of row i is
 * data[i * row_stride + j * column_stride]. Both strides 0 means that rows follow each other in C
 * order. Columns of categories hold codes (qwyc_code_of_text); NaN is a missing value. */
typedef struct qwyc_rows {
    const void* data;
    qwyc_type type;
    int64_t n_rows;
    int64_t n_columns; /* must be the number of features */
    int64_t row_stride;
    int64_t column_stride;
} qwyc_rows;

/* A column of its own, of as many numbers as there are rows. */
typedef struct qwyc_column {
    const void* data;
    qwyc_type type;
} qwyc_column;

/* ---- versions and errors ---- */

QWYC_API const char* qwyc_version(void); /* of the library, such as "0.2.0" */
QWYC_API int32_t qwyc_abi_version(void);
QWYC_API int32_t qwyc_oldest_format(void); /* of files that it reads */
QWYC_API int32_t qwyc_newest_format(void);

/* What went wrong in the last call of this thread that failed, in one line of UTF-8; "" before
 * that. The text is valid until the next call that fails on this thread. */
QWYC_API const char* qwyc_last_error(void);

/* ---- loading ---- */

/* Reads a file and checks all of it that decides rows. *model is set to NULL where that fails. */
QWYC_API qwyc_status qwyc_load(const char* path, qwyc_model** model);
QWYC_API qwyc_status qwyc_load_memory(const void* bytes, size_t size, qwyc_model** model);
QWYC_API void qwyc_free(qwyc_model* model); /* NULL is allowed */

/* ---- what a model is ---- */

QWYC_API qwyc_kind qwyc_kind_of(const qwyc_model* model);
QWYC_API int64_t qwyc_n_features(const qwyc_model* model);
QWYC_API int64_t qwyc_n_models(const qwyc_model* model);  /* base models */
QWYC_API int64_t qwyc_n_classes(const qwyc_model* model); /* 0: a model of values */
QWYC_API int64_t qwyc_n_scores(const qwyc_model* model);  /* 1, or one for each class or value */

/* Texts are UTF-8 and valid as long as the model. NULL: there is none. */
QWYC_API const char* qwyc_feature_name(const qwyc_model* model, int64_t feature);
QWYC_API const char* qwyc_class_name(const qwyc_model* model, int64_t label);
/* The certificate as JSON, as docs/format.md describes it. */
QWYC_API const char* qwyc_certificate(const qwyc_model* model);
/* By how much an output may be off; 0 of a model that is no approximation. */
QWYC_API double qwyc_tolerance(const qwyc_model* model);

/* ---- categories ---- */

/* The code that rows hold for a category of a column. Equal to what the Python package gives: a
 * missing value (NULL, NaN) is NaN, an unknown category is what the source library makes of it, or
 * QWYC_ERROR_CATEGORY where it refuses it. */
QWYC_API qwyc_status qwyc_code_of_text(const qwyc_model* model, int64_t feature, const char* text,
                                       double* code);
QWYC_API qwyc_status qwyc_code_of_integer(const qwyc_model* model, int64_t feature, int64_t value,
                                          double* code);
QWYC_API qwyc_status qwyc_code_of_number(const qwyc_model* model, int64_t feature, double value,
                                         double* code);

/* ---- decisions ----
 *
 * label: (n_rows,) the index of each row's class; -1 of a model of values.
 * steps: (n_rows,) base models that were evaluated; qwyc_n_models: all of them.
 * score: (n_rows, n_scores) full scores where all were evaluated, otherwise running sums. Of an
 *     approximation it is the output: the probability of the second class, or the value.
 * Any of them may be NULL. threads: how many work on the rows; 0: one for each processor. What is
 * written is the same for any number. After an error nothing that was written is of use. */

QWYC_API qwyc_status qwyc_decide(const qwyc_model* model, const qwyc_rows* rows, int32_t threads,
                                 int32_t* label, int32_t* steps, double* score);

/* The same for columns that lie apart, n_columns of them, in the order of the features. */
QWYC_API qwyc_status qwyc_decide_columns(const qwyc_model* model, const qwyc_column* columns,
                                         int64_t n_columns, int64_t n_rows, int32_t threads,
                                         int32_t* label, int32_t* steps, double* score);

/* One row of n_features numbers. It allocates no memory once the thread has called it. */
QWYC_API qwyc_status qwyc_decide_one_f32(const qwyc_model* model, const float* row, int32_t* label,
                                         int32_t* steps, double* score);
QWYC_API qwyc_status qwyc_decide_one_f64(const qwyc_model* model, const double* row, int32_t* label,
                                         int32_t* steps, double* score);

/* ---- full evaluation: no row quits ---- */

/* label and score as above; the source model's own scores. */
QWYC_API qwyc_status qwyc_decide_full(const qwyc_model* model, const qwyc_rows* rows,
                                      int32_t threads, int32_t* label, double* score);
/* (n_rows, n_classes) probabilities, bit for bit the source model's own. */
QWYC_API qwyc_status qwyc_probabilities(const qwyc_model* model, const qwyc_rows* rows,
                                        int32_t threads, double* probability);
/* (n_rows, n_scores) what a model of values predicts, bit for bit the source model's own. */
QWYC_API qwyc_status qwyc_values(const qwyc_model* model, const qwyc_rows* rows, int32_t threads,
                                 double* value);

#ifdef __cplusplus
}
#endif

#endif /* QWYC_H */
