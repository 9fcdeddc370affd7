#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "core/sparse_rows.hpp"
#include "tests/check.hpp"

namespace {

using namespace qwyc;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Four rows of five columns: in order, none, in another order, and a column twice.
template <class Column, class Value>
struct Example {
    std::vector<int64_t> begin{0, 2, 2, 4, 7};
    std::vector<Column> column{1, 4, 3, 0, 2, 1, 2};
    std::vector<Value> value{1, 2, 3, 4, 5, 6, 7};

    SparseRows rows(double absent = 0) const {
        return {5, begin, std::span<const Column>(column), std::span<const Value>(value), absent};
    }
};

const std::vector<std::vector<double>> kDense{
    {0, 1, 0, 0, 2}, {0, 0, 0, 0, 0}, {4, 0, 0, 3, 0}, {0, 6, 12, 0, 0}};

template <class In>
void check_tile(const RowsView<In>& tile, const ColumnSlots& slots, int64_t begin) {
    CHECK_EQUAL(tile.width, slots.n_slots());
    for (int64_t i = 0; i < tile.n; ++i)
        for (int64_t s = 0; s < tile.width; ++s)
            CHECK_EQUAL(static_cast<double>(tile.column(s)[i]), kDense[begin + i][slots.used[s]]);
}

template <class Column, class Value>
void check_tiles() {
    const Example<Column, Value> example;
    const SparseRows rows = example.rows();
    rows.check();
    for (const std::vector<int32_t>& used : {std::vector<int32_t>{0, 1, 2, 3, 4},
                                             std::vector<int32_t>{2, 4}, std::vector<int32_t>{}}) {
        const ColumnSlots slots(5, used);
        SparseTile<float> tile(rows, slots, 4);
        // What a block before has written is gone.
        for (const auto& [begin, end] : {std::pair{0, 4}, {1, 3}, {3, 4}, {0, 1}, {2, 2}, {0, 4}})
            check_tile(tile.of(begin, end), slots, begin);
        for (bool single : {false, true})
            for (int threads : {1, 3}) {
                std::mutex lock;
                int64_t seen = 0;
                in_tiles(rows, slots, single, threads, [&](const auto& some, int64_t begin) {
                    const std::lock_guard guard(lock);
                    check_tile(some, slots, begin);
                    seen += some.n;
                });
                CHECK_EQUAL(seen, 4);
            }
    }
}

TEST(tiles_hold_the_columns_in_use) {
    check_tiles<int32_t, float>();
    check_tiles<int32_t, double>();
    check_tiles<int64_t, float>();
    check_tiles<int64_t, double>();
}

TEST(absent_entries_may_be_missing) {
    const Example<int32_t, double> example;
    const ColumnSlots slots(5, std::vector<int32_t>{1, 3});
    const SparseRows rows = example.rows(kNan);
    SparseTile<double> tile(rows, slots, 4);
    for (int round = 0; round < 2; ++round) {
        const RowsView<double> some = tile.of(0, 4);
        CHECK_EQUAL(some.column(0)[0], 1.0);
        CHECK(std::isnan(some.column(0)[1]) && std::isnan(some.column(0)[2]));
        CHECK_EQUAL(some.column(0)[3], 6.0);
        CHECK(std::isnan(some.column(1)[0]));
        CHECK_EQUAL(some.column(1)[2], 3.0);
    }
}

TEST(a_column_that_changes_to_none_after_the_check_is_left_out) {
    Example<int32_t, float> example;
    const SparseRows rows = example.rows();
    rows.check();
    const ColumnSlots slots(5, std::vector<int32_t>{0, 1, 2, 3, 4});
    for (int32_t column : {5, -1, std::numeric_limits<int32_t>::min()}) {
        example.column[1] = example.column[5] = column;
        SparseTile<float> tile(rows, slots, 4);
        CHECK_EQUAL(tile.of(0, 4).column(1)[0], 1.0f);
        CHECK_EQUAL(tile.of(0, 4).column(2)[3], 12.0f);
    }
}

template <class Change>
bool is_refused(const Change& change) {
    Example<int64_t, float> example;
    change(example);
    try {
        example.rows().check();
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

TEST(what_is_not_valid_is_refused) {
    CHECK(!is_refused([](auto&) {}));
    CHECK(is_refused([](auto& e) { e.begin.clear(); }));
    CHECK(is_refused([](auto& e) { e.begin[0] = -1; }));
    CHECK(is_refused([](auto& e) { e.begin[1] = 3; }));
    CHECK(is_refused([](auto& e) { e.begin[4] = 8; }));
    CHECK(is_refused([](auto& e) { e.begin[4] = std::numeric_limits<int64_t>::max(); }));
    CHECK(is_refused([](auto& e) { e.value.pop_back(); }));
    CHECK(is_refused([](auto& e) { e.column.pop_back(); }));
    CHECK(is_refused([](auto& e) { e.column[6] = 5; }));
    CHECK(is_refused([](auto& e) { e.column[0] = -1; }));
    CHECK(is_refused([](auto& e) { e.column[0] = std::numeric_limits<int64_t>::min(); }));
}

TEST(tiles_have_whole_words_and_bounded_size) {
    CHECK_EQUAL(rows_of_tile(10, 3, 4, 1), 256);
    CHECK_EQUAL(rows_of_tile(1'000'000, 1, 4, 1), 16384);
    CHECK_EQUAL(rows_of_tile(1'000'000, 1 << 20, 8, 1), 256);
    CHECK(rows_of_tile(1'000'000, 1000, 4, 1) * 4 * 1000 <= int64_t{1} << 22);
}

}  // namespace
