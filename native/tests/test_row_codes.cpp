// Rows as bytes: the answers from codes are those from the rows themselves.
#include <limits>
#include <string>

#include "core/mask_kernels.hpp"
#include "core/row_codes.hpp"
#include "core/worker.hpp"
#include "tests/check.hpp"
#include "tests/laid_rows.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

// Rows of a list, and some that are the last of it again, by `kernels` in two ways. Both repeat the
// last row up to the end of a word, if it has more than kFew rows.
template <class In, class Real>
void check_answers(const MaskKernels& kernels, const RowCodes& codes, const MaskedTrees& trees,
                   const RowsView<In>& rows, std::span<const int32_t> list,
                   const std::string& context) {
    using V = TileValue<In, Real>;
    const auto n = static_cast<int32_t>(list.size());
    const size_t n_masks = static_cast<size_t>(trees.n_masks()) * kSlabWords;
    Buffer<V> tile;
    Buffer<uint8_t> lines;
    Buffer<uint64_t> expected_buffer, found_buffer;
    uint8_t* const line = lines.of(64 * static_cast<size_t>(words_of(rows.n)) * kCodeBytes);
    uint64_t* const expected = expected_buffer.of(n_masks);
    uint64_t* const found = found_buffer.of(n_masks);
    kernels.encode<In, V>()(codes, rows, static_cast<int32_t>(rows.n),
                            tile.of(codes.questions.n_slots * 64), line);
    kernels.answer<In, V>()(trees, rows, list.data(), n, 0, tile.of(trees.n_slots * 64), expected);
    const CodedQuestions coded = codes.of(trees);
    std::vector<int32_t> some;
    for (int32_t q = 1; q < trees.n_questions; ++q) some.push_back(q);
    kernels.answer_coded(coded, some, line, list.data(), n, 0, found);
    for (int32_t q = 0; q < trees.n_questions; ++q)
        for (int32_t w = 0; w < words_of(n); ++w)
            if (found[q * mask_stride(n) + w] != expected[q * mask_stride(n) + w])
                return check::fail(__FILE__, __LINE__, context + " question " + std::to_string(q));
}

template <class In, class Real>
void check_trees(Trees<Real> trees, uint64_t seed, bool odd) {
    if (odd) make_thresholds_odd(trees, seed);
    const Forest<Real> forest = trees.forest();
    const Questions<Real> questions(forest);
    const std::vector<int32_t> order = natural_order(trees.n_trees());
    const RowCodes codes = make_codes<Real>(forest, questions, order);
    CHECK(codes.usable());
    if (!codes.usable()) return;
    // Some of the trees, whose questions have other numbers.
    std::vector<int32_t> some;
    for (int32_t t : order)
        if (t % 3 != 1) some.push_back(t);
    const MaskedTrees layout = lay_out<Real>(forest, questions, some, true);
    constexpr int64_t kRows = 541;
    const int64_t width = trees.n_features;
    const std::vector<In> rows = hostile_rows<In>(trees, seed, kRows);
    Random random(seed);
    for (std::string_view isa : available_isas()) {
        const MaskKernels& kernels = mask_kernels(isa);
        if (!kernels.answer_coded) continue;
        for (int32_t n : {17, 64, 100, 192, 512}) {
            std::vector<int32_t> list(n);
            for (int32_t& i : list) i = random.below(kRows);
            list[0] = kRows - 1;
            for (const Layout& laid : layouts(kRows, width)) {
                const LaidRows<In> all(rows, kRows, width, laid);
                check_answers<In, Real>(
                    kernels, codes, layout, all.view(), list,
                    std::string(isa) + " " + laid.name + " rows " + std::to_string(n));
            }
        }
    }
}

template <class Real>
Trees<Real> stumps(uint64_t seed, int32_t n_features, int32_t cuts) {
    Trees<Real> trees;
    trees.n_features = n_features;
    Random random(seed);
    trees.rules = random_rules(random, 1);
    const uint8_t flags[] = {kDefaultLeft, 0, kDefaultLeft | kZeroIsMissing};
    for (int32_t f = 0; f < n_features; ++f)
        for (int32_t i = 0; i < (f % 2 ? cuts : 1 + f % 20); ++i)
            trees.add_stump(f, static_cast<Real>(random.normal()), flags[(f + i % 2) % 3], 0.25,
                            0.75);
    return trees;
}

TEST(codes_answer_as_rows_do) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
        const auto each = [&]<class In, class Real>(In, Real) {
            for (int32_t width : {1, 3, 7, 20})
                check_trees<In, Real>(stumps<Real>(seed, width, 20 + 40 * (seed % 6)), seed,
                                      seed % 2);
        };
        each(float{}, float{});
        each(double{}, float{});
        each(float{}, double{});
        each(double{}, double{});
    }
}

template <class Real>
bool has_codes(const Trees<Real>& trees) {
    const Forest<Real> forest = trees.forest();
    const Questions<Real> questions(forest);
    return make_codes<Real>(forest, questions, natural_order(trees.n_trees())).usable();
}

Trees<float> one_column(int32_t cuts) {
    Trees<float> trees;
    trees.n_features = 1;
    for (int32_t i = 0; i < cuts; ++i)
        trees.add_stump(0, static_cast<float>(i), kDefaultLeft, 0.25, 0.75);
    return trees;
}

TEST(a_column_has_as_many_cuts_as_a_byte_counts) {
    CHECK(has_codes(one_column(255)));
    CHECK(!has_codes(one_column(256)));
    check_trees<float, float>(one_column(255), 1, false);
}

TEST(rows_have_up_to_64_columns) {
    const auto columns = [](int32_t n) {
        Trees<float> trees;
        trees.n_features = n;
        for (int32_t f = 0; f < n; ++f) trees.add_stump(f, 0.5f, kDefaultLeft, 0.25, 0.75);
        return trees;
    };
    CHECK(has_codes(columns(64)));
    CHECK(!has_codes(columns(65)));
    check_trees<float, float>(columns(64), 2, false);
}

TEST(categories_have_no_codes) {
    Trees<float> trees = one_column(3);
    Random random(1);
    while (has_codes(trees)) add_oblivious(trees, random, 2, {});
    CHECK(trees.n_trees() < 100);
}

}  // namespace
