// The reader of JSON: what it takes, what it refuses, and hostile input.
#include <random>
#include <string>

#include "files/json.hpp"
#include "files/values.hpp"
#include "tests/check.hpp"

using namespace qwyc::files;

namespace {

bool is_refused(std::string_view text, const JsonLimits& limits = {}) {
    try {
        parse_json(text, limits);
    } catch (const JsonError&) {
        return true;
    }
    return false;
}

template <class Error, class Run>
bool throws(const Run& run) {
    try {
        run();
    } catch (const Error&) {
        return true;
    }
    return false;
}

constexpr std::string_view kSample =
    R"({"a":[1,-2.5e-3,true,false,null,"x\"\u00e9\ud83d\ude00\n"],"b":{"c":{}},"d":[],"e":NaN})";

}  // namespace

TEST(values_of_every_kind) {
    const Json value = parse_json(kSample);
    CHECK(value.kind == Json::Kind::kObject);
    const Json& list = *value.find("a");
    CHECK_EQUAL(list.items.size(), size_t{6});
    CHECK_EQUAL(number(list.items[0]), 1.0);
    CHECK_EQUAL(number(list.items[1]), -2.5e-3);
    CHECK(flag(list.items[2]) && !flag(list.items[3]));
    CHECK(list.items[4].kind == Json::Kind::kNull);
    CHECK_EQUAL(list.items[5].text, std::string("x\"\xc3\xa9\xf0\x9f\x98\x80\n"));
    CHECK_EQUAL(std::string(value.find("b")->raw), std::string(R"({"c":{}})"));
    CHECK(value.find("x") == nullptr);
    CHECK(number(*value.find("e"), false) != number(*value.find("e"), false));
    CHECK_EQUAL(parse_json(" [ 1 , 2 ]\n").items.size(), size_t{2});
    CHECK_EQUAL(parse_json("\"gr\xc3\xb6\xc3\x9f"
                           "e\"")
                    .text,
                std::string("gr\xc3\xb6\xc3\x9f"
                            "e"));
}

TEST(texts_that_are_not_json) {
    for (const char* text : {"",
                             " ",
                             "{",
                             "}",
                             "[1,]",
                             "[1 2]",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{a:1}",
                             "{\"a\":1,}",
                             "01",
                             "1.",
                             ".5",
                             "-",
                             "+1",
                             "1e",
                             "tru",
                             "nul",
                             "\"",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"\n\"",
                             "1 1",
                             "'a'",
                             "-Infinit",
                             "[1]]",
                             "\"\\ud800\"",
                             "\"\\udc00\"",
                             "\"\\ud800\\u0041\"",
                             "\"\xff\"",
                             "\"\xc0\x80\"",
                             "\"\xed\xa0\x80\"",
                             "\"\xf5\x80\x80\x80\"",
                             "\"\xe2\x82\"",
                             "{\"a\":1,\"a\":2}",
                             "\xef\xbb\xbf{}"})
        if (!is_refused(text)) check::fail(__FILE__, __LINE__, std::string("taken: ") + text);
}

TEST(depth_and_number_are_limited) {
    CHECK(!is_refused(std::string(64, '[') + std::string(64, ']')));
    CHECK(is_refused(std::string(65, '[') + std::string(65, ']')));
    CHECK(is_refused(std::string(1'000'000, '[')));
    CHECK(!is_refused("[0,0,0]", {.values = 4}));
    CHECK(is_refused("[0,0,0,0]", {.values = 4}));
}

TEST(canonical_text_has_one_form) {
    const JsonLimits canonical{.canonical = true};
    CHECK(!is_refused(R"({"a":1,"b":[2,"\u00e9"]})", canonical));
    for (const char* text :
         {"{\"a\": 1}", "{\"b\":1,\"a\":2}", "[1, 2]", "\"\xc3\xa9\"", " 1", "1 "})
        CHECK(is_refused(text, canonical));
}

TEST(numbers_and_counts_are_checked) {
    const auto number_of = [](const char* text) { return number(parse_json(text)); };
    const auto count_of = [](const char* text) { return count(parse_json(text)); };
    CHECK_EQUAL(number_of("123456789012345678901234567890"), 123456789012345678901234567890.0);
    CHECK_EQUAL(number_of("5e-324"), 5e-324);
    CHECK_EQUAL(count_of("4611686018427387903"), int64_t{4611686018427387903});
    for (const char* text : {"1e400", "NaN", "-Infinity", "true", "\"1\"", "null"})
        CHECK(throws<FileError>([&] { number_of(text); }));
    for (const char* text : {"-1", "1.0", "4611686018427387904", "99999999999999999999", "false"})
        CHECK(throws<FileError>([&] { count_of(text); }));
}

// Under AddressSanitizer nothing is read past an end.
TEST(changed_and_truncated_texts_never_crash) {
    std::mt19937 random(0);
    int taken = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string text(kSample);
        text.resize(random() % (text.size() + 1));
        for (int change = static_cast<int>(random() % 4); change > 0 && !text.empty(); --change)
            text[random() % text.size()] = "{}[],:\"\\u0e-+.tfnNI \xc3\xff"[random() % 22];
        const std::string copy(text.begin(), text.end());  // exactly as long
        taken += !is_refused(std::string_view(copy.data(), copy.size()));
    }
    CHECK(taken > 0 && taken < 20000);
}
