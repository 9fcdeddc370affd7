// A small, strict reader of JSON, for the headers of `.qwyc` files. Input may be hostile: depth and
// number of values are limited, and nothing is read past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace qwyc::files {

struct JsonError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Json {
  public:
    enum class Kind : uint8_t { kNull, kTrue, kFalse, kInteger, kReal, kText, kList, kObject };

    Kind kind = Kind::kNull;
    std::string_view raw;           // as it is written; valid as long as the text that was parsed
    std::string text;               // of kText: decoded to UTF-8
    std::vector<std::string> keys;  // of kObject, no two of them equal
    std::vector<Json> items;        // of kList; of kObject: the values, one for each key

    bool is_bool() const { return kind == Kind::kTrue || kind == Kind::kFalse; }
    bool is_number() const { return kind == Kind::kInteger || kind == Kind::kReal; }

    // The value of a key; null where there is none, or this is no object.
    const Json* find(std::string_view key) const;
};

struct JsonLimits {
    int depth = 64;                   // of lists and objects within each other
    size_t values = size_t{1} << 22;  // in all
    bool canonical =
        false;  // no spaces between tokens, keys ascending, ASCII only: what qwyc writes
};

// The one value that a text holds. Like Python's reader it takes NaN, Infinity and -Infinity for
// numbers. Unlike it, it refuses equal keys, text that is not UTF-8 and halves of surrogate pairs.
// JsonError where the text is not sound.
Json parse_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace qwyc::files
