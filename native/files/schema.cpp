#include "files/schema.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "files/values.hpp"

namespace qwyc::files {

namespace {

// Values as Python's json.dumps writes a list of them.
std::string joined(const std::vector<Json>& values) {
    std::string out = "[";
    for (const Json& value : values) {
        if (out.size() > 1) out += ", ";
        out += value.raw;
    }
    return out + "]";
}

// A number as Python writes it once it is a float.
std::string float_text(const Json& value) {
    std::string out(value.raw);
    return value.kind == Json::Kind::kInteger ? out + ".0" : out;
}

int64_t feature_of(const Json& value, int64_t n_features, const char* what) {
    const int64_t feature = count(value);
    require(feature < n_features, what);
    return feature;
}

Unseen unseen_of(const Json& value) {
    const std::string& word = one_of(value, {"missing", "invalid", "first", "error"});
    return word == "missing"   ? Unseen::kMissing
           : word == "invalid" ? Unseen::kInvalid
           : word == "first"   ? Unseen::kFirst
                               : Unseen::kError;
}

// The fields that version 0.1.0 did not have are in the text where they have a value of their own.
std::string digest_text(const Json& facts, const std::string& categories,
                        const std::string& integers, const std::string& must_have,
                        const std::string& own_missing, bool by_name) {
    const auto raw = [&](const char* key) { return std::string(at(facts, key).raw); };
    const Json& missing = at(facts, "missing");
    const std::vector<Json>* names = nullptr;
    if (at(facts, "names").kind != Json::Kind::kNull) names = &list(at(facts, "names"));
    std::string out = "{\"accepts_infinity\": " + raw("accepts_infinity");
    out += ", \"accepts_missing\": " + raw("accepts_missing");
    out += ", \"arrays_hold_values\": " + raw("arrays_hold_values");
    if (by_name) out += ", \"by_name\": true";
    out += ", \"categories\": {" + categories + "}, \"dtype\": " + raw("dtype");
    out += ", \"hashed\": " + raw("hashed");
    if (integers != "direct") out += ", \"integers\": \"" + integers + "\"";
    out += ", \"missing\": " +
           (missing.kind == Json::Kind::kNull ? std::string("NaN") : float_text(missing));
    if (!must_have.empty()) out += ", \"must_have\": [" + must_have + "]";
    out += ", \"n_features\": " + raw("n_features");
    out += ", \"names\": " + (names ? joined(*names) : std::string("null"));
    if (!own_missing.empty()) out += ", \"own_missing\": [" + own_missing + "]";
    return out + ", \"unseen\": " + raw("unseen") + "}";
}

}  // namespace

Label Label::of(const Json& value) {
    switch (value.kind) {
        case Json::Kind::kText:
            return {Kind::kText, value.text};
        case Json::Kind::kTrue:
            return {Kind::kInteger, "True", 1, 1.0};
        case Json::Kind::kFalse:
            return {Kind::kInteger, "False", 0, 0.0};
        case Json::Kind::kReal:
            return {Kind::kReal, std::string(value.raw), 0, number(value, false)};
        case Json::Kind::kInteger: {
            Label label{Kind::kInteger, std::string(value.raw), 0, number(value, false)};
            const char* const end = value.raw.data() + value.raw.size();
            // One that does not fit is compared as a float only.
            if (std::from_chars(value.raw.data(), end, label.whole).ec != std::errc())
                label.kind = Kind::kReal;
            return label;
        }
        case Json::Kind::kNull:
            return {Kind::kNull, ""};
        default:
            throw FileError("expected text or a number, got " + shortened(value));
    }
}

Schema Schema::of(const Json& facts, int format) {
    Schema schema;
    const int64_t n = schema.n_features = count(at(facts, "n_features"));
    const Json& names = at(facts, "names");
    if (names.kind != Json::Kind::kNull) {
        schema.names.emplace();
        for (const Json& name : list(names)) schema.names->push_back(text(name));
        require(static_cast<int64_t>(schema.names->size()) == n,
                "there are more or fewer feature names than features");
    }
    schema.single = one_of(at(facts, "dtype"), {"float32", "float64"}) == "float32";
    std::string categories, must_have, own_missing;
    for (const Json& pair : list(at(facts, "categories"))) {
        require(list(pair).size() == 2, "categories are pairs of a feature and values");
        const char* const unknown = "categories of an unknown feature, or not text or numbers";
        const int64_t feature = feature_of(pair.items[0], n, unknown);
        require(schema.categories.empty() || schema.categories.rbegin()->first < feature,
                "categories are not in the order of features");
        auto& known = schema.categories[feature];
        for (const Json& value : list(pair.items[1])) known.push_back(Label::of(value));
        categories += (categories.empty() ? "\"" : ", \"") + std::to_string(feature) +
                      "\": " + joined(pair.items[1].items);
    }
    flag(at(facts, "arrays_hold_values"));
    schema.unseen = unseen_of(at(facts, "unseen"));
    schema.hashed = flag(at(facts, "hashed"));
    const Json& missing = at(facts, "missing");
    schema.missing = missing.kind == Json::Kind::kNull ? std::numeric_limits<double>::quiet_NaN()
                                                       : number(missing, false);
    schema.accepts_missing = flag(at(facts, "accepts_missing"));
    schema.accepts_infinity = flag(at(facts, "accepts_infinity"));
    std::string integers = "direct";
    if (format > 1 || facts.find("integers")) {
        integers = one_of(at(facts, "integers"),
                          {"direct", "float32", "float32 objects", "checked", "float64"});
        if (integers == "float32 objects") integers = "float32";
    }
    if (const Json* columns = facts.find("must_have"))
        for (const Json& column : list(*columns)) {
            schema.must_have.push_back(
                feature_of(column, n, "a column that must have values is not one of the features"));
            must_have += (must_have.empty() ? "" : ", ") + std::string(column.raw);
        }
    bool by_name = false;
    if (const Json* wanted = facts.find("by_name")) by_name = flag(*wanted);
    require(!by_name || schema.names, "columns without names cannot be found by name");
    if (const Json* pairs = facts.find("own_missing"))
        for (const Json& pair : list(*pairs)) {
            require(list(pair).size() == 2, "own_missing are pairs of a feature and a number");
            const int64_t feature =
                feature_of(pair.items[0], n,
                           "a column with a number for missing values is not one of the features");
            schema.own_missing[feature] = number(pair.items[1]);
            own_missing += (own_missing.empty() ? "[" : ", [") + std::to_string(feature) + ", " +
                           float_text(pair.items[1]) + "]";
        }
    if (const Json* absent = facts.find("absent"))
        one_of(*absent, {"refused", "missing", "zero", "finite zero"});
    schema.facts = digest_text(facts, categories, integers, must_have, own_missing, by_name);
    return schema;
}

std::string Schema::place(int64_t feature) const {
    std::string out = "column " + std::to_string(feature);
    return names ? out + " (" + (*names)[feature] + ")" : out;
}

Labels Labels::of(const Json& facts) {
    Labels labels;
    const auto& values = list(at(facts, "values"));
    require(values.size() != 1, "classes must be two labels or more, text or numbers");
    for (const Json& value : values) {
        labels.values.push_back(Label::of(value));
        require(labels.values.back().kind != Label::Kind::kNull,
                "classes must be two labels or more, text or numbers");
    }
    const std::string& dtype = text(at(facts, "dtype"));  // such as "<U8" or "|b1"
    const size_t kind = dtype.find_first_not_of("<>|=");
    require(kind != std::string::npos && kind <= 1 && dtype.size() <= kind + 5 &&
                std::string_view("biufUO").find(dtype[kind]) != std::string_view::npos &&
                dtype.find_first_not_of("0123456789", kind + 1) == std::string::npos,
            "classes have an unknown dtype");
    labels.facts = "[";
    labels.facts.append(at(facts, "dtype").raw).append(", ").append(joined(values)).append("]");
    return labels;
}

}  // namespace qwyc::files
