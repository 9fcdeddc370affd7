// Codes of categories, as src/qwyc/rows/categories.py finds them.
#include <charconv>
#include <cmath>
#include <limits>

#include "capi/model.hpp"

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
    if (model_.schema.hashed)
        throw files::UnsupportedError(
            "categories of this model are known by their hashes (CatBoost), which this library "
            "does not compute: encode them with the Python package");
    return found->second;
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
    return unseen(feature, "'" + std::string(text) + "'", true);
}

double Model::code_of(int64_t feature, int64_t value) const {
    const double code = code_in(categories(feature), value, -2.0);
    return code >= 0 ? code : unseen(feature, std::to_string(value), false);
}

double Model::code_of(int64_t feature, double value) const {
    const auto& known = categories(feature);
    if (std::isnan(value)) return kMissing;
    const double code = code_in(known, value, -2.0);
    if (code >= 0) return code;
    char shown[32];
    const auto end = std::to_chars(shown, shown + sizeof shown, value).ptr;
    return unseen(feature, std::string(shown, end), false);
}

}  // namespace qwyc::capi
