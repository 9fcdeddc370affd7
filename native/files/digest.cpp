// The digest of a model, as qwyc.model.ensemble.Ensemble.digest computes it: over facts, written as
// Python's json.dumps writes them, and the tensors of the base models.
#include <bit>
#include <cstdio>

#include "files/model.hpp"
#include "files/sha256.hpp"

namespace qwyc::files {

namespace {

// As Python's float.hex writes a finite number.
std::string hex_text(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    const auto fraction = static_cast<unsigned long long>(bits & ((uint64_t{1} << 52) - 1));
    const char* const sign = bits >> 63 ? "-" : "";
    char out[40];
    if (exponent == 0 && fraction == 0)
        std::snprintf(out, sizeof out, "\"%s0x0.0p+0\"", sign);
    else
        std::snprintf(out, sizeof out, "\"%s0x%d.%013llxp%+d\"", sign, exponent != 0, fraction,
                      exponent != 0 ? exponent - 1023 : -1022);
    return out;
}

const char* word(bool value) {
    return value ? "true" : "false";
}

std::string ties_facts(const Ties& ties) {
    switch (ties.kind) {
        case Ties::Kind::kScores:
            return R"("scores", "float64")";
        case Ties::Kind::kSoftmax:
            return R"("softmax", "float64")";
        case Ties::Kind::kSingleSoftmax:
            return R"("softmax", "float32")";
        case Ties::Kind::kSigmoid:
            return R"("sigmoid", "float64")";
        case Ties::Kind::kExponentials:
            return R"("exponentials", "float32")";
        case Ties::Kind::kMixedSoftmax:
            return R"("softmax", "mixed")";
    }
    return "";
}

}  // namespace

std::string model_digest(const Container& file, const ModelParts& model) {
    const Rules& rules = model.rules;
    std::string how, numbers;
    const auto add = [&](double value) { numbers += hex_text(value) + ", "; };
    if (model.family == Family::kLattices) {
        how = word(model.mean);
        add(rules.base);
    } else {
        how = std::to_string(static_cast<int>(rules.summation)) + ", " + word(rules.less_equal) +
              ", " + word(rules.truncates);
        if (model.family == Family::kTrees) add(rules.base);
        add(rules.divisor);
        if (model.family == Family::kClassTrees) {
            how += ", " + ties_facts(model.ties);
            add(model.ties.scale);
        }
        if (rules.scale != 1) add(rules.scale);
    }
    std::string facts = "{\"classes\": " + model.classes.facts;
    facts += ", \"inputs\": " + model.schema.facts;
    facts += ", \"numbers\": [" + numbers + hex_text(model.threshold) + "]";
    if (model.classes.values.empty() && model.output)
        facts += ", \"output\": " + model.output_facts;
    facts += ", \"rules\": [" + how + "]}";
    Message all;
    all.add(facts);
    const std::string prefix = tensor_name(model, "");
    for (auto at = file.tensors().lower_bound(prefix);
         at != file.tensors().end() && at->first.starts_with(prefix); ++at) {
        all.add(std::string_view(at->first).substr(prefix.size()));
        all.keep(at->second.described());
        all.add(at->second.bytes);
    }
    return file.hash_beside_checksum(all);
}

}  // namespace qwyc::files
