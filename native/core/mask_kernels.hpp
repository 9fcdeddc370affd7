// The hot loops of trees on masks, as a table of functions per instruction set. All give the same
// bits: they apply the same operations to the same numbers in the same order.
//
// Arrays are aligned to 64 bytes and readable and writable up to the end of the last word of rows.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/exact_sums.hpp"
#include "core/masked_trees.hpp"
#include "core/policy.hpp"
#include "core/row_codes.hpp"
#include "core/rows_view.hpp"

namespace qwyc {

inline constexpr int32_t kFew = 16;               // up to so many rows are compared in one register
inline constexpr int32_t kMaxSegmentTrees = 128;  // steps that rows evaluate before they are tested

// Words from one mask to the next: the masks of up to 64 rows follow each other.
constexpr int32_t mask_stride(int32_t n_rows) {
    return n_rows <= 64 ? 1 : kSlabWords;
}

// A slab of a segment: up to kSlab rows.
struct QuitSlab {
    int32_t n;
    const int32_t*
        row;  // where each row's decision is in DecisionsOut; or null: first, first + 1...
    int32_t first;
    const double* sums;  // running sums; or null: `base` for all
    double base;
};

// Where leaf numbers of trees go that are kept: those of tree t, word w, to `to` + w * `word` +
// number_begin, 64 bytes, or 128 of which the last are upper bits. Or nowhere.
struct LeafNumbers {
    uint8_t* to = nullptr;
    int64_t word = 0;
};

// Rows that go on. They may be written over the slab's own arrays.
struct Survivors {
    int32_t* row;
    double* sums;
    uint64_t* alive = nullptr;  // where a bit of each of the slab's rows goes; or null
};

// Where the values of a column are, and where those of rows that go on are written.
template <class In>
struct KeptColumn {
    const In* from;
    float* to;
};

// Some of the questions that compare numbers, ascending: kAtLeast up to `or_missing`,
// kAtLeastOrMissing up to `end`.
struct SomeQuestions {
    const int32_t* number;
    int32_t or_missing, end;
};

struct MaskKernels {
    std::string_view isa;

    // Answers all questions for n rows, those at row[0..n) or the first ones: bit p of
    // masks[mask_stride(n) * q + w]. Bits past the last row are those of any row; in
    // a word of more than kFew rows, they are the last row's. `more` rows follow, which are fetched
    // to the cache. tile: n_slots * 64 values of type V, to work in.
    template <class In, class V>
    using Answer = void (*)(const MaskedTrees& trees, const RowsView<In>& rows, const int32_t* row,
                            int32_t n, int32_t more, V* tile, uint64_t* masks);
    Answer<float, float> float_as_float;
    Answer<double, float> double_as_float;
    Answer<double, double> double_as_double;

    template <class In, class V>
    Answer<In, V> answer() const {
        if constexpr (std::is_same_v<V, double>)
            return double_as_double;
        else if constexpr (std::is_same_v<In, double>)
            return double_as_float;
        else
            return float_as_float;
    }

    // The same, but only some of the questions that compare numbers are answered.
    template <class In, class V>
    using AnswerSome = void (*)(const MaskedTrees& trees, const SomeQuestions& some,
                                const RowsView<In>& rows, const int32_t* row, int32_t n,
                                int32_t more, V* tile, uint64_t* masks);
    AnswerSome<float, float> some_float_as_float;
    AnswerSome<double, float> some_double_as_float;
    AnswerSome<double, double> some_double_as_double;

    template <class In, class V>
    AnswerSome<In, V> answer_some() const {
        if constexpr (std::is_same_v<V, double>)
            return some_double_as_double;
        else if constexpr (std::is_same_v<In, double>)
            return some_double_as_float;
        else
            return some_float_as_float;
    }

    // Codes of the first n rows, kCodeBytes each from `line` on, for whole words of rows. tile: as
    // above. Null where an instruction set has none.
    template <class In, class V>
    using Encode = void (*)(const RowCodes& codes, const RowsView<In>& rows, int32_t n, V* tile,
                            uint8_t* line);
    Encode<float, float> encode_float_as_float;
    Encode<double, float> encode_double_as_float;
    Encode<double, double> encode_double_as_double;

    template <class In, class V>
    Encode<In, V> encode() const {
        if constexpr (std::is_same_v<V, double>)
            return encode_double_as_double;
        else if constexpr (std::is_same_v<In, double>)
            return encode_double_as_float;
        else
            return encode_float_as_float;
    }

    // Answers some questions for n rows, those whose codes are at row[0..n). Null where `encode`
    // is.
    void (*answer_coded)(const CodedQuestions& questions, std::span<const int32_t> some,
                         const uint8_t* line, const int32_t* row, int32_t n, int32_t more,
                         uint64_t* masks);

    // Writes the values of those of n rows that are alive, a bit each, one after the other, as
    // floats. Up to 16 floats are written past them. `to` may be `from`. Null where an instruction
    // set has none.
    template <class In>
    using Keep = void (*)(std::span<const KeptColumn<In>> columns, const uint64_t* alive,
                          int64_t n);
    Keep<float> keep_floats;
    Keep<double> keep_doubles;

    template <class In>
    Keep<In> keep() const {
        if constexpr (std::is_same_v<In, double>)
            return keep_doubles;
        else
            return keep_floats;
    }

    // Makes the planes of trees [begin, end) from the answers.
    void (*slice)(const MaskedTrees& trees, int32_t begin, int32_t end, int32_t words,
                  uint64_t* masks);

    // Adds the steps of a segment to the running sums, `step` first. Rows that cross a threshold
    // are written to `out`; the number of the others is returned. exact: for these trees and this
    // policy, or null; whether it is used, `takes_exact` says. The sums must then be those of the
    // policy's earlier steps.
    bool takes_exact;
    int32_t (*quit)(const MaskedTrees& trees, const ExactSums* exact, const PolicyView& policy,
                    int32_t step, const uint64_t* masks, const QuitSlab& slab,
                    const DecisionsOut& out, const Survivors& left);

    // out[i]: what tree t adds, for whole words; alive: the words that are not 0, or null: all.
    void (*values)(const MaskedTrees& trees, int32_t t, const uint64_t* masks, int32_t words,
                   const uint64_t* alive, float* out);

    // Leaf numbers of trees [begin, end), none of them large, for whole words: (kSlab,) a tree, in
    // the tile's order. With `tables`, values are added too, as by add_single. Null where nothing
    // takes numbers in that order.
    void (*numbers)(const MaskedTrees& trees, const float* tables, int32_t begin, int32_t end,
                    const uint64_t* masks, int32_t words, uint8_t* out, float* sums);

    // sums[i] += values of trees [begin, end), for whole words. tables: by leaf number, such as
    // step_value, with 32 entries more; leaf_value or leaf_other.
    void (*add_single)(const MaskedTrees& trees, const float* tables, int32_t begin, int32_t end,
                       const uint64_t* masks, int32_t words, float* sums);
    // The same, floats are added to doubles.
    void (*add_steps)(const MaskedTrees& trees, const float* tables, int32_t begin, int32_t end,
                      const uint64_t* masks, int32_t words, double* sums, const LeafNumbers& kept);
    const uint8_t* place;  // (64,) of a row's leaf number among those of its word
    // The same of trees that are not large, from tables as bytes, LeafBytes of each tree. Null
    // where an instruction set looks floats up faster.
    void (*add_bytes)(const MaskedTrees& trees, const LeafBytes* tables, int32_t begin, int32_t end,
                      const uint64_t* masks, int32_t words, double* sums, const LeafNumbers& kept);
    void (*add_double)(const MaskedTrees& trees, const DoubleTables& tables, int32_t begin,
                       int32_t end, const uint64_t* masks, int32_t words, double* sums);
};

// The kernels of the best instruction set that this machine runs, or of `isa`, as for `kernels`.
const MaskKernels& mask_kernels(std::string_view isa = "");

}  // namespace qwyc
