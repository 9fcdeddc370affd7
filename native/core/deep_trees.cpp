#include "core/deep_trees.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace qwyc {

namespace {

template <class Real>
struct Layout {
    using Code = CodeOf<Real>;
    const Forest<Real>& forest;
    DeepTrees<Real>& deep;
    std::map<std::tuple<int32_t, bool, bool>, uint32_t> column_of;  // feature, zero, missing left

    bool fits(int32_t tree) const {
        const auto [begin, end] = forest.nodes_of(tree);
        // Places: two for each node, and gaps at the ends of lines that are at most as long.
        if (4 * (end - begin) + 16 >= int64_t{1} << (32 - kColumnBits)) return false;
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

    // A node that has a place in the layout.
    DeepNode<Code>& node_at(int64_t first_line, int64_t place) {
        const int64_t at = first_line * kLineNodes<Code> + place;
        return deep.lines[at / kLineNodes<Code>].node[at % kLineNodes<Code>];
    }

    void set(int64_t first_line, int64_t place, int32_t at) {
        DeepNode<Code>& to = node_at(first_line, place);
        if (at < 0) {
            to = {~at, static_cast<uint32_t>(place) << kColumnBits};
            return;
        }
        const Node<Real>& node = forest.node(at);
        to = {ordered(node.threshold) - (forest.rules().less_equal ? 0 : 1), column(node)};
    }

    // The children of some nodes take a line together: those of one node, of its children and so
    // on, level by level. `parents` are nodes and their places.
    void add(int32_t tree) {
        constexpr int32_t kPairs = kLineNodes<Code> / 2;
        using Placed = std::pair<int32_t, int64_t>;
        const auto first_line = static_cast<int64_t>(deep.lines.size());
        deep.root[tree] = static_cast<int32_t>(first_line);
        deep.lines.emplace_back();
        set(first_line, 0, forest.root(tree));
        int64_t next = 2;  // the place of the next pair of children
        std::vector<Placed> parents;
        if (forest.root(tree) >= 0) parents.push_back({forest.root(tree), 0});
        while (!parents.empty()) {
            std::vector<int32_t> line{parents.back().first};  // whose children are in this line
            for (size_t i = 0; i < line.size(); ++i)
                for (int32_t child : forest.node(line[i]).child)
                    if (child >= 0 && line.size() < kPairs) line.push_back(child);
            const auto here = static_cast<int64_t>(line.size());
            if (next / 2 % kPairs + here > kPairs) next += 2 * (kPairs - next / 2 % kPairs);
            while (int64_t(deep.lines.size()) * kPairs < first_line * kPairs + next / 2 + here)
                deep.lines.emplace_back();
            std::vector<Placed> open{parents.back()}, later;
            parents.pop_back();
            for (size_t i = 0; i < open.size(); ++i) {
                const auto [parent, place] = open[i];
                if (i >= line.size()) {
                    later.push_back(open[i]);
                    continue;
                }
                node_at(first_line, place).word |= static_cast<uint32_t>(next) << kColumnBits;
                for (int32_t child : forest.node(parent).child) {
                    set(first_line, next, child);
                    if (child >= 0) open.push_back({child, next});
                    ++next;
                }
            }
            parents.insert(parents.end(), later.rbegin(), later.rend());
        }
    }
};

}  // namespace

template <class Real>
DeepTrees<Real>::DeepTrees(const Forest<Real>& forest, std::span<const uint8_t> wanted)
    : root(forest.n_trees(), -1) {
    Layout<Real> layout{forest, *this, {}};
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
