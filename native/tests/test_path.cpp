// What the policies of a path do with rows, over known scores and over trees, for every instruction
// set that this machine runs, against a plain loop over policies, rows and steps.
#include <algorithm>
#include <numeric>
#include <string>

#include "core/path.hpp"
#include "tests/engines.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

// Thresholds of K policies along a random order.
struct Path {
    std::vector<int32_t> order;
    std::vector<double> lower, upper;  // (K, T)
    int64_t K, T;
    double threshold;

    // crossing: lower thresholds of some policies are above upper ones of others. every: one of so
    // many steps has thresholds.
    Path(uint64_t seed, int64_t n_policies, int64_t n_steps, double centre, double width,
         bool crossing, int32_t every = 1)
        : order(n_steps), K(n_policies), T(n_steps), threshold(centre) {
        Random random(seed);
        std::iota(order.begin(), order.end(), 0);
        for (int64_t r = T - 1; r > 0; --r)
            std::swap(order[r], order[random.below(static_cast<int32_t>(r + 1))]);
        for (int64_t k = 0; k < K; ++k)
            for (int64_t r = 0; r < T; ++r) {
                const double wide = width * 3 * static_cast<double>(K - k) / static_cast<double>(K);
                const double middle = centre + (crossing ? width * random.normal() : 0);
                const auto none = [&] { return k == 0 || r % every != 0 || random.below(8) == 0; };
                lower.push_back(none() ? -kInf : middle - wide * random.uniform());
                upper.push_back(none() ? kInf : middle + wide * random.uniform());
            }
    }
    PathView view() const { return {order, lower, upper, threshold, K}; }
};

struct Counted {
    std::vector<int64_t> stops, differences;
    std::vector<uint64_t> wrong;

    Counted(const PathView& path, int64_t n)
        : stops(path.n_policies * path.order.size()),
          differences(2 * path.n_policies),
          wrong(n * path_words(path.n_policies), ~uint64_t{0}) {}
    PathCountsOut out() { return {stops.data(), differences.data(), wrong.data()}; }
};

// Values (T, stride), of the rows listed.
template <class Score>
Counted count_plainly(const PathView& path, const std::vector<Score>& values, double base,
                      const std::vector<double>& full, const std::vector<int64_t>& rows) {
    const auto n = static_cast<int64_t>(rows.size()), T = static_cast<int64_t>(path.order.size());
    const auto stride = static_cast<int64_t>(full.size());
    const int64_t words = path_words(path.n_policies);
    Counted found(path, n);
    std::fill(found.wrong.begin(), found.wrong.end(), 0);
    for (int64_t i = 0; i < n; ++i) {
        const bool positive = full[rows[i]] >= path.threshold;
        for (int64_t k = 0; k < path.n_policies; ++k) {
            double sum = base;
            bool decided = positive;
            int64_t r = 0;
            for (; r + 1 < T; ++r) {
                sum += values[path.order[r] * stride + rows[i]];
                const Outcome outcome = compare(sum, path.lower[k * T + r], path.upper[k * T + r]);
                if (outcome == Outcome::kContinue) continue;
                decided = outcome == Outcome::kPositive;
                break;
            }
            ++found.stops[k * T + r];
            if (decided == positive) continue;
            ++found.differences[2 * k + decided];
            found.wrong[i * words + k / 63] |= uint64_t{1} << k % 63;
        }
    }
    return found;
}

void check_counted(const Counted& found, const Counted& expected, const std::string& what) {
    check::all_equal(std::span<const int64_t>(found.stops),
                     std::span<const int64_t>(expected.stops), what + " stops", __FILE__, __LINE__);
    check::all_equal(std::span<const int64_t>(found.differences),
                     std::span<const int64_t>(expected.differences), what + " differences",
                     __FILE__, __LINE__);
    check::all_equal(std::span<const uint64_t>(found.wrong),
                     std::span<const uint64_t>(expected.wrong), what + " wrong", __FILE__,
                     __LINE__);
}

template <class Score>
void check_known(const Path& path, const std::vector<Score>& values,
                 const std::vector<double>& full, const std::string& what) {
    const auto n = static_cast<int64_t>(full.size());
    std::vector<int64_t> all(n), some;
    std::iota(all.begin(), all.end(), 0);
    for (int64_t i = n - 1; i >= 0; i -= 3) some.push_back(i);
    for (const auto& rows : {all, some}) {
        const Counted expected = count_plainly(path.view(), values, 0.25, full, rows);
        for (std::string_view isa : available_isas())
            for (int threads : {1, 3}) {
                Counted found(path.view(), static_cast<int64_t>(rows.size()));
                count_path(path.view(), values.data(), 0.25, full.data(), n,
                           &rows == &all ? nullptr : rows.data(), static_cast<int64_t>(rows.size()),
                           found.out(), threads, isa);
                check_counted(found, expected, what + " " + std::string(isa));
            }
    }
}

template <class Score>
void check_random(uint64_t seed, int64_t n, int64_t K, int64_t T, bool crossing) {
    Random random(seed);
    std::vector<Score> values(n * T);
    std::vector<double> full(n, 0.25);
    for (Score& value : values) value = static_cast<Score>(std::round(random.normal() * 8) / 8);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t t = 0; t < T; ++t) full[i] += values[t * n + i];
    const Path path(seed, K, T, 0, std::sqrt(static_cast<double>(T)), crossing);
    check_known(path, values, full,
                "known " + std::to_string(n) + " rows, K " + std::to_string(K) + ", T " +
                    std::to_string(T) + (crossing ? " crossing" : ""));
}

TEST(known_scores) {
    for (bool crossing : {false, true})
        for (int64_t K : {1, 2, 15, 16, 17, 33, 62, 63, 64, 130}) {
            check_random<float>(K, 700, K, 21, crossing);
            check_random<double>(K, 700, K, 21, crossing);
        }
    for (int64_t n : {0, 1, 15, 16, 17, 63, 64, 65, 511, 512, 513, 1100})
        check_random<float>(n, n, 20, 9, false);
    for (int64_t T : {1, 2, 3, 300}) check_random<double>(T, 600, 9, T, false);
}

// Sums that are one next to a threshold, in either direction, or equal to it: as floats they are
// the same. Sums that overflow, or are no numbers, are compared as any.
TEST(sums_next_to_thresholds) {
    const double at = 1.0 + 0x1p-40;
    std::vector<double> values;
    for (double x : {std::nextafter(at, -kInf), at, std::nextafter(at, kInf), -at, 1e300, -1e300,
                     kInf, -kInf, std::numeric_limits<double>::quiet_NaN(), 0.0, 3e38, -3.5e38})
        values.push_back(x - 0.25);
    const std::vector<double> full(values);
    values.insert(values.end(), full.begin(), full.end());  // two base models
    const double thresholds[][2] = {{-kInf, kInf},   {at, at},     {-at, at},   {kInf, kInf},
                                    {-1e300, 1e300}, {3e38, 3e38}, {-kInf, at}, {at, kInf}};
    for (const auto& [lower, upper] : thresholds) {
        Path path(1, 1, 2, 0, 1, false);
        path.order = {0, 1}, path.lower = {lower, 0}, path.upper = {upper, 0};
        check_known(path, values, full, "next to " + std::to_string(lower));
    }
}

// Sums past the last row are those of the first, which do not count again.
TEST(the_sum_of_the_first_row_is_no_number) {
    constexpr int64_t n = 17, T = 12;
    std::vector<float> values(n * T, 1);
    values[0] = std::numeric_limits<float>::infinity(), values[9 * n] = -values[0];
    Path path(1, 2, T, 0, 1, false);
    std::iota(path.order.begin(), path.order.end(), 0);
    std::fill(path.upper.begin(), path.upper.end(), kInf);
    std::fill(path.lower.begin(), path.lower.end(), -kInf);
    path.lower[T + 9] = path.lower[T + 10] = 5;
    check_known(path, values, std::vector<double>(n, 12.25), "no number");
}

template <class Real, class In>
void check_trees(const Trees<Real>& trees, int64_t n, int64_t K, uint64_t seed, bool crossing,
                 int32_t every = 1) {
    const EngineProblem<Real, In> problem(trees, random_rows<In>(seed, n, trees.n_features), seed);
    const Path path(seed, K, trees.n_trees(), problem.centre, problem.width, crossing, every);
    std::vector<int64_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    const Counted expected =
        count_plainly(path.view(), problem.values, problem.base, problem.full, all);
    const FullEngine<Real> engine(problem.forest);
    const RowsView<In> rows{problem.rows.data(), n, trees.n_features, trees.n_features, 1};
    for (std::string_view isa : available_isas())
        for (int threads : {1, 3}) {
            Counted found(path.view(), n);
            std::vector<double> full(n, -1);
            engine.count_path(rows, path.view(), full.data(), found.out(), threads, isa);
            const std::string what = "trees " + std::string(isa) + " seed " + std::to_string(seed) +
                                     " rows " + std::to_string(n);
            check::all_equal(std::span<const double>(full), std::span<const double>(problem.full),
                             what + " full", __FILE__, __LINE__);
            check_counted(found, expected, what);
        }
}

TEST(trees_of_every_kind) {
    Shape shape;
    for (uint64_t seed = 0; seed < 12; ++seed) {
        shape.special = seed % 4 != 3;
        shape.n_trees = 12 + 7 * static_cast<int32_t>(seed);
        const int64_t K = seed % 3 == 0 ? 70 : 25;
        check_trees<float, float>(random_trees<float>(seed, shape), 600, K, seed, seed % 2);
        check_trees<float, double>(random_trees<float>(seed, shape), 600, K, seed, seed % 2);
        check_trees<double, double>(random_trees<double>(seed, shape), 600, K, seed, seed % 2);
    }
}

TEST(large_and_deep_trees) {
    for (int32_t depth : {7, 9, 16})
        check_trees<float, float>(
            random_trees<float>(depth, {.n_trees = 9, .depth = depth, .leaf_stop = 0.05}), 1100, 30,
            depth, false);
}

// Rows of several slabs are followed together, from step to step.
TEST(many_trees_and_rows) {
    for (int64_t n : {1, 64, 511, 512, 513, 3000})
        for (int32_t every : {1, 29, 70})
            check_trees<float, float>(random_trees<float>(n, {.n_trees = 330, .depth = 4}), n, 40,
                                      n, false, every);
}

}  // namespace
