// How small trees are laid out: which form they take, and that the layout leads every row to the
// leaf that a walk reaches.
#include <algorithm>
#include <bit>
#include <set>
#include <string>

#include "core/large_trees.hpp"
#include "core/masked_trees.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"
#include "tests/laid_rows.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

template <class Real>
MaskedTrees lay_out_all(const Forest<Real>& forest, const Questions<Real>& questions, bool full) {
    return lay_out(forest, questions, natural_order(forest.n_trees()), full);
}

// ---- leaves ----------------------------------------------------------------------------------

// Values by which leaves are told apart.
template <class Real>
void number_leaves(Trees<Real>& trees) {
    trees.rules.divisor = 1;
    std::iota(trees.leaf_value.begin(), trees.leaf_value.end(), 1.0);
    std::iota(trees.leaf_other.begin(), trees.leaf_other.end(), 0.5);
}

template <class V, class In, class Real>
void check_leaves(const Trees<Real>& trees, const Forest<Real>& forest, const MaskedTrees& layout,
                  std::span<const int32_t> order, const std::vector<In>& rows,
                  const std::string& context) {
    for (size_t at = 0; at < rows.size(); at += trees.n_features) {
        const In* const row = &rows[at];
        for (size_t k = 0; k < order.size(); ++k) {
            int32_t leaf = forest.root(order[k]);
            forest.template walk<1>(&leaf, row);
            CHECK_EQUAL(~leaf, leaf_of(trees, order[k], row));
            const MaskedTree& tree = layout.trees[k];
            const int32_t place =
                tree.table_begin + number_from(layout, tree, [&](int32_t question) {
                    return answer_to<V>(layout, question, row);
                });
            if (layout.step_value.at(place) != forest.step_value(~leaf))
                return check::fail(__FILE__, __LINE__,
                                   context + ": tree " + std::to_string(order[k]) + ", row " +
                                       std::to_string(at / trees.n_features));
            if (!layout.leaf_value.whole.empty())
                CHECK_EQUAL(layout.leaf_value.whole.at(place), forest.leaf_value(~leaf));
            if (!layout.leaf_other.whole.empty())
                CHECK_EQUAL(layout.leaf_other.whole.at(place), forest.leaf_other(~leaf));
        }
    }
}

template <class Real>
void check_layout(uint64_t seed, Trees<Real> trees, int64_t n) {
    make_thresholds_odd(trees, seed);
    number_leaves(trees);
    const Forest<Real> forest = trees.forest();
    const Questions<Real> questions(forest, kMaxCategoryBytes, kMaxLargeLeaves);
    const std::string context = "seed " + std::to_string(seed);
    const auto singles = hostile_rows<float>(trees, seed, n);
    const auto doubles = hostile_rows<double>(trees, seed + 1, n);
    std::vector<int32_t> order = Policy(seed, trees.n_trees(), 0, 1).order;
    for (const auto& [full, bytes] :
         {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
        const MaskedTrees layout = lay_out(forest, questions, order, full, bytes);
        CHECK_EQUAL(layout.trees.size(), order.size());
        // Floats may be compared as such by either forest, doubles where it compares floats.
        check_leaves<float>(trees, forest, layout, order, singles, context + " floats");
        if constexpr (std::is_same_v<Real, double>)
            check_leaves<double>(trees, forest, layout, order, doubles, context + " doubles");
        else
            check_leaves<float>(trees, forest, layout, order, doubles,
                                context + " doubles as floats");
        order.resize(order.size() / 2);  // and of some trees only
    }
}

TEST(every_row_reaches_the_leaf_of_its_walk) {
    for (uint64_t seed = 0; seed < 12; ++seed)
        for (int64_t n_features : {1, 5, 40}) {
            Shape shape;
            shape.special = seed % 3 != 2;
            check_layout(seed, trees_of_all_forms<float>(seed, n_features, shape, 3), 150);
            check_layout(seed, trees_of_all_forms<double>(seed, n_features, shape, 3), 150);
        }
}

TEST(every_row_reaches_its_leaf_of_a_large_tree) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
        const Shape shape{.special = seed != 2};
        check_layout(seed, large_trees<float>(seed, 5, shape), 20);
        check_layout(seed, large_trees<double>(seed, 5, shape), 20);
    }
}

// ---- forms -----------------------------------------------------------------------------------

template <class Grow>
MaskedTrees layout_of_one(Grow grow, bool full = false) {
    Trees<float> trees;
    trees.n_features = 40;
    Random random(7);
    grow(trees, random);
    if (trees.n_trees() == 0) trees.end_tree();
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    return lay_out_all(forest, questions, full);
}

const Shape kPlain{.special = false};

TEST(trees_with_one_question_per_level_are_oblivious) {
    for (int32_t depth = 1; depth <= 6; ++depth)
        for (bool same : {true, false}) {
            const MaskedTrees layout = layout_of_one([&](Trees<float>& trees, Random& random) {
                add_complete(trees, random, depth, [&](int32_t level, int32_t place) {
                    const bool odd_one = !same && place == (1 << level) - 1;
                    return trees.add_node(level, odd_one ? 9.5f : 0.1f * float(level), 0);
                });
            });
            const MaskedTree& tree = layout.trees[0];
            CHECK_EQUAL(+tree.bits, depth);
            // A tree of one split asks one question on its only level.
            CHECK(tree.form == (same || depth == 1 ? Form::kOblivious : Form::kComplete));
            if (tree.form == Form::kOblivious) {
                CHECK_EQUAL(layout.n_planes, 0);
                CHECK_EQUAL(layout.n_questions, depth + 1);
                for (int32_t b = 0; b < depth; ++b)
                    CHECK_EQUAL(layout.features[layout.slot[layout.planes[tree.planes_begin + b]]],
                                b);
            } else {
                CHECK_EQUAL(layout.n_planes, depth);
                CHECK_EQUAL(tree.end - tree.begin, (1 << depth) - 1);
            }
        }
}

TEST(trees_of_up_to_five_levels_are_complete) {
    for (int32_t leaves = 3; leaves <= 6; ++leaves) {
        const MaskedTrees layout = layout_of_one(
            [&](Trees<float>& trees, Random& random) { add_chain(trees, random, kPlain, leaves); });
        CHECK(layout.trees[0].form == Form::kComplete);
        CHECK_EQUAL(+layout.trees[0].bits, leaves - 1);  // a path
        CHECK_EQUAL(layout.n_planes, leaves - 1);
    }
}

TEST(deeper_trees_are_made_from_the_rows_that_reach_each_leaf) {
    for (const auto& [leaves, bits] : {std::pair(7, 3), std::pair(8, 3), std::pair(9, 4),
                                       std::pair(32, 5), std::pair(33, 6), std::pair(64, 6)}) {
        const MaskedTrees layout = layout_of_one(
            [&](Trees<float>& trees, Random& random) { add_chain(trees, random, kPlain, leaves); });
        const MaskedTree& tree = layout.trees[0];
        CHECK(tree.form == Form::kReach);
        CHECK_EQUAL(+tree.bits, bits);
        CHECK_EQUAL(tree.n_leaves, leaves);
        CHECK_EQUAL(tree.end - tree.begin, leaves - 1);
        std::set<int32_t> reached = {0};  // parents come first, and every place is reached once
        for (int32_t i = tree.begin; i < tree.end; ++i) {
            const ReachSplit& split = layout.splits[i];
            CHECK(reached.contains(split.at));
            CHECK(reached.insert(split.left).second);
            CHECK(reached.insert(split.right).second);
        }
    }
}

TEST(a_tree_of_six_levels_is_complete_where_it_has_more_than_32_leaves) {
    for (int32_t leaves : {32, 33, 64}) {
        const MaskedTrees layout = layout_of_one([&](Trees<float>& trees, Random& random) {
            // Leaves are taken from the right: the tree has six levels on its left.
            const auto place = [&](auto&& self, int32_t level, int32_t left_over) -> int32_t {
                if (level == 6 || left_over == 1) return add_random_leaf(trees, random);
                const int32_t node = add_random_node(trees, random, kPlain);
                const int32_t most = 1 << (5 - level);
                const int32_t on_left = std::min(most, left_over - 1);
                const int32_t left = self(self, level + 1, on_left);
                trees.set_children(node, left, self(self, level + 1, left_over - on_left));
                return node;
            };
            place(place, 0, leaves);
        });
        const MaskedTree& tree = layout.trees[0];
        CHECK_EQUAL(tree.n_leaves, leaves);
        CHECK(tree.form == (leaves > 32 ? Form::kComplete : Form::kReach));
        CHECK_EQUAL(+tree.bits, leaves > 32 ? 6 : 5);
    }
}

TEST(a_tree_of_one_leaf_has_no_planes) {
    const MaskedTrees layout =
        layout_of_one([](Trees<float>& trees, Random&) { trees.add_leaf(0.75); }, true);
    CHECK_EQUAL(+layout.trees[0].bits, 0);
    CHECK(layout.trees[0].form == Form::kComplete);
    CHECK_EQUAL(layout.n_questions, 1);
    CHECK_EQUAL(layout.n_masks(), 1);
    CHECK(layout.features.empty() && layout.quads.empty());
    CHECK_EQUAL(layout.step_value[0], 0.75f);
    CHECK_EQUAL(layout.leaf_value.whole[0], 0.75);
}

// ---- arrays ----------------------------------------------------------------------------------

TEST(planes_are_used_again_by_full_scores_only) {
    Trees<float> trees;
    Random random(3);
    for (int32_t t = 0; t < 3 * kTreesAtOnce + 5; ++t) {
        grow_leaves(trees, random, kPlain, 20);
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    const MaskedTrees full = lay_out_all(forest, questions, true);
    const MaskedTrees steps = lay_out_all(forest, questions, false);
    CHECK(full.n_planes <= kTreesAtOnce * kMaxPlanes && full.n_planes >= kTreesAtOnce);
    CHECK(steps.n_planes > 3 * kTreesAtOnce);
    CHECK(full.leaf_value.whole.size() >= 32u * trees.n_trees() && steps.leaf_value.whole.empty());
    for (const MaskedTrees& layout : {full, steps}) {
        CHECK_EQUAL(layout.planes.size(), steps.planes.size());
        for (int32_t t = 0; t < layout.n_trees(); t += kTreesAtOnce) {
            std::set<int32_t> taken;  // by trees that have planes at the same time
            for (int32_t k = t; k < std::min(t + kTreesAtOnce, layout.n_trees()); ++k)
                for (int32_t b = 0; b < layout.trees[k].bits; ++b) {
                    const int32_t plane = layout.planes[layout.trees[k].planes_begin + b];
                    CHECK(plane >= layout.n_questions && plane < layout.n_masks());
                    CHECK(taken.insert(plane).second);
                }
        }
    }
}

TEST(tables_may_be_loaded_whole) {
    Trees<float> trees = trees_of_all_forms<float>(4, 5);
    for (bool end_small : {true, false}) {
        if (!end_small) {
            Random random(1);
            grow_leaves(trees, random, kPlain, 64);
            trees.end_tree();
        }
        const Forest<float> forest = trees.forest();
        const Questions<float> questions(forest);
        const MaskedTrees layout = lay_out_all(forest, questions, true);
        for (const MaskedTree& tree : layout.trees)
            CHECK(layout.step_value.size() >= static_cast<size_t>(tree.table_begin) + 64);
    }
}

TEST(halves_are_the_words_of_the_doubles) {
    Trees<double> trees = large_trees<double>(4, 5);
    trees.rules.summation = Summation::kShares;
    trees.leaf_other.assign(trees.leaf_value.size(), -0.1);
    std::iota(trees.leaf_value.begin(), trees.leaf_value.end(), 0.1);
    const Forest<double> forest = trees.forest();
    const Questions<double> questions(forest, kMaxCategoryBytes, kMaxLargeLeaves);
    const MaskedTrees layout = lay_out_all(forest, questions, true);
    int32_t small = 0;
    for (const MaskedTree& tree : layout.trees) {
        if (tree.bits > kMaxPlanes) continue;
        ++small;
        for (const DoubleTables* tables : {&layout.leaf_value, &layout.leaf_other}) {
            CHECK(tables->halves.size() >= static_cast<size_t>(tree.halves_begin) + 128);
            for (int32_t i = 0; i < 1 << tree.bits; ++i) {
                const uint32_t* const low =
                    &tables->halves[tree.halves_begin + i / 16 * 32 + i % 16];
                CHECK_EQUAL(low[0] | uint64_t{low[16]} << 32,
                            std::bit_cast<uint64_t>(tables->whole[tree.table_begin + i]));
            }
        }
    }
    CHECK(small >= 2);
}

TEST(large_trees_have_numbers_of_their_own_and_flips_in_fours) {
    const Trees<float> trees = large_trees<float>(3, 5);
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest, kMaxCategoryBytes, kMaxLargeLeaves);
    const MaskedTrees layout = lay_out_all(forest, questions, true);
    int32_t large = 0, oblivious = 0;
    for (int32_t t = 0; t < layout.n_trees(); ++t) {
        const MaskedTree& tree = layout.trees[t];
        if (!layout.is_large(t)) continue;
        CHECK(tree.bits <= kMaxLargePlanes && 1 << tree.bits < 4 * tree.n_leaves);
        oblivious += tree.form == Form::kOblivious;
        if (tree.form != Form::kLarge) continue;
        ++large;
        const LargeLayout one = lay_out_large(forest, t, [](int32_t) { return uint16_t{1}; });
        CHECK_EQUAL(std::set<int32_t>(one.code.begin(), one.code.end()).size(),
                    static_cast<size_t>(tree.n_leaves));
        CHECK(*std::max_element(one.code.begin(), one.code.end()) < 1 << tree.bits);
        CHECK(one.n_nodes <= layout.n_nodes);
        for (int32_t b = 0; b < tree.bits; ++b) {
            const int32_t* const begin = &layout.flip_begin.at(tree.flips_begin + b);
            CHECK(begin[0] % kFlipsAtOnce == 0 && begin[1] % kFlipsAtOnce == 0);
        }
    }
    CHECK(large >= 12 && oblivious == 4);
}

TEST(quads_hold_each_feature_once_and_end_within_the_row) {
    Random random(5);
    for (int64_t width : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 40, 100, 2000})
        for (int32_t n_stumps : {1, 2, 5, 30, 300}) {
            Trees<float> trees;
            trees.n_features = width;
            for (int32_t t = 0; t < n_stumps; ++t)
                trees.add_stump(random.below(static_cast<int32_t>(width)), 0.5f,
                                random.below(2) ? +kZeroIsMissing : 0, 1, 2);
            const Forest<float> forest = trees.forest();
            const Questions<float> questions(forest);
            const MaskedTrees layout = lay_out_all(forest, questions, false);
            const std::set<int32_t> split_on(trees.feature.begin(), trees.feature.end());
            CHECK(std::equal(split_on.begin(), split_on.end(), layout.features.begin(),
                             layout.features.end()));
            std::vector<int32_t> filled(layout.n_slots, 0);
            const int32_t unread = layout.n_slots - 1;
            for (const Quad& quad : layout.quads) {
                CHECK(quad.feature >= 0 && quad.feature <= std::max<int64_t>(0, width - 4));
                for (int32_t k = 0; k < 4; ++k) {
                    ++filled.at(quad.slot[k]);
                    if (quad.slot[k] != unread)
                        CHECK_EQUAL(layout.features.at(quad.slot[k]), quad.feature + k);
                }
            }
            for (const ZeroIsMissing& zero : layout.zeros) {
                CHECK_EQUAL(filled.at(zero.from), 1);
                ++filled.at(zero.to);
            }
            for (int32_t slot = 0; slot < unread; ++slot) CHECK_EQUAL(filled[slot], 1);
            for (int32_t q = 1; q < layout.n_questions; ++q) CHECK(layout.slot[q] < unread);
            for (int32_t line : layout.lines) CHECK(line >= 0 && line < width);
        }
}

// A tree of 6 levels and some leaves.
Form form_of(int32_t leaves, bool bytes) {
    Trees<float> trees;
    Random random(1);
    const auto question = [&](int32_t, int32_t) {
        return add_random_node(trees, random, {.special = false});
    };
    // A complete tree of 5 levels, or fewer, beside a path.
    const int32_t root = question(0, 0);
    const int32_t levels = std::bit_width(static_cast<uint32_t>(leaves - 6)) - 1;
    const int32_t right = add_complete(trees, random, levels, question);
    const int32_t path = question(0, 0);
    for (int32_t at = path, i = 0; i < 5; ++i) {
        const int32_t leaf = add_random_leaf(trees, random);
        const int32_t next = i < 4 ? question(0, 0) : add_random_leaf(trees, random);
        trees.set_children(at, leaf, next);
        at = next;
    }
    trees.set_children(root, path, right);
    trees.end_tree();
    const Forest<float> forest = trees.forest();
    CHECK_EQUAL(forest.leaves_of(0), leaves);
    const std::vector<int32_t> order = {0};
    return lay_out<float>(forest, Questions<float>(forest), order, true, bytes).trees[0].form;
}

TEST(trees_whose_tables_are_bytes_are_complete_unless_they_have_few_leaves) {
    CHECK(form_of(22, false) == Form::kReach);
    CHECK(form_of(22, true) == Form::kComplete);
    CHECK(form_of(14, true) == Form::kReach);
    CHECK(form_of(38, false) == Form::kComplete);
}

}  // namespace
