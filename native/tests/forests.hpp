// Random forests, rows, and an oracle: trees and sums as core/forest.hpp documents them, one row
// and one node at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/engine.hpp"
#include "core/forest.hpp"

namespace qwyc::tests {

// The same numbers on every machine (splitmix64), which the standard's distributions are not. Or
// numbers that a fuzzer chooses: its bytes come first, so that a changed byte is another choice.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    explicit Random(std::span<const uint8_t> choices) : state_(0), choices_(choices) {}

    uint64_t next() {
        if (!choices_.empty()) return chosen(8);
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    int32_t below(int32_t n) {
        const uint64_t some = choices_.empty() ? next() : chosen(n <= 256 ? 1 : 4);
        return static_cast<int32_t>(some % static_cast<uint64_t>(n));
    }
    double uniform() {
        if (!choices_.empty()) return static_cast<double>(chosen(1)) * 0x1p-8;
        return static_cast<double>(next() >> 11) * 0x1p-53;
    }
    double normal() {  // near enough: the sum of twelve uniform numbers
        if (!choices_.empty()) return static_cast<double>(static_cast<int8_t>(chosen(1))) / 40;
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += uniform();
        return sum;
    }

  private:
    // Up to n of the bytes that are left.
    uint64_t chosen(size_t n) {
        uint64_t value = 0;
        for (; n > 0 && !choices_.empty(); --n, choices_ = choices_.subspan(1))
            value = value << 8 | choices_.front();
        return value;
    }

    uint64_t state_;
    std::span<const uint8_t> choices_;
};

// The arrays behind a FlatTrees.
template <class Real>
struct Trees {
    std::vector<int64_t> node_begin{0}, leaf_begin{0};
    std::vector<int32_t> feature;
    std::vector<Real> threshold;
    std::vector<int32_t> left, right;
    std::vector<uint8_t> flags;
    std::vector<int64_t> category_begin{0};
    std::vector<uint32_t> category_words;
    std::vector<double> leaf_value, leaf_other;
    int64_t n_features = 5;
    Rules rules;

    FlatTrees<Real> flat() const {
        return {node_begin, leaf_begin,     feature,        threshold,  left,      right,
                flags,      category_begin, category_words, leaf_value, leaf_other};
    }
    Forest<Real> forest() const { return Forest<Real>(flat(), n_features, rules); }
    int32_t n_trees() const { return static_cast<int32_t>(node_begin.size()) - 1; }

    // Appends a node to the tree in hand; its children are set later. Returns its number.
    int32_t add_node(int32_t on_feature, Real at, uint8_t node_flags,
                     const std::vector<int32_t>& codes = {}) {
        feature.push_back(on_feature);
        threshold.push_back(at);
        flags.push_back(node_flags);
        left.push_back(0);
        right.push_back(0);
        for (int32_t code : codes) {
            const size_t word = category_begin.back() + code / 32;
            if (category_words.size() <= word) category_words.resize(word + 1, 0);
            category_words[word] |= uint32_t{1} << code % 32;
        }
        category_begin.push_back(static_cast<int64_t>(category_words.size()));
        return static_cast<int32_t>(static_cast<int64_t>(feature.size()) - 1 - node_begin.back());
    }
    int32_t add_leaf(double value, double other = 0) {
        leaf_value.push_back(value);
        if (rules.summation == Summation::kShares) leaf_other.push_back(other);
        return ~static_cast<int32_t>(static_cast<int64_t>(leaf_value.size()) - 1 -
                                     leaf_begin.back());
    }
    void set_children(int32_t node, int32_t on_left, int32_t on_right) {
        left[node_begin.back() + node] = on_left;
        right[node_begin.back() + node] = on_right;
    }
    void end_tree() {
        node_begin.push_back(static_cast<int64_t>(feature.size()));
        leaf_begin.push_back(static_cast<int64_t>(leaf_value.size()));
    }

    // A tree of one split.
    void add_stump(int32_t on_feature, Real at, uint8_t node_flags, double low, double high,
                   const std::vector<int32_t>& codes = {}) {
        const int32_t root = add_node(on_feature, at, node_flags, codes);
        const int32_t on_left = add_leaf(low, 1 - low);
        set_children(root, on_left, add_leaf(high, 1 - high));
        end_tree();
    }
};

struct Shape {
    int32_t n_trees = 12, depth = 6;
    double leaf_stop = 0.3;  // probability that a branch ends
    int32_t n_codes = 70;
    bool special = true;  // categories and zeros that are missing, besides plain comparisons
};

// Appends a split of any kind to the tree in hand.
template <class Real>
int32_t add_random_node(Trees<Real>& trees, Random& random, const Shape& shape) {
    uint8_t flags = random.below(2) ? kDefaultLeft : 0;
    std::vector<int32_t> codes;
    const double kind = shape.special ? random.uniform() : 1.0;
    if (kind < 0.25) {
        flags |= kCategorical | (random.below(2) ? kInSetLeft : 0);
        for (int32_t k = random.below(9); k > 0; --k) codes.push_back(random.below(shape.n_codes));
    } else if (kind < 0.4) {
        flags |= kZeroIsMissing;
    }
    // On a grid, so that rows lie exactly on thresholds.
    const Real at = static_cast<Real>(std::round(random.normal() * 10) / 10);
    return trees.add_node(random.below(static_cast<int32_t>(trees.n_features)), at, flags, codes);
}

template <class Real>
int32_t add_random_leaf(Trees<Real>& trees, Random& random) {
    const double share = random.uniform();
    return trees.rules.summation == Summation::kShares ? trees.add_leaf(share, 1 - share)
                                                       : trees.add_leaf(random.normal());
}

template <class Real>
int32_t grow(Trees<Real>& trees, Random& random, const Shape& shape, int32_t depth) {
    if (depth == 0 || random.uniform() < shape.leaf_stop) return add_random_leaf(trees, random);
    const int32_t node = add_random_node(trees, random, shape);
    const int32_t left = grow(trees, random, shape, depth - 1);
    const int32_t right = grow(trees, random, shape, depth - 1);
    trees.set_children(node, left, right);
    return node;
}

// Rules for sums of every kind in turn.
inline Rules random_rules(Random& random, int32_t n_trees) {
    Rules rules;
    rules.summation = static_cast<Summation>(random.below(5));
    rules.less_equal = random.below(2);
    rules.truncates = random.below(2);
    rules.base = rules.summation == Summation::kShares ? 0.0 : static_cast<float>(random.normal());
    if (rules.summation == Summation::kShares ||
        (rules.summation == Summation::kFloat64 && random.below(2)))
        rules.divisor = n_trees;
    return rules;
}

template <class Real>
Trees<Real> random_trees(Random& random, const Shape& shape) {
    Trees<Real> trees;
    trees.rules = random_rules(random, shape.n_trees);
    for (int32_t t = 0; t < shape.n_trees; ++t) {
        grow(trees, random, shape, shape.depth);
        trees.end_tree();
    }
    return trees;
}

template <class Real>
Trees<Real> random_trees(uint64_t seed, const Shape& shape = {}) {
    Random random(seed);
    return random_trees<Real>(random, shape);
}

// (n, n_features): numbers on the thresholds' grid, category codes, and everything that is special.
template <class In>
std::vector<In> random_rows(uint64_t seed, int64_t n, int64_t n_features) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double odd[] = {std::nan(""), kInfinity, -kInfinity, 0.0,  -0.0,     1e-36,      -1e-36,
                          16777216.0,   -0.5,      -1.0,       1e30, 16777215, 0.1 + 1e-9, 3.7};
    Random random(seed);
    std::vector<In> rows(n * n_features);
    for (In& x : rows) {
        const double kind = random.uniform();
        if (kind < 0.15)
            x = static_cast<In>(odd[random.below(std::size(odd))]);
        else if (kind < 0.4)
            x = static_cast<In>(random.below(80));
        else if (kind < 0.7)
            x = static_cast<In>(std::round(random.normal() * 10) / 10);
        else
            x = static_cast<In>(random.normal());
    }
    return rows;
}

// ---- the oracle ------------------------------------------------------------------------------

template <class Real>
bool goes_left(const Trees<Real>& trees, int64_t node, Real x) {
    const uint8_t flags = trees.flags[node];
    const bool zero = std::abs(x) <= static_cast<Real>(1e-35f);
    if (std::isnan(x) || ((flags & kZeroIsMissing) && zero)) return flags & kDefaultLeft;
    if (!(flags & kCategorical))
        return trees.rules.less_equal ? x <= trees.threshold[node] : x < trees.threshold[node];
    bool in_set = false;
    const double whole = std::trunc(x);
    if (whole >= 0 && whole < (1 << 24) && (x >= 0 || trees.rules.truncates)) {
        const auto code = static_cast<int64_t>(whole);
        const int64_t word = trees.category_begin[node] + code / 32;
        in_set =
            word < trees.category_begin[node + 1] && trees.category_words[word] >> code % 32 & 1;
    }
    return in_set == ((flags & kInSetLeft) != 0);
}

// The leaf, counted over all trees, that a row reaches.
template <class Real, class In>
int64_t leaf_of(const Trees<Real>& trees, int32_t tree, const In* row) {
    const int64_t first = trees.node_begin[tree];
    int32_t at = trees.node_begin[tree + 1] == first ? ~0 : 0;
    while (at >= 0) {
        const auto x = static_cast<Real>(row[trees.feature[first + at]]);
        at = goes_left(trees, first + at, x) ? trees.left[first + at] : trees.right[first + at];
    }
    return trees.leaf_begin[tree] + ~at;
}

// (T, n) what each tree adds to a row's running sum.
template <class Real, class In>
std::vector<float> step_values(const Trees<Real>& trees, const std::vector<In>& rows) {
    std::vector<float> values;
    for (int32_t t = 0; t < trees.n_trees(); ++t)
        for (size_t at = 0; at < rows.size(); at += trees.n_features)
            values.push_back(static_cast<float>(trees.leaf_value[leaf_of(trees, t, &rows[at])] /
                                                trees.rules.divisor));
    return values;
}

// The source library's own sum.
template <class Real, class In>
double full_score(const Trees<Real>& trees, const In* row) {
    const Rules& rules = trees.rules;
    const bool late =
        rules.summation == Summation::kFloat32Late || rules.summation == Summation::kFloat64Late;
    float single = late ? 0.0f : static_cast<float>(rules.base);
    double sum = late ? 0.0 : rules.base, other = 0;
    for (int32_t t = 0; t < trees.n_trees(); ++t) {
        const int64_t leaf = leaf_of(trees, t, row);
        single += static_cast<float>(trees.leaf_value[leaf]);
        sum += trees.leaf_value[leaf];
        if (!trees.leaf_other.empty()) other += trees.leaf_other[leaf];
    }
    switch (rules.summation) {
        case Summation::kFloat32:
            return single;
        case Summation::kFloat32Late:
            return static_cast<float>(static_cast<double>(single) + rules.base);
        case Summation::kFloat64Late:
            return sum + rules.base;
        case Summation::kFloat64:
            return sum / rules.divisor;
        case Summation::kShares:
            break;
    }
    const double positive = sum / rules.divisor, negative = other / rules.divisor;
    if (positive > negative) return positive > 0.5 ? positive : std::nextafter(0.5, 1.0);
    return positive < 0.5 ? positive : 0.5;
}

template <class Real, class In>
std::vector<double> full_scores(const Trees<Real>& trees, const std::vector<In>& rows) {
    std::vector<double> full;
    for (size_t at = 0; at < rows.size(); at += trees.n_features)
        full.push_back(full_score(trees, &rows[at]));
    return full;
}

// What a policy decides, (n,) each.
struct Decided {
    std::vector<uint8_t> positive;
    std::vector<int32_t> steps;
    std::vector<double> score;

    explicit Decided(int64_t n) : positive(n, 7), steps(n, -1), score(n, -1.0) {}
    DecisionsOut out() { return {positive.data(), steps.data(), score.data()}; }
};

// An order and thresholds that let rows quit at every step. Holds what view() refers to.
struct Policy {
    std::vector<int32_t> order;
    std::vector<double> lower, upper;
    double threshold;

    Policy(uint64_t seed, int32_t n_models, double centre, double width) : threshold(centre) {
        Random random(seed);
        for (int32_t t = 0; t < n_models; ++t) order.push_back(t);
        for (int32_t t = n_models - 1; t > 0; --t) std::swap(order[t], order[random.below(t + 1)]);
        for (int32_t r = 0; r < n_models; ++r) {
            const double half = width * (0.5 + random.uniform());
            lower.push_back(random.below(4) ? centre - half : -kInf);
            upper.push_back(random.below(4) ? centre + half : kInf);
        }
        lower.back() = -kInf, upper.back() = kInf;
    }
    PolicyView view() const { return {order, {lower, upper}, {threshold}}; }
};

// A plain loop over rows and steps. rule(r, sum) is the outcome for a row after step r.
template <class Score, class Rule>
Decided decide_by(const Rule& rule, const std::vector<int32_t>& order, double threshold,
                  const std::vector<Score>& values, double base, const std::vector<double>& full) {
    const auto n = static_cast<int64_t>(full.size());
    const auto n_models = static_cast<int32_t>(order.size());
    Decided decided(n);
    for (int64_t i = 0; i < n; ++i) {
        decided.positive[i] = full[i] >= threshold;
        decided.steps[i] = n_models;
        decided.score[i] = full[i];
        double sum = base;
        for (int32_t r = 0; r + 1 < n_models; ++r) {
            sum += values[order[r] * n + i];
            const Outcome outcome = rule(r, sum);
            if (outcome == Outcome::kContinue) continue;
            if (outcome == Outcome::kInFull) break;
            decided.positive[i] = outcome == Outcome::kPositive;
            decided.steps[i] = r + 1;
            decided.score[i] = sum;
            break;
        }
    }
    return decided;
}

template <class Score>
Decided decide_plainly(const Policy& policy, const std::vector<Score>& values, double base,
                       const std::vector<double>& full) {
    const auto rule = [&](int32_t r, double sum) {
        if (sum > policy.upper[r]) return Outcome::kPositive;
        return sum < policy.lower[r] ? Outcome::kNegative : Outcome::kContinue;
    };
    return decide_by(rule, policy.order, policy.threshold, values, base, full);
}

}  // namespace qwyc::tests
