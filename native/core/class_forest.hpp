// Trees that give each of K classes a score, and how they are evaluated: qwyc.model.class_trees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/forest.hpp"
#include "core/ties.hpp"

namespace qwyc {

// The arrays of an ensemble, as in qwyc.model.class_trees.ClassTreeModels.
struct ClassArrays {
    int32_t n_classes;
    std::span<const int32_t> tree_class;  // (T,) or empty: leaves hold vectors
    std::span<const int64_t> step_begin;  // (R + 1,) trees of each base model
    std::span<const double> leaves;       // (n_leaves,) or (n_leaves, K)
    std::span<const double> start;        // (K,)
    Ties ties;
};

// A leaf adds to `channels` scores: that of its tree's class, or all.
template <class Real>
class ClassForest {
  public:
    // flat.leaf_value is not used. Validates all arrays: std::invalid_argument where they do not
    // fit each other.
    ClassForest(const FlatTrees<Real>& flat, int64_t n_features, const Rules& rules,
                const ClassArrays& classes);

    // The trees. The value of a leaf is its own number.
    const Forest<Real>& trees() const { return trees_; }
    int64_t n_features() const { return trees_.n_features(); }
    int32_t n_classes() const { return n_classes_; }
    int32_t n_steps() const { return static_cast<int32_t>(step_begin_.size()) - 1; }
    const Ties& ties() const { return ties_; }

    bool has_vectors() const { return tree_class_.empty(); }
    int32_t channels() const { return has_vectors() ? n_classes_ : 1; }
    int32_t class_of(int32_t tree) const { return has_vectors() ? 0 : tree_class_[tree]; }
    // Trees of a base model.
    int32_t step_begin(int32_t step) const { return static_cast<int32_t>(step_begin_[step]); }
    int32_t step_end(int32_t step) const { return static_cast<int32_t>(step_begin_[step + 1]); }

    // What a leaf adds: to the source's own sums, and to running sums. (channels,)
    const double* full_of(int32_t leaf) const { return &full_[leaf * int64_t{channels()}]; }
    const float* step_of(int32_t leaf) const { return &step_[leaf * int64_t{channels()}]; }

    // What running sums begin with, (K,).
    const double* base() const { return base_.data(); }

    // Whether the source adds floats.
    bool single() const {
        return rules_.summation == Summation::kFloat32 ||
               rules_.summation == Summation::kFloat32Late;
    }
    // Whether the source's sums are running sums but for rounding, if it adds in the same order.
    bool sums_as_steps() const {
        return rules_.summation == Summation::kFloat32 ||
               (rules_.summation == Summation::kFloat64 && rules_.divisor == 1);
    }
    // What the source's sum of a class begins with, and what it makes of the sum.
    double start(int32_t k) const { return is_late() ? 0.0 : start_[k]; }
    double finish(int32_t k, double sum) const {
        if (rules_.summation == Summation::kFloat32) return sum;
        if (rules_.summation == Summation::kFloat32Late) return static_cast<float>(sum + start_[k]);
        if (rules_.summation == Summation::kFloat64Late) return sum * rules_.scale + start_[k];
        return sum / rules_.divisor;
    }

  private:
    bool is_late() const { return rules_.summation >= Summation::kFloat64Late; }

    Forest<Real> trees_;
    Rules rules_;
    int32_t n_classes_;
    std::vector<int32_t> tree_class_;
    std::vector<int64_t> step_begin_;
    std::vector<double> full_, start_, base_;
    std::vector<float> step_;
    Ties ties_;
};

extern template class ClassForest<float>;
extern template class ClassForest<double>;

}  // namespace qwyc
