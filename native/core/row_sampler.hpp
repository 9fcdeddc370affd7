// Which rows of a stream are picked: each with the same probability, whatever it holds.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/mersenne_twister.hpp"

namespace qwyc {

// Counts rows and picks some. The gaps between these are geometric, so each row is picked with
// probability `rate`, independently of all others. The positions depend on the seed alone: one call
// with many rows picks the same rows as many calls with one row each. A call that picks nothing is
// one atomic addition; only one thread at a time may claim.
class RowSampler {
  public:
    RowSampler(double rate, uint64_t seed)
        : rate_(rate), log_missed_(std::log1p(-rate)), random_(seed) {
        if (!(rate >= kLeastRate && rate <= 1))
            throw std::invalid_argument("the rate must be at least 1e-9 and at most 1");
        if (rate < 1) fill_buckets();
        draw();
        due_.store(drawn_.front());
    }

    // Counts n more rows. Returns how many came before them if some of them may be picked, which
    // `claim` tells; otherwise -1.
    int64_t take(int64_t n) {
        const int64_t begin = taken_.fetch_add(n, std::memory_order_relaxed);
        // All positions before due_ were claimed, so none of these rows is among the picked ones.
        // It only grows: a thread that sees an old value claims without need, and finds nothing.
        return due_.load(std::memory_order_relaxed) < begin + n ? begin : -1;
    }

    // Puts those of the n rows after the first `begin` that are picked into `picked`, counted from
    // 0, ascending. Each row is claimed once, by the thread that took it. The caller has a lock,
    // which it needs for the picked rows as well.
    void claim(int64_t begin, int64_t n, std::vector<int64_t>& picked) {
        const int64_t end = begin + n;
        while (last_ < end) draw();
        const auto unclaimed = drawn_.begin() + first_;
        // Positions before `begin` are rows of other threads, which will claim them.
        const auto mine =
            *unclaimed >= begin ? unclaimed : std::lower_bound(unclaimed, drawn_.end(), begin);
        auto next = mine;
        while (*next < end) ++next;
        picked.resize(next - mine);
        std::transform(mine, next, picked.begin(), [=](int64_t at) { return at - begin; });
        if (mine == unclaimed)
            first_ += next - mine;
        else
            drawn_.erase(mine, next);
        due_.store(drawn_[first_], std::memory_order_relaxed);
    }

    // Both at once, where no other thread is.
    std::vector<int64_t> pick(int64_t n) {
        std::vector<int64_t> picked;
        const int64_t begin = take(n);
        if (begin >= 0) claim(begin, n, picked);
        return picked;
    }

    int64_t taken() const { return taken_.load(); }

  private:
    // Draws positions: many at once, so that what this takes is in the caches for all of them.
    void draw() {
        drawn_.erase(drawn_.begin(), drawn_.begin() + first_);
        first_ = 0;
        const size_t known = drawn_.size();
        drawn_.resize(known + kAtOnce, 1);
        int64_t* const gap = drawn_.data() + known;  // at first; then the positions
        for (int begin = 0; rate_ < 1 && begin < kAtOnce; begin += kBlock) draw_gaps(gap + begin);
        for (int i = 0; i < kAtOnce; ++i) gap[i] = last_ += gap[i];
    }

    // kBlock gaps. Those that take a logarithm are listed first: a branch would be mispredicted.
    void draw_gaps(int64_t* gap) {
        uint64_t bits[kBlock];  // 53 of each
        int computed[kBlock], n = 0;
        for (int i = 0; i < kBlock; ++i) {
            bits[i] = random_() >> 11;
            gap[i] = gap_of_[bits[i] >> kBucketBits];
            computed[n] = i;
            n += gap[i] == 0;
        }
        for (int k = 0; k < n; ++k) gap[computed[k]] = gap_of(bits[computed[k]]);
    }
    int64_t gap_of(uint64_t bits) const { return 1 + static_cast<int64_t>(quotient(bits)); }
    double quotient(uint64_t bits) const {
        const double uniform = static_cast<double>(bits + 1) * 0x1p-53;  // (0, 1]
        return std::log(uniform) / log_missed_;
    }

    // A quotient falls as its bits rise. Where it lies well between the same two whole numbers at
    // both ends of a bucket, all bits of the bucket have the same gap, and no logarithm is taken.
    void fill_buckets() {
        constexpr double kMargin = 1e-6;  // far more than rounding
        for (uint64_t i = 0; i < kBuckets; ++i) {
            const double high = quotient(i << kBucketBits) + kMargin;
            const double low = quotient(((i + 1) << kBucketBits) - 1) - kMargin;
            if (low > 0 && high < kLargestKnown && std::floor(low) == std::floor(high))
                gap_of_[i] = static_cast<uint16_t>(1 + low);
        }
    }

    static constexpr uint64_t kBuckets = 4096, kBucketBits = 53 - 12;
    static constexpr double kLargestKnown = 65000;
    static constexpr int kAtOnce = 2048, kBlock = 256;
    static constexpr double kLeastRate = 1e-9;

    const double rate_, log_missed_;  // and the logarithm of the probability of not being picked
    // Small, because other work drives it out of the caches between two draws. 0: to be computed.
    std::vector<uint16_t> gap_of_ = std::vector<uint16_t>(kBuckets);
    MersenneTwister random_;      // the same numbers everywhere
    std::vector<int64_t> drawn_;  // positions, ascending, at least one of them unclaimed
    int64_t first_ = 0;           // the first of them that was not claimed
    int64_t last_ = -1;           // the last position that was drawn
    std::atomic<int64_t> taken_{0};
    std::atomic<int64_t> due_{0};  // the first unclaimed position
};

}  // namespace qwyc
