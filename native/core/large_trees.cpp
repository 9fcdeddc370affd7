#include "core/large_trees.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <iterator>
#include <numeric>

#include "core/cost_model.hpp"

namespace qwyc {

namespace {

// In nanoseconds, measured as those in core/cost_model.hpp.
struct Cost {
    // For more than 64 rows, up to kSlab; of a tree whose nodes fit the first-level cache, or not.
    // And for up to 64 rows.
    double split, far_split, one_word_split;
    // For up to 64 rows: numbers and values of a tree; a question that is compared.
    double word_of_tree, word_of_leaf, question;
    // For kSlab rows: of a search that answers many questions, and of each of them.
    double search, found;
    int32_t rank_from;
    // Of a walk, for a row.
    double level;
};
constexpr int64_t kNearLeaves = 384;
constexpr Cost kCosts[] = {{1.9, 2.5, 0.8, 35, 0.1, 1.7, 1150, 2.9, 160, 0.85},  // in the order
                           {3.7, 6.5, 0.8, 45, 0.1, 2.5, 2250, 4.1, 144, 1.4},   // of kMaskIsas
                           {6.5, 9.0, 0.8, 135, 0.1, 14.0, 2150, 4.7, 32, 1.25}};
static_assert(std::size(kCosts) == std::size(kMaskIsas));

// For `words` words of rows: questions about one value, which are of one kind.
double column_cost(const Cost& is, int32_t count, int32_t words) {
    if (count < is.rank_from || words == 1) return is.question * count * words;
    return (is.search + is.found * count) * words / kSlabWords;
}

// Questions by column, of trees that are evaluated on masks together.
template <class Real>
std::vector<int32_t> count_by_column(const Forest<Real>& forest, const Questions<Real>& questions) {
    const auto& all = questions.all;
    std::vector<int32_t> column(all.size()), asked(all.size(), -1), counts;
    for (size_t q = 1; q < all.size(); ++q)
        column[q] = column[q - 1] + (all[q].feature != all[q - 1].feature ||
                                     all[q].zero_is_missing != all[q - 1].zero_is_missing ||
                                     all[q].asks != all[q - 1].asks);
    const size_t n_columns = all.empty() ? 0 : column.back() + 1;
    int32_t part = -1, here = kMaxQuestions;
    for (int32_t t = 0; t < forest.n_trees(); ++t) {
        if (!questions.masked[t]) {  // trees after it are evaluated on their own
            here = kMaxQuestions;
            continue;
        }
        if (here + static_cast<int32_t>(questions.of_tree(forest, t).size()) > kMaxQuestions) {
            ++part, here = 0;
            counts.resize(counts.size() + n_columns);
        }
        for (int32_t q : questions.of_tree(forest, t))
            if (asked[q] != part) asked[q] = part, ++here, ++counts[part * n_columns + column[q]];
    }
    return counts;
}

constexpr int32_t kMaxCodes = 1 << kMaxLargePlanes;

// Numbers that have few bits come first.
const std::array<uint16_t, kMaxCodes>& by_bits() {
    static const std::array<uint16_t, kMaxCodes> sorted = [] {
        std::array<uint16_t, kMaxCodes> all;
        std::iota(all.begin(), all.end(), uint16_t{0});
        std::stable_sort(all.begin(), all.end(), [](uint16_t a, uint16_t b) {
            return std::popcount(a) < std::popcount(b);
        });
        return all;
    }();
    return sorted;
}

template <class Real>
struct Layout {
    const Forest<Real>& forest;
    LargeLayout& out;
    std::vector<int32_t> change;  // by node of the tree: what going right changes
    int64_t first_node;

    // Numbers the leaves of a subtree, from the left; its leftmost leaf is 0. Each split changes as
    // few bits as possible while numbers are below a power of two, which is returned. Gives up, and
    // returns more, where it would be more than `most`.
    int32_t number(int32_t child, int32_t most, std::vector<int32_t>& codes) {
        if (child < 0) {
            codes.push_back(0);
            return 1;
        }
        std::vector<int32_t> right;
        int32_t end = number(forest.node(child).child[0], most, codes);
        end = std::max(end, number(forest.node(child).child[1], most, right));
        while (end < static_cast<int32_t>(codes.size() + right.size())) end *= 2;
        if (end > most) return end;
        const bool more_right = right.size() > codes.size();
        std::bitset<kMaxCodes> taken;
        for (int32_t code : more_right ? right : codes) taken.set(code);
        const std::vector<int32_t>& fewer = more_right ? codes : right;
        const auto fits = [&](int32_t c) {
            return c > 0 && c < end &&
                   std::none_of(
                       fewer.begin(), fewer.end(), [&](int32_t code) { return taken[code ^ c]; });
        };
        const auto found = std::find_if(by_bits().begin(), by_bits().end(), fits);
        const int32_t c = found == by_bits().end() ? end : *found;
        change[child - first_node] = c;
        for (int32_t code : right) codes.push_back(code ^ c);
        return c < end ? end : 2 * end;
    }

    // Consecutive numbers. Returns how many leaves the subtree has.
    int32_t number_from(int32_t child, int32_t first) {
        if (child < 0) {
            out.code.push_back(first);
            return 1;
        }
        const int32_t left = number_from(forest.node(child).child[0], first);
        change[child - first_node] = first ^ (first + left);
        return left + number_from(forest.node(child).child[1], first + left);
    }

    void find_leaves(int32_t child) {
        if (child < 0) {
            out.leaf.push_back(~child);
            return;
        }
        find_leaves(forest.node(child).child[0]);
        find_leaves(forest.node(child).child[1]);
    }
};

// Whether every level of a tree is complete and asks one question.
template <class Real>
bool is_oblivious(const Forest<Real>& forest, const Questions<Real>& questions, int32_t tree) {
    std::vector<int32_t> level{forest.root(tree)}, next;
    for (; level[0] >= 0; level.swap(next), next.clear())
        for (int32_t node : level) {
            if (node < 0 || questions.of_node[node] != questions.of_node[level[0]]) return false;
            for (int32_t child : forest.node(node).child) next.push_back(child);
        }
    return std::all_of(level.begin(), level.end(), [](int32_t child) { return child < 0; });
}

LargeCost cost_of(const Cost& is, int64_t leaves, bool oblivious) {
    const auto n = static_cast<double>(leaves);
    LargeCost cost{0, 0, is.word_of_tree + is.word_of_leaf * n};
    if (oblivious) return cost;
    cost.slab = (leaves > kNearLeaves ? is.far_split : is.split) * n;
    cost.one_word = is.one_word_split * n;
    return cost;
}

// In full scores.
template <class Real>
LargeCost cost_of(const Cost& is, const Forest<Real>& forest, const Questions<Real>& questions,
                  int32_t tree, int32_t tables) {
    LargeCost cost = cost_of(is, forest.leaves_of(tree), is_oblivious(forest, questions, tree));
    cost.word *= tables;
    return cost;
}

// Of a forest of one channel, in full scores.
template <class Real>
int32_t tables_of(const Forest<Real>& forest) {
    return forest.rules().summation == Summation::kShares ? 2 : 1;
}

bool is_large(int64_t leaves) {
    return leaves > kMaxMaskedLeaves && leaves <= kMaxLargeLeaves;
}

template <class Real>
RowsForMasks rows_for_masks(const Forest<Real>& forest, const Questions<Real>& questions,
                            int32_t tables) {
    const std::vector<int32_t> columns = count_by_column(forest, questions);
    RowsForMasks from;
    for (size_t isa = 0; isa < from.size(); ++isa) {
        const Cost& is = kCosts[isa];
        LargeCost trees;
        double walks = 0, begins = 0;  // of walks, for a row and for all
        for (int32_t t = 0; t < forest.n_trees(); ++t) {
            if (!questions.masked[t] || !is_large(forest.leaves_of(t))) continue;
            trees += cost_of(is, forest, questions, t, tables);
            walks += is.level * forest.depth_of(t);
            begins += kDeepSlab;
        }
        from[isa] = kSlab + 1;
        for (int32_t w = kSlabWords; w > 0; --w) {
            double cost = (w == 1 ? trees.one_word : trees.slab) + trees.word * w;
            for (int32_t count : columns) cost += column_cost(is, count, w);
            // No large tree: both are 0.
            const double rows = cost > begins ? (cost - begins) / walks : 0;
            if (rows > 64 * w) break;
            from[isa] = std::max(static_cast<int32_t>(rows), 64 * (w - 1)) + 1;
        }
    }
    return from;
}

}  // namespace

LargeCost large_cost(int64_t leaves, bool oblivious) {
    return cost_of(kCosts[0], leaves, oblivious);
}

template <class Real>
LargeLayout lay_out_large(const Forest<Real>& forest, int32_t tree,
                          const std::function<uint16_t(int32_t)>& question) {
    LargeLayout out{};
    const auto [begin, end] = forest.nodes_of(tree);
    const auto n_leaves = static_cast<int32_t>(end - begin + 1);
    Layout<Real> layout{forest, out, std::vector<int32_t>(end - begin), begin};
    layout.find_leaves(forest.root(tree));
    const auto least = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(n_leaves)));
    int32_t codes = layout.number(forest.root(tree), 2 * least, out.code);
    if (codes > 2 * least || codes > kMaxCodes) {
        out.code.clear();
        layout.number_from(forest.root(tree), 0);
        codes = least;
    }
    out.flips.resize(std::countr_zero(static_cast<uint32_t>(codes)));
    // Nodes level by level. Those whose children are leaves divide no mask: what they change is all
    // that is needed.
    struct Placed {
        int32_t node, at;
    };
    std::vector<Placed> placed{{forest.root(tree), 0}};
    for (size_t i = 0; i < placed.size(); ++i) {
        const auto [node, at] = placed[i];
        const auto& child = forest.node(node).child;
        const uint16_t asked = question(node);
        const auto left = static_cast<int32_t>(2 * out.splits.size() + 1);
        if (child[0] >= 0 || child[1] >= 0)
            out.splits.push_back({asked, static_cast<uint16_t>(at)});
        for (int side = 0; side < 2; ++side)
            if (child[side] >= 0) placed.push_back({child[side], left + side});
        for (size_t b = 0; b < out.flips.size(); ++b)
            if (layout.change[node - begin] >> b & 1)
                out.flips[b].push_back(child[1] < 0 ? LargeLayout::Flip{at, asked}
                                                    : LargeLayout::Flip{left + 1, -1});
    }
    out.n_nodes = static_cast<int32_t>(2 * out.splits.size() + 1);
    return out;
}

template <class Real>
double large_tree_cost(const Forest<Real>& forest, const Questions<Real>& questions, int32_t tree) {
    const LargeCost cost = cost_of(kCosts[0], forest, questions, tree, tables_of(forest));
    return cost.of_a_row();
}

double answers_cost(const MaskedTrees& trees) {
    double cost = 0, compared = trees.n_questions;
    for (const RankedQuestions& ranked : trees.ranked) {
        const int32_t count = ranked.end - ranked.begin;
        if (count < kCosts[0].rank_from) continue;
        compared -= count;
        cost += column_cost(kCosts[0], count, kSlabWords) / kSlab;
    }
    return cost + RowCost::kQuestion * compared;
}

template <class Real>
QuestionsOfLarge<Real> questions_of_large(const Forest<Real>& forest, const Questions<Real>& small,
                                          int32_t tables) {
    const auto n = static_cast<int32_t>(forest.n_trees());
    const auto any = [n](const auto& holds) {
        int32_t t = 0;
        while (t < n && !holds(t)) ++t;
        return t < n;
    };
    if (!any([&](int32_t t) { return is_large(forest.leaves_of(t)); })) return {};
    QuestionsOfLarge<Real> found{
        std::make_unique<Questions<Real>>(forest, kMaxCategoryBytes, kMaxLargeLeaves), {}};
    // Categories that large trees tell apart may be too many for masks, of small trees too.
    if (any([&](int32_t t) { return small.masked[t] && !found.questions->masked[t]; })) return {};
    found.from = rows_for_masks(forest, *found.questions, tables);
    return found;
}

#define QWYC_INSTANTIATE(Real)                                                             \
    template LargeLayout lay_out_large(const Forest<Real>&, int32_t,                       \
                                       const std::function<uint16_t(int32_t)>&);           \
    template double large_tree_cost(const Forest<Real>&, const Questions<Real>&, int32_t); \
    template QuestionsOfLarge<Real> questions_of_large(const Forest<Real>&,                \
                                                       const Questions<Real>&, int32_t);
QWYC_INSTANTIATE(float)
QWYC_INSTANTIATE(double)

}  // namespace qwyc
