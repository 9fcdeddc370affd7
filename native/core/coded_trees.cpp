#include "core/coded_trees.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/cuts.hpp"
#include "core/float_mode.hpp"

namespace qwyc {

namespace {

// Cuts as CodedTrees has them.
template <class V>
void append_cuts(const std::vector<V>& cut, std::vector<V>& to) {
    constexpr size_t kGroup = CodedTrees::kGroup;
    const size_t groups = (cut.size() + kGroup - 1) / kGroup;
    const auto append = [&](const auto& values, size_t n) {
        to.insert(to.end(), values.begin(), values.end());
        to.resize(to.size() + n - values.size(), std::numeric_limits<V>::quiet_NaN());
    };
    std::vector<V> pivots;
    for (size_t g = 0; g < groups && groups > 1; ++g) pivots.push_back(cut[g * kGroup]);
    if (groups > 1) append(pivots, kGroup);
    append(cut, groups * kGroup);
}

// How a question is answered from codes.
struct Coded {
    uint8_t column = 0, code = 0;
    bool never = false;
};

// Questions are sorted, so those of a column follow each other, cuts ascending. Returns nothing if
// rows have no codes.
template <class Real>
std::vector<Coded> make_columns(const Questions<Real>& questions, CodedTrees& out) {
    std::vector<Coded> coded;
    const auto& all = questions.all;
    for (size_t begin = 0, end; begin < all.size(); begin = end) {
        const Question<Real>& first = all[begin];
        if (first.asks == Asks::kSet) return {};
        std::vector<Real> cut;
        std::vector<float> single;
        for (end = begin;
             end < all.size() && all[end].feature == first.feature &&
             all[end].zero_is_missing == first.zero_is_missing && all[end].asks == first.asks;
             ++end) {
            cut.push_back(all[end].cut), single.push_back(single_cut(all[end].cut));
            coded.push_back({static_cast<uint8_t>(out.columns.size()),
                             static_cast<uint8_t>(cut.size()), first.asks == Asks::kNever});
        }
        if (first.asks == Asks::kNever) continue;
        if (cut.size() > CodedTrees::kMostCuts || out.columns.size() == CodedTrees::kCodes)
            return {};
        out.columns.push_back({first.feature, static_cast<int32_t>(out.cut_single.size()),
                               static_cast<int32_t>(cut.size()), first.asks,
                               first.zero_is_missing});
        append_cuts(single, out.cut_single);
        if constexpr (std::is_same_v<Real, double>) append_cuts(cut, out.cut_double);
    }
    return coded;
}

template <class Real>
CodedTree lay_out_tree(const Forest<Real>& forest, const Questions<Real>& questions,
                       const std::vector<Coded>& coded, int32_t tree, int32_t first_leaf) {
    CodedTree out{};
    std::vector<int32_t> waiting{forest.root(tree)};
    // The root is split 0, and splits get their numbers from their parents.
    const auto place_of = [&](int32_t child) {
        if (child < 0) return static_cast<uint8_t>(CodedTree::kLeaf | (~child - first_leaf));
        waiting.push_back(child);
        return static_cast<uint8_t>(waiting.size() - 1);
    };
    if (waiting[0] < 0) {
        out.left[0] = out.right[0] = static_cast<uint8_t>(CodedTree::kLeaf);
        return out;
    }
    for (size_t i = 0; i < waiting.size(); ++i) {
        const int32_t at = waiting[i];
        const Coded& asked = coded[questions.of_node[at]];
        out.column[i] = asked.column, out.code[i] = asked.code;
        out.left[i] = place_of(forest.node(at).child[0]);
        out.right[i] = asked.never ? out.left[i] : place_of(forest.node(at).child[1]);
    }
    return out;
}

}  // namespace

template <class Real>
CodedTrees lay_out_coded(const Forest<Real>& forest, const Questions<Real>& questions,
                         std::span<const int32_t> order) {
    const PlainFloats plain;  // cuts are rounded
    const auto n_trees = static_cast<int32_t>(forest.n_trees());
    CodedTrees out;
    int32_t deepest = 1, leaves = 0;
    for (int32_t t = 0; t < n_trees; ++t) {
        if (!questions.masked[t] || forest.leaves_of(t) > kMaxMaskedLeaves) return {};
        deepest = std::max(deepest, forest.depth_of(t));
        out.first_leaf.push_back(leaves);
        leaves += static_cast<int32_t>(forest.leaves_of(t));
    }
    const std::vector<Coded> coded = make_columns(questions, out);
    if (coded.size() != questions.all.size()) return {};
    out.doublings = std::bit_width(static_cast<uint32_t>(deepest - 1));
    out.place.resize(n_trees);
    out.trees.reserve(n_trees);
    for (int32_t tree : order) {
        out.place[tree] = static_cast<int32_t>(out.trees.size());
        out.trees.push_back(lay_out_tree(forest, questions, coded, tree, out.first_leaf[tree]));
    }
    return out;
}

template CodedTrees lay_out_coded(const Forest<float>&, const Questions<float>&,
                                  std::span<const int32_t>);
template CodedTrees lay_out_coded(const Forest<double>&, const Questions<double>&,
                                  std::span<const int32_t>);

}  // namespace qwyc
