// Any text against the reader of JSON, and against the checks of single values.
#include <cstdlib>
#include <iostream>
#include <optional>

#include "files/json.hpp"
#include "files/values.hpp"

namespace {

using qwyc::files::Json;

constexpr int kDepth = 64;

void check(bool ok, const char* what) {
    if (ok) return;
    std::cerr << what << "\n";
    std::abort();
}

std::optional<Json> parsed(std::string_view text, bool canonical) {
    try {
        return qwyc::files::parse_json(text, {.depth = kDepth, .canonical = canonical});
    } catch (const qwyc::files::JsonError&) {
        return std::nullopt;
    }
}

// Calls `read`, which may refuse a value with an error of its own and with no other.
template <class Read>
bool taken(const Read& read) {
    try {
        read();
        return true;
    } catch (const qwyc::files::FileError&) {
        return false;
    }
}

void check_value(const Json& value, std::string_view text, int depth) {
    using namespace qwyc::files;
    check(depth <= kDepth, "values are nested more deeply than the limit");
    check(!value.raw.empty() && value.raw.data() >= text.data() &&
              value.raw.data() + value.raw.size() <= text.data() + text.size(),
          "a value lies outside of the text");
    const bool is_object = value.kind == Json::Kind::kObject;
    check(value.keys.size() == (is_object ? value.items.size() : 0), "keys and values differ");
    for (const std::string& key : value.keys)
        check(value.find(key) == &value.items[&key - value.keys.data()], "a key occurs twice");
    // Numbers past the range of double are refused.
    if (taken([&] { number(value); })) check(value.is_number(), "something is taken for a number");
    int64_t whole_number = -1;
    if (taken([&] { whole_number = count(value); }))
        check(whole_number >= 0 && whole_number <= int64_t{1} << 62, "a count is out of range");
    taken([&] { whole(value); });
    taken([&] { (void)numbers(value); });
    check(shortened(value).size() < 400, "a message would repeat a long value");
    for (const Json& item : value.items) check_value(item, value.raw, depth + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto plain = parsed(text, false);
    if (!plain) {  // errors take most of the time, so that not every text is parsed twice
        check(size % 8 != 0 || !parsed(text, true), "canonical JSON is refused as JSON");
        return 0;
    }
    (void)parsed(text, true);
    check_value(*plain, text, 0);
    // A value that is cut out is the same value.
    const auto again = parsed(plain->raw, false);
    check(again && again->kind == plain->kind && again->text == plain->text &&
              again->items.size() == plain->items.size(),
          "a value is another one when it stands alone");
    return 0;
}
