/* Decides the rows of a CSV file with a `.qwyc` file, through libqwyc.
 *
 *     cc -std=c99 decide_file.c $(pkg-config --cflags --libs qwyc) -o decide_file
 *     ./decide_file model.qwyc < rows.csv
 *
 * Every line has a field for each feature, in the order of the model; an empty field is missing.
 * Fields of columns of categories may be text. It prints the class of each row and the number of
 * base models that were evaluated. */
#include <math.h>
#include <qwyc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_LINE = 65536 };

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, qwyc_last_error());
    return 2;
}

/* The number of a field: itself, or the code of a category. */
static int read_field(const qwyc_model* model, int64_t feature, const char* text, double* number) {
    char* end;
    *number = NAN;
    if (*text == '\0') return 1;
    *number = strtod(text, &end);
    if (*end == '\0') return 1;
    return qwyc_code_of_text(model, feature, text, number) == QWYC_OK;
}

static int read_row(const qwyc_model* model, char* line, double* row, int64_t width) {
    int64_t j;
    for (j = 0; j < width; ++j) {
        char* const end = line + strcspn(line, ",");
        const int is_last = *end == '\0';
        if (is_last != (j + 1 == width)) return 0;
        *end = '\0';
        if (!read_field(model, j, line, row + j)) return 0;
        line = end + 1;
    }
    return 1;
}

int main(int argc, char** argv) {
    static char line[LONGEST_LINE];
    qwyc_model* model;
    double* row;
    long number = 0;
    int status = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: decide_file model.qwyc < rows.csv\n");
        return 2;
    }
    if (qwyc_load(argv[1], &model) != QWYC_OK) return failed("cannot load the model");
    row = malloc((size_t)qwyc_n_features(model) * sizeof *row + 1);
    while (row && status == 0 && fgets(line, sizeof line, stdin)) {
        int32_t label, steps;
        ++number;
        line[strcspn(line, "\r\n")] = '\0';
        if (!read_row(model, line, row, qwyc_n_features(model))) {
            fprintf(stderr, "line %ld: expected %ld fields, numbers or known categories\n", number,
                    (long)qwyc_n_features(model));
            status = 2;
        } else if (qwyc_decide_one_f64(model, row, &label, &steps, NULL) != QWYC_OK) {
            status = failed("cannot decide the row");
        } else {
            printf("%s,%d\n", qwyc_class_name(model, label), (int)steps);
        }
    }
    free(row);
    qwyc_free(model);
    return status;
}
