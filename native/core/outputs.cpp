#include "core/outputs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

namespace qwyc {

namespace {

constexpr float kLargestPower = 88.7f;  // exp of more overflows in float32

float sigmoid_32(float x) {
    return 1.0f / (1.0f + std::exp(std::min(-x, kLargestPower)));
}

// CatBoost's exponential: with x = (k / 2^11) ln 2 - t, it is 2^(k / 2^11), from a table and an
// exponent, times a polynomial for exp(-t). The result may differ from exp(x) in its last bit.
class TableExponential {
  public:
    TableExponential() {
        for (int i = 0; i < kSize; ++i)
            fraction_[i] = std::bit_cast<uint64_t>(std::pow(2.0, static_cast<double>(i) / kSize)) &
                           ((uint64_t{1} << 52) - 1);
    }

    double operator()(double x) const {
        x = std::clamp(x, kLeast, kMost);
        const double rounded = x * kScale + kRound;  // k in the last bits
        const auto bits = std::bit_cast<uint64_t>(rounded);
        const double t = (rounded - kRound) * (1 / kScale) - x;
        const uint64_t exponent = ((bits + kBias) >> kBits) << 52;
        const double power = std::bit_cast<double>(exponent | fraction_[bits & (kSize - 1)]);
        return ((3.0000000027955394 - t) * (t * t) * 0.16666666685227835064 - t + 1.0) * power;
    }

  private:
    static constexpr int kBits = 11, kSize = 1 << kBits;
    static constexpr double kScale = kSize / std::numbers::ln2;
    static constexpr double kRound = static_cast<double>(uint64_t{3} << 51);
    static constexpr uint64_t kBias = uint64_t{1023} << kBits;
    static constexpr double kLeast = -708.39641853226408, kMost = 709.78271289338397;
    std::array<uint64_t, kSize> fraction_;
};

template <class F>
void each(const double* score, int64_t n, double* out, F f) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(score[i]);
}

template <class F>
void each_32(const double* score, int64_t n, double* out, F f) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(static_cast<float>(score[i]));
}

}  // namespace

void apply_output(OutputKind kind, double scale, const double* score, int64_t n, double* out) {
    switch (kind) {
        case OutputKind::kIdentity:
            std::copy_n(score, n, out);
            break;
        case OutputKind::kIdentity32:
            each_32(score, n, out, [](float x) { return x; });
            break;
        case OutputKind::kSigmoid:
            each(score, n, out, [=](double x) { return 1.0 / (1.0 + std::exp(-scale * x)); });
            break;
        case OutputKind::kSigmoid32:
            each_32(score, n, out, sigmoid_32);
            break;
        case OutputKind::kExponential:
            each(score, n, out, [](double x) { return std::exp(x); });
            break;
        case OutputKind::kExponential32:
            each_32(score, n, out, [](float x) { return std::exp(x); });
            break;
        case OutputKind::kWideExponential32:
            each_32(score, n, out,
                    [](float x) { return static_cast<float>(std::exp(static_cast<double>(x))); });
            break;
        case OutputKind::kSignedSquare:
            each(score, n, out, [](double x) { return std::copysign(x * x, x); });
            break;
        case OutputKind::kLogOnePlusExponential:
            each(score, n, out, [](double x) { return std::log1p(std::exp(x)); });
            break;
        case OutputKind::kTableExponential: {
            static const TableExponential exponential;
            each(score, n, out, [](double x) { return exponential(x); });
            break;
        }
        case OutputKind::kHalving:
            each(score, n, out, [=](double x) { return std::exp2(-x / scale); });
            break;
        case OutputKind::kHalving32:
            each_32(score, n, out,
                    [=](float x) { return std::pow(2.0f, -x / static_cast<float>(scale)); });
            break;
        case OutputKind::kSign32:
            each_32(score, n, out, [](float x) { return x > 0 ? 1.0f : 0.0f; });
            break;
    }
}

}  // namespace qwyc
