#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/kernels.hpp"
#include "core/table.hpp"
#include "tests/check.hpp"

namespace {

using namespace qwyc;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const uint8_t* bytes_of(const void* data) {
    return static_cast<const uint8_t*>(data);
}

Column column_of(std::vector<ColumnChunk> chunks, Checks checks = {kNan}) {
    return {std::move(chunks), nullptr, checks};
}

// Rows [begin, end) of a table of one column. Nothing is written past them.
template <class Out = double>
std::vector<Out> read(const Column& column, int64_t begin, int64_t end, bool refused = false) {
    Table table(end, 1);
    table.column(0) = column;
    std::vector<Out> out(end - begin + 1, Out(-99));
    CHECK_EQUAL(table.read(begin, end, out.data(), end - begin), !refused);
    CHECK_EQUAL(out.back(), Out(-99));
    out.pop_back();
    return out;
}

template <class Number>
void check_numbers(Cell cell, std::vector<Number> numbers) {
    const auto n = static_cast<int64_t>(numbers.size());
    std::vector<double> expected(numbers.begin(), numbers.end());
    std::vector<float> narrow;
    for (Number number : numbers) narrow.push_back(static_cast<float>(number));
    const auto size = static_cast<int64_t>(sizeof(Number));
    const Column plain = column_of(
        {{.cell = cell, .at = 0, .n = n, .stride = size, .data = bytes_of(numbers.data())}});
    CHECK_ALL_EQUAL(read(plain, 0, n), expected, "plain");
    CHECK_ALL_EQUAL(read<float>(plain, 0, n), narrow, "as float");

    std::vector<uint8_t> shifted(n * size + 1);
    std::memcpy(shifted.data() + 1, numbers.data(), n * size);
    const Column unaligned =
        column_of({{.cell = cell, .at = 0, .n = n, .stride = size, .data = shifted.data() + 1}});
    CHECK_ALL_EQUAL(read(unaligned, 0, n), expected, "unaligned");

    const Column backwards = column_of({{.cell = cell,
                                         .at = 0,
                                         .n = n,
                                         .stride = -size,
                                         .data = bytes_of(numbers.data() + n - 1)}});
    CHECK_ALL_EQUAL(read(backwards, 0, n), std::vector<double>(expected.rbegin(), expected.rend()),
                    "backwards");

    const Column every_other = column_of(
        {{.cell = cell, .at = 0, .n = 2, .stride = 2 * size, .data = bytes_of(numbers.data())}});
    CHECK_ALL_EQUAL(read(every_other, 0, 2), (std::vector<double>{expected[0], expected[2]}),
                    "with gaps");
}

TEST(numbers_of_every_type_and_layout) {
    check_numbers<float>(Cell::kFloat32, {1.5f, -0.0f, 3e38f, 1e-45f});
    check_numbers<double>(Cell::kFloat64, {0.1, -kInf, kNan, 1e300});
    check_numbers<int8_t>(Cell::kInt8, {-128, 127, 0, 1});
    check_numbers<int16_t>(Cell::kInt16, {-32768, 32767, 0, 1});
    check_numbers<int32_t>(Cell::kInt32, {INT32_MIN, INT32_MAX, 0, (1 << 24) + 1});
    // Rounded to double first, the first becomes another float.
    check_numbers<int64_t>(Cell::kInt64, {(1LL << 60) + (1LL << 36) + 1, INT64_MIN, 0, INT64_MAX});
    check_numbers<uint8_t>(Cell::kUInt8, {255, 0, 1, 2});
    check_numbers<uint16_t>(Cell::kUInt16, {65535, 0, 1, 2});
    check_numbers<uint32_t>(Cell::kUInt32, {UINT32_MAX, 0, 1, 2});
    check_numbers<uint64_t>(Cell::kUInt64, {UINT64_MAX, 0, 1, (1ULL << 60) + (1ULL << 36) + 1});
}

TEST(booleans_are_bytes_or_bits) {
    const uint8_t bytes[] = {0, 1, 2, 255}, null[] = {0, 0, 0, 1};
    const Column of_bytes = column_of(
        {{.cell = Cell::kBool, .at = 0, .n = 4, .stride = 1, .data = bytes, .null = null}});
    CHECK_ALL_EQUAL(read(of_bytes, 0, 4), (std::vector<double>{0, 1, 1, kNan}), "bytes");
    const uint8_t bits[] = {0b10110100, 0b00000001}, valid[] = {0b11011111, 0b11111111};
    const Column of_bits = column_of(
        {{.cell = Cell::kBit, .at = 0, .n = 6, .first = 3, .data = bits, .valid = valid}});
    CHECK_ALL_EQUAL(read(of_bits, 0, 6), (std::vector<double>{0, 1, kNan, 0, 1, 1}), "bits");
    CHECK_ALL_EQUAL(read(of_bits, 1, 3), (std::vector<double>{1, kNan}), "some bits");
}

TEST(nulls_by_bits_and_by_bytes) {
    const double numbers[] = {0, 1, 2, 3, 4, 5};
    const uint8_t valid[] = {0b11101011}, null[] = {1, 0, 0, 0, 1};
    ColumnChunk chunk{.cell = Cell::kFloat64,
                      .at = 0,
                      .n = 5,
                      .first = 1,
                      .stride = 8,
                      .data = bytes_of(numbers),
                      .valid = valid};
    CHECK_ALL_EQUAL(read(column_of({chunk}), 0, 5), (std::vector<double>{1, kNan, 3, kNan, 5}),
                    "by bits, which begin where numbers do");
    chunk.valid = nullptr, chunk.null = null;
    CHECK_ALL_EQUAL(read(column_of({chunk}), 0, 5), (std::vector<double>{kNan, 2, 3, 4, kNan}),
                    "by bytes, which begin with the chunk");
    chunk.valid = valid;
    CHECK_ALL_EQUAL(read(column_of({chunk}), 3, 5), (std::vector<double>{kNan, kNan}), "by both");
}

TEST(chunks_of_any_length) {
    std::vector<int32_t> numbers(40);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::vector<ColumnChunk> chunks;
    int64_t at = 0;
    for (int64_t n : {3, 0, 1, 20, 0, 0, 9, 7, 0}) {
        chunks.push_back({.cell = Cell::kInt32,
                          .at = at,
                          .n = n,
                          .first = at % 2,
                          .stride = 4,
                          .data = bytes_of(numbers.data() + at - at % 2)});
        at += n;
    }
    CHECK_EQUAL(at, 40);
    const Column column = column_of(chunks);
    for (int64_t begin = 0; begin <= 40; ++begin)
        for (int64_t end = begin; end <= 40; ++end)
            CHECK_ALL_EQUAL(read(column, begin, end),
                            std::vector<double>(numbers.begin() + begin, numbers.begin() + end),
                            "chunks");
}

TEST(codes_by_position) {
    const auto codes = std::make_shared<std::vector<double>>(std::vector<double>{7, 5, kInf, -1});
    const int8_t positions[] = {1, 0, -1, 3, 127, -128, 2, 1};
    const uint8_t valid[] = {0b11111110};
    const ColumnChunk chunk{.cell = Cell::kInt8,
                            .at = 0,
                            .n = 8,
                            .stride = 1,
                            .data = bytes_of(positions),
                            .valid = valid,
                            .codes = codes};
    CHECK_ALL_EQUAL(read(column_of({chunk}), 0, 6), (std::vector<double>{-1, 7, -1, -1, -1, -1}),
                    "null, and positions that are out of range");
    read(column_of({chunk}), 0, 8, true);  // the category at 2 is refused
    CHECK_ALL_EQUAL(read(column_of({chunk}), 7, 8), (std::vector<double>{5}), "after it");
    const uint64_t large[] = {UINT64_MAX, 1};
    const Column wide = column_of({{.cell = Cell::kUInt64,
                                    .at = 0,
                                    .n = 2,
                                    .stride = 8,
                                    .data = bytes_of(large),
                                    .codes = codes}});
    CHECK_ALL_EQUAL(read(wide, 0, 2), (std::vector<double>{-1, 5}), "past the range of int64");
}

// Lists of some lengths, the last of them with a category that is refused, and positions past the
// end, at first and for all cells but these.
TEST(codes_of_many_positions) {
    for (const int64_t length : {1, 2, 3, 64, 65, 1024, 1025, 5000})
        for (const bool refuses : {false, true}) {
            const auto codes = std::make_shared<std::vector<double>>(length);
            for (int64_t i = 0; i < length; ++i) (*codes)[i] = 3.0 * static_cast<double>(i) - 1;
            if (refuses) (*codes)[length / 2] = kInf;
            std::vector<int32_t> positions(6000);
            for (size_t i = 0; i < positions.size(); ++i)
                positions[i] = static_cast<int32_t>(i * 7 % (length + (i < 3000)) - (i == 9));
            std::vector<double> expected;
            for (int32_t at : positions)
                expected.push_back((*codes)[at < 0 || at >= length ? length - 1 : at]);
            const Column column = column_of({{.cell = Cell::kInt32,
                                              .at = 0,
                                              .n = 6000,
                                              .stride = 4,
                                              .data = bytes_of(positions.data()),
                                              .codes = codes}});
            for (const int64_t begin : {0, 3000}) {
                const std::vector<double> part(expected.begin() + begin, expected.end());
                const bool refused = std::find(part.begin(), part.end(), kInf) != part.end();
                const auto found = read(column, begin, 6000, refused);
                const auto narrow = read<float>(column, begin, 6000, refused);
                if (refused) continue;
                CHECK_ALL_EQUAL(found, part, "codes");
                CHECK_ALL_EQUAL(narrow, std::vector<float>(part.begin(), part.end()), "floats");
            }
            std::vector<int32_t> row;
            for (int32_t i = 0; i < 3000; ++i) row.push_back(i * 11 % 3000);
            std::vector<double> out(3000);
            column.read_some(3000, row.data(), 3000, out.data());
            CHECK_ALL_EQUAL(out, std::vector<double>(expected.begin() + 3000, expected.end()),
                            "picked");
        }
}

const std::string kLong = "more than twelve bytes";

// The texts in all three forms, after one that is not among them.
struct Texts {
    std::string bytes = "before";
    std::vector<int32_t> small{0, 6};
    std::vector<int64_t> large{0, 6};
    std::vector<uint8_t> views = std::vector<uint8_t>(16);
    std::vector<const uint8_t*> blocks;
    std::vector<int64_t> block_bytes;

    explicit Texts(const std::vector<std::string>& texts) {
        std::vector<int32_t> begins;
        for (const std::string& text : texts) {
            begins.push_back(static_cast<int32_t>(bytes.size()));
            bytes += text;
            small.push_back(static_cast<int32_t>(bytes.size()));
            large.push_back(static_cast<int64_t>(bytes.size()));
        }
        bytes.shrink_to_fit();  // nothing may be read past it
        blocks = {nullptr, bytes_of(bytes.data())};
        block_bytes = {0, static_cast<int64_t>(bytes.size())};
        for (size_t i = 0; i < texts.size(); ++i) {
            uint8_t view[16] = {};
            const auto size = static_cast<int32_t>(texts[i].size());
            const int32_t rest[] = {1, begins[i]};  // block and offset
            std::memcpy(view, &size, 4);
            std::memcpy(view + 4, texts[i].data(), std::min<size_t>(texts[i].size(), 12));
            if (size > 12) std::memcpy(view + 8, rest, 8);
            views.insert(views.end(), view, view + 16);
        }
    }
    std::vector<ColumnChunk> chunks(int64_t n) const {
        const ColumnChunk chunk{.cell = Cell::kText32, .at = 0, .n = n, .first = 1};
        std::vector<ColumnChunk> all(3, chunk);
        all[0].data = bytes_of(small.data());
        all[1].cell = Cell::kText64, all[1].data = bytes_of(large.data());
        all[2].cell = Cell::kTextView, all[2].data = views.data();
        for (ColumnChunk& one : all) {
            one.bytes = bytes_of(bytes.data()), one.blocks = blocks.data();
            one.block_bytes = block_bytes.data();
        }
        all.push_back(all[2]);
        all[3].block_bytes = nullptr;  // not known
        return all;
    }
};

void check_texts(std::string_view isa) {
    const std::string nul("a\0b", 3);
    const Texts texts({"red", "red", kLong, "", nul, "a", "twelve bytes", kLong + "!", "red"});
    const std::vector<std::string> known{"red", kLong, "", nul, "twelve bytes"};
    const auto codes =
        std::make_shared<TextCodes>(known, std::vector<double>{0, 1, 2, 3, 4}, -1, 9, isa);
    const auto strict =
        std::make_shared<TextCodes>(known, std::vector<double>{0, 1, 2, 3, 4}, kRefused, kNan, isa);
    const uint8_t valid[] = {0b11111011, 0b11};  // no text at row 1
    for (ColumnChunk chunk : texts.chunks(9)) {
        Column column = column_of({chunk});
        column.texts = codes;
        CHECK_ALL_EQUAL(read(column, 0, 9), (std::vector<double>{0, 0, 1, 2, 3, -1, 4, -1, 0}),
                        "texts");
        CHECK_ALL_EQUAL(read<float>(column, 2, 4), (std::vector<float>{1, 2}), "some texts");
        column.chunks[0].valid = valid;
        CHECK_ALL_EQUAL(read(column, 0, 3), (std::vector<double>{0, 9, 1}), "and a null");
        column.texts = strict;
        CHECK_ALL_EQUAL(read(column, 0, 5), (std::vector<double>{0, kNan, 1, 2, 3}), "known");
        read(column, 0, 6, true);
        read(column, 7, 9, true);
        CHECK_ALL_EQUAL(read(column, 8, 9), (std::vector<double>{0}), "after a refused one");
    }
}

TEST(texts_of_three_kinds) {
    for (std::string_view isa : available_isas()) check_texts(isa);
}

// Views by groups: of the first block only, of others, of several, and of texts that are in them.
// At the same place, another block has another text that is known.
TEST(views_in_several_blocks) {
    const std::vector<std::string> known{kLong, "not " + kLong.substr(4), "red"};
    std::vector<std::string> blocks(12);
    std::vector<uint8_t> views;
    std::vector<double> expected;
    for (int32_t i = 0; i < 640; ++i) {
        const int32_t kind = i % 5 % 3, block = i < 128 ? 0 : i < 256 ? 11 : i * 7 % 12;
        std::string& bytes = blocks[block];
        bytes += "?" + known[kind];
        const auto size = static_cast<int32_t>(known[kind].size());
        int32_t view[4] = {size, 0, block, static_cast<int32_t>(bytes.size()) - size};
        std::memcpy(view + 1, known[kind].data(), size > 12 ? 4 : size);
        const auto* const begin = bytes_of(view);
        views.insert(views.end(), begin, begin + 16);
        expected.push_back(kind);
    }
    std::vector<const uint8_t*> begins;
    std::vector<int64_t> sizes;
    for (std::string& block : blocks) {
        block.shrink_to_fit();
        begins.push_back(bytes_of(block.data()));
        sizes.push_back(static_cast<int64_t>(block.size()));
    }
    Column column = column_of({{.cell = Cell::kTextView,
                                .at = 0,
                                .n = 640,
                                .data = views.data(),
                                .blocks = begins.data(),
                                .block_bytes = sizes.data()}});
    for (std::string_view isa : available_isas()) {
        column.texts =
            std::make_shared<TextCodes>(known, std::vector<double>{0, 1, 2}, -1, kNan, isa);
        CHECK_ALL_EQUAL(read(column, 0, 640), expected, "views");
        CHECK_ALL_EQUAL(read<float>(column, 100, 640),
                        std::vector<float>(expected.begin() + 100, expected.end()), "floats");
    }
}

// Texts of all lengths that are the same in all but one byte, wherever they lie in memory.
TEST(texts_of_all_lengths) {
    std::vector<std::string> known;
    std::vector<double> codes;
    for (int size = 0; size <= 70; ++size) {
        known.emplace_back(size, 'x');
        codes.push_back(size);
    }
    const TextCodes texts(known, codes, -1, kNan);
    for (size_t size = 0; size <= 70; ++size) {
        // Bytes before and after a text do not count; those of exact memory are not there at all.
        const std::string around = std::string(8, 'a') + known[size] + std::string(8, 'b');
        const char* const text = around.data() + 8;
        CHECK_EQUAL(texts.of_behind(text, size), static_cast<double>(size));
        CHECK_EQUAL(texts.of_ahead(text, size), static_cast<double>(size));
        const std::vector<char> exact(known[size].begin(), known[size].end());
        CHECK_EQUAL(texts.of({exact.data(), exact.size()}), static_cast<double>(size));
        for (size_t i = 0; i < size; ++i) {
            std::string other = around;
            other[8 + i] = 'y';
            CHECK_EQUAL(texts.of_behind(other.data() + 8, size), -1.0);
            CHECK_EQUAL(texts.of_ahead(other.data() + 8, size), -1.0);
            CHECK_EQUAL(texts.of({other.data() + 8, size}), -1.0);
        }
    }
}

// More texts than one table of the smallest size has, and texts that are the same but for bytes in
// the middle.
TEST(many_texts) {
    std::vector<std::string> known;
    std::vector<double> codes;
    for (int i = 0; i < 3000; ++i) {
        known.push_back(i % 2 ? std::to_string(i)
                              : std::string(12, 'x') + std::to_string(10000 + i) +
                                    std::string(12, 'x'));
        codes.push_back(i);
    }
    const TextCodes texts(known, codes, kRefused, kNan);
    for (int i = 0; i < 3000; ++i) CHECK_EQUAL(texts.of(known[i]), static_cast<double>(i));
    CHECK_EQUAL(texts.of("3001"), kRefused);
    const TextCodes none({}, {}, 7, kNan);
    CHECK_EQUAL(none.of(""), 7.0);
    CHECK_EQUAL(none.of("red"), 7.0);
}

TEST(values_that_are_refused_or_mean_missing) {
    const double numbers[] = {1, kNan, kInf, -999, 1e300};
    const ColumnChunk chunk{
        .cell = Cell::kFloat64, .at = 0, .n = 5, .stride = 8, .data = bytes_of(numbers)};
    CHECK_ALL_EQUAL(read(column_of({chunk}, {.missing = -999}), 0, 5),
                    (std::vector<double>{1, kNan, kInf, kNan, 1e300}), "missing");
    const Column complete = column_of({chunk}, {.missing = -999, .refuses_nan = true});
    read(complete, 0, 2, true);
    read(complete, 3, 4, true);
    CHECK_EQUAL(read(complete, 2, 3)[0], kInf);
    const Column finite = column_of({chunk}, {.missing = kNan, .refuses_infinity = true});
    read(finite, 2, 3, true);
    CHECK_EQUAL(read(finite, 3, 5)[1], 1e300);
    read<float>(finite, 4, 5, true);  // past float
}

TEST(large_integers_are_refused_where_asked) {
    const int64_t past = (int64_t{1} << 53) + 1;
    const int64_t numbers[] = {past - 1, 1 - past, past, -past, INT64_MIN};
    const uint64_t unsigned_numbers[] = {uint64_t(past) - 1, uint64_t(past), UINT64_MAX};
    const uint8_t null[] = {0, 0, 1, 1, 1};
    const Checks checks{.missing = kNan, .refuses_large_integers = true};
    ColumnChunk chunk{
        .cell = Cell::kInt64, .at = 0, .n = 5, .stride = 8, .data = bytes_of(numbers)};
    CHECK_EQUAL(read(column_of({chunk}, checks), 0, 2)[1], static_cast<double>(1 - past));
    for (int64_t i : {2, 3, 4}) read(column_of({chunk}, checks), i, i + 1, true);
    chunk.null = null;
    CHECK(std::isnan(read(column_of({chunk}, checks), 0, 5)[4]));
    chunk = {
        .cell = Cell::kUInt64, .at = 0, .n = 3, .stride = 8, .data = bytes_of(unsigned_numbers)};
    read(column_of({chunk}, checks), 0, 1);
    for (int64_t i : {1, 2}) read(column_of({chunk}, checks), i, i + 1, true);
}

TEST(columns_that_are_left_out_are_zero) {
    const float numbers[] = {1, 2, 3};
    Table table(3, 3);
    table.column(1) = column_of(
        {{.cell = Cell::kFloat32, .at = 0, .n = 3, .stride = 4, .data = bytes_of(numbers)}});
    std::vector<float> out(12, -99);
    CHECK(table.read(1, 3, out.data(), 4));
    CHECK_ALL_EQUAL(out, (std::vector<float>{0, 0, -99, -99, 2, 3, -99, -99, 0, 0, -99, -99}),
                    "columns lie a stride apart");
}

}  // namespace
