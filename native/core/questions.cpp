#include "core/questions.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/cuts.hpp"
#include "core/float_mode.hpp"

namespace qwyc {

namespace {

template <class Real>
struct Finder {
    const Forest<Real>& forest;
    Questions<Real>& found;
    int32_t max_leaves;
    std::map<ClassSet, int32_t> set_of{};

    template <class Visit>
    void each_node(int32_t tree, Visit visit) const {
        const auto [begin, end] = forest.nodes_of(tree);
        for (int64_t i = begin; i < end; ++i) visit(i, forest.node(i));
    }

    bool is_small(int32_t tree) const { return forest.leaves_of(tree) <= max_leaves; }

    void find_categories(int64_t max_bytes) {
        std::map<int32_t, std::vector<CategorySet>> sets;
        for (int32_t tree = 0; tree < forest.n_trees(); ++tree)
            if (is_small(tree))
                each_node(tree, [&](int64_t i, const Node<Real>& node) {
                    if (node.flags() & kCategorical)
                        sets[node.feature()].push_back(forest.category_words(i));
                });
        found.categories = make_category_tables(std::move(sets), max_bytes);
    }

    int32_t set_going_right(int64_t at, const Node<Real>& node) {
        const CategoryTables::Feature& classes = found.categories.features.at(node.feature());
        const auto words = forest.category_words(at);
        ClassSet bits{};
        const auto mark = [&](int32_t code) { bits[code / 8] |= uint8_t(1 << code % 8); };
        const bool in_set_left = node.flags() & kInSetLeft;
        for (size_t c = 0; c < classes.example.size(); ++c) {
            const int32_t code = classes.example[c];
            if (code < 0) continue;
            const bool in = static_cast<size_t>(code / 32) < words.size() &&
                            (words[code / 32] >> (code % 32) & 1);
            if (in != in_set_left) mark(static_cast<int32_t>(c));
        }
        if (in_set_left) mark(kNoClass);  // in no set
        if (!(node.flags() & kDefaultLeft)) mark(kMissingClass);
        const auto [set, added] = set_of.try_emplace(bits, static_cast<int32_t>(found.sets.size()));
        if (added) found.sets.push_back(bits);
        return set->second;
    }

    Question<Real> question(int64_t at, const Node<Real>& node) {
        Question<Real> question{node.feature(), (node.flags() & kZeroIsMissing) != 0,
                                Asks::kAtLeast, Real(0), -1};
        const bool missing_left = node.flags() & kDefaultLeft;
        const bool less_equal = forest.rules().less_equal;
        if (node.flags() & kCategorical) {
            question.asks = Asks::kSet;
            question.set = set_going_right(at, node);
        } else if (always_left(node.threshold, less_equal)) {
            if (missing_left) return {0, false, Asks::kNever, Real(0), -1};
            question.asks = Asks::kMissing;
        } else {
            question.asks = missing_left ? Asks::kAtLeast : Asks::kAtLeastOrMissing;
            // Zeros of both signs are one question.
            question.cut = cut_of(node.threshold, less_equal) + Real(0);
        }
        return question;
    }

    void find() {
        std::vector<Question<Real>> asked;
        std::vector<int64_t> at;
        found.masked.resize(forest.n_trees());
        for (int32_t tree = 0; tree < forest.n_trees(); ++tree) {
            bool masked = is_small(tree);
            if (masked)
                each_node(tree, [&](int64_t, const Node<Real>& node) {
                    masked &= !(node.flags() & kCategorical) ||
                              found.categories.features.contains(node.feature());
                });
            found.masked[tree] = masked;
            if (masked)
                each_node(tree, [&](int64_t i, const Node<Real>& node) {
                    asked.push_back(question(i, node));
                    at.push_back(i);
                });
        }
        found.all = asked;
        std::sort(found.all.begin(), found.all.end());
        found.all.erase(std::unique(found.all.begin(), found.all.end()), found.all.end());
        found.of_node.assign(forest.nodes().size(), -1);
        for (size_t i = 0; i < asked.size(); ++i)
            found.of_node[at[i]] = static_cast<int32_t>(
                std::lower_bound(found.all.begin(), found.all.end(), asked[i]) - found.all.begin());
    }
};

}  // namespace

template <class Real>
Questions<Real>::Questions(const Forest<Real>& forest, int64_t max_category_bytes,
                           int32_t max_leaves) {
    const PlainFloats plain;
    Finder<Real> finder{forest, *this, max_leaves};
    finder.find_categories(max_category_bytes);
    finder.find();
}

template struct Questions<float>;
template struct Questions<double>;

}  // namespace qwyc
