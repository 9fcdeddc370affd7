#include "core/row_trees.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "core/cuts.hpp"
#include "core/float_mode.hpp"
#include "core/questions.hpp"

namespace qwyc {

template <class Real>
RowTrees::RowTrees(const Forest<Real>& forest) {
    const PlainFloats plain;  // cuts are rounded
    constexpr int64_t kMaxEntries = 1 << (32 - kChildShift);
    const bool less_equal = forest.rules().less_equal;
    int64_t total = 0;
    for (int64_t t = 0; t < forest.n_trees(); ++t) {
        const int64_t entries = 2 * forest.leaves_of(t) - 1;
        if (entries > kMaxEntries) return;
        total += entries;
    }
    if (forest.special() || forest.n_features() > int64_t{1} << kRowFeatureBits ||
        total > std::numeric_limits<int32_t>::max() / 8)
        return;
    usable = true;
    n_features = forest.n_features();
    single.resize(total), leaf.resize(total);
    if constexpr (std::is_same_v<Real, double>) both.resize(total);
    begin.reserve(forest.n_trees()), levels.reserve(forest.n_trees());
    int32_t first = 0;
    for (int64_t t = 0; t < forest.n_trees(); ++t) {
        // Entries are made breadth first. Until it is made, `leaf` has what an entry will be.
        Entry<float>* const entries = &single[first];
        int32_t* const waiting = &leaf[first];
        waiting[0] = forest.root(t);
        int32_t n = 1, level = 0, level_end = 1;
        for (int32_t at = 0; at < n; ++at) {
            if (at == level_end) ++level, level_end = n;
            const int32_t child = waiting[at];
            // A leaf's cut is above or below nothing, so its only way is to its left child: itself.
            Real cut = std::numeric_limits<Real>::quiet_NaN();
            uint32_t word = static_cast<uint32_t>(at) << kChildShift;
            waiting[at] = ~child;
            if (child >= 0) {
                const Node<Real>& node = forest.node(child);
                if (!always_left(node.threshold, less_equal))
                    cut = cut_of(node.threshold, less_equal);
                word =
                    static_cast<uint32_t>(n) << kChildShift | static_cast<uint32_t>(node.feature());
                if (!(node.flags() & kDefaultLeft)) word |= kMissingRight;
                // x >= NaN is never true, as it must be for a split that sends all numbers left;
                // but then "not less" is, so such a split must not send missing values right.
                if (cut != cut && (word & kMissingRight)) {
                    usable = false;
                    return;
                }
                waiting[at] = -1;
                waiting[n++] = node.child[0];
                waiting[n++] = node.child[1];
            }
            entries[at] = {single_cut(cut), word};
            if constexpr (std::is_same_v<Real, double>) both[first + at] = {cut, word};
        }
        begin.push_back(first);
        levels.push_back(level);
        mean_levels += static_cast<double>(level) / static_cast<double>(forest.n_trees());
        first += n;
    }
    lay_side_by_side(forest);
    // Walks of large trees wait for memory, and all together.
    const bool near = total <= 2 * int64_t{kMaxMaskedLeaves} * forest.n_trees();
    if (oblivious.empty() && n_features > kMaxFlatFeatures && near) at_once = kFewWalks;
}

template <class Real>
void RowTrees::lay_side_by_side(const Forest<Real>& forest) {
    const auto n_trees = static_cast<int64_t>(levels.size());
    const int32_t deepest = n_trees ? *std::max_element(levels.begin(), levels.end()) : 0;
    constexpr uint32_t kChoice = kMissingRight | ((1u << kRowFeatureBits) - 1);
    const auto same = [&](const Entry<float>& a, const Entry<float>& b) {
        return (a.cut == b.cut || (a.cut != a.cut && b.cut != b.cut)) &&
               (a.word & kChoice) == (b.word & kChoice);
    };
    // Entries are level by level, so those of an oblivious tree are too.
    const auto is_oblivious = [&](int64_t t) {
        if (forest.leaves_of(t) != int64_t{1} << levels[t]) return false;
        for (int32_t level = 0; level < levels[t]; ++level) {
            const Entry<float>* const first = &single[begin[t] + (1 << level) - 1];
            for (int32_t i = 0; i < 1 << level; ++i)
                if (leaf[first + i - single.data()] >= 0 || !same(first[i], *first)) return false;
        }
        return true;
    };
    bool all_oblivious = deepest <= kObliviousLevels;
    for (int64_t t = 0; t < n_trees && all_oblivious; ++t) all_oblivious = is_oblivious(t);
    const bool all_flat = deepest <= kFlatLevels && n_features <= kMaxFlatFeatures;
    if (!all_oblivious && !all_flat) return;
    code_bits = deepest;
    code_leaf.assign(static_cast<size_t>(n_trees) << code_bits, -1);
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    const auto fill = [](auto& to, int32_t place, const Entry<float>& entry) {
        to.cut[place] = entry.cut;
        to.feature[place] = static_cast<int32_t>(entry.word & (kMissingRight - 1));
        return (entry.word & kMissingRight) >> kRowFeatureBits << place;  // of missing_right
    };
    missing_right.reserve(n_trees);
    if (all_oblivious)
        oblivious.reserve(n_trees);
    else
        flat.reserve(n_trees);
    struct Placed {
        int32_t entry, place, level;
    };
    std::array<Placed, (2 << kFlatLevels) - 1> placed;  // of a tree
    for (int64_t t = 0; t < n_trees; ++t) {
        const Entry<float>* const entries = &single[begin[t]];
        const int32_t* const leaves = &leaf[begin[t]];
        const int32_t depth = all_oblivious ? levels[t] : deepest;
        uint32_t& missing = missing_right.emplace_back(0);
        int32_t* const codes = &code_leaf[static_cast<size_t>(t) << code_bits];
        if (all_oblivious) {
            auto& to = oblivious.emplace_back();
            std::fill(std::begin(to.cut), std::end(to.cut), kNone);
            for (int32_t level = 0; level < depth; ++level)
                missing |= fill(to, level, entries[(1 << level) - 1]);
            for (int32_t i = 0; i < 1 << depth; ++i) {
                int32_t code = 0;
                for (int32_t level = 0; level < depth; ++level)
                    code |= (i >> (depth - 1 - level) & 1) << level;
                codes[code] = leaves[(1 << depth) - 1 + i];
            }
            continue;
        }
        auto& to = flat.emplace_back();
        std::fill(std::begin(to.cut), std::end(to.cut), kNone);
        placed[0] = {0, 0, 0};
        uint32_t rights = 0;  // in a register
        for (size_t i = 0, n = 1; i < n; ++i) {
            const auto [at, place, level] = placed[i];
            if (leaves[at] >= 0) {  // a path that ends early goes left
                const int32_t path = place - ((1 << level) - 1);
                codes[path << (depth - level)] = leaves[at];
                continue;
            }
            rights |= fill(to, place, entries[at]);
            const auto left = static_cast<int32_t>(entries[at].word >> kChildShift);
            placed[n++] = {left, 2 * place + 1, level + 1};
            placed[n++] = {left + 1, 2 * place + 2, level + 1};
        }
        missing = rights;
    }
}

template RowTrees::RowTrees(const Forest<float>&);
template RowTrees::RowTrees(const Forest<double>&);

}  // namespace qwyc
