// From full scores to the probabilities or values of the source library, as
// src/qwyc/model/probabilities.py and src/qwyc/model/output.py compute them.
#pragma once

#include <cstdint>
#include <string>

#include "core/outputs.hpp"
#include "core/ties.hpp"
#include "files/model.hpp"

namespace qwyc::capi {

class Output {
  public:
    // How probabilities of classes are made; how values are. Each is the reason where this library
    // cannot compute it to the last bit.
    static Output of_probabilities(const files::ModelParts& model);
    static Output of_values(const files::ModelParts& model);

    const std::string& refused() const { return refused_; }  // empty where it is known

    // Numbers for each row of K scores.
    int64_t width(int64_t K) const { return K == 1 && two_columns() ? 2 : K; }

    // scores: (n, K); out: (n, width(K)).
    void apply(const double* scores, int64_t n, int64_t K, double* out) const;

    // Whether they are float32.
    bool single() const { return single_; }

  private:
    enum class How : uint8_t {
        kEach,  // each score by itself, by `kind_`
        kTies,
        kBothShares,
        kShare,
        kQuotient,
        kSignedSquare32,
        kPlainLogistic,
        kSingleSoftmax,
        kMirrored,
        kSoftmaxByTable,
        kMeanAndVariance,
    };
    Output(const files::ModelParts& model, const files::OutputFacts& facts);
    explicit Output(std::string refused) : refused_(std::move(refused)) {}

    bool two_columns() const { return how_ == How::kBothShares || how_ == How::kMirrored; }

    How how_ = How::kEach;
    OutputKind kind_ = OutputKind::kIdentity;
    double scale_ = 1.0;
    bool single_ = false;
    Ties ties_;
    std::string refused_;
};

}  // namespace qwyc::capi
