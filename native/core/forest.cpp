#include "core/forest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace qwyc {

namespace {

void require(bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(what);
}

// (T + 1,) offsets that start at 0, never fall and end at `total`.
void require_offsets(std::span<const int64_t> begin, size_t total, const std::string& name) {
    require(!begin.empty() && begin.front() == 0, (name + " does not start at 0").c_str());
    for (size_t i = 1; i < begin.size(); ++i)
        if (begin[i - 1] > begin[i])
            throw std::invalid_argument(name + " falls at " + std::to_string(i));
    require(begin.back() == static_cast<int64_t>(total),
            (name + " does not end at the array's length").c_str());
}

}  // namespace

template <class Real>
void Forest<Real>::check(const FlatTrees<Real>& flat) const {
    const size_t n_nodes = flat.feature.size(), n_leaves = flat.leaf_value.size();
    constexpr size_t limit = size_t{1} << 28;  // kernels count their 32-bit words in 32 bits
    require(n_nodes < limit && n_leaves < limit, "more than 2^28 nodes or leaves");
    require(n_features_ >= 0 && n_features_ < (1 << 27), "more than 2^27 features");
    require(flat.node_begin.size() == flat.leaf_begin.size() && flat.node_begin.size() >= 2,
            "node_begin and leaf_begin must both have one entry more than there are trees");
    for (size_t size :
         {flat.threshold.size(), flat.left.size(), flat.right.size(), flat.flags.size()})
        require(size == n_nodes, "the node arrays differ in length");
    require(flat.category_begin.size() == n_nodes + 1,
            "category_begin must have n_nodes + 1 entries");
    require_offsets(flat.node_begin, n_nodes, "node_begin");
    require_offsets(flat.leaf_begin, n_leaves, "leaf_begin");
    require_offsets(flat.category_begin, flat.category_words.size(), "category_begin");
    require(flat.leaf_other.size() == (rules_.summation == Summation::kShares ? n_leaves : 0),
            "leaf_other must hold one share per leaf for a forest, and be empty otherwise");
    require(std::isfinite(rules_.divisor) && rules_.divisor > 0 && std::isfinite(rules_.base),
            "base and divisor must be finite, divisor positive");
    require(rules_.summation == Summation::kFloat64 || rules_.summation == Summation::kShares ||
                rules_.divisor == 1,
            "sums in float32, and those with the base added last, are not divided");
    require(std::isfinite(rules_.scale) && rules_.scale > 0 &&
                (rules_.summation == Summation::kFloat64Late || rules_.scale == 1),
            "scale must be positive, and 1 unless the base is added last in float64");
    bool fit = true;  // and no branch: many at once
    for (double value : flat.leaf_value)
        fit &= std::abs(value / rules_.divisor * rules_.scale) <= std::numeric_limits<float>::max();
    require(fit, "a leaf value is not finite, or too large for float32");
    for (double value : flat.leaf_other)
        require(std::isfinite(value), "a leaf value is not finite");

    std::vector<uint8_t> has_parent;
    for (size_t t = 0; t + 1 < flat.node_begin.size(); ++t) {
        const int64_t first = flat.node_begin[t], nodes = flat.node_begin[t + 1] - first;
        const int64_t leaves = flat.leaf_begin[t + 1] - flat.leaf_begin[t];
        const auto in_tree = [t](bool ok, const char* what) {  // makes no string where ok
            if (!ok) throw std::invalid_argument("tree " + std::to_string(t) + what);
        };
        in_tree(leaves == nodes + 1, " has not one leaf more than it has nodes");
        has_parent.assign(nodes + leaves, 0);
        for (int64_t i = 0; i < nodes; ++i) {
            const int32_t feature = flat.feature[first + i];
            in_tree(feature >= 0 && feature < n_features_, " splits on a feature out of range");
            in_tree(!std::isnan(flat.threshold[first + i]), " has a threshold that is NaN");
            for (int64_t child : {flat.left[first + i], flat.right[first + i]}) {
                // Children come after their parent, so every walk ends, and have one parent only.
                in_tree(child >= 0 ? child > i && child < nodes : ~child < leaves,
                        " has a child out of range");
                uint8_t& seen = has_parent[child >= 0 ? child : nodes + ~child];
                in_tree(!seen, " has a child with two parents");
                seen = 1;
            }
        }
    }
}

template <class Real>
Forest<Real>::Forest(const FlatTrees<Real>& flat, int64_t n_features, const Rules& rules)
    : n_features_(n_features), rules_(rules) {
    check(flat);
    const auto absolute = [](int32_t child, int64_t node, int64_t leaf) {
        return static_cast<int32_t>(child >= 0 ? child + node : ~(~child + leaf));
    };
    nodes_.reserve(flat.feature.size()), root_.reserve(flat.node_begin.size() - 1);
    begin_.assign(flat.node_begin.begin(), flat.node_begin.end());
    for (size_t t = 0; t + 1 < flat.node_begin.size(); ++t) {
        const int64_t node = flat.node_begin[t], leaf = flat.leaf_begin[t];
        const bool single_leaf = flat.node_begin[t + 1] == node;
        root_.push_back(absolute(single_leaf ? ~0 : 0, node, leaf));
        for (int64_t i = node; i < flat.node_begin[t + 1]; ++i)
            nodes_.emplace_back(flat.threshold[i], flat.feature[i], flat.flags[i],
                                absolute(flat.left[i], node, leaf),
                                absolute(flat.right[i], node, leaf));
    }
    for (uint8_t flags : flat.flags) special_ |= (flags & kSpecial) != 0;
    category_begin_.assign(flat.category_begin.begin(), flat.category_begin.end());
    category_words_.assign(flat.category_words.begin(), flat.category_words.end());
    leaf_value_.assign(flat.leaf_value.begin(), flat.leaf_value.end());
    leaf_other_.assign(flat.leaf_other.begin(), flat.leaf_other.end());
    step_value_.resize(leaf_value_.size());
    std::transform(
        leaf_value_.begin(), leaf_value_.end(), step_value_.begin(),
        [this](double value) { return static_cast<float>(value / rules_.divisor * rules_.scale); });
}

template <class Real>
double Forest<Real>::finish(const FullSum& sum) const {
    if (rules_.summation == Summation::kFloat32) return sum.single;
    if (rules_.summation == Summation::kFloat32Late)
        return static_cast<float>(sum.single +
                                  rules_.base);  // the sum of two floats, if base is one
    if (rules_.summation == Summation::kFloat64Late) return sum.value * rules_.scale + rules_.base;
    const double value = sum.value / rules_.divisor;
    if (rules_.summation == Summation::kFloat64) return value;
    // The source decides by its positive share > its negative share. Rounding can make that differ
    // from positive > 1/2 in the last bits; the score then moves to its decision's side.
    const double other = sum.other / rules_.divisor, above_half = std::nextafter(0.5, 1.0);
    return value > other ? std::max(value, above_half) : std::min(value, 0.5);
}

template class Forest<float>;
template class Forest<double>;

}  // namespace qwyc
