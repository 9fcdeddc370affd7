#include "fit/fan_order.hpp"

#include <cmath>
#include <numeric>
#include <stdexcept>

namespace qwyc {

namespace {

struct Range {
    double least, most;
};

template <class T>
Range range_of(std::span<const T> values) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return {static_cast<double>(*least), static_cast<double>(*most)};
}

// A bin of running sums. The first two numbers change their meaning on the way.
struct Bin {
    double mean = 0;     // of (running sum - full score): their sum at first; then `lower`
    double squares = 0;  // of the differences from the mean; then `upper`
    double count = 0;
};

// Fan's rule for one step, fitted to undecided rows and applied to the same rows.
class FanStep {
  public:
    explicit FanStep(const FanOrderProblem& problem) : problem_(&problem) {}

    // `full`: of the undecided rows. The base model's scores are within `scores`, the running sums
    // before it within `before`.
    template <class Score>
    void fit(const Undecided<Score>& undecided, int32_t t, std::span<const double> full,
             const Range& before, const Range& scores) {
        // Rounding never reverses an order, so no sum is outside of the first and the last bin.
        start((before.least + scores.least) / problem_->bin_width,
              (before.most + scores.most) / problem_->bin_width);
        const auto n = static_cast<size_t>(undecided.size());
        sums_.resize(n);
        place_.resize(n);
        double* const sums = sums_.data();
        int32_t* const place = place_.data();
        Bin* const bins = bins_.data();
        const double width = problem_->bin_width;
        const int64_t first = first_;
        undecided.visit_sums(t, [=](size_t j, double sum) {
            const double at = sum / width;
            const auto cut = static_cast<int64_t>(at);
            const int64_t b = cut - (at < static_cast<double>(cut)) - first;  // its floor
            sums[j] = sum;
            place[j] = static_cast<int32_t>(b);
            bins[b].mean += sum - full[j];
            bins[b].count += 1;
        });
        for (Bin& bin : bins_)
            if (bin.count > 0) bin.mean /= bin.count;
        for (size_t j = 0; j < n; ++j) {
            Bin& bin = bins[place[j]];
            const double off = sums[j] - full[j] - bin.mean;
            bin.squares += off * off;
        }
        for (Bin& bin : bins_)
            if (bin.count > 0) set_thresholds(bin);
    }

    const std::vector<double>& sums() const { return sums_; }

    bool quits(int64_t j) const {
        const Bin& bin = bins_[place_[j]];
        return (sums_[j] < bin.mean) | (sums_[j] > bin.squares);
    }

    int64_t count_quits() const {
        int64_t count = 0;
        for (int64_t j = 0; j < static_cast<int64_t>(sums_.size()); ++j) count += quits(j);
        return count;
    }

  private:
    // Empty bins from floor(least) to floor(most).
    void start(double least, double most) {
        least = std::floor(least), most = std::floor(most);
        if (!(std::abs(least) < 0x1p53 && std::abs(most) < 0x1p53 && most - least < kMostBins))
            throw std::invalid_argument("bin_width is too small: there would be too many bins");
        first_ = static_cast<int64_t>(least);
        bins_.assign(static_cast<size_t>(most - least) + 1, Bin());
    }

    // As FanPolicy in src/qwyc/policy/fan_policy.py has them.
    void set_thresholds(Bin& bin) const {
        const double middle = problem_->threshold + bin.mean;
        const double half = problem_->gamma * std::sqrt(bin.squares / bin.count);
        bin.mean = problem_->quit_negative ? middle - half : -kInf;
        bin.squares = problem_->quit_positive ? middle + half : kInf;
    }

    const FanOrderProblem* problem_;
    std::vector<double> sums_;    // of the undecided rows
    std::vector<int32_t> place_;  // their bins, counted from the first
    std::vector<Bin> bins_;
    int64_t first_ = 0;  // floor(sum / bin_width) of the first bin
};

}  // namespace

template <class Score>
std::vector<int32_t> fan_order(const FanOrderProblem& problem, const Score* values, int threads,
                               const Progress& progress) {
    const int64_t n_models = problem.n_models, n_rows = problem.n_rows;
    std::vector<int32_t> order, unused(n_models), rows(n_rows);
    std::iota(unused.begin(), unused.end(), 0);
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<Range> scores(n_models);
    parallel_for(n_models, 1, threads, [=, &scores](int64_t t, int64_t) {
        scores[t] = range_of(std::span(values + t * n_rows, n_rows));
    });

    Undecided<Score> undecided(std::move(rows), n_models, problem.base, values);
    std::vector<double> full(problem.full.begin(), problem.full.end());  // of the undecided rows
    MarginalCosts costs(problem.costs);
    FanStep taken(problem);
    // The last step has no rule: the full score decides there.
    for (int64_t r = 0; r + 1 < n_models && undecided.size() > 0; ++r) {
        const Range before = range_of(std::span(undecided.sums()));
        const auto count = [&undecided, &full, &scores, before,
                            step = FanStep(problem)](int32_t k) mutable {
            step.fit(undecided, k, full, before, scores[k]);
            return step.count_quits();
        };
        const int32_t chosen = best_candidate(unused, costs, undecided.size(), threads, count);
        costs.choose(chosen);
        taken.fit(undecided, chosen, full, before, scores[chosen]);
        int64_t kept = 0;
        undecided.advance(taken.sums(), [&](int64_t j) {
            if (taken.quits(j)) return false;
            full[kept++] = full[j];
            return true;
        });
        full.resize(kept);
        order.push_back(chosen);
        unused.erase(std::find(unused.begin(), unused.end(), chosen));
        undecided.compact(unused);
        progress(r + 1);
    }
    order.insert(order.end(), unused.begin(), unused.end());
    progress(n_models);
    return order;
}

template std::vector<int32_t> fan_order(const FanOrderProblem&, const float*, int, const Progress&);
template std::vector<int32_t> fan_order(const FanOrderProblem&, const double*, int,
                                        const Progress&);

}  // namespace qwyc
