// A tree ensemble as flat arrays, and the walk from a row to a leaf.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qwyc {

// Node flags, as in qwyc.ensemble: keep the two in step.
enum NodeFlag : uint8_t {
    kDefaultLeft = 1,    // a missing value goes left
    kCategorical = 2,    // the split is a set of category codes, not a threshold
    kInSetLeft = 4,      // a code in the set goes left (otherwise right)
    kZeroIsMissing = 8,  // |x| <= 1e-35 counts as missing (LightGBM's zero_as_missing)
};
inline constexpr uint8_t kSpecial = kCategorical | kZeroIsMissing;

// How the source library adds its base models up; the full score is that, bit for bit.
enum class Summation : uint8_t {
    kFloat32 = 0,  // base + f_1 + ... + f_T, each partial sum rounded to float32 (XGBoost)
    kFloat64 = 1,  // (base + f_1 + ... + f_T) / divisor in float64 (LightGBM, scikit-learn)
    kShares = 2,   // the two classes' shares added apart in float64 and compared (random forests)
    kFloat64Late = 3,  // f_1 + ... + f_T in float64, the base added last (CatBoost)
    kFloat32Late = 4,  // f_1 + ... + f_T in float32, the base added last (ONNX Runtime)
};

// Where to go, and how numbers are compared: constant over an ensemble.
struct Rules {
    Summation summation = Summation::kFloat64;
    bool less_equal = false;  // left is x <= threshold (otherwise x < threshold)
    bool truncates = false;   // category codes are cut to integers before their sign is looked at
    double base = 0.0;
    double divisor = 1.0;  // T for averages, otherwise 1
};

// What the Python side hands over; all spans have the lengths given in qwyc.ensemble.Trees.
template <class Real>
struct FlatTrees {
    std::span<const int64_t> node_begin, leaf_begin;  // (T + 1,)
    std::span<const int32_t> feature;                 // (n_nodes,)
    std::span<const Real> threshold;                  // (n_nodes,)
    std::span<const int32_t> left, right;             // (n_nodes,) within the tree; ~leaf where < 0
    std::span<const uint8_t> flags;                   // (n_nodes,)
    std::span<const int64_t> category_begin;          // (n_nodes + 1,) into category_words
    std::span<const uint32_t> category_words;         // bit sets, 32 codes a word
    std::span<const double> leaf_value;               // (n_leaves,)
    std::span<const double> leaf_other;               // (n_leaves,) for kShares, otherwise empty
};

template <class Real>
struct Node {
    Real threshold;
    uint32_t feature : 27;
    uint32_t flags : 5;
    int32_t left, right;  // absolute: >= 0 a node, < 0 the leaf ~child
};

// A full score in the making; each summation uses what it needs.
struct FullSum {
    float single;
    double value, other;
};

// Real is the type that rows are converted to before any comparison, as the source library does.
template <class Real>
class Forest {
  public:
    // Checks everything it is given (files are hostile): std::invalid_argument where a walk could
    // leave the arrays or never end.
    Forest(const FlatTrees<Real>& flat, int64_t n_features, const Rules& rules);

    int64_t n_trees() const { return static_cast<int64_t>(root_.size()); }
    int64_t n_features() const { return n_features_; }
    const Rules& rules() const { return rules_; }

    // The leaf (an absolute index) that `row` (n_features,) reaches in tree t.
    int32_t leaf(int64_t t, const Real* row) const {
        return rules_.less_equal ? walk<true>(root_[t], row) : walk<false>(root_[t], row);
    }

    // How many nodes `row` visits in tree t.
    int32_t path_length(int64_t t, const Real* row) const {
        int32_t visited = 0;
        for (int32_t at = root_[t]; at >= 0; ++visited)
            at = rules_.less_equal ? next<true>(at, row) : next<false>(at, row);
        return visited;
    }

    // What leaf `i` adds to a row's running sum: the source's value as float32, divided by divisor.
    float step_value(int32_t i) const { return step_value_[i]; }

    // The full score of a row is what `add` makes of its leaves, tree by tree in the source's
    // order, and `finish` of the result.
    FullSum start() const {
        if (rules_.summation >= Summation::kFloat64Late) return {0.0f, 0.0, 0.0};
        return {static_cast<float>(rules_.base), rules_.base, 0.0};
    }

    void add(FullSum& sum, int32_t leaf) const {
        switch (rules_.summation) {
            case Summation::kFloat32:
            case Summation::kFloat32Late:
                sum.single += static_cast<float>(leaf_value_[leaf]);
                break;
            case Summation::kShares:
                sum.other += leaf_other_[leaf];
                [[fallthrough]];
            case Summation::kFloat64:
            case Summation::kFloat64Late:
                sum.value += leaf_value_[leaf];
        }
    }

    double finish(const FullSum& sum) const;

  private:
    // The child that `row` goes to from node `at`.
    template <bool LessEqual>
    int32_t next(int32_t at, const Real* row) const {
        const Node<Real>& node = nodes_[at];
        const Real x = row[node.feature];
        bool left;
        if (node.flags & kSpecial) [[unlikely]]
            left = special_goes_left(at, x);
        else if (x != x)
            left = node.flags & kDefaultLeft;
        else
            left = LessEqual ? x <= node.threshold : x < node.threshold;
        return left ? node.left : node.right;
    }

    template <bool LessEqual>
    int32_t walk(int32_t at, const Real* row) const {
        while (at >= 0) at = next<LessEqual>(at, row);
        return ~at;
    }

    bool special_goes_left(int32_t at, Real x) const {
        const Node<Real>& node = nodes_[at];
        constexpr Real zero = static_cast<Real>(1e-35f);
        if (x != x || ((node.flags & kZeroIsMissing) && x >= -zero && x <= zero))
            return node.flags & kDefaultLeft;
        if (node.flags & kCategorical) return in_set(at, x) == ((node.flags & kInSetLeft) != 0);
        return rules_.less_equal ? x <= node.threshold : x < node.threshold;
    }

    bool in_set(int32_t at, Real x) const {
        // Codes at or past 2^24 are in no set: float32 could not tell them apart.
        if (!(x > -1 && x < (1 << 24)) || (x < 0 && !rules_.truncates)) return false;
        const int32_t code = static_cast<int32_t>(x);
        const int64_t word = category_begin_[at] + code / 32;
        return word < category_begin_[at + 1] && (category_words_[word] >> (code % 32) & 1);
    }

    void check(const FlatTrees<Real>& flat) const;

    std::vector<Node<Real>> nodes_;
    std::vector<int32_t> root_;  // (T,)
    std::vector<int64_t> category_begin_;
    std::vector<uint32_t> category_words_;
    std::vector<double> leaf_value_, leaf_other_;
    std::vector<float> step_value_;
    int64_t n_features_;
    Rules rules_;
};

extern template class Forest<float>;
extern template class Forest<double>;

}  // namespace qwyc
