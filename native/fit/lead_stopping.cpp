#include "fit/lead_stopping.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/parallel.hpp"
#include "fit/between.hpp"

namespace qwyc {

namespace {

constexpr int64_t kSteps = 8;    // steps that are prepared at once, by several threads
constexpr int64_t kRows = 1024;  // rows that a thread takes at once

constexpr TwoClasses kAtZero{0.0};  // the full lead of a class is below 0 where another one wins

}  // namespace

template <class Score>
LeadFit::LeadFit(const LeadProblem& problem, const Score* values, int threads)
    : n_rows_(problem.n_rows),
      n_models_(static_cast<int64_t>(problem.order.size())),
      n_pools_(*std::max_element(problem.pool.begin(), problem.pool.end()) + 1),
      n_classes_(problem.n_classes),
      smoothing_(problem.smoothing),
      pool_(problem.pool.begin(), problem.pool.end()),
      weight_(problem.weight.begin(), problem.weight.end()),
      full_(problem.full.begin(), problem.full.end()) {
    for (int32_t t : problem.order) step_cost_.push_back(problem.costs[t]);
    winner_.resize(n_rows_);
    most_.resize(n_rows_);
    runner_up_.resize(n_rows_);
    for (int64_t i = 0; i < n_rows_; ++i) {
        const double* whole = &full_[i * n_classes_];
        winner_[i] = leader_of(n_classes_, whole).index;
        most_[i] = whole[winner_[i]];
        runner_up_[i] = -kInf;
        for (int32_t k = 0; k < n_classes_; ++k)
            if (k != winner_[i]) runner_up_[i] = std::max(runner_up_[i], whole[k]);
        mean_weight_ += weight_[winner_[i]];
    }
    mean_weight_ /= static_cast<double>(std::max<int64_t>(n_rows_, 1));
    const int64_t last = n_models_ - 1;
    candidate_.resize(last * n_rows_);
    parallel_for(
        n_rows_, kRows, threads,
        [&, sums = std::vector<double>(kRows * n_classes_)](int64_t from, int64_t to) mutable {
            for (int64_t i = from; i < to; ++i)
                std::copy(problem.base.begin(), problem.base.end(),
                          sums.begin() + (i - from) * n_classes_);
            for (int64_t r = 0; r < last; ++r) {
                const Score* added = values + (problem.order[r] * n_rows_ + from) * n_classes_;
                for (int64_t s = 0; s < (to - from) * n_classes_; ++s) sums[s] += added[s];
                for (int64_t i = from; i < to; ++i) {
                    const auto [index, lead] =
                        leader_of(n_classes_, &sums[(i - from) * n_classes_]);
                    candidate_[r * n_rows_ + i] = {lead, static_cast<int32_t>(i),
                                                   static_cast<uint16_t>(index)};
                }
            }
        });
    begin_.resize(last * (n_pools_ + 1));
    parallel_for(last, 1, threads, [this](int64_t r, int64_t) { sort_step(r); });
    forecast_.resize(last * n_pools_);
    threshold_.assign(n_models_ * n_pools_, kInf);
    quit_step_.assign(n_rows_, static_cast<int32_t>(last));
    cost_to_go_.resize(n_rows_);
    penalty_.assign(std::min(kSteps, last), std::vector<double>(n_rows_));
}

void LeadFit::sort_step(int64_t step) {
    Candidate* const rows = candidate_.data() + step * n_rows_;
    std::sort(rows, rows + n_rows_, [this](const Candidate& a, const Candidate& b) {
        if (pool_[a.leader] != pool_[b.leader]) return pool_[a.leader] < pool_[b.leader];
        return a.lead < b.lead || (a.lead == b.lead && a.row < b.row);
    });
    int64_t* const begin = &begin_[step * (n_pools_ + 1)];
    for (int64_t i = 0; i < n_rows_; ++i) ++begin[pool_[rows[i].leader] + 1];
    std::partial_sum(begin, begin + n_pools_ + 1, begin);
}

// The distance of a row's full score for the class that leads from the largest other one.
double LeadFit::full_lead(const Candidate& c) const {
    const double own = full_[int64_t{c.row} * n_classes_ + c.leader];
    return own - (wrong(c) ? most_[c.row] : runner_up_[c.row]);
}

void LeadFit::sweep(double penalty, int threads) {
    std::fill(cost_to_go_.begin(), cost_to_go_.end(), 0.0);
    for (int64_t r = n_models_ - 2; r >= 0; --r) {
        if (r == n_models_ - 2 || r % kSteps == kSteps - 1) {
            const int64_t from = r / kSteps * kSteps;
            parallel_for(r + 1 - from, 1, threads,
                         [this, from, scratch = Scratch()](int64_t k, int64_t) mutable {
                             prepare(from + k, scratch);
                         });
        }
        for (double& cost : cost_to_go_) cost += step_cost_[r + 1];
        for (int64_t g = 0; g < n_pools_; ++g) choose(r, g, penalty);
    }
    find_quits();
}

// Forecasts full leads at a step, and from them the expected weight of what every row would lose if
// it quit. This does not depend on thresholds of later steps, so threads share the steps.
void LeadFit::prepare(int64_t step, Scratch& scratch) {
    const Candidate* const rows = candidate_.data() + step * n_rows_;
    std::vector<double>& expected = penalty_[step % kSteps];
    for (int64_t g = 0; g < n_pools_; ++g) {
        const int64_t from = pool_begin(step, g), to = pool_begin(step, g + 1);
        scratch.leads.clear();
        scratch.full.clear();
        // The mean weight of what wrong decisions lose here, with one more of mean weight.
        double lost = mean_weight_, n_wrong = 1;
        for (int64_t j = from; j < to; ++j) {
            if (quit_step_[rows[j].row] < step) continue;
            scratch.leads.push_back(rows[j].lead);
            scratch.full.push_back(full_lead(rows[j]));
            if (!wrong(rows[j])) continue;
            lost += weight_[winner_[rows[j].row]];
            n_wrong += 1;
        }
        ScoreForecast& forecast = forecast_[step * n_pools_ + g];
        if (static_cast<int64_t>(scratch.leads.size()) >= smoothing_.fewest_rows)
            forecast.fit(scratch.leads, scratch.full, smoothing_);
        if (forecast.centre.empty()) continue;
        const double share = smoothing_.forecast_share, weight = lost / n_wrong;
        size_t next = 0;
        for (int64_t j = from; j < to; ++j) {
            while (next < forecast.centre.size() && forecast.centre[next] <= rows[j].lead) ++next;
            const double own = wrong(rows[j]) ? weight_[winner_[rows[j].row]] : 0.0;
            expected[j] =
                share * (weight * forecast.probability_negative(rows[j].lead, next, kAtZero)) +
                (1 - share) * own;
        }
    }
}

// The threshold of a pool with the largest gain over continuing, and what rows that quit then cost.
void LeadFit::choose(int64_t step, int64_t pool, double penalty) {
    if (forecast_[step * n_pools_ + pool].centre.empty()) return;
    const Candidate* const rows = candidate_.data() + step * n_rows_;
    const std::vector<double>& expected = penalty_[step % kSteps];
    const int64_t from = pool_begin(step, pool), to = pool_begin(step, pool + 1);
    double& threshold = threshold_[step * n_pools_ + pool];
    std::vector<int64_t> reaching;
    for (int64_t j = from; j < to; ++j)
        if (quit_step_[rows[j].row] >= step) reaching.push_back(j);
    const auto n = static_cast<int64_t>(reaching.size());
    if (n >= smoothing_.fewest_rows) {
        const auto lead = [&](int64_t i) { return rows[reaching[i]].lead; };
        const double equal = rounding(lead(0), lead(n - 1));  // no cut inside ties
        int64_t begin = n;
        double best = 0, gain = 0;
        for (int64_t i = n - 1; i >= 0; --i) {
            const int64_t j = reaching[i];
            gain += cost_to_go_[rows[j].row] - penalty * expected[j];
            const bool tie = i > 0 && lead(i) - lead(i - 1) <= equal;
            if (tie || !(gain > best)) continue;
            best = gain;
            begin = i;
        }
        threshold = begin == n   ? kInf
                    : begin == 0 ? std::max(std::nextafter(lead(0), -kInf), 0.0)
                                 : between(lead(begin - 1), lead(begin), lead(begin - 1));
    }
    for (int64_t j = to - 1; j >= from && rows[j].lead > threshold; --j)
        cost_to_go_[rows[j].row] = penalty * expected[j];
}

void LeadFit::find_quits() {
    const auto last = static_cast<int32_t>(n_models_ - 1);
    std::fill(quit_step_.begin(), quit_step_.end(), last);
    differing_ = 0;
    for (int32_t r = 0; r < last; ++r) {
        const Candidate* const rows = candidate_.data() + r * n_rows_;
        for (int64_t g = 0; g < n_pools_; ++g) {
            const double threshold = threshold_[r * n_pools_ + g];
            for (int64_t j = pool_begin(r, g + 1) - 1;
                 j >= pool_begin(r, g) && rows[j].lead > threshold; --j) {
                if (quit_step_[rows[j].row] != last) continue;
                quit_step_[rows[j].row] = r;
                differing_ += wrong(rows[j]);
            }
        }
    }
}

int64_t LeadFit::steps() const {
    return std::accumulate(quit_step_.begin(), quit_step_.end(), n_rows_);
}

template LeadFit::LeadFit(const LeadProblem&, const float*, int);
template LeadFit::LeadFit(const LeadProblem&, const double*, int);

}  // namespace qwyc
