// From full scores to what a source library gives for them: values, or probabilities.
#pragma once

#include <cstdint>

namespace qwyc {

// What is done to each score, with the numbers of qwyc.model.output.CODES. Where a kind says
// float32 the source rounds the score to float32 and computes in it.
enum class OutputKind : uint8_t {
    kIdentity = 0,
    kIdentity32 = 1,
    kSigmoid = 2,      // 1 / (1 + exp(-scale * x))
    kSigmoid32 = 3,    // the same (XGBoost)
    kExponential = 4,  // exp(x)
    kExponential32 = 5,
    kSignedSquare = 6,           // x * |x| (LightGBM's reg_sqrt)
    kLogOnePlusExponential = 7,  // log(1 + exp(x)) (LightGBM's cross_entropy_lambda)
    kSign32 = 8,                 // 1 where x > 0, otherwise 0
    kWideExponential32 = 9,      // exp(x) in float64, rounded to float32
    kTableExponential = 10,      // exp(x) by a table and a polynomial (CatBoost)
    kHalving = 11,               // 2^(-x / scale), by exp2 (Treelite's isolation forests)
    kHalving32 = 12,             // the same in float32, by pow (YDF's isolation forests)
};

inline constexpr int kOutputKinds = 13;

// out[i] = the output for score[i], for n scores.
void apply_output(OutputKind kind, double scale, const double* score, int64_t n, double* out);

}  // namespace qwyc
