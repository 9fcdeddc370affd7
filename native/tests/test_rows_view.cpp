#include <array>
#include <atomic>
#include <vector>

#include "core/rows_view.hpp"
#include "tests/check.hpp"

namespace {

using namespace qwyc;

// Views of n rows whose number j of row i is 1000 i + j, each in memory of its own.
struct Laid {
    std::vector<double> memory;
    int64_t first, row_stride, column_stride;
};

std::vector<Laid> layouts(int64_t n, int64_t width) {
    std::vector<Laid> all;
    for (const auto& [first, row, column] :
         {std::array<int64_t, 3>{0, width, 1}, {2, width + 5, 1}, {0, 1, n}, {3, 1, n + 7}}) {
        Laid laid{std::vector<double>(first + n * row + width * column + 1, -1), first, row,
                  column};
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < width; ++j)
                laid.memory[first + i * row + j * column] = static_cast<double>(1000 * i + j);
        all.push_back(std::move(laid));
    }
    return all;
}

RowsView<double> view(const Laid& laid, int64_t n, int64_t width) {
    return {laid.memory.data() + laid.first, n, width, laid.row_stride, laid.column_stride};
}

TEST(copies_are_in_c_order) {
    for (int64_t n : {0, 1, 2, 15, 16, 17, 100})
        for (int64_t width : {1, 2, 7, 33})
            for (const Laid& laid : layouts(n, width)) {
                std::vector<double> copy(n * width + 1, -2);
                copy_rows(view(laid, n, width), copy.data());
                for (int64_t i = 0; i < n; ++i)
                    for (int64_t j = 0; j < width; ++j)
                        CHECK_EQUAL(copy[i * width + j], static_cast<double>(1000 * i + j));
                CHECK_EQUAL(copy.back(), -2);
            }
}

TEST(every_row_is_passed_once_and_on_the_threads_there_are) {
    for (int threads : {1, 2, 5})
        for (int64_t n : {0, 1, 255, 256, 257, 5000})
            for (const Laid& laid : layouts(n, 3)) {
                const RowsView<double> rows = view(laid, n, 3);
                std::vector<std::atomic<int>> visits(n);
                with_contiguous(
                    rows, threads, [&](const double* some, int64_t begin, int64_t count, int own) {
                        CHECK_EQUAL(own, rows.is_contiguous() ? threads : 1);
                        for (int64_t i = 0; i < count; ++i) {
                            ++visits[begin + i];
                            for (int64_t j = 0; j < 3; ++j)
                                CHECK_EQUAL(some[3 * i + j],
                                            static_cast<double>(1000 * (begin + i) + j));
                        }
                    });
                for (const auto& count : visits) CHECK_EQUAL(count.load(), 1);
            }
}

TEST(rows_in_c_order_are_not_copied) {
    const std::vector<float> memory(12);
    const RowsView<float> rows{memory.data(), 4, 3, 3, 1};
    with_contiguous(rows, 2, [&](const float* some, int64_t begin, int64_t n, int) {
        CHECK(some == memory.data());
        CHECK_EQUAL(begin, 0);
        CHECK_EQUAL(n, 4);
    });
    CHECK((RowsView<float>{memory.data(), 1, 3, 99, 1}.is_contiguous()));  // strides of one row
    CHECK((RowsView<float>{memory.data(), 4, 1, 1, 99}.is_contiguous()));  // and of one column
    CHECK((!RowsView<float>{memory.data(), 1, 3, 3, 4}.is_contiguous()));
    CHECK((!RowsView<float>{memory.data(), 2, 3, 4, 1}.is_contiguous()));
}

TEST(copies_are_bounded) {
    for (int64_t width : {1, 30, 1000, 100000}) {
        const int64_t block = rows_to_copy(int64_t{1} << 40, width, 8, 1);
        CHECK(block >= 256 && block <= 16384);
        CHECK(block == 256 || block * width * 8 <= (1 << 20) + 256 * width * 8);
    }
    CHECK_EQUAL(rows_to_copy(1000, 4, 8, 2), 512);  // a share for each thread
}

}  // namespace
