// How a forest is laid out: cuts and their grids, classes of categories, columns, small trees.
#include <algorithm>
#include <numeric>
#include <set>

#include "core/plan.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

std::vector<int32_t> natural_order(int32_t n) {
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

template <class Real>
Plan<Real> plan_of(const Forest<Real>& forest, int64_t max_bytes = kMaxCategoryBytes) {
    const auto order = natural_order(static_cast<int32_t>(forest.n_trees()));
    return Plan<Real>(forest, order, max_bytes);
}

// ---- cuts ------------------------------------------------------------------------------------

// The rank of x as the documentation of Cuts says that it is found.
template <class Real>
int32_t rank_of(const Cuts<Real>& cuts, Real x) {
    if (cuts.cells == 0) {
        int32_t rank = 0;
        for (int32_t half = 1 << cuts.halvings >> 1; half > 0; half >>= 1)
            rank += x >= cuts.cut.at(rank + half - 1) ? half : 0;
        return rank;
    }
    const Real cell = (x - cuts.low) * cuts.scale, last = Real(cuts.cells - 1);
    const int32_t first =
        cuts.start.at(static_cast<size_t>(cell > 0 ? (cell < last ? cell : last) : 0));
    int32_t rank = first;
    for (int32_t j = 0; j < cuts.probes; ++j) rank += x >= cuts.cut.at(first + j) ? 1 : 0;
    return rank;
}

template <class Real>
Cuts<Real> check_ranks(const std::vector<Real>& values) {
    constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    Cuts<Real> cuts;
    cuts.cut = values;
    cuts.finish();
    const std::set<Real> distinct(values.begin(), values.end());
    CHECK_EQUAL(cuts.count, static_cast<int32_t>(distinct.size()));
    CHECK(std::is_sorted(cuts.cut.begin(), cuts.cut.begin() + cuts.count));
    CHECK(std::all_of(cuts.cut.begin() + cuts.count, cuts.cut.end(),
                      [](Real x) { return std::isnan(x); }));
    std::vector<Real> asked = {0,
                               1,
                               -1,
                               kInfinity,
                               -kInfinity,
                               std::numeric_limits<Real>::denorm_min(),
                               std::numeric_limits<Real>::max(),
                               std::numeric_limits<Real>::lowest()};
    for (Real x : distinct)
        for (Real near : {x, std::nextafter(x, kInfinity), std::nextafter(x, -kInfinity)})
            asked.push_back(near);
    for (Real x : asked) {
        const auto at_most =
            std::count_if(distinct.begin(), distinct.end(), [x](Real cut) { return cut <= x; });
        CHECK_EQUAL(rank_of(cuts, x), static_cast<int32_t>(at_most));
    }
    return cuts;
}

template <class Real>
void check_cuts() {
    constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
    check_ranks<Real>({});
    check_ranks<Real>({0});
    check_ranks<Real>({3, 3, 3, -1});
    check_ranks<Real>({-kInfinity, kInfinity});
    check_ranks<Real>({-kInfinity, 0, 1, 2, 3, kInfinity});
    check_ranks<Real>({std::numeric_limits<Real>::max(), std::numeric_limits<Real>::lowest(), 0});
    check_ranks<Real>(
        {std::numeric_limits<Real>::denorm_min(), 0, -std::numeric_limits<Real>::denorm_min(), 1});
    Random random(1);
    for (int32_t n : {2, 3, 7, 8, 9, 60, 254, 255, 256, 1000}) {
        std::vector<Real> even, uneven;
        for (int32_t i = 0; i < n; ++i) {
            even.push_back(static_cast<Real>(random.normal()));
            uneven.push_back(static_cast<Real>(std::pow(10.0, -30 * random.uniform())));
        }
        const Cuts<Real> on_grid = check_ranks(even);
        if (n >= 60) CHECK(on_grid.cells > 0);
        check_ranks(uneven);
    }
}

TEST(ranks_among_cuts) {
    check_cuts<float>();
    check_cuts<double>();
}

TEST(cuts_far_from_even_are_found_by_halving) {
    std::vector<float> clustered = {-7, -1};
    for (int i = 0; i < 60; ++i) clustered.push_back(std::pow(10.0f, -6.0f + 0.1f * float(i)));
    CHECK_EQUAL(check_ranks(clustered).cells, 0);
}

TEST(a_cut_says_left_as_the_threshold_does) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (float threshold : {0.0f, -0.0f, 1.5f, -3e38f, 1e-45f, -kInfinity}) {
        for (float x : {threshold, std::nextafter(threshold, kInfinity),
                        std::nextafter(threshold, -kInfinity), 0.0f, -kInfinity, kInfinity}) {
            CHECK_EQUAL(x < cut_of(threshold, false), x < threshold);
            CHECK_EQUAL(x < cut_of(threshold, true), x <= threshold);
        }
        CHECK(!always_left(threshold, true));
    }
    CHECK(always_left(kInfinity, true));
    CHECK(!always_left(kInfinity, false));  // x < infinity is false for infinity
}

// ---- categories ------------------------------------------------------------------------------

using Words = std::vector<uint32_t>;

Words words_of_codes(const std::vector<int32_t>& codes) {
    Words words;
    for (int32_t code : codes) {
        if (words.size() <= static_cast<size_t>(code / 32)) words.resize(code / 32 + 1, 0);
        words[code / 32] |= uint32_t{1} << code % 32;
    }
    return words;
}

TEST(codes_that_no_set_tells_apart_are_one_class) {
    const Words a = words_of_codes({0, 1, 2, 3}), b = words_of_codes({2, 3, 40});
    const CategoryTables tables = make_category_tables({{7, {a, b, a}}});
    const auto& classes = tables.features.at(7);
    CHECK_EQUAL(classes.count, 64);
    CHECK_EQUAL(tables.class_of.size(), 64u);
    const auto class_of = [&](int32_t code) { return +tables.class_of[classes.begin + code]; };
    CHECK_EQUAL(class_of(0), class_of(1));
    CHECK_EQUAL(class_of(2), class_of(3));
    CHECK(class_of(0) != class_of(2) && class_of(0) != class_of(40) && class_of(2) != class_of(40));
    CHECK_EQUAL(class_of(4), +kNoClass);
    CHECK_EQUAL(class_of(63), +kNoClass);
    for (int32_t code : {0, 2, 40})
        CHECK_EQUAL(class_of(classes.example[class_of(code)]), class_of(code));
}

TEST(features_with_more_classes_than_a_byte_counts_have_no_table) {
    std::vector<Words> each;
    for (int32_t code = 0; code < 300; ++code) each.push_back(words_of_codes({code}));
    for (const auto& [n_sets, fits] : {std::pair(253, true), std::pair(254, false)}) {
        const std::vector<CategorySet> sets(each.begin(), each.begin() + n_sets);
        CHECK_EQUAL(make_category_tables({{0, sets}}).features.contains(0), fits);
    }
}

TEST(tables_take_no_more_than_they_may) {
    const Words few = words_of_codes({5}), many = words_of_codes({1000});  // 32 and 1024 codes
    const std::map<int32_t, std::vector<CategorySet>> sets{{0, {many}}, {1, {many}}, {2, {few}}};
    for (const auto& [max_bytes, n_fit] :
         {std::pair(2080, 3u), std::pair(2079, 2u), std::pair(1056, 2u), std::pair(1055, 1u),
          std::pair(32, 1u), std::pair(31, 0u)}) {
        const CategoryTables tables = make_category_tables(sets, max_bytes);
        CHECK_EQUAL(tables.features.size(), n_fit);
        CHECK(static_cast<int>(tables.class_of.size()) <= max_bytes);
        CHECK_EQUAL(tables.features.contains(2), n_fit > 0);  // the smallest comes first
    }
}

TEST(offsets_of_tables_past_32_bits_are_not_even_allocated) {
    const Words largest = words_of_codes({kMaxCategoryCodes - 1});
    std::map<int32_t, std::vector<CategorySet>> sets;
    for (int32_t feature = 0; feature < 129; ++feature) sets[feature] = {largest};
    const CategoryTables tables = make_category_tables(sets);
    CHECK_EQUAL(tables.features.size(), 4u);
    CHECK_EQUAL(static_cast<int64_t>(tables.class_of.size()), kMaxCategoryBytes);
}

TEST(codes_from_2_to_the_24_on_are_in_no_set) {
    Words beyond(kMaxCategoryCodes / 32 + 1, 0);
    beyond.back() = 1;  // code 2^24
    beyond[0] = 1;
    CHECK_EQUAL(make_category_tables({{0, {beyond}}}).features.at(0).count, kMaxCategoryCodes);
}

// ---- plans -----------------------------------------------------------------------------------

TEST(more_cuts_than_a_byte_counts_take_several_columns) {
    Trees<double> trees;
    trees.n_features = 1;
    for (int32_t i = 0; i < 600; ++i) trees.add_stump(0, i, kDefaultLeft, -1, 1);
    const Forest<double> forest = trees.forest();
    const Plan<double> plan = plan_of(forest);
    CHECK_EQUAL(plan.cuts[0].count, 600);
    CHECK_EQUAL(plan.columns.size(), 3u);  // 253 cuts each
    for (const Column& column : plan.columns) CHECK(column.count <= 253 && column.missing == 0);
    CHECK_EQUAL(plan.columns[2].first, 506);
    CHECK_EQUAL(plan.columns[2].first_use, 506);
    CHECK_EQUAL(plan.columns[0].last_use, 252);
}

// A complete tree; question(level, place) adds a node.
template <class Real, class Question>
int32_t complete(Trees<Real>& trees, int32_t level, int32_t place, int32_t depth,
                 Question question) {
    if (level == depth) return trees.add_leaf(place);
    const int32_t node = question(level, place);
    const int32_t left = complete(trees, level + 1, 2 * place, depth, question);
    const int32_t right = complete(trees, level + 1, 2 * place + 1, depth, question);
    trees.set_children(node, left, right);
    return node;
}

TEST(trees_with_one_question_per_level_are_oblivious) {
    Trees<float> trees;
    for (bool same : {true, false})
        for (int32_t depth : {1, 2, 5, 8}) {
            complete(trees, 0, 0, depth, [&](int32_t level, int32_t place) {
                const bool odd_one = !same && level == depth - 1 && place == 1;
                return trees.add_node(level % 3, odd_one ? 9.5f : 0.1f * float(level), 0);
            });
            trees.end_tree();
        }
    const Forest<float> forest = trees.forest();
    const Plan<float> plan = plan_of(forest);
    const bool expected[] = {false, true, true, true, false, false, false, false};
    for (int32_t t = 0; t < 8; ++t) {
        const SmallTree& tree = plan.small[t];
        CHECK_EQUAL(tree.oblivious, expected[t]);
        const int32_t depth = std::bit_width(static_cast<uint32_t>(tree.n_leaves)) - 1;
        CHECK_EQUAL(tree.split_end - tree.split_begin, expected[t] ? depth : tree.n_leaves - 1);
    }
}

TEST(trees_of_more_than_256_leaves_are_walked) {
    Trees<float> trees;
    for (int32_t leaves : {256, 257}) {
        // A chain: every left child is a leaf.
        for (int32_t i = 0; i + 1 < leaves; ++i) {
            trees.add_node(0, static_cast<float>(i), 0);
            const int32_t leaf = trees.add_leaf(i);
            trees.set_children(i, leaf, i + 2 < leaves ? i + 1 : ~(leaves - 1));
        }
        trees.add_leaf(leaves);
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const Plan<float> plan = plan_of(forest);
    CHECK_EQUAL(plan.small[0].n_leaves, 256);
    CHECK_EQUAL(plan.small[1].n_leaves, 0);
    CHECK_EQUAL(plan.cuts[0].count, 255);  // those of small trees only
}

TEST(trees_with_categories_that_have_no_table_are_walked) {
    Trees<float> trees;
    trees.add_stump(0, 0, kCategorical, 1, 2, {7});
    trees.add_stump(1, 0, kCategorical, 1, 2, {4000});
    trees.add_stump(2, 0.5f, 0, 1, 2);
    const Forest<float> forest = trees.forest();
    const auto walked = [&](int64_t max_bytes) {
        std::vector<int32_t> found;
        const Plan<float> plan = plan_of(forest, max_bytes);
        for (int32_t t = 0; t < 3; ++t)
            if (plan.small[t].n_leaves == 0) found.push_back(t);
        return found;
    };
    CHECK(walked(kMaxCategoryBytes).empty());
    CHECK(walked(100) == std::vector<int32_t>{1});
    CHECK((walked(0) == std::vector<int32_t>{0, 1}));
}

TEST(equal_questions_share_a_column_and_a_set) {
    Trees<float> trees;
    for (int32_t i = 0; i < 3; ++i) {
        trees.add_stump(0, 1, 0, 1, 2);
        trees.add_stump(0, 1, kDefaultLeft, 1, 2);  // missing is another code
        trees.add_stump(0, 1, kZeroIsMissing, 1, 2);
        trees.add_stump(1, 0, kCategorical, 1, 2, {3, 4});
    }
    const Forest<float> forest = trees.forest();
    const Plan<float> plan = plan_of(forest);
    CHECK_EQUAL(plan.columns.size(), 4u);
    CHECK_EQUAL(plan.sets.size(), 32u);
    for (int32_t c = 0; c < 4; ++c) {
        CHECK_EQUAL(plan.columns[c].first_use, c);
        CHECK_EQUAL(plan.columns[c].last_use, 8 + c);
    }
}

}  // namespace
