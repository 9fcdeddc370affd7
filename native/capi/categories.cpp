// Codes of categories, as src/qwyc/rows/categories.py finds them.
#include <charconv>
#include <cmath>
#include <limits>

#include "capi/model.hpp"
#include "core/city_hash.hpp"
#include "core/combinations.hpp"

namespace qwyc::capi {

namespace {

using files::Label;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

bool any_of_kind(const std::vector<Label>& known, bool text) {
    for (const Label& label : known)
        if (label.kind != Label::Kind::kNull && (label.kind == Label::Kind::kText) == text)
            return true;
    return false;
}

// Whether a double is this integer, without rounding it.
bool is_equal(double real, int64_t whole) {
    return real >= -0x1p63 && real < 0x1p63 && std::trunc(real) == real &&
           static_cast<int64_t>(real) == whole;
}

bool is_equal(const Label& label, int64_t value) {
    if (label.kind == Label::Kind::kInteger) return label.whole == value;
    return label.kind == Label::Kind::kReal && is_equal(label.real, value);
}

bool is_equal(const Label& label, double value) {
    if (label.kind == Label::Kind::kInteger) return is_equal(value, label.whole);
    return label.kind == Label::Kind::kReal && label.real == value;
}

// The last of equal ones, as in a Python dict.
template <class Value>
double code_in(const std::vector<Label>& known, Value value, double otherwise) {
    for (size_t code = known.size(); code-- > 0;)
        if (is_equal(known[code], value)) return static_cast<double>(code);
    return otherwise;
}

}  // namespace

const std::vector<Label>& Model::categories(int64_t feature) const {
    const auto found = model_.schema.categories.find(feature);
    if (found == model_.schema.categories.end())
        throw ArgumentError("feature " + std::to_string(feature) +
                            " is not a column of categories: rows hold its numbers as they are");
    return found->second;
}

// Categories that are known by the hashes of their texts, as CatBoost has them. Others have no
// code, or, where combinations of categories may need their hash, one that holds it.
double Model::code_of_hashed(int64_t feature, const std::string& text) const {
    const auto& known = model_.schema.categories.at(feature);
    if (known.empty()) return -1.0;  // no tree looks at the column
    const auto hash = static_cast<int64_t>(CityHash::of(text) & 0xffffffff);
    bool keeps_others = false;
    for (const Label& label : known) keeps_others |= label.kind == Label::Kind::kNull;
    return code_in(known, hash, keeps_others ? kFirstHash + static_cast<double>(hash) : -1.0);
}

void Model::refuse_unhashed(int64_t feature, const std::string& shown) const {
    throw CategoryError(model_.schema.place(feature) + " is " + shown +
                        "; CatBoost takes integers and text for categories, and refuses missing "
                        "values: convert them to text, as in training");
}

double Model::unseen(int64_t feature, const std::string& shown, bool is_text) const {
    const auto& known = model_.schema.categories.at(feature);
    if (any_of_kind(known, !is_text) && !any_of_kind(known, is_text))
        throw CategoryError(shown + " in " + model_.schema.place(feature) + " is " +
                            (is_text ? "text; the model was trained on categories that are numbers"
                                     : "a number; the model was trained on categories that are "
                                       "text"));
    switch (model_.schema.unseen) {
        case files::Unseen::kInvalid:
            return -1.0;
        case files::Unseen::kFirst:
            return 0.0;
        case files::Unseen::kMissing:
            return kMissing;
        case files::Unseen::kError:
            break;
    }
    throw CategoryError(shown + " in " + model_.schema.place(feature) +
                        " is not among the categories that the model was trained on, and the "
                        "source library refuses others");
}

double Model::code_of(int64_t feature, const char* text) const {
    const auto& known = categories(feature);
    if (model_.schema.hashed) {
        if (!text && !known.empty()) refuse_unhashed(feature, "missing");
        return code_of_hashed(feature, text ? text : "");
    }
    if (!text) {  // scikit-learn may count None as a value
        for (size_t code = 0; code < known.size(); ++code)
            if (known[code].kind == Label::Kind::kNull) return static_cast<double>(code);
        return kMissing;
    }
    const auto codes = code_of_text_.find(feature);
    if (codes != code_of_text_.end()) {
        const auto found = codes->second.find(text);
        if (found != codes->second.end()) return found->second;
    }
    if (*text == '\0' && model_.schema.unseen == files::Unseen::kFirst) return kMissing;  // YDF
    std::string shown = "'";
    shown += text;
    shown += '\'';
    return unseen(feature, shown, true);
}

double Model::code_of(int64_t feature, int64_t value) const {
    const auto& known = categories(feature);
    if (model_.schema.hashed) return code_of_hashed(feature, std::to_string(value));
    const double code = code_in(known, value, -2.0);
    return code >= 0 ? code : unseen(feature, std::to_string(value), false);
}

double Model::code_of(int64_t feature, double value) const {
    const auto& known = categories(feature);
    if (model_.schema.hashed) {
        if (!known.empty())
            refuse_unhashed(feature, std::isnan(value) ? "missing" : "a real number");
        return -1.0;
    }
    if (std::isnan(value)) return kMissing;
    const double code = code_in(known, value, -2.0);
    if (code >= 0) return code;
    char shown[32];
    const auto end = std::to_chars(shown, shown + sizeof shown, value).ptr;
    return unseen(feature, std::string(shown, end), false);
}

}  // namespace qwyc::capi
