#include "core/ties.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace qwyc {

namespace {

constexpr double kNear = 1e-6;  // relative; a softmax tells scores apart that differ by more
// Beyond these a sigmoid may round different scores to the same number, or to 0.
constexpr double kSaturated = 15.0, kVanished = -700.0;
constexpr double kOverflows = 80.0;  // a float32 exponential, or a sum of some, may be infinite

double largest(const double* scores, int32_t n) {
    return *std::max_element(scores, scores + n);
}

void single_softmax(const double* scores, int32_t n, double* out) {
    const auto best = static_cast<float>(largest(scores, n));
    double total = 0;
    for (int32_t k = 0; k < n; ++k)
        total += out[k] = std::exp(static_cast<float>(scores[k]) - best);
    const auto divisor = static_cast<float>(total);
    for (int32_t k = 0; k < n; ++k) out[k] = static_cast<float>(out[k]) / divisor;
}

void softmax(const double* scores, int32_t n, double* out) {
    const double best = largest(scores, n);
    double total = 0;
    for (int32_t k = 0; k < n; ++k) total += out[k] = std::exp(scores[k] - best);
    for (int32_t k = 0; k < n; ++k) out[k] /= total;
}

void exponentials(const double* scores, int32_t n, double* out) {
    float total = 0;
    for (int32_t k = 0; k < n; ++k) {
        const float power = std::exp(static_cast<float>(scores[k]));
        total += power;
        out[k] = power;
    }
    const float scale = 1.0f / total;
    for (int32_t k = 0; k < n; ++k) out[k] = static_cast<float>(out[k]) * scale;
}

void mixed_softmax(const double* scores, int32_t n, double* out) {
    auto best = static_cast<float>(scores[0]);
    for (int32_t k = 1; k < n; ++k)
        if (scores[k] > best) best = static_cast<float>(scores[k]);
    double total = 0;
    for (int32_t k = 0; k < n; ++k)
        total += out[k] = static_cast<float>(std::exp(scores[k] - static_cast<double>(best)));
    const double divisor = static_cast<float>(total);
    for (int32_t k = 0; k < n; ++k) out[k] /= divisor;
}

}  // namespace

void Ties::probabilities(const double* full, int32_t n_classes, double* out) const {
    switch (kind) {
        case Kind::kScores:
            std::copy_n(full, n_classes, out);
            break;
        case Kind::kSoftmax:
            softmax(full, n_classes, out);
            break;
        case Kind::kSingleSoftmax:
            single_softmax(full, n_classes, out);
            break;
        case Kind::kSigmoid:
            for (int32_t k = 0; k < n_classes; ++k)
                out[k] = 1.0 / (1.0 + std::exp(-scale * full[k]));
            break;
        case Kind::kExponentials:
            exponentials(full, n_classes, out);
            break;
        case Kind::kMixedSoftmax:
            mixed_softmax(full, n_classes, out);
    }
}

bool Ties::is_near(const double* full, int32_t n_classes, double best) const {
    if (kind == Kind::kScores) return false;
    if (kind == Kind::kSigmoid && (scale * best > kSaturated || scale * best < kVanished))
        return true;
    if (kind == Kind::kExponentials && !(std::abs(best) <= kOverflows)) return true;
    const double near = best - kNear * std::max(1.0, std::abs(best));
    return std::count_if(full, full + n_classes, [=](double score) { return score >= near; }) > 1;
}

int32_t Ties::decide(const double* full, int32_t n_classes) const {
    const double* const winner = std::max_element(full, full + n_classes);
    if (!is_near(full, n_classes, *winner)) return static_cast<int32_t>(winner - full);
    std::vector<double> probability(n_classes);
    probabilities(full, n_classes, probability.data());
    // The first of equal ones. NaN counts as the largest, as for NumPy, which the libraries use.
    int32_t first = 0;
    for (int32_t k = 0; k < n_classes; ++k) {
        if (std::isnan(probability[k])) return k;
        if (probability[k] > probability[first]) first = k;
    }
    return first;
}

}  // namespace qwyc
