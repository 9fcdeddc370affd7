#include "fit/algorithms.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fit/between.hpp"

namespace qwyc {

namespace {

// What Algorithm 2 finds for one candidate: rows with sum < low quit negative, of the others rows
// with sum > high quit positive. Both cuts are observed sums; thresholds go between observed sums.
struct QuitCuts {
    double low = -kInf;  // +inf: every row quits negative
    double high = kInf;  // -inf: every row that is left quits positive
    int64_t quits = 0;
};

// The k-th value (k from 0) of n in the order of `before`. Exact, and about one pass where k is
// small compared with n: a sample bounds the values that can come first, and only those are sorted.
template <class Before>
double select(double* values, int64_t n, int64_t k, Before before, std::vector<double>& scratch) {
    constexpr int64_t kSample = 512;
    if (n >= 4 * kSample && k < n / 4) {
        scratch.resize(kSample);
        for (int64_t i = 0; i < kSample; ++i) scratch[i] = values[i * (n / kSample)];
        const double expected = static_cast<double>(k + 1) * kSample / static_cast<double>(n);
        const auto rank = static_cast<int64_t>(expected + 4 * std::sqrt(expected) + 4);
        std::nth_element(scratch.begin(), scratch.begin() + rank, scratch.end(), before);
        const double limit = scratch[rank];
        scratch.resize(n);
        int64_t found = 0;
        for (int64_t i = 0; i < n; ++i) {
            scratch[found] = values[i];
            found += !before(limit, values[i]);
        }
        if (found > k) {
            std::nth_element(scratch.begin(), scratch.begin() + k, scratch.begin() + found, before);
            return scratch[k];
        }
    }
    std::nth_element(values, values + k, values + n, before);
    return values[k];
}

int64_t count_below(const double* values, int64_t n, double cut) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += values[i] < cut;
    return count;
}

int64_t count_above(const double* values, int64_t n, double cut) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += values[i] > cut;
    return count;
}

// Algorithm 2: the cuts that let the most rows quit, low first, with at most `budget` rows decided
// differently from the full ensemble. pos and neg are the sums of the undecided rows, by full
// decision; both are reordered. `scratch` is overwritten.
QuitCuts optimize_thresholds(double* pos, int64_t n_pos, double* neg, int64_t n_neg, int64_t budget,
                             const FitProblem& problem, std::vector<double>& scratch) {
    QuitCuts cuts;
    const bool split = problem.split_budget && problem.quit_positive;
    const int64_t low_budget = split ? budget / 2 : budget;
    int64_t neg_left = n_neg;  // full-negative rows that have not quit
    if (problem.quit_negative) {
        if (n_pos <= low_budget) return {kInf, kInf, n_pos + n_neg};
        cuts.low = select(pos, n_pos, low_budget, std::less<>(), scratch);
        const int64_t differing = count_below(pos, n_pos, cuts.low);
        const int64_t right = count_below(neg, n_neg, cuts.low);
        cuts.quits += differing + right;
        budget -= differing;
        neg_left -= right;
    }
    if (problem.quit_positive) {
        if (neg_left <= budget) return {cuts.low, -kInf, n_pos + n_neg};
        // More rows than the budget are left at or above `low`, so the (budget + 1)-th largest of
        // all full-negative sums is one of theirs.
        cuts.high = select(neg, n_neg, budget, std::greater<>(), scratch);
        cuts.quits += count_above(pos, n_pos, cuts.high) + count_above(neg, n_neg, cuts.high);
    }
    return cuts;
}

// Thresholds that separate the same rows as `cuts` does, away from every sum seen (where a
// double lies between two sums; otherwise a row on the cut continues).
void place_thresholds(const QuitCuts& cuts, const std::vector<double>& sums, double& lower,
                      double& upper) {
    double below_low = -kInf, above_high = kInf, smallest = kInf, largest = -kInf;
    for (double s : sums) {
        if (s < cuts.low) below_low = std::max(below_low, s);
        if (s > cuts.high) above_high = std::min(above_high, s);
        smallest = std::min(smallest, s);
        largest = std::max(largest, s);
    }
    lower = -kInf;
    upper = kInf;
    if (cuts.low == kInf)
        lower = std::nextafter(largest, kInf);
    else if (below_low > -kInf)
        lower = between(below_low, cuts.low, cuts.low);
    if (cuts.high == -kInf)
        upper = lower > -kInf ? lower : std::nextafter(smallest, -kInf);
    else if (above_high < kInf)
        upper = between(cuts.high, above_high, cuts.high);
}

// All rows, full-positive ones first.
std::vector<int32_t> positive_first(const FitProblem& problem) {
    std::vector<int32_t> rows(problem.n_rows);
    std::iota(rows.begin(), rows.end(), 0);
    std::stable_partition(rows.begin(), rows.end(),
                          [&](int32_t i) { return problem.positive[i] != 0; });
    return rows;
}

}  // namespace

template <class Score>
FitResult fit(const FitProblem& problem, const Score* values, std::span<const int32_t> order,
              int threads, const Progress& progress) {
    const int64_t n_models = problem.n_models;
    FitResult result{{}, std::vector<double>(n_models, -kInf), std::vector<double>(n_models, kInf)};
    std::vector<int32_t> unused(order.begin(), order.end());
    const bool choose_order = unused.empty();
    for (int32_t t = 0; choose_order && t < n_models; ++t) unused.push_back(t);

    Undecided<Score> undecided(positive_first(problem), n_models, problem.base, values);
    int64_t n_pos = std::count_if(problem.positive.begin(), problem.positive.end(),
                                  [](uint8_t positive) { return positive != 0; });
    MarginalCosts costs(problem.costs);
    int64_t budget = problem.budget;
    std::vector<double> sums, reordered, scratch;
    // The last step has no thresholds: the full score decides there.
    for (int64_t r = 0; r + 1 < n_models && undecided.size() > 0; ++r) {
        const int64_t n_neg = undecided.size() - n_pos;
        // The rows that quit by Algorithm 2 once base model k is added.
        const auto count = [=, &undecided, &problem, sums = std::vector<double>(),
                            scratch = std::vector<double>()](int32_t k) mutable {
            undecided.sums_with(k, sums);
            return optimize_thresholds(sums.data(), n_pos, sums.data() + n_pos, n_neg, budget,
                                       problem, scratch)
                .quits;
        };
        const int32_t chosen = choose_order
                                   ? best_candidate(unused, costs, undecided.size(), threads, count)
                                   : unused[0];
        costs.choose(chosen);
        undecided.sums_with(chosen, sums);
        reordered = sums;
        const QuitCuts cuts = optimize_thresholds(reordered.data(), n_pos, reordered.data() + n_pos,
                                                  n_neg, budget, problem, scratch);
        place_thresholds(cuts, sums, result.lower[r], result.upper[r]);
        int64_t kept_pos = 0;
        undecided.advance(sums, [&](int64_t j) {
            const bool is_positive = j < n_pos;
            const Outcome outcome = compare(sums[j], result.lower[r], result.upper[r]);
            if (outcome == Outcome::kContinue) {
                kept_pos += is_positive;
                return true;
            }
            budget -= is_positive != (outcome == Outcome::kPositive);
            return false;
        });
        n_pos = kept_pos;
        result.order.push_back(chosen);
        unused.erase(std::find(unused.begin(), unused.end(), chosen));
        undecided.compact(unused);
        progress(r + 1);
    }
    result.order.insert(result.order.end(), unused.begin(), unused.end());
    progress(n_models);
    return result;
}

template FitResult fit(const FitProblem&, const float*, std::span<const int32_t>, int,
                       const Progress&);
template FitResult fit(const FitProblem&, const double*, std::span<const int32_t>, int,
                       const Progress&);

}  // namespace qwyc
