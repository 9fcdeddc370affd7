#include "core/path.hpp"

#include <algorithm>
#include <bit>
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

// Policies as bits, 64 in a word.
constexpr int64_t kWord = 64;

// The thresholds of one side after one step, ascending, and which policies are beyond each of them:
// a sum has its place among them, and one look says which policies quit.
class Sorted {
  public:
    // Values by policy, (K,). above: policies quit whose value is above the sum, otherwise those
    // whose value is below it.
    Sorted(const double* values, int64_t n_policies, bool above)
        : values_(values, values + n_policies),
          words_((n_policies + kWord - 1) / kWord),
          quit_(static_cast<size_t>((n_policies + 1) * words_)) {
        std::sort(values_.begin(), values_.end());
        for (int64_t i = 0; i <= n_policies; ++i)
            for (int64_t k = 0; k < n_policies; ++k) {
                // A sum with i values not above it, or below it.
                const bool beyond = above ? i < n_policies && values[k] >= values_[i]
                                          : i > 0 && values[k] <= values_[i - 1];
                if (beyond) quit_[i * words_ + k / kWord] |= uint64_t{1} << k % kWord;
            }
    }

    // The policies whose value is above a sum that is a number.
    const uint64_t* above(double sum) const {
        return place([=](double value) { return value <= sum; });
    }
    // The same below it.
    const uint64_t* below(double sum) const {
        return place([=](double value) { return value < sum; });
    }

  private:
    template <class Before>
    const uint64_t* place(const Before& before) const {
        const double* at = values_.data();
        for (size_t n = values_.size(); n > 0;) {  // without a branch for each comparison
            const size_t half = (n + 1) / 2;
            at += before(at[half - 1]) ? half : 0;
            n -= half;
        }
        return quit_.data() + (at - values_.data()) * words_;
    }

    std::vector<double> values_;
    int64_t words_;
    std::vector<uint64_t> quit_;  // (K + 1, words)
};

// The thresholds by step, and for each policy k and step the widest of the first k policies: a sum
// between them lets none of these policies quit.
class Thresholds {
  public:
    explicit Thresholds(const PathView& path)
        : k_(path.n_policies), steps_(static_cast<int64_t>(path.order.size())) {
        padded_ = (steps_ + kSteps - 1) / kSteps * kSteps;
        highest_.assign(static_cast<size_t>(k_ * padded_), -kInf);
        lowest_.assign(static_cast<size_t>(k_ * padded_), kInf);
        ends_.assign(static_cast<size_t>(k_), 0);
        // The last step has no rule: the full score decides there.
        for (int64_t r = 0; r + 1 < steps_; ++r) {
            double highest = -kInf, lowest = kInf;
            std::vector<double> lowers, uppers;
            for (int64_t k = 0; k < k_; ++k) {
                const double lower = path.lower[k * steps_ + r], upper = path.upper[k * steps_ + r];
                lowers.push_back(lower), uppers.push_back(upper);
                highest_[k * padded_ + r] = highest = std::max(highest, lower);
                lowest_[k * padded_ + r] = lowest = std::min(lowest, upper);
                if (highest > -kInf || lowest < kInf) ends_[k] = r + 1;
            }
            lower_.emplace_back(lowers.data(), k_, true);
            upper_.emplace_back(uppers.data(), k_, false);
        }
    }

    // The policies that quit after step r, as words: negative, and positive.
    const uint64_t* negative(int64_t r, double sum) const { return lower_[r].above(sum); }
    const uint64_t* positive(int64_t r, double sum) const { return upper_[r].below(sum); }
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
    std::vector<Sorted> lower_, upper_;     // by step
    std::vector<double> highest_, lowest_;  // (K, padded) infinite past the last rule
    std::vector<int64_t> ends_;             // (K,)
};

// The counts of some rows, added up where they are needed.
struct Counter {
    Counter(int64_t n_policies, int64_t n_steps)
        : stops(static_cast<size_t>(n_policies * n_steps)),
          differences(static_cast<size_t>(2 * n_policies)) {}

    std::vector<int64_t> stops;        // (T, K)
    std::vector<int64_t> differences;  // (K, 2)
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

    const int64_t words = (K + kWord - 1) / kWord;
    const auto count_block = [&](int64_t begin, int32_t size, Counter& counter,
                                 std::vector<uint64_t>& alive) {
        int64_t at[kBlock];                  // of each row in `values` and `full`
        double sum[kBlock];                  // running sums
        double after[kBlock * kSteps] = {};  // those after some steps
        int64_t boldest[kBlock];             // that has not quit; -1: all have
        int32_t undecided[kBlock];
        bool positive[kBlock];  // full decisions
        for (int64_t j = 0; j < size; ++j)
            for (int64_t w = 0; w < words; ++w)
                alive[j * words + w] = ~uint64_t{0} >> (kWord - std::min(kWord, K - w * kWord));
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

        // Policies of one word quit.
        const auto leave = [&](int32_t j, int64_t r, int64_t w, uint64_t gone, bool decided) {
            for (; gone != 0; gone &= gone - 1) {
                const int64_t k = w * kWord + std::countr_zero(gone);
                ++counter.stops[r * K + k];
                counter.differences[2 * k + decided] += decided != positive[j];
                if (out.decided != nullptr) out.decided[k * n + begin + j] = decided;
            }
        };
        // What the policies that have not quit say of a row after one step.
        const auto test = [&](int32_t j, int64_t r, double reached) {
            if (!thresholds.may_quit(r, boldest[j], reached)) return;  // nor is it NaN
            const uint64_t* const low = thresholds.negative(r, reached);
            const uint64_t* const high = thresholds.positive(r, reached);
            uint64_t* const left = alive.data() + j * words;
            for (int64_t w = 0; w < words; ++w) {
                leave(j, r, w, left[w] & low[w], false);
                leave(j, r, w, left[w] & high[w] & ~low[w], true);
                left[w] &= ~(low[w] | high[w]);
            }
            boldest[j] = -1;
            for (int64_t w = 0; w < words; ++w)
                if (left[w] != 0) boldest[j] = w * kWord + std::bit_width(left[w]) - 1;
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
                counter.stops[(T - 1) * K + k] +=
                    alive[j * words + k / kWord] >> k % kWord & 1;
    };
    parallel_for(n, kChunk, threads, [&](int64_t begin, int64_t end) {
        Counter counter(K, T);
        std::vector<uint64_t> alive(static_cast<size_t>(kBlock * words));  // policies of each row
        for (int64_t i = begin; i < end; i += kBlock)
            count_block(i, static_cast<int32_t>(std::min<int64_t>(kBlock, end - i)), counter,
                        alive);
        const std::lock_guard lock(adding);
        for (int64_t r = 0; r < T; ++r)
            for (int64_t k = 0; k < K; ++k) out.stops[k * T + r] += counter.stops[r * K + k];
        for (int64_t i = 0; i < 2 * K; ++i) out.differences[i] += counter.differences[i];
    });
}

template void count_path(const PathView&, const float*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int);
template void count_path(const PathView&, const double*, double, const double*, int64_t,
                         const int64_t*, int64_t, const PathCountsOut&, int);

}  // namespace qwyc
