/* Counts what libqwyc allocates: its calls of malloc and its siblings come here, as those of every
 * library in the process. Prints the number of allocations of 200 single rows, of 1,000 rows and of
 * 8,000 rows at once, and of columns, each after a first call. */
#include <qwyc.h>
#include <stdio.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
static long count;

void* malloc(size_t n) {
    return ++count, __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
    return ++count, __libc_calloc(n, size);
}
void* realloc(void* old, size_t n) {
    return ++count, __libc_realloc(old, n);
}
void* memalign(size_t to, size_t n) {
    return ++count, __libc_memalign(to, n);
}
void* aligned_alloc(size_t to, size_t n) {
    return ++count, __libc_memalign(to, n);
}
int posix_memalign(void** out, size_t to, size_t n) {
    ++count;
    *out = __libc_memalign(to, n);
    return *out ? 0 : 12;
}

enum { MOST = 8000, FEWER = 3000, ONES = 200 };
static int32_t label[MOST], steps[MOST];

static long batch(const qwyc_model* model, const double* data, int64_t n, double* score) {
    const qwyc_rows rows = {data, QWYC_FLOAT64, n, qwyc_n_features(model), 0, 0};
    if (qwyc_decide(model, &rows, 1, label, steps, score) != QWYC_OK) return -1;
    count = 0;
    if (qwyc_decide(model, &rows, 1, label, steps, score) != QWYC_OK) return -1;
    return count;
}

int main(int argc, char** argv) {
    for (int i = 2; i < argc; ++i) {
        qwyc_model* model;
        if (qwyc_load(argv[i], &model) != QWYC_OK) return puts(qwyc_last_error()), 1;
        const int64_t width = qwyc_n_features(model);
        double* data = malloc((size_t)(MOST * width) * sizeof *data);
        double* score = malloc((size_t)(MOST * qwyc_n_scores(model)) * sizeof *score);
        float* single = malloc((size_t)(ONES * width) * sizeof *single);
        FILE* in = fopen(argv[1], "rb"); /* numbers, as many as the widest model needs */
        if (!data || !score || !single || !in) return 2;
        if (fread(data, sizeof *data, (size_t)(MOST * width), in) != (size_t)(MOST * width))
            return 3;
        fclose(in);
        for (int64_t j = 0; j < ONES * width; ++j) single[j] = (float)data[j];
        long one = 0;
        for (int pass = 0; pass < 2; ++pass) {
            count = 0;
            for (int64_t k = 0; k < ONES; ++k) {
                qwyc_status status =
                    qwyc_decide_one_f64(model, data + k * width, label, steps, score);
                if (status == QWYC_OK)
                    status = qwyc_decide_one_f32(model, single + k * width, label, NULL, NULL);
                if (status != QWYC_OK) return puts(qwyc_last_error()), 4;
            }
            one = count;
        }
        const long more = batch(model, data, MOST, score), fewer = batch(model, data, FEWER, score);
        printf("%ld %ld %ld\n", one, fewer, more);
        free(data), free(score), free(single), qwyc_free(model);
    }
    return 0;
}
