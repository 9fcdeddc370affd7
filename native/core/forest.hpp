// A tree ensemble as flat arrays, and the walk from a row to a leaf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/categories.hpp"

namespace qwyc {

// Node flags, with the numbers of qwyc.model.trees.NodeFlag; a test compares them.
enum NodeFlag : uint8_t {
    kDefaultLeft = 1,    // a missing value goes left
    kCategorical = 2,    // the split is a set of category codes, not a threshold
    kInSetLeft = 4,      // a code in the set goes left (otherwise right)
    kZeroIsMissing = 8,  // |x| <= 1e-35 counts as missing (LightGBM's zero_as_missing)
};
inline constexpr uint8_t kSpecial = kCategorical | kZeroIsMissing;

// How the source library sums its base models. The full score is the same sum, bit for bit.
enum class Summation : uint8_t {
    kFloat32 = 0,  // base + f_1 + ... + f_T, each partial sum rounded to float32 (XGBoost)
    kFloat64 = 1,  // (base + f_1 + ... + f_T) / divisor in float64 (LightGBM, scikit-learn)
    kShares = 2,   // the two classes' shares added apart in float64 and compared (random forests)
    kFloat64Late = 3,  // (f_1 + ... + f_T) * scale in float64, the base added last (CatBoost)
    kFloat32Late = 4,  // f_1 + ... + f_T in float32, the base added last (ONNX Runtime)
};

// How an ensemble compares values and sums leaves; the same for all of its trees.
struct Rules {
    Summation summation = Summation::kFloat64;
    bool less_equal = false;  // left is x <= threshold (otherwise x < threshold)
    bool truncates = false;  // category codes are truncated to integers before their sign is tested
    double base = 0.0;
    double divisor = 1.0;  // T for averages, otherwise 1
    double scale = 1.0;    // what a sum is multiplied by before the base is added, for kFloat64Late
};

// The arrays of an ensemble, as in qwyc.model.trees.Trees.
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

inline constexpr int kFeatureBits = 27;

// A split. Kernels load its members by their offsets, for many rows at once.
template <class Real>
struct Node {
    Real threshold;
    uint32_t word;     // the feature in the lower kFeatureBits, the flags above
    int32_t child[2];  // left, right; absolute: >= 0 a node, < 0 the leaf ~child

    Node(Real threshold, int32_t feature, uint8_t flags, int32_t left, int32_t right)
        : threshold(threshold),
          word(static_cast<uint32_t>(feature) | static_cast<uint32_t>(flags) << kFeatureBits),
          child{left, right} {}

    int32_t feature() const {
        return static_cast<int32_t>(word & ((uint32_t{1} << kFeatureBits) - 1));
    }
    uint32_t flags() const { return word >> kFeatureBits; }
};

template <class Real>
inline constexpr bool kNodeIsPlain =
    std::is_standard_layout_v<Node<Real>> && std::is_trivially_copyable_v<Node<Real>> &&
    sizeof(Node<Real>) % sizeof(Real) == 0 && offsetof(Node<Real>, threshold) == 0 &&
    offsetof(Node<Real>, word) == sizeof(Real) &&
    offsetof(Node<Real>, child) == sizeof(Real) + sizeof(uint32_t);
static_assert(kNodeIsPlain<float> && sizeof(Node<float>) == 16);
static_assert(kNodeIsPlain<double> && sizeof(Node<double>) == 24);

// A partial full score; each summation uses the members that it needs.
struct FullSum {
    float single;
    double value, other;
};

// Real is the type that rows are converted to before any comparison, as the source library does.
template <class Real>
class Forest {
  public:
    // Validates all arrays, which may come from hostile files: std::invalid_argument where a walk
    // could leave the arrays or never end.
    Forest(const FlatTrees<Real>& flat, int64_t n_features, const Rules& rules);

    int64_t n_trees() const { return static_cast<int64_t>(root_.size()); }
    int64_t n_features() const { return n_features_; }
    const Rules& rules() const { return rules_; }

    // Absolute indices of tree t's nodes, begin and end; its root, a node or the leaf ~root.
    std::pair<int64_t, int64_t> nodes_of(int64_t t) const { return {begin_[t], begin_[t + 1]}; }
    int64_t leaves_of(int64_t t) const { return begin_[t + 1] - begin_[t] + 1; }
    int32_t root(int64_t t) const { return root_[t]; }
    const Node<Real>& node(int64_t i) const { return nodes_[i]; }
    std::span<const uint32_t> category_words(int64_t i) const {
        return {category_words_.data() + category_begin_[i],
                static_cast<size_t>(category_begin_[i + 1] - category_begin_[i])};
    }
    double leaf_value(int32_t i) const { return leaf_value_[i]; }
    double leaf_other(int32_t i) const { return leaf_other_[i]; }

    // Walks one row through several trees at once, which hides the latency of memory: walk k starts
    // at root[k], which becomes the leaf ~root[k].
    template <int Walks, class In>
    void walk(int32_t* root, const In* row) const {
        if (nodes_.empty()) return;
        if (rules_.less_equal)
            special_ ? walk_together<true, true, Walks>(root, row)
                     : walk_together<true, false, Walks>(root, row);
        else
            special_ ? walk_together<false, true, Walks>(root, row)
                     : walk_together<false, false, Walks>(root, row);
    }

    // Whether some split is not a plain comparison.
    bool special() const { return special_; }
    std::span<const Node<Real>> nodes() const { return nodes_; }

    // Where x goes from a node that has one of the flags kSpecial.
    bool special_goes_left(int32_t at, Real x) const {
        const Node<Real>& node = nodes_[at];
        constexpr Real zero = static_cast<Real>(1e-35f);
        if (x != x || ((node.flags() & kZeroIsMissing) && x >= -zero && x <= zero))
            return node.flags() & kDefaultLeft;
        if (node.flags() & kCategorical) return in_set(at, x) == ((node.flags() & kInSetLeft) != 0);
        return rules_.less_equal ? x <= node.threshold : x < node.threshold;
    }

    // Splits on the longest way to a leaf of tree t.
    int32_t depth_of(int64_t t) const { return depth_from(root(t)); }

    // How many nodes rows (n, n_features) visit in tree t on average.
    template <class In>
    double mean_path_length(int64_t t, const In* rows, int64_t n) const {
        int64_t visited = 0;
        for (int64_t i = 0; i < n; ++i)
            for (int32_t at = root_[t]; at >= 0; ++visited)
                at = rules_.less_equal ? next<true>(at, rows + i * n_features_)
                                       : next<false>(at, rows + i * n_features_);
        return static_cast<double>(visited) / static_cast<double>(n);
    }

    // What leaf `i` adds to a row's running sum: the source's value by the divisor and the
    // scale, as float32.
    float step_value(int32_t i) const { return step_value_[i]; }

    // A full score: start(), then add() for the leaf of each tree in the source's order, then
    // finish().
    FullSum start() const {
        if (rules_.summation >= Summation::kFloat64Late) return {0.0f, 0.0, 0.0};
        return {static_cast<float>(rules_.base), rules_.base, 0.0};
    }

    void add(FullSum& sum, const int32_t* leaf, int32_t n) const {
        FullSum all = sum;  // in registers
        switch (rules_.summation) {
            case Summation::kFloat32:
            case Summation::kFloat32Late:
                for (int32_t k = 0; k < n; ++k)
                    all.single += static_cast<float>(leaf_value_[leaf[k]]);
                break;
            case Summation::kShares:
                for (int32_t k = 0; k < n; ++k) {
                    all.other += leaf_other_[leaf[k]];
                    all.value += leaf_value_[leaf[k]];
                }
                break;
            case Summation::kFloat64:
            case Summation::kFloat64Late:
                for (int32_t k = 0; k < n; ++k) all.value += leaf_value_[leaf[k]];
        }
        sum = all;
    }

    double finish(const FullSum& sum) const;

  private:
    int32_t depth_from(int32_t child) const {
        if (child < 0) return 0;
        const Node<Real>& at = node(child);
        return 1 + std::max(depth_from(at.child[0]), depth_from(at.child[1]));
    }
    // The child that `row` goes to from node `at`. There is no branch on the value, because
    // processors cannot predict it.
    template <bool LessEqual, bool Special = true, class In>
    int32_t next(int32_t at, const In* row) const {
        const Node<Real>& node = nodes_[at];
        const Real x = static_cast<Real>(row[node.feature()]);
        bool left = LessEqual ? x <= node.threshold : x < node.threshold;
        left |= (x != x) & ((node.flags() & kDefaultLeft) != 0);
        if (Special && (node.flags() & kSpecial)) [[unlikely]]
            left = special_goes_left(at, x);
        return node.child[!left];
    }

    template <bool LessEqual, bool Special, int Walks, class In>
    void walk_together(int32_t* root, const In* row) const {
        int32_t at[Walks];
        for (int k = 0; k < Walks; ++k) at[k] = root[k];
        int32_t on;  // negative once every walk is over
        do {
            on = -1;
#pragma GCC unroll 8
            for (int k = 0; k < Walks; ++k) {
                const int32_t here = at[k], node = here < 0 ? 0 : here;  // any valid node
                const int32_t there = next<LessEqual, Special>(node, row);
                at[k] = here < 0 ? here : there;
                on &= at[k];
            }
        } while (on >= 0);
        for (int k = 0; k < Walks; ++k) root[k] = at[k];
    }

    bool in_set(int32_t at, Real x) const {
        if (!(x > -1 && x < kMaxCategoryCodes) || (x < 0 && !rules_.truncates)) return false;
        const int32_t code = static_cast<int32_t>(x);
        const int64_t word = category_begin_[at] + code / 32;
        return word < category_begin_[at + 1] && (category_words_[word] >> (code % 32) & 1);
    }

    void check(const FlatTrees<Real>& flat) const;

    std::vector<Node<Real>> nodes_;
    std::vector<int64_t> begin_;  // (T + 1,) nodes
    std::vector<int32_t> root_;   // (T,)
    std::vector<int64_t> category_begin_;
    std::vector<uint32_t> category_words_;
    std::vector<double> leaf_value_, leaf_other_;
    std::vector<float> step_value_;
    int64_t n_features_;
    bool special_ = false;
    Rules rules_;
};

extern template class Forest<float>;
extern template class Forest<double>;

}  // namespace qwyc
