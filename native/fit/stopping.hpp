// Thresholds by optimal stopping: all steps together, under a price per disagreement.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/rule.hpp"
#include "core/target.hpp"
#include "fit/score_forecast.hpp"

namespace qwyc {

struct StoppingProblem {
    int64_t n_rows;
    double base;
    TwoClasses target;
    std::span<const int32_t> order;  // (T,)
    std::span<const double> full;    // (N,)
    std::span<const double> costs;   // (T,) by base model
    bool quit_negative, quit_positive;
    Smoothing smoothing;
};

// Holds what sweeps share: running sums at some steps, and the thresholds as they stand.
template <class Score>
class StoppingFit {
  public:
    // values: (T, N) by base model; must outlive this object.
    StoppingFit(const StoppingProblem& problem, const Score* values);

    // One pass from the last step to the first. At each step the rows that the present thresholds
    // let reach it are sorted by running sum, and the rows at either end quit whose price is below
    // what going on costs them: price_negative times the probability of being full-positive, and
    // price_positive times that of being full-negative.
    void sweep(double price_negative, double price_positive, int threads);

    const std::vector<double>& lower() const { return lower_; }
    const std::vector<double>& upper() const { return upper_; }

    // What the thresholds as they stand do with the rows: how many are decided differently from
    // their full score, and how many base models all of them take together.
    int64_t differing() const { return differing_; }
    int64_t steps() const;

  private:
    struct Candidate {
        double sum;
        uint32_t key;  // the sum on a grid, to sort by
        int32_t at;    // place in `row_`
    };

    // The rows that reach one step, by running sum, and what can be said before what going on costs
    // them is known.
    struct Arrivals {
        std::vector<Candidate> sorted;
        std::vector<double> below;  // (rows,) chance_below() of each
    };

    struct Scratch {
        std::vector<Candidate> unsorted;
        std::vector<double> sums, full;
    };

    void find_quits(int threads);
    void order_rows();
    void add_segment(int64_t step, int threads);
    void prepare(int64_t from, int64_t to, int threads);
    void enter(int64_t step, double price_negative, double price_positive);
    void choose(int64_t step, double price_negative, double price_positive);
    void place(int64_t step, const std::vector<Candidate>& sorted);
    static void sort(const double* sums, int64_t n, std::vector<Candidate>& sorted,
                     std::vector<Candidate>& unsorted);
    double cost_of_step(int64_t step) const { return problem_.costs[problem_.order[step]]; }
    ThresholdRule rule() const { return {lower_, upper_}; }
    double chance_below(double outlook, bool negative) const;

    StoppingProblem problem_;
    const Score* values_;
    std::vector<double> lower_, upper_;  // (T,)
    std::vector<Outlook> outlook_;       // (T,) as last estimated
    std::vector<int32_t> quit_step_;     // (N,) under the present thresholds; last: never quits
    int64_t differing_ = 0;              // rows that they decide differently
    std::vector<std::vector<double>> checkpoint_;  // (T / kSegment, N) running sums before a step

    // By place: the rows, last to end first, so that those that reach a step are the first ones.
    std::vector<int32_t> row_;                  // (N,)
    std::vector<double> full_;                  // (N,) their full scores
    std::vector<double> to_go_;                 // (N,) what going on costs them
    std::vector<int64_t> reaching_;             // (T,) how many of them reach a step
    std::vector<std::vector<double>> segment_;  // (kSegment, N) running sums after some steps
    int64_t segment_begin_ = -1;

    std::vector<Arrivals> arrivals_;  // (kGroup,) of some steps

    // For the step in hand, (rows,) by running sum.
    std::vector<double> low_gain_, high_gain_;
    std::vector<double> high_best_;    // the most that a suffix from here on can gain
    std::vector<int32_t> high_begin_;  // and where it starts
};

}  // namespace qwyc
