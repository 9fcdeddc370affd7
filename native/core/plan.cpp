#include "core/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/float_mode.hpp"

namespace qwyc {

namespace {

constexpr int32_t kCutsPerColumn = 253;  // leaves codes for "below all", "above all" and "missing"

// Fills a plan from a forest.
template <class Real>
struct Builder {
    Plan<Real>& plan;
    const Forest<Real>& forest;
    // (feature, categorical, zero is missing, missing goes low, group of cuts) -> column
    std::map<std::tuple<int32_t, bool, bool, bool, int32_t>, int32_t> column_of;
    std::map<std::array<uint8_t, 32>, int32_t> set_of;

    bool is_small(int32_t tree) const { return forest.leaves_of(tree) <= kMaxSmallLeaves; }

    template <class Visit>
    void each_node(int32_t tree, Visit visit) const {
        const auto [begin, end] = forest.nodes_of(tree);
        for (int64_t i = begin; i < end; ++i) visit(static_cast<int32_t>(i), forest.node(i));
    }

    void find_classes(int64_t max_bytes) {
        std::map<int32_t, std::vector<CategorySet>> sets;
        for (int32_t tree : plan.order)
            if (is_small(tree))
                each_node(tree, [&](int32_t i, const Node<Real>& node) {
                    if (node.flags() & kCategorical)
                        sets[node.feature()].push_back(forest.category_words(i));
                });
        plan.categories = make_category_tables(std::move(sets), max_bytes);
    }

    void find_cuts() {
        plan.cuts.resize(forest.n_features());
        const bool less_equal = forest.rules().less_equal;
        for (int32_t step = 0; step < plan.n_steps(); ++step)
            if (plan.small[step].n_leaves > 0)
                each_node(plan.order[step], [&](int32_t, const Node<Real>& node) {
                    if (!(node.flags() & kCategorical) && !always_left(node.threshold, less_equal))
                        plan.cuts[node.feature()].cut.push_back(cut_of(node.threshold, less_equal));
                });
        for (Cuts<Real>& cuts : plan.cuts) cuts.finish();
    }

    int32_t column(const Node<Real>& node, int32_t step, int32_t group) {
        const bool categorical = node.flags() & kCategorical, zero = node.flags() & kZeroIsMissing;
        const bool low = !categorical && (node.flags() & kDefaultLeft);
        const int32_t feature = node.feature();
        const auto [found, added] = column_of.try_emplace(
            {feature, categorical, zero, low, group}, static_cast<int32_t>(plan.columns.size()));
        if (added) {
            Column column{};
            column.feature = feature;
            column.categorical = categorical;
            column.zero_is_missing = zero;
            column.missing = low ? 0 : 255;
            column.lowest = low ? 1 : 0;
            if (categorical) {
                const CategoryTables::Feature& classes = plan.categories.features.at(feature);
                column.classes_begin = classes.begin;
                column.classes_count = classes.count;
            } else {
                column.first = group * kCutsPerColumn;
                column.count = std::min(kCutsPerColumn, plan.cuts[feature].count - column.first);
            }
            column.first_use = step;
            plan.columns.push_back(column);
        }
        plan.columns[found->second].last_use = step;
        return found->second;
    }

    // 256 bits, one for each code of the column: whether it goes right.
    int32_t set_going_right(int32_t at, const Node<Real>& node) {
        const CategoryTables::Feature& classes = plan.categories.features.at(node.feature());
        const auto words = forest.category_words(at);
        std::array<uint8_t, 32> bits{};
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
        const auto [found, added] =
            set_of.try_emplace(bits, static_cast<int32_t>(plan.sets.size() / 32));
        if (added) plan.sets.insert(plan.sets.end(), bits.begin(), bits.end());
        return found->second;
    }

    Split split(int32_t at, int32_t step) {
        const Node<Real>& node = forest.node(at);
        Split split{};
        split.set = -1;
        if (node.flags() & kCategorical) {
            split.column = column(node, step, 0);
            split.set = set_going_right(at, node);
            return split;
        }
        const bool less_equal = forest.rules().less_equal, low = node.flags() & kDefaultLeft;
        int32_t rank, group = 0;
        if (always_left(node.threshold, less_equal)) {
            rank = low ? 255 : 254;  // all numbers are left of it
        } else {
            const Cuts<Real>& cuts = plan.cuts[node.feature()];
            const auto last = cuts.cut.begin() + cuts.count;
            const auto found =
                std::lower_bound(cuts.cut.begin(), last, cut_of(node.threshold, less_equal));
            const auto k = static_cast<int32_t>(found - cuts.cut.begin());
            group = k / kCutsPerColumn;
            rank = k % kCutsPerColumn + (low ? 1 : 0);
        }
        split.column = column(node, step, group);
        split.rank = static_cast<int8_t>(rank - 128);
        return split;
    }

    // Appends the subtree's splits, parents first, and its leaves from the left; returns how many
    // leaves. Trees are at most 255 deep here.
    int32_t place(int32_t child, int32_t step, int32_t first) {
        if (child < 0) {
            plan.step_value.push_back(forest.step_value(~child));
            plan.leaf_value.push_back(forest.leaf_value(~child));
            if (forest.rules().summation == Summation::kShares)
                plan.leaf_other.push_back(forest.leaf_other(~child));
            return 1;
        }
        const size_t here = plan.splits.size();
        plan.splits.push_back(split(child, step));
        const int32_t left = place(forest.node(child).child[0], step, first);
        const int32_t right = place(forest.node(child).child[1], step, first + left);
        plan.splits[here].first = static_cast<uint8_t>(first);
        plan.splits[here].left = static_cast<uint8_t>(left);
        return left + right;
    }

    // A complete tree with one question per level needs that question once: the answers are the
    // bits of the leaf's number, that of the root the highest.
    bool make_oblivious(SmallTree& tree) {
        int32_t depth = 0;
        while ((1 << depth) < tree.n_leaves) ++depth;
        if (depth < 2 || tree.n_leaves != 1 << depth) return false;
        std::vector<Split> levels(depth);
        const Split* const splits = plan.splits.data() + tree.split_begin;
        for (int32_t i = 0; i < tree.n_leaves - 1; ++i) {
            if (!std::has_single_bit(splits[i].left)) return false;
            const int32_t level = depth - 1 - std::countr_zero(splits[i].left);
            if (level < 0 || splits[i].first % (2 * splits[i].left) != 0) return false;
            Split& known = levels[level];
            if (splits[i].first == 0) known = splits[i];  // the leftmost, placed before the others
            if (known.left == 0 || known.column != splits[i].column ||
                known.rank != splits[i].rank || known.set != splits[i].set)
                return false;
        }
        plan.splits.resize(tree.split_begin);
        plan.splits.insert(plan.splits.end(), levels.begin(), levels.end());
        return true;
    }

    void build(int64_t max_category_bytes) {
        find_classes(max_category_bytes);
        plan.small.resize(plan.n_steps());
        for (int32_t step = 0; step < plan.n_steps(); ++step) {
            const int32_t tree = plan.order[step];
            bool small = is_small(tree);
            if (small)
                each_node(tree, [&](int32_t, const Node<Real>& node) {
                    if ((node.flags() & kCategorical) &&
                        !plan.categories.features.contains(node.feature()))
                        small = false;
                });
            plan.small[step].n_leaves = small ? static_cast<int32_t>(forest.leaves_of(tree)) : 0;
        }
        find_cuts();
        for (int32_t step = 0; step < plan.n_steps(); ++step) {
            SmallTree& tree = plan.small[step];
            if (tree.n_leaves == 0) continue;
            tree.leaf_begin = static_cast<int32_t>(plan.step_value.size());
            tree.split_begin = static_cast<int32_t>(plan.splits.size());
            place(forest.root(plan.order[step]), step, 0);
            tree.oblivious = make_oblivious(tree);
            tree.split_end = static_cast<int32_t>(plan.splits.size());
        }
        plan.step_value.resize(plan.step_value.size() + 64, 0.0f);  // kernels load whole registers
    }
};

}  // namespace

template <class Real>
Plan<Real>::Plan(const Forest<Real>& trees, std::span<const int32_t> steps,
                 int64_t max_category_bytes)
    : forest(&trees), order(steps.begin(), steps.end()) {
    const PlainFloats plain;
    Builder<Real>{*this, trees, {}, {}}.build(max_category_bytes);
}

template struct Plan<float>;
template struct Plan<double>;

}  // namespace qwyc
