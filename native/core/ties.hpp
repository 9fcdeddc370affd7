// Which class wins where full scores are equal, or so close that probabilities are.
#pragma once

#include <cstdint>

namespace qwyc {

// What the source library compares, with the numbers of qwyc.target.ties.CODES. The first of equal
// ones wins.
struct Ties {
    enum class Kind : uint8_t {
        kScores = 0,
        kSoftmax = 1,
        kSingleSoftmax = 2,  // in float32, but for the sum (XGBoost)
        kSigmoid = 3,
        kExponentials = 4,  // in float32, without taking the largest score off first (YDF)
        kMixedSoftmax = 5,  // float32 exponentials of float64 scores (Treelite)
    };
    Kind kind = Kind::kScores;
    double scale = 1.0;  // of a sigmoid

    // The class that full scores (n_classes,) decide.
    int32_t decide(const double* full, int32_t n_classes) const;

    // The probabilities, (n_classes,), as the source computes them; the scores where it compares
    // those.
    void probabilities(const double* full, int32_t n_classes, double* out) const;

  private:
    // Whether probabilities may be equal where scores are not, or in another order.
    bool is_near(const double* full, int32_t n_classes, double best) const;
};

}  // namespace qwyc
