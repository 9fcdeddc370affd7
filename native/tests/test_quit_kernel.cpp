// The kernel that adds the steps of a segment and lets rows quit, for every instruction set that
// this machine runs, against a plain loop over rows and steps.
#include <cmath>
#include <optional>
#include <string>

#include "core/exact_sums.hpp"
#include "core/mask_kernels.hpp"
#include "core/worker.hpp"
#include "tests/check.hpp"
#include "tests/laid_rows.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Thresholds of a policy whose first steps are not those of the segment.
struct Thresholds {
    std::string name;
    std::vector<double> lower, upper;

    Thresholds(std::string name, int32_t n, double low, double high)
        : name(std::move(name)), lower(n, low), upper(n, high) {}
};

std::vector<Thresholds> thresholds_of_every_kind(Random& random, int32_t n) {
    std::vector<Thresholds> all = {
        {"none", n, -kInf, kInf},         {"lower", n, -0.5, kInf},
        {"upper", n, -kInf, 0.5},         {"both", n, -1.5, 1.5},
        {"equal", n, 0.25, 0.25},         {"all negative", n, 1e9, 1e9},
        {"all positive", n, -1e9, -1e9},  {"all below infinity", n, kInf, kInf},
        {"at random", n, 0, 0},           {"overlapping", n, 0, 0},
        {"one above the other", n, 0, 0}, {"last step only", n, -kInf, kInf}};
    for (int32_t r = 0; r < n; ++r) {
        Thresholds& some = all[8];
        some.lower[r] = random.below(3) ? -0.5 - random.uniform() : -kInf;
        some.upper[r] = random.below(3) ? 0.5 + random.uniform() : kInf;
        Thresholds& overlap = all[9];  // a later step's lower is above an earlier step's upper
        const double middle = random.normal();
        overlap.lower[r] = random.below(4) ? middle - random.uniform() : -kInf;
        overlap.upper[r] = random.below(4) ? middle + random.uniform() : kInf;
        Thresholds& above = all[10];  // the largest lower is the least upper
        above.lower[r] = r % 2 ? 0.5 : -2;
        above.upper[r] = r % 2 ? 2 : 0.5;
    }
    all[11].lower.back() = -0.25;
    all[11].upper.back() = 0.25;
    return all;
}

// A slab of rows with its running sums.
struct Case {
    int32_t n;
    bool listed;         // rows are those of a list; otherwise they follow each other
    bool has_sums;       // otherwise all begin with the base
    bool in_place;       // rows that go on are written over the slab
    bool exact = false;  // sums are integers; only for segments on a grid
};

template <class Real>
struct Segment {
    Trees<Real> trees;
    Forest<Real> forest;
    Questions<Real> questions;
    int32_t first;  // step
    std::vector<int32_t> order;
    MaskedTrees layout;
    std::vector<Real> rows;
    std::vector<float> values;  // (steps, kRows) what each step adds
    static constexpr int32_t kRows = 600;
    float value(int32_t step, int32_t row) const { return values[(step - first) * kRows + row]; }

    Segment(Trees<Real> some, int32_t first, int32_t n_steps, uint64_t seed)
        : trees(std::move(some)),
          forest(trees.forest()),
          questions(forest),
          first(first),
          order(Policy(seed, trees.n_trees(), 0, 1).order),
          layout(lay_out(forest, questions, std::span<const int32_t>(order).subspan(first, n_steps),
                         false)),
          rows(hostile_rows<Real>(trees, seed, kRows)) {
        for (int32_t step = first; step < first + n_steps; ++step)
            for (int32_t i = 0; i < kRows; ++i)
                values.push_back(forest.step_value(static_cast<int32_t>(
                    leaf_of(trees, order[step], &rows[i * trees.n_features]))));
    }
};

// Multiples of it are floats up to 1, and so near to each other that upper parts of integer sums do
// not tell neighbours apart.
constexpr double kGrid = 0x1p-24;

double on_grid(double x) {
    return std::round(x / kGrid) * kGrid;
}

template <class Real>
void check_quit(const Segment<Real>& segment, const Thresholds& thresholds, const Case& one,
                uint64_t seed, const MaskKernels& kernels, const std::string& context) {
    constexpr double kBase = 0.125;
    constexpr int32_t kFirst = 5;  // where decisions of consecutive rows begin
    const int64_t width = segment.trees.n_features;
    const PolicyView policy{segment.order, {thresholds.lower, thresholds.upper}, {0.0}};
    const int32_t n = one.n, whole = words_of(n) * 64;
    Random random(seed);

    Buffer<int32_t> row_buffer, other_rows;
    Buffer<double> sum_buffer, other_sums;
    int32_t* const row = row_buffer.of(whole);
    double* const sums = sum_buffer.of(whole);
    for (int32_t i = 0; i < whole; ++i) {
        row[i] = (i * 7 + 3) % segment.kRows;  // each once
        sums[i] = i >= n            ? kNaN
                  : i % 37 == 5     ? kNaN
                  : i % 41 == 6     ? (i % 2 ? kInf : -kInf)
                  : i % 19 == 1     ? -0.0
                  : random.below(3) ? random.normal()
                                    : thresholds.upper[segment.first] - 0.5;
    }
    std::optional<ExactSums> exact;
    if (one.exact) {
        const ExactUnits units(segment.forest, segment.order);
        exact = units.sums(segment.layout, {thresholds.lower, thresholds.upper}, segment.first);
        CHECK(exact.has_value());
        // Many sums are on a threshold after a few steps, or next to it.
        for (int32_t i = 0; i < n; ++i) {
            sums[i] = on_grid(random.normal());
            const int32_t steps = 1 + random.below(std::min(segment.layout.n_trees(), 20));
            const int32_t last = segment.first + steps - 1;
            double on = (i % 2 ? thresholds.lower : thresholds.upper)[last];
            for (int32_t step = segment.first; step <= last; ++step)
                on -= segment.value(step, one.listed ? row[i] : i);
            if (i % 3 && std::abs(on) < 4) sums[i] = on_grid(on) + (random.below(7) - 3) * kGrid;
        }
    }
    const std::vector<int32_t> rows_before(row, row + n);
    const std::vector<double> sums_before(sums, sums + n);

    // What a plain loop decides.
    const int32_t out_size = one.listed ? segment.kRows : kFirst + n;
    Decided expected(out_size), found(out_size);
    std::vector<int32_t> rows_left;
    std::vector<double> sums_left;
    std::vector<uint8_t> goes_on(out_size, 0);
    for (int32_t i = 0; i < n; ++i) {
        const int32_t of_row = one.listed ? rows_before[i] : i;
        const int32_t to = one.listed ? rows_before[i] : kFirst + i;
        double sum = one.has_sums ? sums_before[i] : kBase;
        Outcome outcome = Outcome::kContinue;
        for (int32_t k = 0; k < segment.layout.n_trees() && outcome == Outcome::kContinue; ++k) {
            const int32_t step = segment.first + k;
            sum += segment.values[k * segment.kRows + of_row];
            outcome = sum < thresholds.lower[step]   ? Outcome::kNegative
                      : sum > thresholds.upper[step] ? Outcome::kPositive
                                                     : Outcome::kContinue;
            if (outcome != Outcome::kContinue) {
                expected.positive[to] = outcome == Outcome::kPositive;
                expected.steps[to] = step + 1;
                expected.score[to] = sum;
            }
        }
        if (outcome == Outcome::kContinue) {
            rows_left.push_back(to);
            sums_left.push_back(sum);
            goes_on[to] = 1;
        }
    }

    Buffer<Real> tile;
    Buffer<uint64_t> mask_buffer;
    uint64_t* const masks = mask_buffer.of(segment.layout.n_masks() * kSlabWords);
    const RowsView<Real> view{segment.rows.data(), segment.kRows, width, width, 1};
    kernels.answer<Real, Real>()(segment.layout, view, one.listed ? row : nullptr, n, 0,
                                 tile.of(segment.layout.n_slots * 64), masks);
    kernels.slice(segment.layout, 0, segment.layout.n_trees(), words_of(n), masks);
    Survivors left =
        one.in_place ? Survivors{row, sums} : Survivors{other_rows.of(whole), other_sums.of(whole)};
    std::vector<uint64_t> alive(words_of(n), ~uint64_t{0}), expected_alive(words_of(n));
    if (one.has_sums) left.alive = alive.data();
    for (int32_t i = 0; i < n; ++i)
        if (goes_on[one.listed ? rows_before[i] : kFirst + i])
            expected_alive[i / 64] |= uint64_t{1} << i % 64;
    const QuitSlab slab{n, one.listed ? row : nullptr, kFirst, one.has_sums ? sums : nullptr,
                        kBase};
    const int32_t kept = kernels.quit(segment.layout, exact ? &*exact : nullptr, policy,
                                      segment.first, masks, slab, found.out(), left);

    CHECK_EQUAL(kept, static_cast<int32_t>(rows_left.size()));
    CHECK_ALL_EQUAL(std::vector<int32_t>(left.row, left.row + kept), rows_left, context + " rows");
    CHECK_ALL_EQUAL(std::vector<double>(left.sums, left.sums + kept), sums_left, context + " sums");
    if (left.alive) CHECK_ALL_EQUAL(alive, expected_alive, context + " alive");
    for (int32_t i = 0; i < out_size; ++i)  // what is there of rows that go on is written later
        if (goes_on[i]) found.positive[i] = 7, found.steps[i] = -1, found.score[i] = -1.0;
    CHECK_ALL_EQUAL(found.positive, expected.positive, context + " positive");
    CHECK_ALL_EQUAL(found.steps, expected.steps, context + " steps");
    CHECK_ALL_EQUAL(found.score, expected.score, context + " score");
}

template <class Real>
void check_segment(const Segment<Real>& segment, const std::vector<int32_t>& counts, uint64_t seed,
                   const std::string& what, bool exact = false) {
    Random random(seed);
    const auto n_models = static_cast<int32_t>(segment.order.size());
    const auto all = thresholds_of_every_kind(random, n_models);
    for (std::string_view isa : available_isas())
        for (const Thresholds& thresholds : all)
            for (int32_t n : counts)
                for (bool listed : {false, true})
                    for (bool has_sums : {false, true})
                        for (bool in_place : {false, true})
                            check_quit(
                                segment, thresholds, {n, listed, has_sums, in_place, exact},
                                seed + n, mask_kernels(isa),
                                what + " " + std::string(isa) + " " + thresholds.name + " rows " +
                                    std::to_string(n) + (listed ? " listed" : "") +
                                    (has_sums ? " with sums" : "") + (in_place ? " in place" : ""));
}

// Small leaf values, so that rows quit at different steps.
template <class Real>
Trees<Real> small_steps(Trees<Real> trees, double scale) {
    trees.rules.divisor = 1;
    for (double& value : trees.leaf_value) value *= scale;
    return trees;
}

TEST(any_number_of_rows_up_to_70) {
    std::vector<int32_t> counts = natural_order(71);
    counts.erase(counts.begin());
    const Segment<float> segment(
        small_steps(random_trees<float>(1, {.n_trees = 9, .depth = 4}), 0.3), 2, 6, 1);
    check_segment(segment, counts, 3, "float");
}

TEST(segments_of_any_length_and_trees_of_any_form) {
    for (uint64_t seed = 0; seed < 3; ++seed)
        for (const auto& [first, n_steps] : {std::pair(0, 1), std::pair(3, 2), std::pair(1, 17)}) {
            const Segment<double> segment(
                small_steps(trees_of_all_forms<double>(seed, 5, {}, 8), 0.3), first, n_steps, seed);
            check_segment(segment, {1, 64, 130}, seed, "double");
        }
}

// All values are multiples of kGrid, and so are all sums.
template <class Real>
Trees<Real> trees_on_grid(Trees<Real> trees, double scale) {
    trees = small_steps(std::move(trees), scale);
    for (double& value : trees.leaf_value) value = on_grid(value);
    trees.rules.base = 8;  // so that units are of this size
    return trees;
}

TEST(integer_sums_of_any_number_of_rows) {
    std::vector<int32_t> counts = natural_order(71);
    counts.erase(counts.begin());
    const Segment<float> segment(
        trees_on_grid(random_trees<float>(2, {.n_trees = 9, .depth = 4}), 0.3), 2, 6, 2);
    check_segment(segment, counts, 4, "float", true);
}

TEST(integer_sums_of_trees_of_any_form) {
    for (uint64_t seed = 0; seed < 3; ++seed)
        for (const auto& [first, n_steps] :
             {std::pair(0, 1), std::pair(3, 2), std::pair(1, 17), std::pair(0, 40)}) {
            const Segment<double> segment(
                trees_on_grid(trees_of_all_forms<double>(seed, 5, {}, 2), 0.1), first, n_steps,
                seed);
            check_segment(segment, {1, 16, 17, 64, 130}, seed, "double", true);
        }
}

TEST(integer_sums_of_the_longest_segment) {
    Trees<float> trees = random_trees<float>(6, {.n_trees = kMaxSegmentTrees + 2, .depth = 3});
    const Segment<float> segment(trees_on_grid(trees, 0.1), 1, kMaxSegmentTrees, 6);
    check_segment(segment, {64, 100, 512}, 6, "float", true);
}

TEST(a_whole_slab) {
    const Segment<float> segment(small_steps(trees_of_all_forms<float>(8, 5, {}, 4), 0.2), 4, 12,
                                 8);
    check_segment(segment, {511, 512}, 8, "float");
}

TEST(the_longest_segment) {
    Trees<float> trees = random_trees<float>(5, {.n_trees = kMaxSegmentTrees + 2, .depth = 3});
    const Segment<float> segment(small_steps(trees, 0.1), 1, kMaxSegmentTrees, 5);
    check_segment(segment, {64, 100}, 5, "float");
}

TEST(a_sum_on_a_threshold_goes_on) {
    Trees<float> trees;
    for (int32_t t = 0; t < 2; ++t) trees.add_stump(0, 0.5f, 0, 0, 0);
    const Forest<float> forest = trees.forest();
    const Questions<float> questions(forest);
    const std::vector<int32_t> order = {0, 1};
    const MaskedTrees layout = lay_out(forest, questions, std::span(order).first(1), false);
    const std::vector<double> lower = {-1.0, -kInf}, upper = {1.0, kInf};
    const PolicyView policy{order, {lower, upper}, {0.0}};
    const std::vector<float> rows(64 * trees.n_features, 0.0f);
    for (std::string_view isa : available_isas())
        for (bool listed : {false, true}) {
            const MaskKernels& kernels = mask_kernels(isa);
            Buffer<float> tile;
            Buffer<uint64_t> masks;
            Buffer<double> sum_buffer;
            double* const sums = sum_buffer.of(64);
            std::vector<int32_t> row = natural_order(64);
            for (int32_t i = 0; i < 64; ++i) {
                const double on = i % 4 < 2 ? lower[0] : upper[0];
                sums[i] = i % 2 ? std::nextafter(on, 2 * on) : on;  // or just past it
            }
            uint64_t* const answers = masks.of(layout.n_masks() * kSlabWords);
            kernels.answer<float, float>()(layout, in_c_order(rows, 64, trees.n_features), nullptr,
                                           64, 0, tile.of(layout.n_slots * 64), answers);
            kernels.slice(layout, 0, 1, 1, answers);
            Decided found(64);
            const QuitSlab slab{64, listed ? row.data() : nullptr, 0, sums, 0.0};
            std::vector<int32_t> rows_left(64);
            std::vector<double> sums_left(64);
            CHECK_EQUAL(kernels.quit(layout, nullptr, policy, 0, answers, slab, found.out(),
                                     {rows_left.data(), sums_left.data()}),
                        32);
            for (int32_t i = 0; i < 64; i += 2) CHECK_EQUAL(rows_left[i / 2], i);
            for (int32_t i = 1; i < 64; i += 2) {
                CHECK_EQUAL(+found.positive[i], i % 4 == 3 ? 1 : 0);
                CHECK_EQUAL(found.steps[i], 1);
                CHECK(check::same(found.score[i], sums[i]));
            }
        }
}

}  // namespace
