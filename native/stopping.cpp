#include "stopping.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "cuts.hpp"
#include "parallel.hpp"

namespace qwyc {

namespace {

constexpr int64_t kSegment = 16;     // steps between running sums that are kept
constexpr int64_t kChunk = 8192;     // rows that a thread takes at once
constexpr int64_t kFewestRows = 40;  // a step that fewer rows reach keeps its thresholds
constexpr int64_t kMostBins = 96;
constexpr int64_t kRowsPerBin = 20;
constexpr double kPseudoRows = 50;  // weight of the pooled deviation in a bin's

// The normal distribution's cumulative function on a grid, linear in between (error below 1e-5).
// Made with the four operations only, so that it is the same everywhere, as no library's erfc is.
constexpr double kPhiEnd = 8.0;
constexpr int kPhiPerUnit = 64;
constexpr int kPhiCells = 2 * static_cast<int>(kPhiEnd) * kPhiPerUnit;

std::array<double, kPhiCells + 1> make_phi_table() {
    // The density's ratio from grid point to grid point is exp(-x h - h^2 / 2), |x h| <= 1/8.
    const double h = 1.0 / kPhiPerUnit;
    const auto exp_small = [](double y) {
        double term = 1, sum = 1;
        for (int k = 1; k < 20; ++k) sum += term *= y / k;
        return sum;
    };
    std::array<double, kPhiCells + 1> density{}, table{};
    const int middle = kPhiCells / 2;
    density[middle] = 1.0;
    for (int i = middle; i < kPhiCells; ++i) {
        const double x = (i - middle) * h;
        density[i + 1] = density[i] * exp_small(-x * h - h * h / 2);
    }
    for (int i = 0; i < middle; ++i) density[i] = density[kPhiCells - i];
    for (int i = 0; i < kPhiCells; ++i) {
        const double centre = density[i] * exp_small(-(-kPhiEnd + i * h) * h / 2 - h * h / 8);
        table[i + 1] = table[i] + (density[i] + 4 * centre + density[i + 1]) / 6;  // Simpson
    }
    for (int i = 0; i <= kPhiCells; ++i) table[i] /= table[kPhiCells];
    return table;
}

double phi(double z) {
    static const auto table = make_phi_table();
    const double at = (z + kPhiEnd) * kPhiPerUnit;
    if (!(at > 0)) return 0;
    if (at >= kPhiCells) return 1;
    const int cell = static_cast<int>(at);
    return table[cell] + (at - cell) * (table[cell + 1] - table[cell]);
}

}  // namespace

double Outlook::below(double sum, double threshold) const {
    const size_t bins = centre.size();
    const size_t next = std::upper_bound(centre.begin(), centre.end(), sum) - centre.begin();
    const size_t left = next == 0 ? 0 : next - 1, right = std::min(next, bins - 1);
    const double width = centre[right] - centre[left];
    const double share = width > 0 ? (sum - centre[left]) / width : 0.0;
    const double m = mean[left] + share * (mean[right] - mean[left]);
    const double s = share < 0.5 ? deviation[left] : deviation[right];
    if (!(s > 0)) return m < threshold ? 1.0 : 0.0;
    return phi((threshold - m) / s);
}

template <class Score>
StoppingFit<Score>::StoppingFit(const StoppingProblem& problem, const Score* values)
    : problem_(problem), values_(values) {
    const auto n_models = static_cast<int64_t>(problem.order.size());
    lower_.assign(n_models, -kInf);
    upper_.assign(n_models, kInf);
    outlook_.resize(n_models);
    to_go_.resize(problem.n_rows);
    exit_.resize(problem.n_rows);
    std::vector<double> sums(problem.n_rows, problem.base);
    for (int64_t r = 0; r < n_models; ++r) {
        if (r % kSegment == 0) checkpoint_.push_back(sums);
        const Score* column = values_ + problem.order[r] * problem.n_rows;
        for (int64_t i = 0; i < problem.n_rows; ++i) sums[i] += column[i];
    }
    segment_.assign(kSegment, std::vector<double>(problem.n_rows));
}

// Running sums after a step, (N,): added forward from the nearest kept ones, never subtracted back,
// so that they are the engine's own numbers.
template <class Score>
const std::vector<double>& StoppingFit<Score>::sums_at(int64_t step, int threads) {
    const int64_t begin = step / kSegment * kSegment;
    if (begin != segment_begin_) {
        const int64_t end =
            std::min<int64_t>(begin + kSegment, static_cast<int64_t>(problem_.order.size()));
        const std::vector<double>& first = checkpoint_[begin / kSegment];
        parallel_for(problem_.n_rows, kChunk, threads, [&](int64_t from, int64_t to) {
            for (int64_t r = begin; r < end; ++r) {
                const Score* column = values_ + problem_.order[r] * problem_.n_rows;
                const std::vector<double>& before = r == begin ? first : segment_[r - begin - 1];
                for (int64_t i = from; i < to; ++i) segment_[r - begin][i] = before[i] + column[i];
            }
        });
        segment_begin_ = begin;
    }
    return segment_[step - begin];
}

// The step at which every row ends under the present thresholds; the last one where it never quits.
template <class Score>
void StoppingFit<Score>::exits(int threads) {
    const auto last = static_cast<int32_t>(problem_.order.size()) - 1;
    std::vector<int32_t> undecided(kChunk);
    std::vector<double> sum(kChunk);
    parallel_for(problem_.n_rows, kChunk, threads,
                 [this, last, undecided, sum](int64_t from, int64_t to) mutable {
                     int64_t left = to - from;
                     for (int64_t j = 0; j < left; ++j) {
                         undecided[j] = static_cast<int32_t>(j);
                         sum[j] = problem_.base;
                         exit_[from + j] = last;
                     }
                     for (int32_t r = 0; r < last && left > 0; ++r) {
                         const Score* column = values_ + problem_.order[r] * problem_.n_rows + from;
                         int64_t kept = 0;
                         for (int64_t k = 0; k < left; ++k) {
                             const int32_t j = undecided[k];
                             sum[j] += column[j];
                             const bool quits = sum[j] < lower_[r] || sum[j] > upper_[r];
                             if (quits) exit_[from + j] = r;
                             undecided[kept] = j;
                             kept += !quits;
                         }
                         left = kept;
                     }
                 });
}

// Half the outlook's probability and half the row's own full decision: the price of quitting
// positive is that it ends below the threshold.
template <class Score>
double StoppingFit<Score>::price_of_negative(double below, int32_t row) const {
    return 0.5 * below + (problem_.full[row] < problem_.threshold ? 0.5 : 0.0);
}

template <class Score>
void StoppingFit<Score>::sweep(double price_negative, double price_positive, int threads) {
    const auto n_models = static_cast<int64_t>(problem_.order.size());
    exits(threads);
    std::vector<std::vector<int32_t>> ending(n_models);  // rows by the step at which they end
    for (int64_t i = 0; i < problem_.n_rows; ++i)
        ending[exit_[i]].push_back(static_cast<int32_t>(i));
    reached_.clear();
    for (int32_t row : ending[n_models - 1]) reached_.push_back({0.0, row});

    // to_go_ at step r: what going on from there costs, the base model of step r + 1 included.
    if (n_models > 1) std::fill(to_go_.begin(), to_go_.end(), cost_of_step(n_models - 1));
    for (int64_t r = n_models - 2; r >= 0; --r) {
        for (int32_t row : ending[r]) reached_.push_back({0.0, row});
        const std::vector<double>& sums = sums_at(r, threads);
        if (static_cast<int64_t>(reached_.size()) >= kFewestRows)
            choose(r, sums, price_negative, price_positive);
        const Outlook& outlook = outlook_[r];
        const double lower = lower_[r], upper = upper_[r], cost = cost_of_step(r);
        parallel_for(problem_.n_rows, kChunk, threads, [&](int64_t from, int64_t to) {
            for (int64_t i = from; i < to; ++i) {
                if (sums[i] < lower || sums[i] > upper) {
                    const double p = price_of_negative(outlook.below(sums[i], problem_.threshold),
                                                       static_cast<int32_t>(i));
                    to_go_[i] = sums[i] < lower ? price_negative * (1 - p) : price_positive * p;
                }
                to_go_[i] += cost;
            }
        });
    }
}

// Sorts the rows that reach a step, estimates the outlook from them, and picks TOGETHER the prefix
// that quits negative and the suffix that quits positive with the greatest gain over going on.
template <class Score>
void StoppingFit<Score>::choose(int64_t step, const std::vector<double>& sums,
                                double price_negative, double price_positive) {
    for (Candidate& c : reached_) c.sum = sums[c.row];
    std::sort(reached_.begin(), reached_.end(), [](const Candidate& a, const Candidate& b) {
        return a.sum < b.sum || (a.sum == b.sum && a.row < b.row);
    });
    const auto n = static_cast<int64_t>(reached_.size());

    Outlook& outlook = outlook_[step];
    const int64_t bins = std::max<int64_t>(1, std::min(kMostBins, n / kRowsPerBin));
    outlook.centre.assign(bins, 0.0);
    outlook.mean.assign(bins, 0.0);
    outlook.deviation.assign(bins, 0.0);
    double pooled = 0;
    for (int64_t b = 0; b < bins; ++b) {
        const int64_t from = b * n / bins, to = (b + 1) * n / bins;
        double sum_g = 0, sum_f = 0, square = 0;
        for (int64_t j = from; j < to; ++j) {
            sum_g += reached_[j].sum;
            sum_f += problem_.full[reached_[j].row];
        }
        const auto count = static_cast<double>(to - from);
        outlook.centre[b] = sum_g / count;
        outlook.mean[b] = sum_f / count;
        for (int64_t j = from; j < to; ++j) {
            const double gap = problem_.full[reached_[j].row] - outlook.mean[b];
            square += gap * gap;
        }
        outlook.deviation[b] = square;
        pooled += square;
    }
    pooled /= static_cast<double>(n);
    for (int64_t b = 0; b < bins; ++b) {
        const auto count = static_cast<double>((b + 1) * n / bins - b * n / bins);
        outlook.deviation[b] =
            std::sqrt((outlook.deviation[b] + kPseudoRows * pooled) / (count + kPseudoRows));
    }

    // gain_high[j]: the most that a suffix of rows j.. can gain, and where it starts.
    std::vector<double> low_gain(n), high_best(n + 1, 0.0);
    std::vector<int64_t> high_begin(n + 1, n);
    double suffix = 0;
    for (int64_t j = n - 1; j >= 0; --j) {
        const int32_t row = reached_[j].row;
        const double p = price_of_negative(outlook.below(reached_[j].sum, problem_.threshold), row);
        low_gain[j] = to_go_[row] - price_negative * (1 - p);
        suffix += to_go_[row] - price_positive * p;
        const bool tie = j > 0 && reached_[j - 1].sum == reached_[j].sum;  // no cut inside ties
        const bool better = problem_.quit_positive && !tie && suffix > high_best[j + 1];
        high_best[j] = better ? suffix : high_best[j + 1];
        high_begin[j] = better ? j : high_begin[j + 1];
    }
    int64_t low_end = 0;
    double best = high_best[0], prefix = 0;
    for (int64_t j = 0; problem_.quit_negative && j < n; ++j) {
        prefix += low_gain[j];
        const bool tie = j + 1 < n && reached_[j + 1].sum == reached_[j].sum;
        if (!tie && prefix + high_best[j + 1] > best) {
            best = prefix + high_best[j + 1];
            low_end = j + 1;
        }
    }
    const int64_t high = high_begin[low_end];
    lower_[step] = low_end == 0   ? -kInf
                   : low_end == n ? std::nextafter(reached_[n - 1].sum, kInf)
                                  : between(reached_[low_end - 1].sum, reached_[low_end].sum,
                                            reached_[low_end].sum);
    upper_[step] =
        high == n   ? kInf
        : high == 0 ? std::nextafter(reached_[0].sum, -kInf)
                    : between(reached_[high - 1].sum, reached_[high].sum, reached_[high - 1].sum);
    upper_[step] = std::max(upper_[step], lower_[step]);
}

template class StoppingFit<float>;
template class StoppingFit<double>;

}  // namespace qwyc
