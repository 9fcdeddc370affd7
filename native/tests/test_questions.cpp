// The different splits of a forest, and the classes of its categories.
#include <algorithm>

#include "core/questions.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

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

// ---- questions -------------------------------------------------------------------------------

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The question of a forest's only split.
Question<float> question_of(float at, uint8_t flags, bool less_equal,
                            const std::vector<int32_t>& codes = {}) {
    Trees<float> trees;
    trees.rules.less_equal = less_equal;
    trees.add_stump(3, at, flags, 1, 2, codes);
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    CHECK_EQUAL(questions.all.size(), 1u);
    CHECK_EQUAL(questions.of_node.at(0), 0);
    return questions.all.at(0);
}

TEST(what_a_split_asks) {
    using Asked = Question<float>;
    CHECK((question_of(1.5f, kDefaultLeft, false) == Asked{3, false, Asks::kAtLeast, 1.5f, -1}));
    CHECK((question_of(1.5f, 0, false) == Asked{3, false, Asks::kAtLeastOrMissing, 1.5f, -1}));
    CHECK((question_of(1.5f, 0, true) ==
           Asked{3, false, Asks::kAtLeastOrMissing, std::nextafter(1.5f, 2.0f), -1}));
    CHECK((question_of(1.5f, kZeroIsMissing, false) ==
           Asked{3, true, Asks::kAtLeastOrMissing, 1.5f, -1}));
    CHECK((question_of(kInfinity, 0, true) == Asked{3, false, Asks::kMissing, 0.0f, -1}));
    CHECK(
        (question_of(kInfinity, kZeroIsMissing, true) == Asked{3, true, Asks::kMissing, 0.0f, -1}));
    CHECK((question_of(kInfinity, kDefaultLeft, true) == Asked{0, false, Asks::kNever, 0.0f, -1}));
    // x < infinity is no for infinity itself.
    CHECK((question_of(kInfinity, kDefaultLeft, false) ==
           Asked{3, false, Asks::kAtLeast, kInfinity, -1}));
    CHECK((question_of(0, kCategorical, false, {7}) == Asked{3, false, Asks::kSet, 0.0f, 0}));
    CHECK(!std::signbit(question_of(-0.0f, 0, false).cut));
}

TEST(sets_hold_the_classes_that_go_right) {
    for (bool in_set_left : {false, true})
        for (bool missing_left : {false, true}) {
            Trees<float> trees;
            const int flags =
                kCategorical | (in_set_left ? kInSetLeft : 0) | (missing_left ? kDefaultLeft : 0);
            trees.add_stump(0, 0, static_cast<uint8_t>(flags), 1, 2, {3, 40});
            trees.add_stump(0, 0, static_cast<uint8_t>(flags), 1, 2, {3});
            const Forest<float> forest = trees.forest();
            const Questions<float> questions(forest);
            const ClassSet& set = questions.sets[questions.all[questions.of_node[0]].set];
            const auto goes_right = [&](uint8_t code) {
                return (set[code / 8] >> code % 8 & 1) != 0;
            };
            const auto class_of = [&](int32_t code) { return questions.categories.class_of[code]; };
            CHECK_EQUAL(goes_right(class_of(3)), !in_set_left);
            CHECK_EQUAL(goes_right(class_of(40)), !in_set_left);
            CHECK_EQUAL(goes_right(class_of(4)), in_set_left);
            CHECK_EQUAL(goes_right(kNoClass), in_set_left);
            CHECK_EQUAL(goes_right(kMissingClass), !missing_left);
        }
}

TEST(equal_splits_are_one_question) {
    Trees<float> trees;
    for (int32_t i = 0; i < 3; ++i) {
        trees.add_stump(0, 1, 0, 1, 2);
        trees.add_stump(0, 1, kDefaultLeft, 1, 2);  // a missing value goes elsewhere
        trees.add_stump(0, 1, kZeroIsMissing, 1, 2);
        trees.add_stump(1, 0, kCategorical, 1, 2, {3, 4});
        trees.add_stump(2, i == 0 ? 0.0f : -0.0f, 0, 1, 2);
    }
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    CHECK_EQUAL(questions.all.size(), 5u);
    CHECK_EQUAL(questions.sets.size(), 1u);
    CHECK(std::is_sorted(questions.all.begin(), questions.all.end()));
    for (int32_t i = 0; i < 5; ++i) {
        CHECK_EQUAL(questions.of_node[i], questions.of_node[5 + i]);
        CHECK_EQUAL(questions.of_node[i], questions.of_node[10 + i]);
        CHECK_EQUAL(questions.of_tree(forest, i).size(), 1u);
        CHECK_EQUAL(questions.of_tree(forest, i)[0], questions.of_node[i]);
    }
}

TEST(trees_of_more_than_64_leaves_are_not_masked) {
    Trees<float> trees;
    for (int32_t leaves : {64, 65, 1}) {
        // A chain: every left child is a leaf.
        for (int32_t i = 0; i + 1 < leaves; ++i) {
            trees.add_node(0, static_cast<float>(1000 * leaves + i), 0);
            const int32_t leaf = trees.add_leaf(i);
            trees.set_children(i, leaf, i + 2 < leaves ? i + 1 : ~(leaves - 1));
        }
        trees.add_leaf(leaves);
        trees.end_tree();
    }
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    CHECK_ALL_EQUAL(questions.masked, (std::vector<uint8_t>{1, 0, 1}), "masked");
    CHECK_EQUAL(questions.all.size(), 63u);  // those of small trees only
    for (int32_t q : questions.of_tree(forest, 1)) CHECK_EQUAL(q, -1);
    CHECK(questions.of_tree(forest, 2).empty());
}

TEST(trees_with_categories_that_have_no_table_are_not_masked) {
    Trees<float> trees;
    trees.add_stump(0, 0, kCategorical, 1, 2, {7});
    trees.add_stump(1, 0, kCategorical, 1, 2, {4000});
    trees.add_stump(2, 0.5f, 0, 1, 2);
    const Forest<float> forest = trees.forest();
    const auto masked = [&](int64_t max_bytes) {
        return Questions<float>(forest, max_bytes).masked;
    };
    CHECK_ALL_EQUAL(masked(kMaxCategoryBytes), (std::vector<uint8_t>{1, 1, 1}), "all tables");
    CHECK_ALL_EQUAL(masked(100), (std::vector<uint8_t>{1, 0, 1}), "100 bytes");
    CHECK_ALL_EQUAL(masked(0), (std::vector<uint8_t>{0, 0, 1}), "no tables");
}

TEST(tables_hold_the_categories_of_small_trees_only) {
    Trees<float> trees;
    Random random(1);
    trees.add_stump(0, 0, kCategorical, 1, 2, {7});
    grow(trees, random, {.leaf_stop = 0, .n_codes = 1000}, 8);
    trees.end_tree();
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    CHECK_EQUAL(questions.categories.features.size(), 1u);
    CHECK_EQUAL(questions.categories.class_of.size(), 32u);
}

}  // namespace
