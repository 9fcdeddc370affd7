// The hot loops of evaluation, as a table of functions per instruction set. All give the same bits:
// they apply the same operations to the same numbers in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/deep_trees.hpp"
#include "core/forest.hpp"
#include "core/policy.hpp"

namespace qwyc {

// Up to kSlab rows in the middle of an evaluation, in words of 64. Arrays are readable up to the
// last word's end.
struct Chunk {
    int32_t words;
    double* sums;        // running sums
    uint64_t* alive;     // (words,) bit per row: has not quit
    const int32_t* row;  // index of each row's decision in DecisionsOut
};

struct Kernels {
    std::string_view isa;

    // Kernels that read rows of type In as Real. Row i is rows + row[i] * width, or rows + i *
    // width without `row`; all of them are within 2^31 values of `rows`.
    template <class In, class Real>
    struct Reading {
        // The leaves (absolute indices) that n rows reach from a root.
        void (*walk)(const Forest<Real>& forest, int32_t root, const In* rows, int64_t width,
                     const int32_t* row, int32_t n, int32_t* leaf);
        // Codes of n rows for deep trees: row i's are at codes + slot[i] * deep.width(), or at i *
        // deep.width() without `slot`.
        void (*encode_deep)(const DeepColumns<Real>& columns, const In* rows, int64_t width,
                            const int32_t* row, const int32_t* slot, int32_t n,
                            CodeOf<Real>* codes);
    };
    Reading<float, float> float_as_float;
    Reading<double, float> double_as_float;
    Reading<float, double> float_as_double;
    Reading<double, double> double_as_double;

    template <class In, class Real>
    const Reading<In, Real>& reading() const {
        if constexpr (std::is_same_v<Real, float>) {
            if constexpr (std::is_same_v<In, float>)
                return float_as_float;
            else
                return double_as_float;
        } else {
            if constexpr (std::is_same_v<In, float>)
                return float_as_double;
            else
                return double_as_double;
        }
    }

    // The leaves (absolute indices) that n rows reach in a deep tree, whose root is *tree: row i
    // has its codes at codes + offset[i].
    void (*walk_deep_float)(const DeepNode<int32_t>* tree, const int32_t* codes,
                            const int32_t* offset, int32_t n, int32_t* leaf);
    void (*walk_deep_double)(const DeepNode<int64_t>* tree, const int64_t* codes,
                             const int32_t* offset, int32_t n, int32_t* leaf);

    template <class Real>
    auto walk_deep() const {
        if constexpr (std::is_same_v<Real, float>)
            return walk_deep_float;
        else
            return walk_deep_double;
    }

    // Adds known values of a step to the running sums; rows that cross a threshold are written to
    // `out` and are no longer alive.
    void (*advance)(const float* values, const PolicyView& policy, int32_t step, const Chunk& chunk,
                    const DecisionsOut& out);

    // Adds known values to the running sums of the words in which a row is alive, and gives the
    // bins of these sums: floor(sum / width), whole words.
    void (*add_and_bin)(const float* values, double width, const Chunk& chunk, double* bins);

    // Bit i of out[w]: whether the largest sum of row 64 w + i exceeds the second by more than
    // `least`. sums: (n_classes, stride), whole words of rows.
    void (*leads)(const double* sums, int64_t stride, int32_t n_classes, int32_t words,
                  double least, uint64_t* out);

    // Bit i of out[w]: whether the largest other sum of row 64 w + i exceeds that of class `only`
    // by more than `gap`.
    void (*behind)(const double* sums, int64_t stride, int32_t n_classes, int32_t only,
                   int32_t words, double gap, uint64_t* out);

    // Sums that are more than `drop` below the largest of their row become -inf.
    void (*rule_out)(double* sums, int64_t stride, int32_t n_classes, int32_t words, double drop);

    // Of each row, for whole words: the class of the largest sum, the first of equal ones, and its
    // lead.
    void (*leaders)(const double* sums, int64_t stride, int32_t n_classes, int32_t words,
                    double* index, double* lead);

    // Sums as doubles, plus what `out` holds, (n_classes, stride) as sums do; or nothing if it is
    // null.
    void (*tested_single)(const float* sums, const double* out, int64_t stride, int32_t n_classes,
                          int32_t words, double* to, int64_t to_stride);
    void (*tested_double)(const double* sums, const double* out, int64_t stride, int32_t n_classes,
                          int32_t words, double* to, int64_t to_stride);

    // out[k * out_stride + i]: -inf where a class is more than drop + error behind the largest sum
    // of its row, otherwise 0. Bit i of near[w]: whether one is more than drop - error behind, but
    // not that far.
    void (*rule_out_near)(const double* sums, int64_t stride, int32_t n_classes, int32_t words,
                          double drop, double error, double* out, int64_t out_stride,
                          uint64_t* near);

    // Copies the sums and rows that are alive, in order, to `to_sums` and `to_row`, which may begin
    // at or before them. Arrays hold whole words. Returns the number of these rows.
    int32_t (*compact)(const uint64_t* alive, int32_t words, const double* sums, const int32_t* row,
                       double* to_sums, int32_t* to_row);

    // The same for sums alone.
    int32_t (*compact_sums)(const uint64_t* alive, int32_t words, const double* sums, double* to);
};

// The kernels of the best instruction set that this machine runs, or of `isa`;
// std::invalid_argument where the machine does not run it. Defined in kernels/choose.cpp.
const Kernels& kernels(std::string_view isa = "");

// Names of all instruction sets that this machine runs, best first.
std::vector<std::string_view> available_isas();

}  // namespace qwyc
