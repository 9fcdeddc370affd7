#include "core/deep_trees.hpp"

#include <map>
#include <tuple>

namespace qwyc {

namespace {

template <class Real>
struct Layout {
    using Code = CodeOf<Real>;
    const Forest<Real>& forest;
    DeepTrees<Real>& deep;
    std::map<std::tuple<int32_t, bool, bool>, uint32_t> column_of;  // feature, zero, missing left
    std::vector<int32_t> queue;                                     // of a tree, from the root

    bool fits(int32_t tree) const {
        const auto [begin, end] = forest.nodes_of(tree);
        if (2 * (end - begin) + 1 >= int64_t{1} << (32 - kColumnBits)) return false;
        for (int64_t i = begin; i < end; ++i)
            if (forest.node(i).flags() & kCategorical) return false;
        return true;
    }

    uint32_t column(const Node<Real>& node) {
        const bool zero = node.flags() & kZeroIsMissing, left = node.flags() & kDefaultLeft;
        const auto [found, added] = column_of.try_emplace({node.feature(), zero, left},
                                                          static_cast<uint32_t>(deep.width()));
        if (added) {
            deep.columns.feature.push_back(node.feature());
            deep.columns.missing.push_back(left ? kLeastCode<Code> : kGreatestCode<Code>);
            deep.columns.zero.push_back(zero ? static_cast<Real>(1e-35f) : Real(-1));
        }
        return found->second;
    }

    // Level by level: what many rows visit is near the front.
    void add(int32_t tree) {
        const size_t first = deep.nodes.size();
        deep.root[tree] = static_cast<int32_t>(first);
        queue.assign(1, forest.root(tree));
        for (size_t i = 0; i < queue.size(); ++i) {
            const int32_t at = queue[i];
            if (at < 0) {
                deep.nodes.push_back({~at, static_cast<uint32_t>(i) << kColumnBits});
                continue;
            }
            const Node<Real>& node = forest.node(at);
            const Code key = ordered(node.threshold) - (forest.rules().less_equal ? 0 : 1);
            const auto left = static_cast<uint32_t>(queue.size());
            deep.nodes.push_back({key, left << kColumnBits | column(node)});
            queue.push_back(node.child[0]);
            queue.push_back(node.child[1]);
        }
    }
};

}  // namespace

template <class Real>
DeepTrees<Real>::DeepTrees(const Forest<Real>& forest, std::span<const uint8_t> wanted)
    : root(forest.n_trees(), -1) {
    Layout<Real> layout{forest, *this, {}, {}};
    for (int32_t tree = 0; tree < forest.n_trees(); ++tree) {
        if (!wanted[tree] || !layout.fits(tree)) continue;
        layout.add(tree);
        if (width() > kMaxDeepColumns) {
            *this = DeepTrees{};
            root.assign(forest.n_trees(), -1);
            return;
        }
    }
}

template struct DeepTrees<float>;
template struct DeepTrees<double>;

}  // namespace qwyc
