#include "core/masked_trees.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "core/cuts.hpp"
#include "core/float_mode.hpp"
#include "core/large_trees.hpp"

namespace qwyc {

namespace {

template <class Real>
struct LayOut {
    const Forest<Real>& forest;
    const Questions<Real>& questions;
    MaskedTrees& out;
    std::map<int32_t, uint16_t> number;  // of each question that is asked here
    struct Leaf {
        int32_t code, leaf;  // leaf number; absolute leaf
    };
    std::vector<Leaf> leaves;
    bool full, bytes;
    int32_t in_use = 0;  // planes
    std::vector<LargeLayout::Flip> changes{};

    // ---- questions ---------------------------------------------------------------------------

    void number_questions(std::span<const int32_t> trees) {
        for (int32_t tree : trees)
            for (int32_t q : questions.of_tree(forest, tree)) number.try_emplace(q, kNone);
        std::map<std::pair<int32_t, bool>, int32_t> slot;  // (feature, zero is missing)
        for (const auto& [q, _] : number) {
            const Question<Real>& question = questions.all[q];
            if (question.asks != Asks::kNever) slot[{question.feature, false}] = -1;
        }
        for (auto& [key, at] : slot) {
            at = static_cast<int32_t>(out.features.size());
            out.features.push_back(key.first);
        }
        out.n_slots = static_cast<int32_t>(out.features.size());
        for (const auto& [q, _] : number) {
            const Question<Real>& question = questions.all[q];
            if (question.asks == Asks::kNever || !question.zero_is_missing) continue;
            const auto [at, added] = slot.try_emplace({question.feature, true}, out.n_slots);
            if (added) out.zeros.push_back({slot[{question.feature, false}], out.n_slots++});
        }
        out.cut_single.push_back(0);
        out.slot.push_back(0);
        const auto add = [&](Asks asks, auto visit) {
            for (auto& [q, named] : number) {
                const Question<Real>& question = questions.all[q];
                if (question.asks != asks) continue;
                named = static_cast<uint16_t>(out.n_questions++);
                out.slot.push_back(slot[{question.feature, question.zero_is_missing}]);
                out.cut_single.push_back(single_cut(question.cut));
                visit(question, named);
            }
        };
        const auto nothing = [](const Question<Real>&, int32_t) {};
        add(Asks::kAtLeast, nothing);
        out.or_missing = out.n_questions;
        add(Asks::kAtLeastOrMissing, nothing);
        out.missing = out.n_questions;
        add(Asks::kMissing, nothing);
        out.first_set = out.n_questions;
        add(Asks::kSet, [&](const Question<Real>& question, int32_t named) {
            if (out.categorical.empty() || out.categorical.back().slot != out.slot.back()) {
                const auto& classes = questions.categories.features.at(question.feature);
                out.categorical.push_back(
                    {out.slot.back(), named, named, classes.count, classes.begin});
            }
            out.categorical.back().end = named + 1;
            out.sets.resize(named + 1);
            out.sets.back() = questions.sets[question.set];
        });
        for (auto& [q, named] : number)
            if (questions.all[q].asks == Asks::kNever) named = 0;
        if constexpr (std::is_same_v<Real, double>) {
            out.cut_double.assign(out.n_questions, 0.0);
            for (const auto& [q, named] : number) out.cut_double[named] = questions.all[q].cut;
        }
        out.class_of = questions.categories.class_of.data();
        out.truncates = forest.rules().truncates;
        make_quads();
        find_ranked();
    }

    // Questions of a slot that ask the same follow each other, cuts ascending.
    void find_ranked() {
        for (int32_t begin = 1, end = 1; begin < out.missing; begin = end) {
            const bool or_missing = begin >= out.or_missing;
            const int32_t last = or_missing ? out.missing : out.or_missing;
            while (end < last && out.slot[end] == out.slot[begin]) ++end;
            if (end - begin >= kMinRanked)
                out.ranked.push_back({out.slot[begin], begin, end, or_missing});
            else if (!out.compared.empty() && out.compared.back().end == begin &&
                     out.compared.back().or_missing == or_missing)
                out.compared.back().end = end;
            else
                out.compared.push_back({begin, end, or_missing});
        }
    }

    void make_quads() {
        const int64_t width = forest.n_features();
        const int32_t unread = out.n_slots++;
        for (size_t i = 0; i < out.features.size();) {
            const auto first = static_cast<int32_t>(
                std::max<int64_t>(0, std::min<int64_t>(out.features[i], width - 4)));
            Quad quad{first, {unread, unread, unread, unread}};
            for (; i < out.features.size() && out.features[i] < first + 4; ++i)
                quad.slot[out.features[i] - first] = static_cast<int32_t>(i);
            if (out.quads.empty() || out.quads.back().feature / 16 != first / 16)
                out.lines.push_back(first);
            out.quads.push_back(quad);
        }
        out.dense = 16 * 2 * static_cast<int64_t>(out.lines.size()) > width;
    }

    // ---- trees -------------------------------------------------------------------------------

    uint16_t question_of(int32_t node) const { return number.at(questions.of_node[node]); }

    int32_t depth_of(int32_t child) const {
        if (child < 0) return 0;
        const Node<Real>& node = forest.node(child);
        return 1 + std::max(depth_of(node.child[0]), depth_of(node.child[1]));
    }

    // The questions of a complete tree of `bits` levels, node `at` of the heap and below. A path
    // that ends early goes left.
    void place_complete(int32_t child, uint16_t* heap, int32_t at, int32_t level, int32_t bits,
                        int32_t code) {
        if (child < 0) {
            leaves.push_back({code << (bits - level), ~child});
            return;
        }
        heap[at] = question_of(child);
        const Node<Real>& node = forest.node(child);
        place_complete(node.child[0], heap, 2 * at + 1, level + 1, bits, 2 * code);
        place_complete(node.child[1], heap, 2 * at + 2, level + 1, bits, 2 * code + 1);
    }

    // The questions level by level where every level asks one; otherwise none.
    std::vector<uint16_t> levels_of(const uint16_t* heap, int32_t bits) const {
        std::vector<uint16_t> asked;
        for (int32_t level = 0; level < bits; ++level) {
            const uint16_t* const first = heap + (1 << level) - 1;
            if (std::any_of(first, first + (1 << level), [=](uint16_t q) { return q != *first; }))
                return {};
            asked.push_back(*first);
        }
        return asked;
    }

    // Appends the splits of a subtree, parents first, and its leaves from the left.
    int32_t place_reach(int32_t child, int32_t& nodes) {
        if (child < 0) {
            leaves.push_back({static_cast<int32_t>(leaves.size()), ~child});
            return kMaxMaskedLeaves + leaves.back().code;
        }
        const int32_t here = nodes++;
        const size_t at = out.splits.size();
        out.splits.push_back({question_of(child), static_cast<uint8_t>(here), 0, 0});
        const int32_t left = place_reach(forest.node(child).child[0], nodes);
        const int32_t right = place_reach(forest.node(child).child[1], nodes);
        out.splits[at].left = static_cast<uint8_t>(left);
        out.splits[at].right = static_cast<uint8_t>(right);
        return here;
    }

    // Sorts the splits from `begin` on, parents before children, by level. A child that followed
    // its parent at once would wait for the parent's masks to be stored.
    void sort_by_level(int32_t begin, int32_t n_nodes) {
        std::vector<int32_t> level(n_nodes, 0);
        const auto first = out.splits.begin() + begin;
        for (auto split = first; split != out.splits.end(); ++split)
            for (int32_t child : {split->left, split->right})
                if (child < kMaxMaskedLeaves) level[child] = level[split->at] + 1;
        std::stable_sort(first, out.splits.end(), [&](const ReachSplit& a, const ReachSplit& b) {
            return level[a.at] < level[b.at];
        });
    }

    void add_tree(int32_t t) {
        if (full && out.trees.size() % kTreesAtOnce == 0) in_use = 0;
        const int32_t root = forest.root(t);
        MaskedTree tree{};
        tree.n_leaves = static_cast<int16_t>(forest.leaves_of(t));
        while ((1 << tree.bits) < tree.n_leaves) ++tree.bits;
        leaves.clear();
        const int32_t depth = depth_of(root);
        if (tree.n_leaves > kMaxMaskedLeaves) {
            add_large(t, tree, depth);
            return;
        }
        // A table of 64 values takes longer than one of 32, unless it is bytes, so a deeper tree of
        // up to 32 leaves is not made complete. One of few leaves never is.
        const int32_t most = bytes && tree.n_leaves > kFewLeaves ? kMaxPlanes : 5;
        if (depth <= std::max<int32_t>(tree.bits, most)) {
            tree.bits = static_cast<uint8_t>(depth);
            tree.form = Form::kComplete;
            std::vector<uint16_t> heap((1 << depth) - 1, 0);
            place_complete(root, heap.data(), 0, 0, depth, 0);
            tree.planes_begin = static_cast<int32_t>(out.planes.size());
            const std::vector<uint16_t> levels =
                tree.n_leaves == 1 << depth ? levels_of(heap.data(), depth) : decltype(heap){};
            if (depth > 0 && !levels.empty()) {
                tree.form = Form::kOblivious;
                out.planes.insert(out.planes.end(), levels.begin(), levels.end());
            } else {
                tree.begin = static_cast<int32_t>(out.heap.size());
                out.heap.insert(out.heap.end(), heap.begin(), heap.end());
                tree.end = static_cast<int32_t>(out.heap.size());
                make_planes(depth);
            }
        } else {
            tree.form = Form::kReach;
            tree.begin = static_cast<int32_t>(out.splits.size());
            int32_t nodes = 0;
            place_reach(root, nodes);
            tree.end = static_cast<int32_t>(out.splits.size());
            sort_by_level(tree.begin, nodes);
            tree.planes_begin = static_cast<int32_t>(out.planes.size());
            make_planes(tree.bits);
        }
        fill_tables(tree);
        out.trees.push_back(tree);
    }

    void add_large(int32_t t, MaskedTree& tree, int32_t depth) {
        tree.planes_begin = static_cast<int32_t>(out.planes.size());
        if (tree.n_leaves == 1 << tree.bits && depth == tree.bits) {
            std::vector<uint16_t> heap(tree.n_leaves - 1, 0);
            place_complete(forest.root(t), heap.data(), 0, 0, depth, 0);
            const std::vector<uint16_t> levels = levels_of(heap.data(), depth);
            if (!levels.empty()) {
                tree.form = Form::kOblivious;
                out.planes.insert(out.planes.end(), levels.begin(), levels.end());
                fill_tables(tree);
                out.trees.push_back(tree);
                return;
            }
        }
        const LargeLayout large =
            lay_out_large(forest, t, [&](int32_t node) { return question_of(node); });
        tree.form = Form::kLarge;
        tree.bits = static_cast<uint8_t>(large.flips.size());
        tree.begin = static_cast<int32_t>(out.divided.size());
        out.divided.insert(out.divided.end(), large.splits.begin(), large.splits.end());
        tree.end = static_cast<int32_t>(out.divided.size());
        tree.flips_begin = static_cast<int32_t>(out.flip_begin.size());
        for (auto flips = large.flips.rbegin(); flips != large.flips.rend(); ++flips) {
            out.flip_begin.push_back(static_cast<int32_t>(changes.size()));
            changes.insert(changes.end(), flips->begin(), flips->end());
            while (changes.size() % kFlipsAtOnce != 0) changes.push_back({-1, -1});
        }
        out.flip_begin.push_back(static_cast<int32_t>(changes.size()));
        out.n_nodes = std::max(out.n_nodes, large.n_nodes);
        make_planes(tree.bits);
        leaves.clear();
        for (size_t i = 0; i < large.leaf.size(); ++i)
            leaves.push_back({large.code[i], large.leaf[i]});
        fill_tables(tree);
        out.trees.push_back(tree);
    }

    // Where masks of nodes are is known when all planes are.
    void place_flips() {
        const int32_t first = out.n_questions + out.n_planes;
        for (const LargeLayout::Flip& flip : changes) {
            const int32_t at = flip.at < 0 ? 0 : first + flip.at;
            const int32_t with = flip.at < 0 ? 0 : flip.question < 0 ? at : flip.question;
            out.flips.push_back({static_cast<uint16_t>(at), static_cast<uint16_t>(with)});
        }
    }

    void make_planes(int32_t bits) {
        for (int32_t b = 0; b < bits; ++b) out.planes.push_back(out.n_questions + in_use++);
        out.n_planes = std::max(out.n_planes, in_use);
    }

    void fill_tables(MaskedTree& tree) {
        const auto size = static_cast<size_t>(size_of_table(tree));
        tree.table_begin = static_cast<int32_t>(out.step_value.size());
        const auto fill = [&](auto& table, auto value) {
            table.resize(tree.table_begin + size);
            for (const Leaf& leaf : leaves) table[tree.table_begin + leaf.code] = value(leaf.leaf);
        };
        fill(out.step_value, [&](int32_t leaf) { return forest.step_value(leaf); });
        if (!full) return;
        const Summation summation = forest.rules().summation;
        if (summation == Summation::kFloat32 || summation == Summation::kFloat32Late) return;
        fill(out.leaf_value.whole, [&](int32_t leaf) { return forest.leaf_value(leaf); });
        if (summation == Summation::kShares)
            fill(out.leaf_other.whole, [&](int32_t leaf) { return forest.leaf_other(leaf); });
    }

    static constexpr uint16_t kNone = 0xffff;
};

}  // namespace

// Kernels may load 64 entries of any table of a tree that is not large.
void halve(const MaskedTrees& trees, DoubleTables& tables) {
    if (tables.whole.empty()) return;
    int32_t end = 0;
    for (const MaskedTree& tree : trees.trees) {
        if (tree.bits > kMaxPlanes) continue;
        end = tree.halves_begin + 2 * size_of_table(tree);
        tables.halves.resize(end);
        for (int32_t i = 0; i < size_of_table(tree); ++i) {
            const auto bits = std::bit_cast<uint64_t>(tables.whole[tree.table_begin + i]);
            uint32_t* const low = &tables.halves[tree.halves_begin + i / 16 * 32 + i % 16];
            low[0] = static_cast<uint32_t>(bits);
            low[16] = static_cast<uint32_t>(bits >> 32);
        }
    }
    tables.halves.resize(end + 64);
}

template <class Real>
MaskedTrees lay_out(const Forest<Real>& forest, const Questions<Real>& questions,
                    std::span<const int32_t> trees, bool full, bool bytes) {
    const PlainFloats plain;  // cuts are rounded
    MaskedTrees out;
    LayOut<Real> layout{forest, questions, out, {}, {}, full, bytes};
    layout.number_questions(trees);
    for (int32_t tree : trees) layout.add_tree(tree);
    out.step_value.resize(out.step_value.size() + 32);  // kernels may load 64 values of any table
    int32_t end = 0;
    for (MaskedTree& tree : out.trees) {
        tree.number_begin = out.number_bytes;
        out.number_bytes += tree.bits > kMaxPlanes ? 128 : 64;
        if (tree.bits > kMaxPlanes) continue;
        tree.halves_begin = end;
        end += 2 * size_of_table(tree);
    }
    halve(out, out.leaf_value);
    halve(out, out.leaf_other);
    layout.place_flips();
    return out;
}

template <class Real>
MaskedTrees lay_out_questions(const Forest<Real>& forest, const Questions<Real>& questions,
                              std::span<const int32_t> trees) {
    const PlainFloats plain;  // cuts are rounded
    MaskedTrees out;
    LayOut<Real>{forest, questions, out, {}, {}, false, false}.number_questions(trees);
    return out;
}

template MaskedTrees lay_out_questions(const Forest<float>&, const Questions<float>&,
                                       std::span<const int32_t>);
template MaskedTrees lay_out_questions(const Forest<double>&, const Questions<double>&,
                                       std::span<const int32_t>);
template MaskedTrees lay_out(const Forest<float>&, const Questions<float>&,
                             std::span<const int32_t>, bool, bool);
template MaskedTrees lay_out(const Forest<double>&, const Questions<double>&,
                             std::span<const int32_t>, bool, bool);

}  // namespace qwyc
