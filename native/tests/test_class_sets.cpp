// Rows in the order of the classes that are left for them.
#include <algorithm>
#include <random>
#include <vector>

#include "core/class_sets.hpp"
#include "tests/check.hpp"

using namespace qwyc;

namespace {

// Adds rows with some of `n_sets` sets of classes, and takes them out again, at most `most` at a
// time.
void check_rows(int32_t n, int32_t n_sets, int32_t most) {
    std::mt19937_64 random(static_cast<uint64_t>(n + n_sets));
    std::vector<ClassBits> sets, of_row;
    for (int32_t s = 0; s < n_sets; ++s) sets.push_back(random() | 1);
    RowsByClasses rows;
    rows.clear(n);
    for (int32_t i = 0; i < n; ++i) {
        of_row.push_back(sets[random() % sets.size()]);
        rows.add(3 * i, of_row.back());
    }
    CHECK_EQUAL(rows.size(), n);
    const int32_t* const sorted = rows.sort();
    std::vector<int32_t> seen;
    while (static_cast<int32_t>(seen.size()) < n) {
        ClassBits classes = 0;
        const int32_t here = rows.next(most, classes);
        CHECK(here > 0 && here <= most);
        if (here <= 0) return;
        for (int32_t i = 0; i < here; ++i) {
            const int32_t row = sorted[seen.size()];
            CHECK((of_row[row / 3] & ~classes) == 0);  // all of its classes are evaluated
            seen.push_back(row);
        }
    }
    std::sort(seen.begin(), seen.end());
    for (int32_t i = 0; i < n; ++i) CHECK_EQUAL(seen[i], 3 * i);
    ClassBits none = 0;
    CHECK_EQUAL(rows.next(most, none), 0);
}

}  // namespace

TEST(every_row_comes_once_with_all_of_its_classes) {
    for (int32_t n_sets : {1, 2, 7, 100, 1000})  // 1000: more than have numbers of their own
        for (int32_t n : {1, 5, 64, 513, 5000}) check_rows(n, n_sets, 512);
}

TEST(rows_with_the_same_classes_are_together) {
    RowsByClasses rows;
    rows.clear(2000);
    for (int32_t i = 0; i < 2000; ++i) rows.add(i, i % 2 ? 3 : 12);
    rows.sort();
    int32_t mixed = 0;
    for (int32_t taken = 0; taken < 2000;) {
        ClassBits classes = 0;
        taken += rows.next(512, classes);
        mixed += classes == 15;
    }
    CHECK_EQUAL(mixed, 0);
}

TEST(rows_that_begin_together_are_in_their_order) {
    RowsByClasses rows;
    rows.begin_with(700, 127);
    const int32_t* const sorted = rows.sort();
    for (int32_t i = 0; i < 700; ++i) CHECK_EQUAL(sorted[i], i);
    ClassBits classes = 0;
    CHECK_EQUAL(rows.next(512, classes), 512);
    CHECK_EQUAL(rows.next(512, classes), 188);
    CHECK(classes == 127);
}
