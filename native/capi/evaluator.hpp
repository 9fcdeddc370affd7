// Base models of any kind behind one interface: decisions and full scores.
#pragma once

#include <cstdint>
#include <memory>

#include "core/rows_view.hpp"
#include "files/container.hpp"
#include "files/model.hpp"

namespace qwyc::capi {

// One entry per row.
struct Decided {
    int32_t* label;  // index of the class
    int32_t* steps;  // base models evaluated
    // (n, K): full scores where all were evaluated, otherwise running sums. May be null where K
    // > 1.
    double* score;
};

// Safe to use from many threads at once. Rows are in C order or by columns, with gaps: one of their
// strides is 1.
class Evaluator {
  public:
    virtual ~Evaluator() = default;

    virtual void decide(const RowsView<float>& rows, const Decided& out, int threads) const = 0;
    virtual void decide(const RowsView<double>& rows, const Decided& out, int threads) const = 0;

    // One row, (n_features,). Allocates nothing once the thread has called it.
    virtual void decide_one(const float* row, const Decided& out) const = 0;
    virtual void decide_one(const double* row, const Decided& out) const = 0;

    // (n, K), from every base model.
    virtual void score_full(const RowsView<float>& rows, double* full, int threads) const = 0;
    virtual void score_full(const RowsView<double>& rows, double* full, int threads) const = 0;

    // The class that full scores (K,) decide.
    virtual int32_t label_of(const double* full) const = 0;
};

// The base models of a file, laid out for its policy, or for full evaluation where it has none.
// Nothing refers to the file afterwards. std::invalid_argument where arrays are not sound.
std::unique_ptr<const Evaluator> make_evaluator(const files::Container& file,
                                                const files::FileParts& parts);

// Trees of two classes whose leaves hold the shares of both: full scores are both shares, (n, 2).
std::unique_ptr<const Evaluator> make_share_evaluator(const files::Container& file,
                                                      const files::FileParts& parts);

}  // namespace qwyc::capi
