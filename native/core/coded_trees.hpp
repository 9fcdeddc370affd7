// Trees of up to 64 leaves laid out for one row at a time, whose values are bytes: for each column,
// how many of its cuts are at most the row's value. All splits of a tree are
// compared with the row at once, and then followed several levels at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/forest.hpp"
#include "core/questions.hpp"

namespace qwyc {

// Splits are numbered from 0, the root. Children are the numbers of splits, or kLeaf and the number
// of a leaf within the tree.
struct alignas(64) CodedTree {
    static constexpr uint8_t kLeaf = 128;
    uint8_t column[64], code[64];  // the answer is yes where the row's code is at least this one
    uint8_t left[64], right[64];   // to the right, if yes
};

struct CodedTrees {
    static constexpr int32_t kCodes = 64;      // of a row: up to so many columns
    static constexpr int32_t kMostCuts = 255;  // of a column

    // A column of a row's codes. Its cuts are in `cuts`, ascending, in groups of 16 that NaN fills
    // up. Before more than one group there are 16 pivots: the first cut of each group.
    struct Column {
        int32_t feature, begin, count;
        Asks asks;  // kAtLeast, kAtLeastOrMissing or kMissing
        bool zero_is_missing;
    };
    static constexpr int32_t kGroup = 16;

    std::vector<Column> columns;
    std::vector<float> cut_single;
    std::vector<double> cut_double;   // where values may be double; otherwise empty
    std::vector<CodedTree> trees;     // in the order of `order`
    std::vector<int32_t> place;       // (T,) where a tree is in `trees`
    std::vector<int32_t> first_leaf;  // (T,) of each tree, in the forest
    int32_t doublings = 0;            // 2^doublings is the depth of the deepest tree, or more

    // Whether the trees are laid out: not where a tree has more leaves, or asks about a category,
    // or where trees ask too many questions.
    bool usable() const { return !place.empty(); }

    template <class V>
    const V* cuts() const {
        if constexpr (std::is_same_v<V, float>)
            return cut_single.data();
        else
            return cut_double.data();
    }
};

// `order` has all trees: those that are evaluated one after the other should follow each other.
template <class Real>
CodedTrees lay_out_coded(const Forest<Real>& forest, const Questions<Real>& questions,
                         std::span<const int32_t> order);

inline constexpr double kCodedTree = 3.5;  // nanoseconds for one row

struct CodedKernels {
    // The codes of one row, (n_features,), compared as V: kCodes bytes, aligned to 64.
    template <class In, class V>
    using Encode = void (*)(const CodedTrees& trees, const In* row, uint8_t* line);
    Encode<float, float> float_as_float;
    Encode<double, float> double_as_float;
    Encode<double, double> double_as_double;

    template <class In, class V>
    Encode<In, V> encode() const {
        if constexpr (std::is_same_v<V, double>)
            return double_as_double;
        else if constexpr (std::is_same_v<In, double>)
            return double_as_float;
        else
            return float_as_float;
    }

    // leaf[i]: the leaf, by its number in the forest, that the row reaches in tree[i].
    void (*leaves)(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
                   int32_t* leaf);
};

// The kernels of the best instruction set that this machine runs, or of `isa`, as for `kernels`;
// null where it has none.
const CodedKernels* coded_kernels(std::string_view isa = "");

}  // namespace qwyc
