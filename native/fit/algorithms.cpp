#include "fit/algorithms.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/parallel.hpp"
#include "core/rule.hpp"
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

// The undecided rows, full-positive ones first, and the scores of the base models not yet used.
template <class Score>
class Undecided {
  public:
    Undecided(const FitProblem& problem, const Score* values)
        : values_(values), stride_(problem.n_rows), sums_(problem.n_rows, problem.base) {
        row_.reserve(problem.n_rows);
        for (int wanted : {1, 0}) {
            for (int64_t i = 0; i < problem.n_rows; ++i)
                if (problem.positive[i] == wanted) row_.push_back(static_cast<int32_t>(i));
            if (wanted) n_pos_ = static_cast<int64_t>(row_.size());
        }
        column_.resize(problem.n_models);
        for (int64_t t = 0; t < problem.n_models; ++t) column_[t] = t;
    }

    Undecided(const Undecided&) = delete;  // values_ may point into own_
    Undecided& operator=(const Undecided&) = delete;

    int64_t size() const { return static_cast<int64_t>(row_.size()); }
    int64_t n_pos() const { return n_pos_; }

    // Running sums after base model t is added, (size(),).
    void sums_with(int32_t t, std::vector<double>& out) const {
        const Score* column = values_ + column_[t] * stride_;
        out.resize(row_.size());
        for (size_t j = 0; j < row_.size(); ++j) out[j] = sums_[j] + column[row_[j]];
    }

    // Takes the new running sums and keeps only rows with lower <= sum <= upper. Returns how many
    // of the rows that quit were decided differently from the full ensemble.
    int64_t advance(const std::vector<double>& sums, double lower, double upper) {
        int64_t kept = 0, kept_pos = 0, differing = 0;
        for (int64_t j = 0; j < size(); ++j) {
            const bool is_positive = j < n_pos_;
            const Outcome outcome = compare(sums[j], lower, upper);
            if (outcome != Outcome::kContinue) {
                differing += is_positive != (outcome == Outcome::kPositive);
                continue;
            }
            row_[kept] = row_[j];
            sums_[kept++] = sums[j];
            kept_pos += is_positive;
        }
        row_.resize(kept);
        sums_.resize(kept);
        n_pos_ = kept_pos;
        return differing;
    }

    // Copies the remaining rows to consecutive memory once half of the rows have quit.
    void compact(const std::vector<int32_t>& unused) {
        if (size() * 2 > stride_) return;
        std::vector<Score> copy(unused.size() * row_.size());
        for (size_t c = 0; c < unused.size(); ++c) {
            const Score* column = values_ + column_[unused[c]] * stride_;
            for (size_t j = 0; j < row_.size(); ++j) copy[c * row_.size() + j] = column[row_[j]];
        }
        for (size_t c = 0; c < unused.size(); ++c) column_[unused[c]] = static_cast<int64_t>(c);
        for (size_t j = 0; j < row_.size(); ++j) row_[j] = static_cast<int32_t>(j);
        own_ = std::move(copy);
        values_ = own_.data();
        stride_ = size();
    }

  private:
    const Score* values_;     // by base model, `stride_` rows each
    std::vector<Score> own_;  // where values_ points once rows have been compacted
    int64_t stride_;
    std::vector<int64_t> column_;  // (T,) where each base model's scores are in values_
    std::vector<int32_t> row_;     // undecided rows, as indices into a column
    std::vector<double> sums_;     // their running sums
    int64_t n_pos_ = 0;            // how many of them are full-positive; they come first
};

// What each base model would add to the cost of those that are chosen already.
class MarginalCosts {
  public:
    explicit MarginalCosts(const CostsView& costs)
        : costs_(costs),
          unpaid_(costs.parts.begin(), costs.parts.end()),
          now_(costs.own.begin(), costs.own.end()) {
        if (!unpaid_.empty()) update();
    }

    double operator[](int32_t t) const { return now_[t]; }

    // Base model t comes next: others no longer pay for the parts that it needs.
    void choose(int32_t t) {
        if (unpaid_.empty()) return;
        bool changed = false;
        for (int64_t i = costs_.need_begin[t]; i < costs_.need_begin[t + 1]; ++i) {
            double& unpaid = unpaid_[costs_.need[i]];
            changed |= unpaid > 0;
            unpaid = 0;
        }
        if (changed) update();
    }

  private:
    // Parts are added up first, in their order, as Costs in Python does it.
    void update() {
        for (size_t t = 0; t < now_.size(); ++t) {
            double parts = 0;
            for (int64_t i = costs_.need_begin[t]; i < costs_.need_begin[t + 1]; ++i)
                parts += unpaid_[costs_.need[i]];
            now_[t] = costs_.own[t] + parts;
        }
    }

    CostsView costs_;
    std::vector<double> unpaid_;  // (P,) 0 where a chosen base model needs the part
    std::vector<double> now_;     // (T,)
};

// Algorithm 1's inner loop: Algorithm 2 on every candidate; smallest J_r = c_k |C| / quits wins,
// the first in `candidates` on ties and where nothing quits at all.
template <class Score>
int32_t best_candidate(const Undecided<Score>& undecided, const std::vector<int32_t>& candidates,
                       const FitProblem& problem, const MarginalCosts& costs, int64_t budget,
                       int threads) {
    std::vector<double> ratio(candidates.size(), kInf);
    const int64_t n_pos = undecided.n_pos(), n = undecided.size();
    std::vector<double> sums, scratch;
    parallel_for(
        candidates.size(), 1, threads,
        [=, &undecided, &candidates, &problem, &costs, &ratio](int64_t c, int64_t) mutable {
            undecided.sums_with(candidates[c], sums);
            const QuitCuts cuts = optimize_thresholds(sums.data(), n_pos, sums.data() + n_pos,
                                                      n - n_pos, budget, problem, scratch);
            if (cuts.quits > 0)
                ratio[c] =
                    costs[candidates[c]] * static_cast<double>(n) / static_cast<double>(cuts.quits);
        });
    return candidates[std::min_element(ratio.begin(), ratio.end()) - ratio.begin()];
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

    Undecided<Score> undecided(problem, values);
    MarginalCosts costs(problem.costs);
    int64_t budget = problem.budget;
    std::vector<double> sums, reordered, scratch;
    // The last step has no thresholds: the full score decides there.
    for (int64_t r = 0; r + 1 < n_models && undecided.size() > 0; ++r) {
        const int32_t chosen =
            choose_order ? best_candidate(undecided, unused, problem, costs, budget, threads)
                         : unused[0];
        costs.choose(chosen);
        undecided.sums_with(chosen, sums);
        reordered = sums;
        const int64_t n_pos = undecided.n_pos(), n_neg = undecided.size() - n_pos;
        const QuitCuts cuts = optimize_thresholds(reordered.data(), n_pos, reordered.data() + n_pos,
                                                  n_neg, budget, problem, scratch);
        place_thresholds(cuts, sums, result.lower[r], result.upper[r]);
        budget -= undecided.advance(sums, result.lower[r], result.upper[r]);
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
