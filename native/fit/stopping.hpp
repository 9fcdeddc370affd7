// Thresholds by optimal stopping: for all steps, under a penalty per disagreement.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/rule.hpp"
#include "fit/losses.hpp"
#include "fit/score_forecast.hpp"

namespace qwyc {

template <class Loss>
struct StoppingProblem {
    int64_t n_rows;
    double base;
    Loss loss;
    std::span<const int32_t> order;  // (T,)
    std::span<const double> full;    // (N,)
    std::span<const double> costs;   // (T,) by base model
    bool quit_negative, quit_positive;
    Smoothing smoothing;
};

// Holds the data that sweeps share, running sums at some steps, and the present thresholds.
template <class Score, class Loss = ClassLoss>
class StoppingFit {
  public:
    // values: (T, N) by base model; must outlive this object.
    StoppingFit(const StoppingProblem<Loss>& problem, const Score* values);

    // One pass from the last step to the first. At each step the rows that the present thresholds
    // let reach it are sorted by running sum. Rows at the low end quit negative, and rows at the
    // high end positive, where the expected penalty is below the cost of continuing. The penalty is
    // penalty_negative or penalty_positive times the probability that the early answer differs from
    // the full one.
    void sweep(double penalty_negative, double penalty_positive, int threads);

    // From now on forecasts stay as they are, and sweeps start from "never quit" once more: the
    // policies that follow share one forecast per step.
    void freeze(int threads);
    // What is lost from the next sweep on.
    void set_loss(const Loss& loss) { problem_.loss = loss; }
    const std::vector<ScoreForecast>& forecasts() const { return forecast_; }

    const std::vector<double>& lower() const { return lower_; }
    const std::vector<double>& upper() const { return upper_; }

    // Under the present thresholds: the number of rows that are decided differently from their full
    // score, and the number of base models that all rows take together.
    int64_t differing() const { return differing_; }
    int64_t steps() const;

  private:
    struct Candidate {
        double sum;
        uint32_t key;  // the sum on a grid, to sort by
        int32_t at;    // place in `row_`
    };

    // The rows that reach one step, sorted by running sum.
    struct RowsAtStep {
        std::vector<Candidate> sorted;
        std::vector<double> chance;  // (rows,) chance() of each
    };

    struct Scratch {
        std::vector<Candidate> unsorted;
        std::vector<double> sums, full;
    };

    void find_quits(int threads);
    void order_rows();
    void add_segment(int64_t step, int threads);
    void prepare(int64_t from, int64_t to, int threads);
    void add_rows_ending_at(int64_t step, double penalty_negative, double penalty_positive);
    void choose(int64_t step, double penalty_negative, double penalty_positive);
    void place(int64_t step, const std::vector<Candidate>& sorted);
    static void sort(const double* sums, int64_t n, std::vector<Candidate>& sorted,
                     std::vector<Candidate>& unsorted);
    double cost_of_step(int64_t step) const { return problem_.costs[problem_.order[step]]; }
    ThresholdRule rule() const { return {lower_, upper_}; }
    double chance(const ScoreForecast& forecast, double sum, size_t next_bin, double full) const;

    StoppingProblem<Loss> problem_;
    const Score* values_;
    std::vector<double> lower_, upper_;    // (T,)
    std::vector<ScoreForecast> forecast_;  // (T,) as fitted last
    std::vector<int32_t> quit_step_;       // (N,) under the present thresholds; last: never quits
    int64_t differing_ = 0;                // number of rows that they decide differently
    bool frozen_ = false;                  // whether forecasts stay as they are
    std::vector<std::vector<double>> checkpoint_;  // (T / kSegment, N) running sums before a step

    // Rows sorted by the step at which they end, last first, so that the rows that reach a step
    // come first.
    std::vector<int32_t> row_;                  // (N,)
    std::vector<double> full_;                  // (N,) their full scores
    std::vector<double> cost_to_go_;            // (N,) cost of continuing from the present step
    std::vector<int64_t> n_reaching_;           // (T,) how many of them reach a step
    std::vector<std::vector<double>> segment_;  // (kSegment, N) running sums after some steps
    int64_t segment_begin_ = -1;

    std::vector<RowsAtStep> at_step_;  // (kGroup,) of some steps

    // For the present step, (rows,) by running sum.
    std::vector<double> low_gain_, high_gain_;
    std::vector<double> high_best_;    // largest gain of a suffix that starts here or later
    std::vector<int32_t> high_begin_;  // where that suffix starts
};

}  // namespace qwyc
