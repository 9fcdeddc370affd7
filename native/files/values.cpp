#include "files/values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace qwyc::files {

namespace {

FileError expected(const char* what, const Json& value) {
    return FileError("expected " + std::string(what) + ", got " + shortened(value));
}

}  // namespace

std::string shortened(const Json& value) {
    constexpr size_t kMost = 60;
    if (value.raw.size() <= kMost) return std::string(value.raw);
    return std::string(value.raw.substr(0, kMost - 3)) + "...";
}

const Json& at(const Json& object, std::string_view key) {
    if (object.kind != Json::Kind::kObject) throw expected("an object", object);
    const Json* found = object.find(key);
    if (!found) throw FileError("'" + std::string(key) + "' is missing");
    return *found;
}

double number(const Json& value, bool finite) {
    if (!value.is_number()) throw expected("a number", value);
    constexpr double inf = std::numeric_limits<double>::infinity();
    double result = 0;
    if (value.raw == "NaN") {
        result = std::numeric_limits<double>::quiet_NaN();
    } else if (value.raw == "Infinity" || value.raw == "-Infinity") {
        result = value.raw[0] == '-' ? -inf : inf;
    } else {
        const char* const end = value.raw.data() + value.raw.size();
        const auto [stop, error] = std::from_chars(value.raw.data(), end, result);
        if (error != std::errc() || stop != end) throw expected("a number in range", value);
    }
    if (finite && !std::isfinite(result)) throw expected("a finite number", value);
    return result;
}

int64_t count(const Json& value) {
    int64_t result = -1;
    if (value.kind != Json::Kind::kInteger) throw expected("a count", value);
    const char* const end = value.raw.data() + value.raw.size();
    const auto [stop, error] = std::from_chars(value.raw.data(), end, result);
    if (error != std::errc() || stop != end || result < 0 || result >= int64_t{1} << 62)
        throw expected("a count", value);
    return result;
}

void whole(const Json& value) {
    if (value.kind != Json::Kind::kInteger) throw expected("a whole number", value);
}

bool flag(const Json& value) {
    if (!value.is_bool()) throw expected("true or false", value);
    return value.kind == Json::Kind::kTrue;
}

const std::string& text(const Json& value) {
    if (value.kind != Json::Kind::kText) throw expected("text", value);
    return value.text;
}

const std::vector<Json>& list(const Json& value) {
    if (value.kind != Json::Kind::kList) throw expected("a list", value);
    return value.items;
}

std::vector<double> numbers(const Json& value) {
    std::vector<double> all;
    for (const Json& item : list(value)) all.push_back(number(item));
    return all;
}

const std::string& one_of(const Json& value, std::initializer_list<std::string_view> known) {
    const std::string& word = text(value);
    if (std::find(known.begin(), known.end(), word) != known.end()) return word;
    std::string all;
    for (const std::string_view each : known) all += (all.empty() ? "" : ", ") + std::string(each);
    throw FileError("expected one of " + all + "; got " + shortened(value));
}

}  // namespace qwyc::files
