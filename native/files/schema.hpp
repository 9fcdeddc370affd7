// What rows must look like so that a model can take them: qwyc.rows.schema.Schema.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "files/json.hpp"

namespace qwyc::files {

// A category, or the label of a class.
struct Label {
    enum class Kind : uint8_t { kNull, kText, kInteger, kReal };
    Kind kind;
    std::string text;   // as a user reads it; of a number, as Python writes it
    int64_t whole = 0;  // of kInteger
    double real = 0;    // of kInteger and kReal

    static Label of(const Json& value);
};

enum class Unseen : uint8_t { kMissing, kInvalid, kFirst, kError };

struct Schema {
    int64_t n_features = 0;
    std::optional<std::vector<std::string>> names;
    bool single = false;                               // float32, otherwise float64
    std::map<int64_t, std::vector<Label>> categories;  // position = code
    Unseen unseen = Unseen::kMissing;                  // what an unknown category becomes
    bool hashed = false;                               // categories are CatBoost's hashes
    double missing = 0;                                // means missing besides NaN; NaN: nothing
    bool accepts_missing = true, accepts_infinity = true;
    std::vector<int64_t> must_have;  // columns in which NaN is refused
    std::map<int64_t, double> own_missing;
    std::string facts;  // the JSON text that the model's digest is over

    // Files of format 1 may not say how integers are read.
    static Schema of(const Json& facts, int format);

    // "column 3", with its name where it has one.
    std::string place(int64_t feature) const;
};

// The labels of classes, and the JSON text that the model's digest is over.
struct Labels {
    std::vector<Label> values;  // two or more; none of a model of values
    std::string facts;

    static Labels of(const Json& facts);
};

}  // namespace qwyc::files
