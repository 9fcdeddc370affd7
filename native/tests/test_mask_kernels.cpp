// Kernels of trees on masks: answers, planes and sums of every instruction set that this machine
// runs, against plain loops. Arrays are as large as the kernels may expect and no larger, so that a
// sanitizer finds reads and writes past them.
#include <bit>
#include <string>

#include "core/mask_kernels.hpp"
#include "core/worker.hpp"
#include "tests/check.hpp"
#include "tests/laid_rows.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

template <class Visit>
void each_isa(Visit visit) {
    for (std::string_view isa : available_isas()) visit(mask_kernels(isa), std::string(isa));
}

// Arrays that kernels work in, with anything in them.
template <class V>
struct Workspace {
    Buffer<V> tile_buffer;
    Buffer<uint64_t> mask_buffer;
    V* tile;
    uint64_t* masks;

    explicit Workspace(const MaskedTrees& trees)
        : tile(tile_buffer.of(trees.n_slots * 64)),
          masks(mask_buffer.of(trees.n_masks() * kSlabWords)) {
        Random random(99);
        std::fill_n(tile, trees.n_slots * 64, V(-5));
        for (int32_t i = 0; i < trees.n_masks() * kSlabWords; ++i) masks[i] = random.next();
    }
};

// Trees, some rows, and the leaf of each tree for each row.
template <class In, class Real>
struct Problem {
    Trees<Real> trees;
    Forest<Real> forest;
    Questions<Real> questions;
    MaskedTrees layout;
    int64_t n;
    std::vector<In> rows;
    std::vector<int32_t> leaf;    // (T, n)
    std::vector<uint8_t> answer;  // (questions, n)

    Problem(Trees<Real> some, uint64_t seed, int64_t n)
        : trees(std::move(some)),
          forest(trees.forest()),
          questions(forest, kMaxCategoryBytes, kMaxLargeLeaves),
          layout(lay_out(forest, questions, natural_order(trees.n_trees()), true)),
          n(n),
          rows(hostile_rows<In>(trees, seed, n)) {
        for (int32_t t = 0; t < trees.n_trees(); ++t)
            for (int64_t i = 0; i < n; ++i)
                leaf.push_back(
                    static_cast<int32_t>(leaf_of(trees, t, &rows[i * trees.n_features])));
        for (int32_t q = 0; q < layout.n_questions; ++q)
            for (int64_t i = 0; i < n; ++i)
                answer.push_back(
                    answer_to<TileValue<In, Real>>(layout, q, &rows[i * trees.n_features]));
    }
    int32_t leaf_at(int32_t t, int64_t row) const { return leaf[t * n + row]; }
};

template <class Real>
Trees<Real> hostile_trees(uint64_t seed, int64_t n_features, const Shape& shape, int32_t every) {
    Trees<Real> trees = trees_of_all_forms<Real>(seed, n_features, shape, every);
    make_thresholds_odd(trees, seed);
    return trees;
}

// The answers, trees and sums of `count` rows of a view: those of a list, or the first.
template <class In, class Real>
void check_rows(const Problem<In, Real>& problem, const MaskKernels& kernels,
                const RowsView<In>& view, const int32_t* list, int32_t count, int32_t more,
                const std::string& context) {
    using V = TileValue<In, Real>;
    const MaskedTrees& layout = problem.layout;
    const auto row_at = [&](int32_t i) { return list ? list[i] : i; };
    const Workspace<V> work(layout);
    kernels.answer<In, V>()(layout, view, list, count, more, work.tile, work.masks);
    const int32_t words = words_of(count);
    for (int32_t q = 0; q < layout.n_questions; ++q)
        for (int32_t w = 0; w < words; ++w) {
            if (count <= kFew && q >= layout.first_set) continue;  // any bits past the last row
            if (w > 0 && count - 64 * w <= kFew && q >= layout.first_set) continue;
            // Rows past the last repeat it, in the bits of kFew rows or a word. Where ranks answer
            // some questions, the last word of a slab has the bits of a whole word.
            const auto yes = [&](int32_t bits) {
                int32_t n = 0;
                for (int32_t i = 64 * w; i < 64 * w + bits; ++i)
                    n += problem.answer[q * problem.n + row_at(std::min(i, count - 1))];
                return n;
            };
            const int32_t found = std::popcount(work.masks[q * mask_stride(count) + w]);
            const bool few = count - 64 * w <= kFew;
            const bool ranked = w > 0 && !layout.ranked.empty();
            if (found != yes(few ? kFew : 64) && !(few && ranked && found == yes(64)))
                return check::fail(__FILE__, __LINE__, context + " question " + std::to_string(q));
        }

    Buffer<float> single_buffer, values_buffer;
    Buffer<double> double_buffer, step_buffer;
    float* const single = single_buffer.of(words * 64);
    double* const sums = double_buffer.of(words * 64);
    double* const step_sums = step_buffer.of(words * 64);
    std::fill_n(single, words * 64, 0.25f);
    std::fill_n(sums, words * 64, 0.25);
    std::fill_n(step_sums, words * 64, 0.25);
    float* const values = values_buffer.of(words * 64);
    std::vector<double> value(count), expected_value(count);
    std::vector<float> expected(count), single_expected(count, 0.25f);
    std::vector<double> sums_expected(count, 0.25), steps_expected(count, 0.25);
    const bool doubles = !layout.leaf_value.whole.empty();
    std::vector<uint8_t> numbers(static_cast<size_t>(words) * layout.number_bytes, 99);
    const LeafNumbers kept{numbers.data(), layout.number_bytes};
    for (int32_t begin = 0; begin < layout.n_trees(); begin += kTreesAtOnce) {
        const int32_t end = std::min(begin + kTreesAtOnce, layout.n_trees());
        kernels.slice(layout, begin, end, words, work.masks);
        for (int32_t t = begin; t < end; ++t) {
            kernels.values(layout, t, work.masks, words, nullptr, values);
            for (int32_t i = 0; i < count; ++i) {
                const int32_t leaf = problem.leaf_at(t, row_at(i));
                expected[i] = problem.forest.step_value(leaf);
                single_expected[i] += expected[i];
                steps_expected[i] += expected[i];
                sums_expected[i] += problem.forest.leaf_value(leaf);
            }
            check::all_equal(std::span<const float>(values, count),
                             std::span<const float>(expected),
                             context + " values of tree " + std::to_string(t), __FILE__, __LINE__);
            // Words in which no row is alive are left out.
            std::vector<uint64_t> alive(words, 4);
            alive[0] = 0;
            std::fill_n(values, words * 64, -77.0f);
            kernels.values(layout, t, work.masks, words, alive.data(), values);
            std::fill_n(expected.data(), std::min(count, 64), -77.0f);
            check::all_equal(std::span<const float>(values, count),
                             std::span<const float>(expected), context + " of words alive",
                             __FILE__, __LINE__);
        }
        kernels.add_single(layout, layout.step_value.data(), begin, end, work.masks, words, single);
        kernels.add_steps(layout, layout.step_value.data(), begin, end, work.masks, words,
                          step_sums, kept);
        for (int32_t t = begin; t < end && doubles; ++t)
            for (int32_t i = 0; i < count; ++i) {
                const MaskedTree& tree = layout.trees[t];
                const uint8_t* const at =
                    numbers.data() + i / 64 * kept.word + tree.number_begin + kernels.place[i % 64];
                const int32_t number = at[0] | (layout.is_large(t) ? at[64] << 8 : 0);
                expected_value[i] = problem.forest.leaf_value(problem.leaf_at(t, row_at(i)));
                value[i] = layout.leaf_value.whole[tree.table_begin + number];
                if (i + 1 == count)
                    check::all_equal(
                        std::span<const double>(value), std::span<const double>(expected_value),
                        context + " leaves kept of tree " + std::to_string(t), __FILE__, __LINE__);
            }
        if (doubles)
            kernels.add_double(layout, layout.leaf_value, begin, end, work.masks, words, sums);
    }
    CHECK_ALL_EQUAL(std::vector<float>(single, single + count), single_expected,
                    context + " single");
    CHECK_ALL_EQUAL(std::vector<double>(step_sums, step_sums + count), steps_expected,
                    context + " steps");
    if (doubles)
        CHECK_ALL_EQUAL(std::vector<double>(sums, sums + count), sums_expected,
                        context + " double");
}

// n rows in every layout, as a whole and by a list of rows of a larger array.
template <class In, class Real>
void check_count(const Problem<In, Real>& problem, int32_t n, uint64_t seed) {
    const int64_t width = problem.trees.n_features;
    Random random(seed);
    std::vector<int32_t> list(n);
    for (int32_t& i : list) i = random.below(static_cast<int32_t>(problem.n));
    list.back() = static_cast<int32_t>(problem.n) - 1;
    list.front() = 0;
    each_isa([&](const MaskKernels& kernels, const std::string& isa) {
        for (const Layout& layout : layouts(n, width)) {
            const LaidRows<In> some(problem.rows, n, width, layout);
            check_rows(problem, kernels, some.view(), nullptr, n, 0,
                       isa + " " + layout.name + " rows " + std::to_string(n));
        }
        for (const Layout& layout : layouts(problem.n, width)) {
            const LaidRows<In> all(problem.rows, problem.n, width, layout);
            // Part of the list is what follows the rows.
            const int32_t here = n > 64 ? 64 : n;
            check_rows(problem, kernels, all.view(), list.data(), here, n - here,
                       isa + " " + layout.name + " list " + std::to_string(n));
        }
    });
}

template <class In, class Real>
void check_counts(uint64_t seed, int64_t n_features, const Shape& shape, int32_t every,
                  const std::vector<int32_t>& counts) {
    const int32_t most = *std::max_element(counts.begin(), counts.end());
    const Problem<In, Real> problem(hostile_trees<Real>(seed, n_features, shape, every), seed,
                                    most + 9);
    for (int32_t n : counts) check_count(problem, n, seed + n);
}

void check_all_types(uint64_t seed, int64_t n_features, const Shape& shape, int32_t every,
                     const std::vector<int32_t>& counts) {
    check_counts<float, float>(seed, n_features, shape, every, counts);
    check_counts<double, float>(seed, n_features, shape, every, counts);
    check_counts<float, double>(seed, n_features, shape, every, counts);
    check_counts<double, double>(seed, n_features, shape, every, counts);
}

TEST(any_number_of_rows_up_to_70) {
    std::vector<int32_t> counts = natural_order(71);
    counts.erase(counts.begin());
    check_all_types(1, 5, {}, 16, counts);
}

TEST(any_number_of_rows_up_to_a_slab) {
    check_all_types(2, 6, {}, 9, {127, 128, 129, 200, 255, 257, 383, 448, 449, 511, 512});
}

TEST(any_width) {
    for (int64_t width : {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 33, 70})
        check_all_types(width, width, {.special = width % 3 != 0}, 9, {1, 3, 63, 64, 65, 100});
}

// Values of which so many questions are asked that their ranks are searched: missing ones on either
// side, zeros that are missing, cuts and their neighbours.
template <class In, class Real>
void check_ranks(uint64_t seed, bool odd) {
    Trees<Real> trees;
    trees.n_features = 4;
    Random random(seed);
    trees.rules = random_rules(random, 1);
    for (int32_t i = 0; i < 3 * 200; ++i) {
        const uint8_t flags[] = {kDefaultLeft, 0, kDefaultLeft | kZeroIsMissing};
        trees.add_stump(i % 3, static_cast<Real>(random.normal()), flags[i % 3], 0.25, 0.75);
    }
    add_oblivious(trees, random, 5, {});
    if (odd) make_thresholds_odd(trees, seed);
    const Problem<In, Real> problem(std::move(trees), seed, 320);
    if (!odd) CHECK_EQUAL(problem.layout.ranked.size(), 3u);
    for (int32_t n : {1, 17, 64, 65, 128, 129, 300}) check_count(problem, n, seed + n);
}

TEST(values_of_many_questions) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
        check_ranks<float, float>(seed, seed % 2);
        check_ranks<double, float>(seed, seed % 2);
        check_ranks<float, double>(seed, seed % 2);
        check_ranks<double, double>(seed, seed % 2);
    }
}

// Answers take an array of questions and rows in the oracle, so there are few rows.
template <class In, class Real>
void check_large(uint64_t seed, const Shape& shape) {
    Trees<Real> trees = large_trees<Real>(seed, 6, shape);
    make_thresholds_odd(trees, seed);
    const Problem<In, Real> problem(std::move(trees), seed, 209);
    for (const MaskedTree& tree : problem.layout.trees)
        CHECK_EQUAL(tree.bits > kMaxPlanes, tree.n_leaves > kMaxMaskedLeaves);
    for (int32_t n : {1, 16, 17, 64, 65, 200}) check_count(problem, n, seed + n);
}

TEST(large_trees_of_every_form) {
    for (uint64_t seed = 0; seed < 5; ++seed) {  // sums of every kind among them
        const Shape shape{.special = seed != 1};
        check_large<float, float>(seed, shape);
        check_large<double, float>(seed, shape);
        check_large<float, double>(seed, shape);
        check_large<double, double>(seed, shape);
    }
}

TEST(any_number_of_leaves) {
    for (uint64_t seed = 10; seed < 14; ++seed) check_all_types(seed, 5, {}, 1, {64, 130});
}

// The planes of an oblivious tree are masks in any order, also where the first and the last have
// the numbers that planes one after the other would have.
TEST(oblivious_trees_with_their_questions_in_any_order) {
    Trees<float> trees;
    trees.n_features = 1;
    Random random(31);
    for (int32_t depth = 2; depth <= kMaxPlanes; ++depth)
        for (int32_t k = 0; k < 20; ++k) {
            std::vector<int32_t> cut = natural_order(8);
            for (size_t i = cut.size(); i > 1; --i)
                std::swap(cut[i - 1], cut[random.below(static_cast<int32_t>(i))]);
            add_complete(trees, random, depth, [&](int32_t level, int32_t) {
                return trees.add_node(0, static_cast<float>(cut[level]), 0);
            });
            trees.end_tree();
        }
    const Problem<float, float> problem(trees, 31, 209);
    for (int32_t n : {9, 64, 200}) check_count(problem, n, 31);
}

TEST(rows_with_zeros_that_are_missing_and_codes_that_are_truncated) {
    // Seeds give every combination of the rules; most splits are special here.
    for (uint64_t seed = 20; seed < 26; ++seed)
        check_all_types(seed, 3, {.n_codes = seed % 2 ? 5 : 600}, 7, {2, 64, 77});
}

TEST(features_that_are_split_by_sets_without_codes) {
    for (bool truncates : {false, true}) {
        Trees<float> trees;
        trees.n_features = 4;
        trees.rules.truncates = truncates;
        for (int flags = 0; flags < 16; flags += 1)
            if (flags & kCategorical)
                trees.add_stump(flags % 4, 0, static_cast<uint8_t>(flags), 1, 2);
        const Problem<float, float> problem(trees, 3, 200);
        check_count(problem, 190, 1);
    }
}

TEST(codes_up_to_the_largest) {
    for (bool truncates : {false, true}) {
        Trees<double> trees;
        trees.n_features = 4;
        trees.rules.truncates = truncates;
        trees.add_stump(0, 0, kCategorical, 1, 2, {0, kMaxCategoryCodes - 1});
        trees.add_stump(1, 0, kCategorical | kInSetLeft, 1, 2, {0, 63, 64});
        const Problem<double, double> as_doubles(trees, 5, 200);
        check_count(as_doubles, 150, 1);
        const Problem<float, double> as_floats(trees, 5, 200);
        check_count(as_floats, 150, 1);
    }
}

// Any answers at all: planes are made bit by bit, whatever the order of the rows.
TEST(planes_of_any_answers) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
        const Trees<float> trees =
            seed == 3 ? large_trees<float>(seed, 5) : trees_of_all_forms<float>(seed, 5);
        const Forest<float> forest = trees.forest();
        const Questions<float> questions(forest, kMaxCategoryBytes, kMaxLargeLeaves);
        const MaskedTrees layout =
            lay_out(forest, questions, natural_order(trees.n_trees()), false);
        for (int32_t words : {1, 2, 3, 5, 8})
            each_isa([&](const MaskKernels& kernels, const std::string& isa) {
                const Workspace<float> work(layout);
                std::fill_n(work.masks, kSlabWords, 0);  // what is never so
                kernels.slice(layout, 0, layout.n_trees(), words, work.masks);
                const auto bit = [&](int32_t mask, int32_t i) {
                    return (work.masks[mask * mask_stride(64 * words) + i / 64] >> i % 64 & 1) != 0;
                };
                for (int32_t t = 0; t < layout.n_trees(); ++t)
                    for (int32_t i = 0; i < 64 * words; ++i) {
                        const MaskedTree& tree = layout.trees[t];
                        int32_t number = 0;
                        for (int32_t b = 0; b < tree.bits; ++b)
                            number = 2 * number + bit(layout.planes[tree.planes_begin + b], i);
                        const int32_t expected = number_from(
                            layout, tree, [&](int32_t question) { return bit(question, i); });
                        if (number != expected)
                            return check::fail(
                                __FILE__, __LINE__,
                                isa + " tree " + std::to_string(t) + " row " + std::to_string(i));
                    }
            });
    }
}

}  // namespace
