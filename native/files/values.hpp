// Plain values out of a file. Files are hostile, so every value is checked for its type and range
// before it is used, as src/qwyc/files/values.py does.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "files/json.hpp"

namespace qwyc::files {

// The file is damaged or not sound.
struct FileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The file may be sound, but holds something that this library cannot do.
struct UnsupportedError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void require(bool ok, const char* what) {
    if (!ok) throw FileError(what);
}

// The value of a key that must be there.
const Json& at(const Json& object, std::string_view key);

double number(const Json& value, bool finite = true);
int64_t count(const Json& value);  // a whole number from 0 to 2^62
void whole(const Json& value);     // of any size
bool flag(const Json& value);
const std::string& text(const Json& value);
const std::vector<Json>& list(const Json& value);
std::vector<double> numbers(const Json& value);

// One of the words that are known.
const std::string& one_of(const Json& value, std::initializer_list<std::string_view> known);

// A value as a message shows it: not at any length.
std::string shortened(const Json& value);

}  // namespace qwyc::files
