// Trees of many leaves ("deep"), laid out for walks of many rows at once.
//
// The values of a row are first encoded as integers of the same order, once for all trees. Missing
// values are the least or the greatest integer, so a split is one comparison of integers. A node
// holds its key, the column of codes to compare and where its children are. Both children are next
// to each other, so a level needs one load of a node and one of a code.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "core/forest.hpp"

namespace qwyc {

// The codes of values of type Real.
template <class Real>
using CodeOf = std::conditional_t<std::is_same_v<Real, float>, int32_t, int64_t>;

template <class Code>
inline constexpr Code kLeastCode = std::numeric_limits<Code>::min();
template <class Code>
inline constexpr Code kGreatestCode = std::numeric_limits<Code>::max();

// An integer for each number: a < b exactly where ordered(a) < ordered(b), and both zeros are 0.
template <class Real>
inline CodeOf<Real> ordered(Real x) {
    const auto bits = std::bit_cast<CodeOf<Real>>(x);
    return bits >= 0 ? bits : kLeastCode<CodeOf<Real>> - bits;
}

// The code of the same values of a feature: splits that send missing values to different sides, or
// differ in what is missing, have columns of their own.
template <class Real>
struct DeepColumns {
    std::vector<int32_t> feature;
    std::vector<CodeOf<Real>> missing;  // the least code (goes left) or the greatest (right)
    std::vector<Real> zero;             // |x| <= zero is missing; -1 where only NaN is
};

inline constexpr int kColumnBits = 10;
inline constexpr int32_t kMaxDeepColumns = 512;  // more take longer to encode than they save

// A row goes to the left child, or to the right one, which follows it, where its code is greater
// than the key. Column 0 of all rows is the least code: at a leaf, whose key is the leaf's index in
// the forest and whose left child is the leaf itself, a walk stays.
template <class Code>
struct DeepNode {
    Code key;
    uint32_t
        word;  // the column in the lower kColumnBits; above, the left child's place in the tree
};
static_assert(sizeof(DeepNode<int32_t>) == 8 && sizeof(DeepNode<int64_t>) == 16);

// Memory is loaded by cache lines: a line holds children of the same subtree.
inline constexpr int32_t kLineBytes = 64;
template <class Code>
inline constexpr int32_t kLineNodes = kLineBytes / static_cast<int32_t>(sizeof(DeepNode<Code>));
template <class Code>
struct alignas(kLineBytes) DeepLine {
    DeepNode<Code> node[kLineNodes<Code>];
};

template <class Real>
struct DeepTrees {
    using Code = CodeOf<Real>;
    DeepColumns<Real> columns;  // column c + 1 of the codes
    std::vector<DeepLine<Code>> lines;
    std::vector<int32_t> root;  // (T,) the line whose first node it is, -1 where there is no layout

    DeepTrees() = default;
    // The trees of which `wanted` is true, where they have no categories. No tree at all where they
    // need more than kMaxDeepColumns columns.
    DeepTrees(const Forest<Real>& forest, std::span<const uint8_t> wanted);

    bool empty() const { return lines.empty(); }
    // The codes of a row.
    int32_t width() const { return static_cast<int32_t>(columns.feature.size()) + 1; }
};

extern template struct DeepTrees<float>;
extern template struct DeepTrees<double>;

}  // namespace qwyc
