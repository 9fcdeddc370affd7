#include "core/class_forest.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace qwyc {

namespace {

void require_that(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Checks what the constructor of the trees does not; returns the numbers of all leaves.
template <class Real>
std::vector<double> checked(const FlatTrees<Real>& flat, const Rules& rules,
                            const ClassArrays& classes) {
    const int32_t K = classes.n_classes;
    require_that(K >= 2, "there must be two classes or more");
    require_that(rules.summation != Summation::kShares, "shares are for two classes");
    require_that(!flat.leaf_begin.empty() && flat.leaf_begin.size() == flat.node_begin.size(),
                 "leaf_begin must have one entry more than there are trees");
    const auto n_trees = static_cast<int64_t>(flat.leaf_begin.size()) - 1;
    const int64_t n_leaves = flat.leaf_begin.back();
    require_that(n_leaves > 0 && n_leaves <= std::numeric_limits<int32_t>::max(),
                 "there must be a leaf, and fewer than 2^31");
    const bool vectors = classes.tree_class.empty();
    require_that(static_cast<int64_t>(classes.leaves.size()) == n_leaves * (vectors ? K : 1),
                 "leaves must have one number, or one per class");
    require_that(static_cast<int32_t>(classes.start.size()) == K,
                 "start must have one entry per class");
    require_that(std::isfinite(rules.divisor) && rules.divisor > 0, "divisor must be positive");
    require_that(rules.summation == Summation::kFloat64 || rules.divisor == 1,
                 "sums in float32, and those with the base added last, are not divided");
    require_that(std::isfinite(rules.scale) && rules.scale > 0 &&
                     (rules.summation == Summation::kFloat64Late || rules.scale == 1),
                 "scale must be positive, and 1 unless the base is added last in float64");
    for (double value : classes.start) require_that(std::isfinite(value), "base must be finite");
    for (double value : classes.leaves)
        require_that(
            std::abs(value / rules.divisor * rules.scale) <= std::numeric_limits<float>::max(),
            "a leaf value is not finite, or too large for float32");
    const auto& begin = classes.step_begin;
    require_that(begin.size() >= 2 && begin.front() == 0 && begin.back() == n_trees,
                 "base models must divide the trees");
    for (size_t r = 0; r + 1 < begin.size(); ++r)
        require_that(begin[r] < begin[r + 1], "a base model must have a tree");
    if (vectors) {
        require_that(static_cast<int64_t>(begin.size()) == n_trees + 1,
                     "a tree whose leaves hold vectors must be a base model of its own");
    } else {
        require_that(static_cast<int64_t>(classes.tree_class.size()) == n_trees,
                     "tree_class must have one entry per tree");
        std::vector<int64_t> last(K, -1);  // base model that had a tree of the class
        for (size_t r = 0; r + 1 < begin.size(); ++r)
            for (int64_t t = begin[r]; t < begin[r + 1]; ++t) {
                const int32_t k = classes.tree_class[t];
                require_that(k >= 0 && k < K, "a tree's class is out of range");
                require_that(last[k] != static_cast<int64_t>(r),
                             "a base model must have one tree of a class at most");
                last[k] = static_cast<int64_t>(r);
            }
    }
    std::vector<double> numbers(n_leaves);
    std::iota(numbers.begin(), numbers.end(), 0.0);
    return numbers;
}

// Trees whose leaves have their own numbers as values.
template <class Real>
Forest<Real> numbered(FlatTrees<Real> flat, int64_t n_features, const Rules& rules,
                      const ClassArrays& classes) {
    const std::vector<double> numbers = checked(flat, rules, classes);
    flat.leaf_value = numbers;
    flat.leaf_other = {};
    return Forest<Real>(flat, n_features,
                        {Summation::kFloat64, rules.less_equal, rules.truncates, 0.0, 1.0});
}

}  // namespace

template <class Real>
ClassForest<Real>::ClassForest(const FlatTrees<Real>& flat, int64_t n_features, const Rules& rules,
                               const ClassArrays& classes)
    : trees_(numbered(flat, n_features, rules, classes)),
      rules_(rules),
      n_classes_(classes.n_classes),
      tree_class_(classes.tree_class.begin(), classes.tree_class.end()),
      step_begin_(classes.step_begin.begin(), classes.step_begin.end()),
      full_(classes.leaves.begin(), classes.leaves.end()),
      start_(classes.start.begin(), classes.start.end()),
      ties_(classes.ties) {
    for (double leaf : full_)
        step_.push_back(static_cast<float>(leaf / rules.divisor * rules.scale));
    for (double start : start_) base_.push_back(start / rules.divisor);
}

template class ClassForest<float>;
template class ClassForest<double>;

}  // namespace qwyc
