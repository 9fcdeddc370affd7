/* Decides the rows of a CSV file with a classifier that qwyc exported to C.
 *
 *     qwyc export c model.qwyc -o model
 *     cc -std=c99 -O2 decide.c model.c -o decide -lm
 *     ./decide < rows.csv
 *
 * Every line has one number for each feature, in the order of the header; an empty field is
 * missing. It prints the class of each row and the number of base models that were evaluated. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { LONGEST_LINE = 65536 };

/* Reads a row; returns whether the line has one number for each feature. */
static int read_row(char* line, qwyc_real* row) {
    int j;
    for (j = 0; j < QWYC_N_FEATURES; ++j) {
        const char last = j + 1 < QWYC_N_FEATURES ? ',' : '\0';
        char* end = line;
        row[j] = NAN;
        if (*line != last) row[j] = (qwyc_real)strtod(line, &end);
        if (*end != last) return 0;
        line = end + 1;
    }
    return 1;
}

int main(void) {
    static char line[LONGEST_LINE];
    long number = 0;
    while (fgets(line, sizeof line, stdin)) {
        qwyc_real row[QWYC_N_FEATURES];
        int32_t steps;
        int class_index;
        ++number;
        line[strcspn(line, "\r\n")] = '\0';
        if (!read_row(line, row)) {
            fprintf(stderr, "line %ld: expected %d numbers\n", number, QWYC_N_FEATURES);
            return 2;
        }
        class_index = qwyc_decide_one(row, &steps, NULL);
        if (class_index == QWYC_REFUSED)
            printf("refused\n");
        else
            printf("%s,%d\n", qwyc_class_names[class_index], (int)steps);
    }
    return 0;
}
