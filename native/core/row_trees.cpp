#include "core/row_trees.hpp"

#include <algorithm>
#include <limits>

#include "core/cuts.hpp"
#include "core/float_mode.hpp"

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
    single.reserve(total), leaf.reserve(total);
    if constexpr (std::is_same_v<Real, double>) both.reserve(total);
    struct Waiting {
        int32_t child, level;
    };
    std::vector<Waiting> queue;  // of a tree, breadth first: its place is that of the entry
    for (int64_t t = 0; t < forest.n_trees(); ++t) {
        begin.push_back(static_cast<int32_t>(single.size()));
        queue.assign(1, {forest.root(t), 0});
        for (size_t at = 0; at < queue.size(); ++at) {
            const auto [child, level] = queue[at];
            // A leaf's cut is above or below nothing, so its only way is to its left child: itself.
            Real cut = std::numeric_limits<Real>::quiet_NaN();
            uint32_t word = static_cast<uint32_t>(at) << kChildShift;
            if (child >= 0) {
                const Node<Real>& node = forest.node(child);
                if (!always_left(node.threshold, less_equal))
                    cut = cut_of(node.threshold, less_equal);
                word = static_cast<uint32_t>(queue.size()) << kChildShift |
                       static_cast<uint32_t>(node.feature());
                if (!(node.flags() & kDefaultLeft)) word |= kMissingRight;
                queue.push_back({node.child[0], level + 1});
                queue.push_back({node.child[1], level + 1});
            }
            // x >= NaN is never true, as it must be for a split that sends all numbers left; but
            // then "not less" is, so such a split must not send missing values right.
            if (child >= 0 && cut != cut && (word & kMissingRight)) {
                usable = false;
                return;
            }
            single.push_back({single_cut(cut), word});
            if constexpr (std::is_same_v<Real, double>) both.push_back({cut, word});
            leaf.push_back(child >= 0 ? -1 : ~child);
        }
        levels.push_back(queue.back().level);
    }
}

template RowTrees::RowTrees(const Forest<float>&);
template RowTrees::RowTrees(const Forest<double>&);

}  // namespace qwyc
