#include "core/path.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/parallel.hpp"
#include "core/rule.hpp"
#include "core/target.hpp"

namespace qwyc {

namespace {

constexpr int32_t kBlock = 128;   // rows that are evaluated together
constexpr int32_t kSteps = 8;     // steps that are added before they are tested
constexpr int64_t kChunk = 4096;  // rows that a thread takes at once

// The thresholds by step, and for each policy k and step the widest of the first k policies: a sum
// between them lets none of these policies quit.
class Thresholds {
  public:
    explicit Thresholds(const PathView& path)
        : k_(path.n_policies), steps_(static_cast<int64_t>(path.order.size())) {
        padded_ = (steps_ + kSteps - 1) / kSteps * kSteps;
        lower_.assign(static_cast<size_t>(k_ * steps_), -kInf);
        upper_.assign(static_cast<size_t>(k_ * steps_), kInf);
        highest_.assign(static_cast<size_t>(k_ * padded_), -kInf);
        lowest_.assign(static_cast<size_t>(k_ * padded_), kInf);
        ends_.assign(static_cast<size_t>(k_), 0);
        // The last step has no rule: the full score decides there.
        for (int64_t r = 0; r + 1 < steps_; ++r) {
            double highest = -kInf, lowest = kInf;
            for (int64_t k = 0; k < k_; ++k) {
                const double lower = path.lower[k * steps_ + r], upper = path.upper[k * steps_ + r];
                lower_[r * k_ + k] = lower, upper_[r * k_ + k] = upper;
                highest_[k * padded_ + r] = highest = std::max(highest, lower);
                lowest_[k * padded_ + r] = lowest = std::min(lowest, upper);
                if (highest > -kInf || lowest < kInf) ends_[k] = r + 1;
            }
        }
    }

    Outcome outcome(int64_t r, int64_t k, double sum) const {
        return compare(sum, lower_[r * k_ + k], upper_[r * k_ + k]);
    }
    // Whether one of the policies up to k may quit after step r.
    bool may_quit(int64_t r, int64_t k, double sum) const {
        return sum < highest_[k * padded_ + r] || sum > lowest_[k * padded_ + r];
    }
    // The same for any of kSteps steps from a multiple of kSteps on.
    bool may_quit_soon(int64_t r, int64_t k, const double* sums) const {
        const double* const highest = highest_.data() + k * padded_ + r;
        const double* const lowest = lowest_.data() + k * padded_ + r;
        int found = 0;  // without a branch for each step
        for (int32_t s = 0; s < kSteps; ++s)
            found |= (sums[s] < highest[s]) | (sums[s] > lowest[s]);
        return found != 0;
    }
    // The step from which on none of the policies up to k quits.
    int64_t end(int64_t k) const { return ends_[k]; }

  private:
    int64_t k_, steps_, padded_;
    std::vector<double> lower_, upper_;     // (T, K)
    std::vector<double> highest_, lowest_;  // (K, padded) infinite past the last rule
    std::vector<int64_t> ends_;             // (K,)
};

// The counts of some rows, added up where they are needed.
struct Counter {
    Counter(int64_t n_policies, int64_t n_steps)
        : stops(static_cast<size_t>(n_policies * n_steps)),
          differences(static_cast<size_t>(2 * n_policies)) {}

    std::vector<int64_t> stops, differences;
};

}  // namespace

template <class Score>
void count_path(const PathView& path, const Score* values, double base, const double* full,
                int64_t stride, const int64_t* rows, int64_t n, const PathCountsOut& out,
                int threads) {
    const Thresholds thresholds(path);
    const TwoClasses target{path.threshold};
    const int64_t K = path.n_policies;
    const auto T = static_cast<int64_t>(path.order.size());
    std::mutex adding;

    const auto count_block = [&](int64_t begin, int32_t size, Counter& counter,
                                 std::vector<uint8_t>& quit) {
        int64_t at[kBlock];                  // of each row in `values` and `full`
        double sum[kBlock];                  // running sums
        double after[kBlock * kSteps] = {};  // those after some steps
        int64_t boldest[kBlock];             // that has not quit; -1: all have
        int32_t undecided[kBlock];
        bool positive[kBlock];  // full decisions
        std::fill(quit.begin(), quit.end(), uint8_t{0});
        int32_t n_undecided = 0;
        for (int32_t j = 0; j < size; ++j) {
            at[j] = rows == nullptr ? begin + j : rows[begin + j];
            sum[j] = base;
            boldest[j] = K - 1;
            positive[j] = target.decide(full[at[j]]) != 0;
            if (thresholds.end(K - 1) > 0) undecided[n_undecided++] = j;
        }
        if (out.decided != nullptr)
            for (int64_t k = 0; k < K; ++k)
                for (int32_t j = 0; j < size; ++j) out.decided[k * n + begin + j] = positive[j];

        // What the policies that have not quit say of a row after one step.
        const auto test = [&](int32_t j, int64_t r, double reached) {
            uint8_t* gone = quit.data() + j * K;
            for (int64_t k = boldest[j]; k >= 0 && thresholds.may_quit(r, k, reached); --k) {
                if (gone[k] != 0) continue;
                const Outcome outcome = thresholds.outcome(r, k, reached);
                if (outcome == Outcome::kContinue) continue;
                gone[k] = 1;
                ++counter.stops[k * T + r];
                const bool decided = outcome == Outcome::kPositive;
                counter.differences[2 * k + decided] += decided != positive[j];
                if (out.decided != nullptr) out.decided[k * n + begin + j] = decided;
            }
            while (boldest[j] >= 0 && gone[boldest[j]] != 0) --boldest[j];
        };
        for (int64_t r = 0; n_undecided > 0; r += kSteps) {
            const auto steps = static_cast<int32_t>(std::min<int64_t>(kSteps, T - r));
            for (int32_t s = 0; s < steps; ++s) {
                const Score* column = values + path.order[r + s] * stride;
                for (int32_t i = 0; i < n_undecided; ++i) {
                    const int32_t j = undecided[i];
                    after[j * kSteps + s] = sum[j] += column[at[j]];
                }
            }
            int32_t kept = 0;
            for (int32_t i = 0; i < n_undecided; ++i) {
                const int32_t j = undecided[i];
                const double* const reached = after + j * kSteps;
                undecided[kept] = j;
                if (thresholds.may_quit_soon(r, boldest[j], reached))
                    for (int32_t s = 0; s < steps && boldest[j] >= 0; ++s)
                        test(j, r + s, reached[s]);
                kept += boldest[j] >= 0 && r + steps < thresholds.end(boldest[j]);
            }
            n_undecided = kept;
        }
        for (int32_t j = 0; j < size; ++j)
            for (int64_t k = 0; k <= boldest[j]; ++k)
                counter.stops[k * T + T - 1] += quit[j * K + k] == 0;
    };
    parallel_for(n, kChunk, threads, [&](int64_t begin, int64_t end) {
        Counter counter(K, T);
        std::vector<uint8_t> quit(static_cast<size_t>(kBlock * K));  // (block, K) whether it has
        for (int64_t i = begin; i < end; i += kBlock)
            count_block(i, static_cast<int32_t>(std::min<int64_t>(kBlock, end - i)), counter, quit);
        const std::lock_guard lock(adding);
        for (int64_t i = 0; i < K * T; ++i) out.stops[i] += counter.stops[i];
        for (int64_t i = 0; i < 2 * K; ++i) out.differences[i] += counter.differences[i];
    });
}

template void count_path(const PathView&, const float*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int);
template void count_path(const PathView&, const double*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int);

}  // namespace qwyc
