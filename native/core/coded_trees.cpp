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
    int32_t column = 0;
    uint8_t code = 0;
    bool never = false, in_set = false;
};

template <class Real>
bool same_column(const Question<Real>& a, const Question<Real>& b) {
    return a.feature == b.feature && a.zero_is_missing == b.zero_is_missing && a.asks == b.asks;
}

// Questions are sorted, so those of a column follow each other, cuts ascending. coded: by question.
template <class Real>
void add_columns(const Questions<Real>& questions, CodedTrees& out, std::vector<Coded>& coded) {
    const auto& all = questions.all;
    for (size_t begin = 0, end; begin < all.size(); begin = end) {
        const Question<Real>& first = all[begin];
        std::vector<Real> cut;
        std::vector<float> single;
        for (end = begin;
             end < all.size() && same_column(all[end], first) && cut.size() < CodedTrees::kMostCuts;
             ++end) {
            cut.push_back(all[end].cut), single.push_back(single_cut(all[end].cut));
            coded[end] = {out.n_codes, static_cast<uint8_t>(cut.size()), first.asks == Asks::kNever,
                          false};
        }
        if (first.asks == Asks::kNever || first.asks == Asks::kSet) continue;
        ++out.n_codes;
        out.n_long_columns += cut.size() > CodedTrees::kGroup;
        out.columns.push_back({first.feature, static_cast<int32_t>(out.cut_single.size()),
                               static_cast<int32_t>(cut.size()), first.asks,
                               first.zero_is_missing});
        append_cuts(single, out.cut_single);
        if constexpr (std::is_same_v<Real, double>) append_cuts(cut, out.cut_double);
    }
}

// The same for questions about categories, eight a column.
template <class Real>
void add_categories(const Questions<Real>& questions, CodedTrees& out, std::vector<Coded>& coded) {
    const auto& all = questions.all;
    for (size_t begin = 0, end; begin < all.size(); begin = end) {
        const Question<Real>& first = all[begin];
        end = begin + 1;
        if (first.asks != Asks::kSet) continue;
        while (end < all.size() && same_column(all[end], first)) ++end;
        for (size_t q = begin; q < end; ++q)
            coded[q] = {out.n_codes + static_cast<int32_t>((q - begin) / 8),
                        static_cast<uint8_t>(1 << (q - begin) % 8), false, true};
        const auto& classes = questions.categories.features.at(first.feature);
        const auto count = static_cast<int32_t>((end - begin + 7) / 8);
        const auto n_classes = static_cast<int32_t>(classes.example.size());
        out.categories.push_back({first.feature, out.n_codes, count, first.zero_is_missing,
                                  classes.count, classes.begin,
                                  static_cast<int32_t>(out.answers.size()), n_classes});
        out.n_codes += count;
        if (out.n_codes > CodedTrees::kCodes) return;
        for (int32_t c = 0; c < n_classes + 2; ++c) {
            const int32_t in = c < n_classes ? c : c == n_classes ? kNoClass : kMissingClass;
            const size_t at = out.answers.size();
            out.answers.resize(at + count);
            for (size_t q = begin; q < end; ++q)
                if (questions.sets[all[q].set][in / 8] >> in % 8 & 1)
                    out.answers[at + (q - begin) / 8] |= coded[q].code;
        }
    }
}

template <int32_t Splits, class Real>
CodedTree<Splits> lay_out_tree(const Forest<Real>& forest, const Questions<Real>& questions,
                               const std::vector<Coded>& coded, int32_t tree, int32_t first_leaf,
                               uint64_t& in_set) {
    CodedTree<Splits> out{};
    std::vector<int32_t> waiting{forest.root(tree)};
    // The root is split 0, and splits get their numbers from their parents.
    const auto place_of = [&](int32_t child) {
        if (child < 0) return static_cast<uint8_t>(leaf_bit<Splits> | (~child - first_leaf));
        waiting.push_back(child);
        return static_cast<uint8_t>(waiting.size() - 1);
    };
    if (waiting[0] < 0) {
        out.left[0] = out.right[0] = leaf_bit<Splits>;
        return out;
    }
    for (size_t i = 0; i < waiting.size(); ++i) {
        const int32_t at = waiting[i];
        const Coded& asked = coded[questions.of_node[at]];
        out.column[i] = static_cast<uint8_t>(asked.column), out.code[i] = asked.code;
        in_set |= uint64_t{asked.in_set} << i;
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
    int64_t most_leaves = 1;
    for (int32_t t = 0; t < n_trees; ++t) {
        if (!questions.masked[t] || forest.leaves_of(t) > kMaxMaskedLeaves) return {};
        out.levels.push_back(static_cast<uint8_t>(std::max(forest.depth_of(t), 1)));
        deepest = std::max<int32_t>(deepest, out.levels.back());
        out.first_leaf.push_back(leaves);
        leaves += static_cast<int32_t>(forest.leaves_of(t));
        most_leaves = std::max(most_leaves, forest.leaves_of(t));
    }
    std::vector<Coded> coded(questions.all.size());
    add_columns(questions, out, coded);
    if (out.n_codes <= CodedTrees::kCodes) add_categories(questions, out, coded);
    if (out.n_codes > CodedTrees::kCodes) return {};
    out.answers.resize(out.answers.size() + 64);
    out.class_of = questions.categories.class_of.data();
    out.truncates = forest.rules().truncates;
    out.doublings = std::bit_width(static_cast<uint32_t>(deepest - 1));
    out.place.resize(n_trees);
    const auto lay_out_all = [&]<int32_t Splits>(std::vector<CodedTree<Splits>>& to) {
        to.reserve(n_trees);
        for (int32_t tree : order) {
            out.place[tree] = static_cast<int32_t>(to.size());
            uint64_t in_set = 0;
            to.push_back(
                lay_out_tree<Splits>(forest, questions, coded, tree, out.first_leaf[tree], in_set));
            if (!out.categories.empty()) out.in_set.push_back(in_set);
        }
    };
    if (most_leaves <= 32)
        lay_out_all(out.small);
    else
        lay_out_all(out.trees);
    return out;
}

template CodedTrees lay_out_coded(const Forest<float>&, const Questions<float>&,
                                  std::span<const int32_t>);
template CodedTrees lay_out_coded(const Forest<double>&, const Questions<double>&,
                                  std::span<const int32_t>);

}  // namespace qwyc
