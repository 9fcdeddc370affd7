// Trees laid out for walking a row, or a few, through many of them at once.
//
// A tree is an array of entries, splits and leaves, in which the two children of a split follow
// each other. An entry is a cut and a word, so that a step down takes two loads: the entry and the
// row's value. A leaf leads to itself, so trees of different depths are walked
// together.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/forest.hpp"

namespace qwyc {

inline constexpr int32_t kWalksAtOnce = 16;    // trees that a row walks at once, at most
inline constexpr int32_t kFewWalks = 8;        // or fewer
inline constexpr int32_t kRowsWalked = 4;      // rows that walk the same trees at once
inline constexpr int32_t kMaxWalkedRows = 32;  // more are never walked one by one

struct RowTrees {
    // A word: the feature, whether a missing value goes right, and the left child's place in the
    // tree.
    static constexpr int32_t kRowFeatureBits = 15;
    static constexpr uint32_t kMissingRight = 1u << kRowFeatureBits;
    static constexpr int32_t kChildShift = 16;

    template <class V>
    struct Entry {
        V cut;
        uint32_t word;
    };

    // False where a tree has a split that is not a comparison, or does not fit; the forest itself
    // is walked then.
    bool usable = false;
    int64_t n_features = 0;  // of a row
    // Trees that a single row walks before it is known whether it quits. Values of wide rows do not
    // fit registers, and more walks at once then take so much longer that few, node by node, are
    // better.
    int32_t at_once = kWalksAtOnce;
    std::vector<int32_t> begin;   // (T,) first entry
    std::vector<int32_t> levels;  // (T,) steps from the root to the lowest leaf
    double mean_levels = 0;
    std::vector<Entry<float>> single;
    std::vector<Entry<double>> both;  // empty where values are always float
    std::vector<int32_t> leaf;        // of an entry that is one: its number in the forest

    // The comparisons of a tree side by side: none waits for another. Their answers, a bit each,
    // are a code. `flat` has trees of up to kFlatLevels levels, as if complete, the root's
    // comparison first and then level by level; a leaf's code is the path to it, the root's bit the
    // highest. `oblivious` has trees of up to kObliviousLevels that ask one question per level; a
    // leaf's code has the root's bit as its lowest. Both are for rows of floats, and empty unless
    // all trees fit.
    static constexpr int32_t kFlatLevels = 5, kObliviousLevels = 8;
    static constexpr int64_t kMaxFlatFeatures = 64;
    template <int32_t N>
    struct alignas(64) Comparisons {
        float cut[N];  // NaN where there is none
        int32_t feature[N];
    };
    std::vector<Comparisons<1 << kFlatLevels>> flat;       // (T,)
    std::vector<Comparisons<kObliviousLevels>> oblivious;  // (T,)
    std::vector<uint32_t> missing_right;                   // (T,) a bit per comparison
    int32_t code_bits = 0;                                 // levels of the deepest tree
    std::vector<int32_t> code_leaf;  // (T, 2^code_bits) by code, a leaf's number in the forest

    template <class Real>
    explicit RowTrees(const Forest<Real>& forest);

    template <class V>
    const Entry<V>* entries() const {
        if constexpr (std::is_same_v<V, float>)
            return single.data();
        else
            return both.data();
    }

  private:
    template <class Real>
    void lay_side_by_side(const Forest<Real>& forest);
};

struct RowKernels {
    // The leaves, by their numbers in the forest, that n_rows <= kRowsWalked rows reach in
    // n <= kWalksAtOnce trees. leaf: (n_rows, kWalksAtOnce)
    template <class V>
    using Walk = void (*)(const RowTrees& trees, const int32_t* tree, int32_t n,
                          const V* const* row, int32_t n_rows, int32_t* leaf);
    Walk<float> single;
    Walk<double> both;
    bool side_by_side;  // whether `single` compares whole trees: `flat` and `oblivious`

    template <class V>
    Walk<V> walk() const {
        if constexpr (std::is_same_v<V, float>)
            return single;
        else
            return both;
    }
};

// The kernels of the best instruction set that this machine runs, or of `isa`, as for `kernels`.
const RowKernels& row_kernels(std::string_view isa = "");

}  // namespace qwyc
