#include "capi/outputs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace qwyc::capi {

namespace {

struct Known {
    std::string_view kind;
    bool single;
};
// In the order of OutputKind; qwyc.model.output.CODES has the same.
constexpr Known kEachKind[] = {{"identity", false},
                               {"identity", true},
                               {"logistic", false},
                               {"logistic", true},
                               {"exponential", false},
                               {"exponential", true},
                               {"signed square", false},
                               {"log of 1 + exponential", false},
                               {"sign", true},
                               {"wide exponential", true},
                               {"table exponential", false},
                               {"halving", false},
                               {"halving", true}};
static_assert(std::size(kEachKind) == kOutputKinds);

double each(OutputKind kind, double x) {
    double out;
    apply_output(kind, 1.0, &x, 1, &out);
    return out;
}

void single_softmax(const double* scores, int64_t K, double* out) {
    const auto best = static_cast<float>(*std::max_element(scores, scores + K));
    float sum = 0;
    for (int64_t k = 0; k < K; ++k) {
        const float power = std::exp(static_cast<float>(scores[k]) - best);
        sum = k == 0 ? power : sum + power;
        out[k] = power;
    }
    for (int64_t k = 0; k < K; ++k) out[k] = static_cast<float>(out[k]) / sum;
}

void softmax_by_table(const double* scores, int64_t K, double* out) {
    const double best = *std::max_element(scores, scores + K);
    double sum = 0;
    for (int64_t k = 0; k < K; ++k) {
        out[k] = each(OutputKind::kTableExponential, scores[k] - best);
        sum = k == 0 ? out[k] : sum + out[k];
    }
    for (int64_t k = 0; k < K; ++k) out[k] /= sum;
}

float mirrored(float x) {
    const float high = 1.0f / (1.0f + std::exp(-std::abs(x)));
    return x < 0 ? 1.0f - high : high;
}

}  // namespace

Output::Output(const files::ModelParts& model, const files::OutputFacts& facts)
    : scale_(facts.scale), single_(facts.single), ties_(model.ties) {
    const auto is = [&](std::string_view kind, bool single) {
        return facts.kind == kind && facts.single == single;
    };
    for (size_t i = 0; i < std::size(kEachKind); ++i)
        if (is(kEachKind[i].kind, kEachKind[i].single)) {
            kind_ = static_cast<OutputKind>(i);
            return;
        }
    const bool many = model.K > 1;
    if (facts.kind == "classes" && many)
        how_ = How::kTies;
    else if (is("both shares", true) && !many)
        how_ = How::kBothShares;
    else if (is("share", true))
        how_ = How::kShare;
    else if (is("quotient", true))
        how_ = How::kQuotient;
    else if (is("signed square", true))
        how_ = How::kSignedSquare32;
    else if (is("plain logistic", true))
        how_ = How::kPlainLogistic;
    else if (is("single softmax", true) && many)
        how_ = How::kSingleSoftmax;
    else if (is("mirrored", true))
        how_ = How::kMirrored;
    else if (is("softmax by table", false) && many)
        how_ = How::kSoftmaxByTable;
    else if (is("mean and variance", false) && model.K == 2)
        how_ = How::kMeanAndVariance;
    else
        refused_ = "this library cannot compute outputs of kind '" + facts.kind +
                   "' to the last bit: use the Python package, or qwyc_decide_full for scores";
}

Output Output::of_values(const files::ModelParts& model) {
    return {model, model.output ? *model.output : files::OutputFacts{}};
}

Output Output::of_probabilities(const files::ModelParts& model) {
    if (model.output) return {model, *model.output};
    constexpr std::array<std::string_view, 5> exact = {"", "xgboost", "lightgbm", "catboost",
                                                       "scikit-learn"};
    const auto& [kind, form, single, scale] = model.link;
    const bool known =
        std::find(exact.begin(), exact.end(), model.library) != exact.end() ||
        (kind == "logistic" && (model.library == "ydf" || model.library == "treelite"));
    if (known && model.K == 1) {
        if (kind == "logistic" && form == "plain") return {model, {"logistic", single, scale}};
        if (kind == "identity") return {model, {"identity", single, 1.0}};
        if (kind == "logistic" && form == "softmax")
            return {model, {"numpy softmax of halves", false, scale}};
    }
    return Output(
        "the source of the model gives no probabilities, or it is not known how it rounds them to "
        "the last bit: use qwyc_decide_full for scores");
}

void Output::apply(const double* scores, int64_t n, int64_t K, double* out) const {
    const auto each_32 = [&](auto f) {
        for (int64_t i = 0; i < n * K; ++i) out[i] = f(static_cast<float>(scores[i]));
    };
    switch (how_) {
        case How::kEach:
            return apply_output(kind_, scale_, scores, n * K, out);
        case How::kTies:
            for (int64_t i = 0; i < n; ++i)
                ties_.probabilities(scores + i * K, static_cast<int32_t>(K), out + i * K);
            if (single_)
                for (int64_t i = 0; i < n * K; ++i) out[i] = static_cast<float>(out[i]);
            return;
        case How::kBothShares:
            for (int64_t i = 0; i < n; ++i) {
                out[2 * i] = static_cast<float>(1 - scores[i]);
                out[2 * i + 1] = static_cast<float>(scores[i]);
            }
            return;
        case How::kShare:
            return each_32([](float x) { return std::min(x, 1.0f); });
        case How::kQuotient:
            return each_32([&](float x) { return x / static_cast<float>(scale_); });
        case How::kSignedSquare32:
            return each_32([](float x) { return std::copysign(x * x, x); });
        case How::kPlainLogistic:
            return each_32([](float x) { return 1.0f / (1.0f + std::exp(-x)); });
        case How::kSingleSoftmax:
            for (int64_t i = 0; i < n; ++i) single_softmax(scores + i * K, K, out + i * K);
            return;
        case How::kMirrored:
            if (K > 1) return each_32(mirrored);
            for (int64_t i = 0; i < n; ++i) {
                const auto x = static_cast<float>(scores[i]);
                out[2 * i] = mirrored(-x);
                out[2 * i + 1] = mirrored(x);
            }
            return;
        case How::kSoftmaxByTable:
            for (int64_t i = 0; i < n; ++i) softmax_by_table(scores + i * K, K, out + i * K);
            return;
        case How::kMeanAndVariance:
            for (int64_t i = 0; i < n; ++i) {
                out[2 * i] = scores[2 * i];
                out[2 * i + 1] = each(OutputKind::kTableExponential, 2.0 * scores[2 * i + 1]);
            }
    }
}

}  // namespace qwyc::capi
