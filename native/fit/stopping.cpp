#include "fit/stopping.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "core/parallel.hpp"
#include "fit/between.hpp"

namespace qwyc {

namespace {

constexpr int64_t kSegment = 16;  // steps between running sums that are kept
constexpr int64_t kGroup = 8;     // steps whose rows are sorted at once, a divisor of kSegment
constexpr int64_t kChunk = 8192;  // rows that a thread takes at once
constexpr int kDigit = 11;        // bits per pass of the radix sort, which has two
constexpr int64_t kDigits = 1 << kDigit;
constexpr int64_t kMinRowsToRadixSort = 1000;  // fewer rows are sorted by comparison
constexpr int64_t kMinRowsForThreads = 2000;   // fewer rows are sorted by one thread

}  // namespace

template <class Score, class Loss>
StoppingFit<Score, Loss>::StoppingFit(const StoppingProblem<Loss>& problem, const Score* values)
    : problem_(problem), values_(values) {
    const auto n_models = static_cast<int64_t>(problem.order.size());
    lower_.assign(n_models, -kInf);
    upper_.assign(n_models, kInf);
    forecast_.resize(n_models);
    quit_step_.assign(problem.n_rows, static_cast<int32_t>(n_models) - 1);
    row_.resize(problem.n_rows);
    full_.resize(problem.n_rows);
    cost_to_go_.resize(problem.n_rows);
    n_reaching_.resize(n_models);
    segment_.resize(kSegment);
    at_step_.resize(kGroup);
    std::vector<double> sums(problem.n_rows, problem.base);
    for (int64_t r = 0; r < n_models; ++r) {
        if (r % kSegment == 0) checkpoint_.push_back(sums);
        const Score* column = values_ + problem.order[r] * problem.n_rows;
        for (int64_t i = 0; i < problem.n_rows; ++i) sums[i] += column[i];
    }
}

// The step at which every row ends under the present thresholds (the last one where it never quits)
// and how many rows are decided differently from their full score.
template <class Score, class Loss>
void StoppingFit<Score, Loss>::find_quits(int threads) {
    const auto last = static_cast<int32_t>(problem_.order.size()) - 1;
    std::vector<int32_t> undecided(kChunk);
    std::vector<double> sum(kChunk);
    std::atomic<int64_t> differing{0};
    parallel_for(problem_.n_rows, kChunk, threads,
                 [this, last, undecided, sum, &differing](int64_t from, int64_t to) mutable {
                     int64_t left = to - from, differences = 0;
                     for (int64_t j = 0; j < left; ++j) {
                         undecided[j] = static_cast<int32_t>(j);
                         sum[j] = problem_.base;
                         quit_step_[from + j] = last;
                     }
                     for (int32_t r = 0; r < last && left > 0; ++r) {
                         const Score* column = values_ + problem_.order[r] * problem_.n_rows + from;
                         int64_t kept = 0;
                         for (int64_t k = 0; k < left; ++k) {
                             const int32_t j = undecided[k];
                             sum[j] += column[j];
                             const Outcome outcome = rule()(r, sum[j]);
                             const bool quits = outcome != Outcome::kContinue;
                             if (quits) {
                                 quit_step_[from + j] = r;
                                 differences += problem_.loss.differs(forecast_[r], outcome, sum[j],
                                                                      problem_.full[from + j]);
                             }
                             undecided[kept] = j;
                             kept += !quits;
                         }
                         left = kept;
                     }
                     differing += differences;
                 });
    differing_ = differing;
}

template <class Score, class Loss>
int64_t StoppingFit<Score, Loss>::steps() const {
    int64_t steps = 0;
    for (int32_t step : quit_step_) steps += step + 1;
    return steps;
}

// Rows by the step at which they end, last first; rows of one step in their own order.
template <class Score, class Loss>
void StoppingFit<Score, Loss>::order_rows() {
    const auto n_models = static_cast<int64_t>(problem_.order.size());
    std::fill(n_reaching_.begin(), n_reaching_.end(), 0);
    for (int32_t step : quit_step_) ++n_reaching_[step];
    std::vector<int64_t> place(n_models, 0);
    for (int64_t r = n_models - 2; r >= 0; --r) {
        place[r] = n_reaching_[r + 1];
        n_reaching_[r] += n_reaching_[r + 1];
    }
    for (int64_t i = 0; i < problem_.n_rows; ++i) {
        const int64_t at = place[quit_step_[i]]++;
        row_[at] = static_cast<int32_t>(i);
        full_[at] = problem_.full[i];
    }
    segment_begin_ = -1;
}

// Running sums after `step` and the steps before it in its segment, for the rows that reach each.
// They are added up from a checkpoint, never subtracted, so that they equal the engine's bit for
// bit.
template <class Score, class Loss>
void StoppingFit<Score, Loss>::add_segment(int64_t step, int threads) {
    const int64_t begin = step / kSegment * kSegment;
    if (begin == segment_begin_) return;
    segment_begin_ = begin;
    for (int64_t r = begin; r <= step; ++r) segment_[r - begin].resize(n_reaching_[r]);
    const std::vector<double>& first = checkpoint_[begin / kSegment];
    parallel_for(n_reaching_[begin], kChunk, threads, [&](int64_t from, int64_t to) {
        for (int64_t r = begin; r <= step; ++r) {
            const Score* column = values_ + problem_.order[r] * problem_.n_rows;
            const double* before = r == begin ? nullptr : segment_[r - begin - 1].data();
            double* after = segment_[r - begin].data();
            for (int64_t j = from; j < std::min(to, n_reaching_[r]); ++j)
                after[j] = (before ? before[j] : first[row_[j]]) + column[row_[j]];
        }
    });
}

// The mean of the forecast's chance and of what the row's own full score says, weighted by
// forecast_share.
template <class Score, class Loss>
double StoppingFit<Score, Loss>::chance(const ScoreForecast& forecast, double sum, size_t next_bin,
                                        double full) const {
    const double share = problem_.smoothing.forecast_share;
    return share * problem_.loss.chance(forecast, sum, next_bin) +
           (problem_.loss.happens(forecast, sum, next_bin, full) ? 1 - share : 0.0);
}

template <class Score, class Loss>
void StoppingFit<Score, Loss>::freeze(int threads) {
    frozen_ = true;
    std::fill(lower_.begin(), lower_.end(), -kInf);
    std::fill(upper_.begin(), upper_.end(), kInf);
    find_quits(threads);
}

template <class Score, class Loss>
void StoppingFit<Score, Loss>::sweep(double penalty_negative, double penalty_positive,
                                     int threads) {
    const auto n_models = static_cast<int64_t>(problem_.order.size());
    order_rows();
    std::fill(cost_to_go_.begin(), cost_to_go_.begin() + n_reaching_[n_models - 1], 0.0);
    // cost_to_go_ at step r: the cost of continuing, which includes the base model of step r + 1.
    for (int64_t r = n_models - 2; r >= 0; --r) {
        if (r == n_models - 2 || r % kGroup == kGroup - 1) {
            add_segment(r, threads);
            prepare(r / kGroup * kGroup, r + 1, threads);
        }
        const double cost = cost_of_step(r + 1);
        for (int64_t j = 0; j < n_reaching_[r + 1]; ++j) cost_to_go_[j] += cost;
        add_rows_ending_at(r, penalty_negative, penalty_positive);
        choose(r, penalty_negative, penalty_positive);
    }
    find_quits(threads);
}

// Sorts the rows that reach each of some steps and forecasts their full decisions. This does not
// depend on thresholds of later steps, so threads share the steps.
template <class Score, class Loss>
void StoppingFit<Score, Loss>::prepare(int64_t from, int64_t to, int threads) {
    const int workers = n_reaching_[from] < kMinRowsForThreads ? 1 : threads;
    parallel_for(
        to - from, 1, workers, [this, from, scratch = Scratch()](int64_t k, int64_t) mutable {
            const int64_t step = from + k, n = n_reaching_[step];
            auto& [sorted, chances] = at_step_[step % kGroup];
            sort(segment_[step - segment_begin_].data(), n, sorted, scratch.unsorted);
            if (!frozen_ && n >= problem_.smoothing.fewest_rows) {
                scratch.sums.resize(n);
                scratch.full.resize(n);
                for (int64_t j = 0; j < n; ++j) {
                    scratch.sums[j] = sorted[j].sum;
                    scratch.full[j] = full_[sorted[j].at];
                }
                forecast_[step].fit(scratch.sums, scratch.full, problem_.smoothing);
            }
            const ScoreForecast& forecast = forecast_[step];
            chances.resize(forecast.centre.empty() ? 0 : n);
            size_t next = 0;
            for (size_t j = 0; j < chances.size(); ++j) {
                while (next < forecast.centre.size() && forecast.centre[next] <= sorted[j].sum)
                    ++next;
                chances[j] = chance(forecast, sorted[j].sum, next, full_[sorted[j].at]);
            }
        });
}

// The rows that reach a step by running sum, and by place where equal: a radix sort on a grid in
// two passes, then comparisons between rows that share a grid point.
template <class Score, class Loss>
void StoppingFit<Score, Loss>::sort(const double* sums, int64_t n, std::vector<Candidate>& sorted,
                                    std::vector<Candidate>& unsorted) {
    const auto before = [](const Candidate& a, const Candidate& b) {
        return a.sum < b.sum || (a.sum == b.sum && a.at < b.at);
    };
    const auto sort_part = [&](int64_t from, int64_t to) {
        if (!std::is_sorted(sorted.begin() + from, sorted.begin() + to, before))
            std::sort(sorted.begin() + from, sorted.begin() + to, before);
    };
    sorted.resize(n);
    for (int64_t j = 0; j < n; ++j) sorted[j] = {sums[j], 0, static_cast<int32_t>(j)};
    if (n < kMinRowsToRadixSort) return sort_part(0, n);
    const auto [least, most] = std::minmax_element(sums, sums + n);
    const double low = *least, scale = (kDigits * kDigits - 1) / (*most - low);
    if (!(std::isfinite(scale) && scale > 0)) return sort_part(0, n);
    std::array<int32_t, kDigits> minor{}, major{};
    for (Candidate& c : sorted) {
        c.key = static_cast<uint32_t>((c.sum - low) * scale);
        ++minor[c.key % kDigits];
        ++major[c.key / kDigits];
    }
    int32_t minor_begin = 0, major_begin = 0;
    for (int64_t d = 0; d < kDigits; ++d) {
        minor_begin += std::exchange(minor[d], minor_begin);
        major_begin += std::exchange(major[d], major_begin);
    }
    unsorted.resize(n);
    for (const Candidate& c : sorted) unsorted[minor[c.key % kDigits]++] = c;
    for (const Candidate& c : unsorted) sorted[major[c.key / kDigits]++] = c;
    for (int64_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && sorted[to].key == sorted[from].key;) ++to;
        if (to - from > 1) sort_part(from, to);
    }
}

// The cost of continuing for the rows that end at this step under the old thresholds: each
// continues to the first later step where the new thresholds end it.
template <class Score, class Loss>
void StoppingFit<Score, Loss>::add_rows_ending_at(int64_t step, double penalty_negative,
                                                  double penalty_positive) {
    const auto last = static_cast<int64_t>(problem_.order.size()) - 1;
    for (int64_t j = n_reaching_[step + 1]; j < n_reaching_[step]; ++j) {
        double sum = segment_[step - segment_begin_][j], cost = 0;
        int64_t r = step + 1;
        for (; r < last; ++r) {
            sum += values_[problem_.order[r] * problem_.n_rows + row_[j]];
            const Outcome outcome = rule()(r, sum);
            if (outcome != Outcome::kContinue) {
                const ScoreForecast& forecast = forecast_[r];
                const double lost = chance(forecast, sum, forecast.bin_above(sum), full_[j]);
                cost = outcome == Outcome::kNegative ? penalty_negative * Loss::of_negative(lost)
                                                     : penalty_positive * Loss::of_positive(lost);
                break;
            }
        }
        for (; r > step; --r) cost += cost_of_step(r);
        cost_to_go_[j] = cost;
    }
}

// Chooses the prefix that quits negative and the suffix that quits positive together, by their gain
// over continuing.
template <class Score, class Loss>
void StoppingFit<Score, Loss>::choose(int64_t step, double penalty_negative,
                                      double penalty_positive) {
    const auto& [sorted, chances] = at_step_[step % kGroup];
    const auto n = static_cast<int64_t>(chances.size());
    if (n >= problem_.smoothing.fewest_rows) {
        low_gain_.resize(n);
        high_gain_.resize(n);
        for (int64_t j = 0; j < n; ++j) {
            const double cost_to_go = cost_to_go_[sorted[j].at];
            low_gain_[j] = cost_to_go - penalty_negative * Loss::of_negative(chances[j]);
            high_gain_[j] = cost_to_go - penalty_positive * Loss::of_positive(chances[j]);
        }
        place(step, sorted);
    }
    for (int64_t j = 0; j < n && rule()(step, sorted[j].sum) == Outcome::kNegative; ++j)
        cost_to_go_[sorted[j].at] = penalty_negative * Loss::of_negative(chances[j]);
    for (int64_t j = n - 1; j >= 0 && rule()(step, sorted[j].sum) == Outcome::kPositive; --j)
        cost_to_go_[sorted[j].at] = penalty_positive * Loss::of_positive(chances[j]);
}

// The thresholds with the largest gain.
template <class Score, class Loss>
void StoppingFit<Score, Loss>::place(int64_t step, const std::vector<Candidate>& sorted) {
    const auto n = static_cast<int64_t>(sorted.size());
    high_best_.resize(n + 1);
    high_begin_.resize(n + 1);
    const double equal = rounding(sorted.front().sum, sorted.back().sum);  // no cut inside ties
    high_best_[n] = 0;
    high_begin_[n] = static_cast<int32_t>(n);
    double suffix = 0;
    for (int64_t j = n - 1; j >= 0; --j) {
        suffix += high_gain_[j];
        const bool tie = j > 0 && sorted[j].sum - sorted[j - 1].sum <= equal;
        const bool better = problem_.quit_positive && !tie && suffix > high_best_[j + 1];
        high_best_[j] = better ? suffix : high_best_[j + 1];
        high_begin_[j] = better ? static_cast<int32_t>(j) : high_begin_[j + 1];
    }
    int64_t low_end = 0;
    double best = high_best_[0], prefix = 0;
    for (int64_t j = 0; problem_.quit_negative && j < n; ++j) {
        prefix += low_gain_[j];
        const bool tie = j + 1 < n && sorted[j + 1].sum - sorted[j].sum <= equal;
        if (!tie && prefix + high_best_[j + 1] > best) {
            best = prefix + high_best_[j + 1];
            low_end = j + 1;
        }
    }
    const int64_t high = high_begin_[low_end];
    lower_[step] = low_end == 0 ? -kInf
                   : low_end == n
                       ? std::nextafter(sorted[n - 1].sum, kInf)
                       : between(sorted[low_end - 1].sum, sorted[low_end].sum, sorted[low_end].sum);
    upper_[step] = high == n ? kInf
                   : high == 0
                       ? std::nextafter(sorted[0].sum, -kInf)
                       : between(sorted[high - 1].sum, sorted[high].sum, sorted[high - 1].sum);
    upper_[step] = std::max(upper_[step], lower_[step]);
}

template class StoppingFit<float, ClassLoss>;
template class StoppingFit<double, ClassLoss>;
template class StoppingFit<float, ToleranceLoss>;
template class StoppingFit<double, ToleranceLoss>;

}  // namespace qwyc
