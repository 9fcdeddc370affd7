// Thresholds by optimal stopping: all steps together, under a price per disagreement.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qwyc {

// The full score given the running sum at one step, estimated from the rows that reach it: mean
// piecewise linear between bin centres, deviation constant in a bin.
struct Outlook {
    std::vector<double> centre;     // (bins,) ascending: mean running sum of the bin's rows
    std::vector<double> mean;       // (bins,) mean full score of the bin's rows
    std::vector<double> deviation;  // (bins,) of the full score, drawn to the pooled one

    // The probability that a row with this running sum ends below `threshold`.
    double below(double sum, double threshold) const;
};

struct StoppingProblem {
    int64_t n_rows;
    double base, threshold;
    std::span<const int32_t> order;  // (T,)
    std::span<const double> full;    // (N,)
    std::span<const double> costs;   // (T,) by base model
    bool quit_negative, quit_positive;
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

  private:
    struct Candidate {
        double sum;
        int32_t row;
    };

    const std::vector<double>& sums_at(int64_t step, int threads);
    void exits(int threads);
    void choose(int64_t step, const std::vector<double>& sums, double price_negative,
                double price_positive);
    double cost_of_step(int64_t step) const { return problem_.costs[problem_.order[step]]; }
    double price_of_negative(double below, int32_t row) const;

    StoppingProblem problem_;
    const Score* values_;
    std::vector<double> lower_, upper_;  // (T,)
    std::vector<Outlook> outlook_;       // (T,) as last estimated
    std::vector<double> to_go_;          // (N,) what going on costs a row
    std::vector<int32_t> exit_;          // (N,) step at which the present thresholds end a row
    std::vector<Candidate> reached_;     // rows that reach the step in hand
    std::vector<std::vector<double>> checkpoint_;  // running sums before every kSegment-th step
    std::vector<std::vector<double>> segment_;     // running sums after each step of one segment
    int64_t segment_begin_ = -1;
};

}  // namespace qwyc
