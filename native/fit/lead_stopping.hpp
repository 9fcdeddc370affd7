// Thresholds on the lead of many classes by optimal stopping: for all steps, under a penalty per
// disagreement. The counterpart for two classes is stopping.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/leads.hpp"
#include "fit/score_forecast.hpp"

namespace qwyc {

struct LeadProblem {
    int64_t n_rows;
    int32_t n_classes;
    std::span<const double> base;    // (K,)
    std::span<const int32_t> order;  // (T,)
    std::span<const double> full;    // (N, K)
    std::span<const double> costs;   // (T,) by base model
    std::span<const int32_t> pool;   // (K,) classes of one pool share their thresholds
    std::span<const double> weight;  // (K,) of a disagreement, by the full decision
    Smoothing smoothing;
};

// Holds who leads each row by how much after each step, and the present thresholds.
class LeadFit {
  public:
    // values: (T, N, K) by base model. They and the spans of `problem` are read here only.
    template <class Score>
    LeadFit(const LeadProblem& problem, const Score* values, int threads);

    // One pass from the last step to the first. At each step, of the rows that the present
    // thresholds let reach it, those with the largest leads quit where the expected penalty is
    // below the cost of continuing. The penalty is `penalty` times the weight of the full decision
    // that is lost, times the probability that it is.
    void sweep(double penalty, int threads);

    int64_t n_pools() const { return n_pools_; }
    const std::vector<double>& thresholds() const { return threshold_; }  // (T, n_pools)

    // Under the present thresholds: rows that are decided differently from their full scores, and
    // base models that all rows take together.
    int64_t differing() const { return differing_; }
    int64_t steps() const;

  private:
    struct Candidate {
        double lead;
        int32_t row;
        uint16_t leader;
    };

    struct Scratch {
        std::vector<double> leads, full;
    };

    // Candidates of a pool after a step: from pool_begin(step, pool) to the next.
    int64_t pool_begin(int64_t step, int64_t pool) const {
        return begin_[step * (n_pools_ + 1) + pool];
    }
    bool wrong(const Candidate& c) const { return c.leader != winner_[c.row]; }
    double full_lead(const Candidate& c) const;
    void sort_step(int64_t step);
    void prepare(int64_t step, Scratch& scratch);
    void choose(int64_t step, int64_t pool, double penalty);
    void find_quits();

    int64_t n_rows_, n_models_, n_pools_;
    int32_t n_classes_;
    Smoothing smoothing_;
    std::vector<double> step_cost_;             // (T,) by step
    std::vector<int32_t> pool_;                 // (K,)
    std::vector<double> weight_;                // (K,)
    double mean_weight_ = 0;                    // over the rows
    std::vector<double> full_;                  // (N, K)
    std::vector<int32_t> winner_;               // (N,) full decisions
    std::vector<double> most_, runner_up_;      // (N,) the two largest full scores
    std::vector<Candidate> candidate_;          // (T - 1, N) sorted by pool, lead and row
    std::vector<int64_t> begin_;                // (T - 1, n_pools + 1) within a step
    std::vector<ScoreForecast> forecast_;       // (T - 1, n_pools) of the full lead, as fitted last
    std::vector<double> threshold_;             // (T, n_pools)
    std::vector<int32_t> quit_step_;            // (N,) under the present thresholds
    std::vector<double> cost_to_go_;            // (N,)
    std::vector<std::vector<double>> penalty_;  // (kSteps, N) expected weight of what is lost
    int64_t differing_ = 0;
};

}  // namespace qwyc
