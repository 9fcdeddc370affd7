// Trees of up to 64 leaves laid out for one row at a time, whose values are bytes: for a number,
// how many cuts are at most the row's value; for a category, the answers to eight questions. All
// splits of a tree are compared with the row at once, and then followed several levels at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/forest.hpp"
#include "core/questions.hpp"

namespace qwyc {

// Splits are numbered from 0, the root. Children are the numbers of splits, or leaf_bit and the
// number of a leaf within the tree.
template <int32_t Splits>  // up to so many less one: 32 or 64
inline constexpr uint8_t leaf_bit = Splits == 32 ? 32 : 128;
template <int32_t Splits>
struct alignas(64) CodedTree {
    // The answer is yes where the row's code is at least this one; or, of a category, has this bit.
    uint8_t column[Splits], code[Splits];
    uint8_t left[Splits], right[Splits];  // to the right, if yes
};

struct CodedTrees {
    static constexpr int32_t kCodes = 256;         // of a row: up to so many columns
    static constexpr int32_t kLine = kCodes + 64;  // bytes that a row's codes are written to
    static constexpr int32_t kMostCuts = 255;      // of a column

    // A column of a row's codes. Its cuts are in `cuts`, ascending, in groups of 16 that NaN fills
    // up. Before more than one group there are 16 pivots: the first cut of each group.
    struct Column {
        int32_t feature, begin, count;
        Asks asks;  // kAtLeast, kAtLeastOrMissing or kMissing
        bool zero_is_missing;
    };
    static constexpr int32_t kGroup = 16;

    // `count` columns from `column` on: a bit for each question about one feature's category.
    struct Categories {
        int32_t feature, column, count;
        bool zero_is_missing;
        int32_t classes_count;  // as in CategoryTables
        int64_t classes_begin;
        int32_t answers_begin, n_classes;  // (n_classes + 2, count) in `answers`, by class; the
                                           // last two are kNoClass and kMissingClass
    };

    std::vector<Column> columns;  // the first ones
    int32_t n_long_columns = 0;   // of them: of more than kGroup cuts
    std::vector<float> cut_single;
    std::vector<double> cut_double;      // where values may be double; otherwise empty
    std::vector<Categories> categories;  // by column
    std::vector<uint8_t> answers;        // and 64 bytes more
    const uint8_t* class_of = nullptr;   // CategoryTables::class_of of the questions
    bool truncates = false;              // category codes are truncated to integers
    int32_t n_codes = 0;                 // columns
    std::vector<CodedTree<32>> small;    // in the order of `order`; empty unless all trees fit
    std::vector<CodedTree<64>> trees;    // otherwise
    std::vector<uint64_t> in_set;        // of each: a bit per split on a category; empty if none
    std::vector<int32_t> place;          // (T,) where a tree is in `trees`
    std::vector<int32_t> first_leaf;     // (T,) of each tree, in the forest
    std::vector<uint8_t> levels;         // (T,) from the root to the lowest leaf, and at least 1
    int32_t doublings = 0;               // 2^doublings is the depth of the deepest tree, or more

    // Whether the trees are laid out: not where a tree has more leaves, or where trees ask too many
    // questions.
    bool usable() const { return !place.empty(); }

    template <class V>
    const V* cuts() const {
        if constexpr (std::is_same_v<V, float>)
            return cut_single.data();
        else
            return cut_double.data();
    }
};

// `order` has all trees: those that are evaluated one after the other should follow each other. The
// layout refers to `questions`.
template <class Real>
CodedTrees lay_out_coded(const Forest<Real>& forest, const Questions<Real>& questions,
                         std::span<const int32_t> order);

// Nanoseconds for one row, as in core/cost_model.hpp: for a tree, in `small` or not, so many times
// that where rows have more than half of kCodes; for a column of numbers, one of more than a group
// of cuts in addition, and the categories of a feature.
struct CodedCost {
    double small_tree, any_tree, wide, column, long_column, categories;

    double tree(const CodedTrees& trees) const {
        return (trees.small.empty() ? any_tree : small_tree) *
               (trees.n_codes > CodedTrees::kCodes / 2 ? wide : 1);
    }
    // To make the codes of one row.
    double encoding(const CodedTrees& trees) const {
        return column * static_cast<double>(trees.columns.size()) +
               long_column * trees.n_long_columns +
               categories * static_cast<double>(trees.categories.size());
    }
};

struct CodedKernels {
    CodedCost cost;

    // The codes of one row, (n_features,), compared as V: kLine bytes, aligned to 64.
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

// How a row that is evaluated by itself goes through trees.
struct RowWay {
    const CodedTrees* coded;  // by its codes; or null: node by node
    double row, trees;        // nanoseconds: to begin, and for kWalksAtOnce trees
};

// The kernels of the best instruction set that this machine runs, or of `isa`, as for `kernels`;
// null where it has none.
const CodedKernels* coded_kernels(std::string_view isa = "");

}  // namespace qwyc
