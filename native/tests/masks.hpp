// Trees of all forms, and what core/masked_trees.hpp says that a layout means, one row at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "core/masked_trees.hpp"
#include "tests/forests.hpp"

namespace qwyc::tests {

inline std::vector<int32_t> natural_order(int64_t n) {
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

// ---- trees -----------------------------------------------------------------------------------

// A complete tree of some depth; question(level, place) adds a node.
template <class Real, class Question>
int32_t add_complete(Trees<Real>& trees, Random& random, int32_t depth, const Question& question,
                     int32_t level = 0, int32_t place = 0) {
    if (level == depth) return add_random_leaf(trees, random);
    const int32_t node = question(level, place);
    const int32_t left = add_complete(trees, random, depth, question, level + 1, 2 * place);
    const int32_t right = add_complete(trees, random, depth, question, level + 1, 2 * place + 1);
    trees.set_children(node, left, right);
    return node;
}

// A tree that asks one question on each level.
template <class Real>
void add_oblivious(Trees<Real>& trees, Random& random, int32_t depth, const Shape& shape) {
    Trees<Real> asked;  // a split a level
    asked.n_features = trees.n_features;
    for (int32_t level = 0; level < depth; ++level) add_random_node(asked, random, shape);
    add_complete(trees, random, depth, [&](int32_t level, int32_t) {
        std::vector<int32_t> codes;
        for (int64_t word = asked.category_begin[level]; word < asked.category_begin[level + 1];
             ++word)
            for (int32_t bit = 0; bit < 32; ++bit)
                if (asked.category_words[word] >> bit & 1)
                    codes.push_back(static_cast<int32_t>(word - asked.category_begin[level]) * 32 +
                                    bit);
        return trees.add_node(asked.feature[level], asked.threshold[level], asked.flags[level],
                              codes);
    });
    trees.end_tree();
}

// A tree of so many leaves, in which a split has any share of them on its left.
template <class Real>
int32_t grow_leaves(Trees<Real>& trees, Random& random, const Shape& shape, int32_t leaves) {
    if (leaves == 1) return add_random_leaf(trees, random);
    const int32_t node = add_random_node(trees, random, shape);
    const int32_t on_left = 1 + random.below(leaves - 1);
    const int32_t left = grow_leaves(trees, random, shape, on_left);
    const int32_t right = grow_leaves(trees, random, shape, leaves - on_left);
    trees.set_children(node, left, right);
    return node;
}

// A path of splits: each has a leaf on one side.
template <class Real>
void add_chain(Trees<Real>& trees, Random& random, const Shape& shape, int32_t leaves) {
    std::vector<int32_t> leaf(leaves);
    for (int32_t& at : leaf) at = add_random_leaf(trees, random);
    for (int32_t i = 0; i + 1 < leaves; ++i) {
        add_random_node(trees, random, shape);
        const int32_t next = i + 2 < leaves ? i + 1 : leaf[leaves - 1];
        const bool right = random.below(2);
        trees.set_children(i, right ? leaf[i] : next, right ? next : leaf[i]);
    }
    trees.end_tree();
}

// Trees of 1 to 64 leaves of any shape, and complete, oblivious and path-like ones.
template <class Real>
Trees<Real> trees_of_all_forms(uint64_t seed, int64_t n_features, const Shape& shape = {},
                               int32_t every = 1) {
    Random random(seed);
    Trees<Real> trees;
    trees.n_features = n_features;
    trees.rules = random_rules(random, 40);
    for (int32_t leaves = 1; leaves <= kMaxMaskedLeaves; leaves += every) {
        grow_leaves(trees, random, shape, leaves);
        trees.end_tree();
    }
    for (int32_t depth = 1; depth <= kMaxPlanes; ++depth) {
        add_oblivious(trees, random, depth, shape);
        add_complete(trees, random, depth,
                     [&](int32_t, int32_t) { return add_random_node(trees, random, shape); });
        trees.end_tree();
    }
    for (int32_t leaves : {5, 6, 7, 32, 33, 64}) add_chain(trees, random, shape, leaves);
    return trees;
}

// Trees of 65 to 2,048 leaves: of any shape, complete, oblivious and path-like, among small ones.
template <class Real>
Trees<Real> large_trees(uint64_t seed, int64_t n_features, const Shape& shape = {}) {
    Random random(seed);
    Trees<Real> trees;
    trees.n_features = n_features;
    trees.rules = random_rules(random, 30);
    for (int32_t leaves : {65, 100, 9, 128, 129, 255, 256, 257, 40, 700, 1024, kMaxLargeLeaves}) {
        grow_leaves(trees, random, shape, leaves);
        trees.end_tree();
    }
    for (int32_t depth : {7, 8, 9, 11}) {
        add_oblivious(trees, random, depth, shape);
        add_complete(trees, random, depth,
                     [&](int32_t, int32_t) { return add_random_node(trees, random, shape); });
        trees.end_tree();
    }
    for (int32_t leaves : {65, 200, kMaxLargeLeaves}) add_chain(trees, random, shape, leaves);
    return trees;
}

// ---- what a layout means -----------------------------------------------------------------------

// row: its values one after the other. V: what they are compared as.
template <class V, class In>
V value_in_slot(const MaskedTrees& trees, int32_t slot, const In* row) {
    if (slot < static_cast<int32_t>(trees.features.size()))
        return static_cast<V>(row[trees.features[slot]]);
    for (const ZeroIsMissing& zero : trees.zeros) {
        if (zero.to != slot) continue;
        const V x = value_in_slot<V>(trees, zero.from, row);
        return std::abs(x) <= V(1e-35f) ? std::numeric_limits<V>::quiet_NaN() : x;
    }
    throw std::logic_error("a question about a slot that is not filled");
}

template <class V>
uint8_t class_of(const MaskedTrees& trees, const CategoryQuestions& group, V x) {
    if (std::isnan(x)) return kMissingClass;
    const V whole = std::trunc(x);
    if (!(whole >= 0 && whole < V(group.classes_count)) || (x < 0 && !trees.truncates))
        return kNoClass;
    return trees.class_of[group.classes_begin + static_cast<int64_t>(whole)];
}

template <class V, class In>
bool answer_to(const MaskedTrees& trees, int32_t question, const In* row) {
    if (question == 0) return false;
    const V x = value_in_slot<V>(trees, trees.slot.at(question), row);
    if (question < trees.or_missing) return x >= trees.cuts<V>()[question];
    if (question < trees.missing) return std::isnan(x) || x >= trees.cuts<V>()[question];
    if (question < trees.first_set) return std::isnan(x);
    for (const CategoryQuestions& group : trees.categorical)
        if (question >= group.begin && question < group.end) {
            const uint8_t code = class_of(trees, group, x);
            return trees.sets.at(question)[code / 8] >> code % 8 & 1;
        }
    throw std::logic_error("a question that is in no group");
}

// The number of the leaf that a row reaches; answer(question) is its answer.
template <class Answer>
int32_t number_from(const MaskedTrees& trees, const MaskedTree& tree, const Answer& answer) {
    if (tree.form == Form::kReach) {
        int32_t at = 0;
        for (int32_t i = tree.begin; i < tree.end; ++i)  // parents come before children
            if (trees.splits[i].at == at)
                at =
                    answer(trees.splits[i].question) ? trees.splits[i].right : trees.splits[i].left;
        return at - kMaxMaskedLeaves;
    }
    if (tree.form == Form::kLarge) {
        std::vector<bool> nodes(trees.n_nodes);
        nodes.at(0) = true;
        for (int32_t i = tree.begin; i < tree.end; ++i) {  // parents come before children
            const LargeSplit& split = trees.divided[i];
            const bool here = nodes.at(split.at), yes = answer(split.question);
            const size_t left = 2 * (i - tree.begin) + 1;
            nodes.at(left) = here && !yes;
            nodes.at(left + 1) = here && yes;
        }
        const int32_t first_node = trees.n_questions + trees.n_planes;
        const auto is_in = [&](int32_t mask) -> bool {
            return mask >= first_node ? bool(nodes.at(mask - first_node)) : answer(mask);
        };
        int32_t number = 0;
        for (int32_t b = 0; b < tree.bits; ++b) {
            number *= 2;
            const int32_t* const begin = &trees.flip_begin.at(tree.flips_begin + b);
            for (int32_t i = begin[0]; i < begin[1]; ++i)
                number ^= is_in(trees.flips.at(i).first) && is_in(trees.flips.at(i).second);
        }
        return number;
    }
    int32_t number = 0, at = 0;
    for (int32_t level = 0; level < tree.bits; ++level) {
        const bool yes =
            answer(tree.form == Form::kOblivious ? trees.planes.at(tree.planes_begin + level)
                                                 : trees.heap.at(tree.begin + at));
        at = 2 * at + 1 + yes;
        number = 2 * number + yes;
    }
    return number;
}

}  // namespace qwyc::tests
