#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/table_block.hpp"
#include "tests/check.hpp"

namespace {

using namespace qwyc;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class Number>
ColumnChunk chunk_of(Cell cell, const std::vector<Number>& numbers, int64_t at = 0) {
    return {.cell = cell,
            .at = at,
            .n = static_cast<int64_t>(numbers.size()),
            .stride = sizeof(Number),
            .data = reinterpret_cast<const uint8_t*>(numbers.data())};
}

// Columns: doubles, doubles in two chunks, integers, and none.
struct Example {
    std::vector<double> whole{0, 1, 2, 3, 4, 5}, head{10, 11}, tail{12, 13, 14, 15};
    std::vector<int32_t> integers{20, 21, 22, 23, 24, 25};
    Table table{6, 4};

    Example() {
        for (int64_t j = 0; j < 4; ++j) table.column(j).checks.missing = kNan;
        table.column(0).chunks = {chunk_of(Cell::kFloat64, whole)};
        table.column(1).chunks = {chunk_of(Cell::kFloat64, head),
                                  chunk_of(Cell::kFloat64, tail, 2)};
        table.column(2).chunks = {chunk_of(Cell::kInt32, integers)};
    }
};

TEST(columns_of_the_same_type_are_not_copied) {
    const Example example;
    TableBlock<double> block(example.table, 2, 5);
    CHECK(!block.is_refused());
    CHECK(block.of(0) == example.whole.data() + 2);
    CHECK(block.of(1) == example.tail.data());
    CHECK_ALL_EQUAL(std::vector<int32_t>(block.late().begin(), block.late().end()),
                    (std::vector<int32_t>{2}), "only integers are converted");
    const RowsView<double> rows = block.rows().part(1, 3);
    CHECK(rows.column(0) == example.whole.data() + 3);
    for (int64_t i = 0; i < 3; ++i) CHECK_EQUAL(block.of(3)[i], 0.0);

    TableBlock<double> across(example.table, 0, 6);  // two chunks do not lie in one piece
    CHECK_EQUAL(across.late().size(), size_t{2});
    across.rows().need_all();
    CHECK_ALL_EQUAL(std::vector<double>(across.of(1), across.of(1) + 6),
                    (std::vector<double>{10, 11, 12, 13, 14, 15}), "chunks");
}

TEST(late_columns_are_written_for_rows_that_need_them) {
    const Example example;
    TableBlock<double> block(example.table, 0, 6);
    auto* const column = const_cast<double*>(block.of(2));
    const auto after = [&](int64_t first, std::vector<int32_t> row, std::vector<int32_t> features) {
        std::fill_n(column, 6, -1);
        block.write(features, first, row.data(), static_cast<int64_t>(row.size()));
        return std::vector<double>(column, column + 6);
    };
    CHECK_ALL_EQUAL(after(0, {0, 5}, {0, 2}), (std::vector<double>{20, -1, -1, -1, -1, 25}),
                    "some rows");
    CHECK_ALL_EQUAL(after(1, {4, 0}, {2}), (std::vector<double>{-1, 21, -1, -1, -1, 25}),
                    "in any order, of a part");
    CHECK_ALL_EQUAL(after(0, {1, 2, 4}, {2}), (std::vector<double>{-1, 21, 22, 23, 24, -1}),
                    "rows that nearly follow each other, with those between them");
    CHECK_ALL_EQUAL(after(0, {0, 5}, {0, 1}), std::vector<double>(6, -1), "other columns");
    CHECK_ALL_EQUAL(after(0, {}, {2}), std::vector<double>(6, -1), "no rows");
}

TEST(rows_that_are_picked_from_several_chunks) {
    const Example example;
    std::vector<float> out(6, -1);
    const std::vector<int32_t> row{0, 1, 2, 5, 3, 0};
    example.table.column(1).read_some(0, row.data(), 6, out.data());
    CHECK_ALL_EQUAL(out, (std::vector<float>{10, 11, 12, 13, -1, 15}), "picked");
    const std::vector<int32_t> later{3, 0};
    std::fill_n(out.data(), 6, -1);
    example.table.column(1).read_some(1, later.data(), 2, out.data());
    CHECK_ALL_EQUAL(out, (std::vector<float>{11, -1, -1, 14, -1, -1}), "from a row on");
}

TEST(columns_that_may_be_refused_are_read_at_once) {
    Example example;
    example.table.column(0).checks.refuses_nan = true;
    example.table.column(2).checks.refuses_infinity = true;
    CHECK(TableBlock<double>(example.table, 0, 6).late().size() == 1);
    CHECK(!TableBlock<double>(example.table, 0, 6).is_refused());
    example.whole[4] = kNan;
    CHECK(!TableBlock<double>(example.table, 0, 4).is_refused());
    CHECK(TableBlock<double>(example.table, 3, 6).is_refused());
    CHECK(TableBlock<float>(example.table, 3, 6).is_refused());
}

TEST(a_number_that_means_missing_is_never_read_in_place) {
    Example example;
    example.table.column(0).checks.missing = 3;
    TableBlock<double> block(example.table, 0, 6);
    block.rows().need_all();
    CHECK(std::isnan(block.of(0)[3]) && block.of(0)[2] == 2);
    const int32_t rows[] = {3};
    double out[4] = {};
    example.table.column(0).read_some(0, rows, 1, out);
    CHECK(std::isnan(out[3]));
}

TEST(layouts_of_tables) {
    Example example;
    auto layout = TableLayout::of<double>(example.table, 1);
    CHECK_EQUAL(layout.found, 2);
    CHECK_EQUAL(layout.converted, 1);
    CHECK(layout.keeps_all);
    layout = TableLayout::of<float>(example.table, 1);
    CHECK_EQUAL(layout.found, 0);
    CHECK(!layout.keeps_all);  // doubles are rounded
    const std::vector<int64_t> large{1, 2, 3, 4, 5, 6};
    example.table.column(3).chunks = {chunk_of(Cell::kInt64, large)};
    CHECK(!TableLayout::of<double>(example.table, 1).keeps_all);
}

}  // namespace
