// Stopping rules: what becomes of a row after a step, given its running sum.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace qwyc {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

enum class Outcome : uint8_t {
    kContinue,  // evaluate the next base model
    kNegative,  // quit
    kPositive,  // quit
    kInFull,    // evaluate all base models, and let the full score decide
};

// The comparison of every rule: a sum below `lower` quits negative, one above `upper` positive.
// lower <= upper. The kernels' quits() compares the same way for many rows at once.
inline Outcome compare(double sum, double lower, double upper) {
    if (sum < lower) return Outcome::kNegative;
    return sum > upper ? Outcome::kPositive : Outcome::kContinue;
}

// The same for a sum that is known to be below `lower` or above `upper`.
inline Outcome side_of(double sum, double upper) {
    return sum > upper ? Outcome::kPositive : Outcome::kNegative;
}

// The paper's rule: two thresholds per step.
struct ThresholdRule {
    std::span<const double> lower, upper;  // (T,) eps- and eps+; -inf and +inf where nothing quits

    Outcome operator()(int64_t step, double sum) const {
        return compare(sum, lower[step], upper[step]);
    }
    bool can_quit(int64_t step) const { return lower[step] > -kInf || upper[step] < kInf; }
};

// Thresholds by step and by bin of the running sum.
struct FanBins {
    std::span<const int64_t> begin;        // (T + 1,) step r owns bins begin[r] to begin[r + 1]
    std::span<const int64_t> bin;          // floor(running sum / width), each once a step
    std::span<const double> lower, upper;  // by bin
    double width;
};

// The rule of Fan et al. (2002): two thresholds per step and bin. A row whose bin is unknown is
// evaluated in full. A hash table per step, all in one array: open addressing, at most half full.
// A binary search over the bins, a few hundred per step, takes two to four times as long.
class FanRule {
  public:
    FanRule(const FanBins& bins, size_t n_steps) : width_(bins.width) {
        for (size_t r = 0; r < n_steps; ++r) {
            const int64_t first = bins.begin[r], last = bins.begin[r + 1];
            const auto size =
                static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * (last - first) + 1)));
            table_.push_back({static_cast<int64_t>(slots_.size()), size - 1});
            slots_.resize(slots_.size() + size);
            for (int64_t b = first; b < last; ++b) {
                Slot& slot = slots_[find(table_.back(), bins.bin[b])];
                slot = {bins.bin[b], bins.lower[b], bins.upper[b], true};
            }
        }
    }

    Outcome operator()(int64_t step, double sum) const {
        const double bin = std::floor(sum / width_);
        if (!(std::abs(bin) < 0x1p62)) return Outcome::kInFull;  // no integer, so it is unknown
        const Slot& slot = slots_[find(table_[step], static_cast<int64_t>(bin))];
        return slot.used ? compare(sum, slot.lower, slot.upper) : Outcome::kInFull;
    }

  private:
    struct Slot {
        int64_t bin = 0;
        double lower = 0, upper = 0;
        bool used = false;
    };
    struct Table {
        int64_t begin, mask;
    };

    // The slot that holds `bin`, or the free one where it would go.
    int64_t find(const Table& table, int64_t bin) const {
        uint64_t at = static_cast<uint64_t>(bin) * 0x9e3779b97f4a7c15u >> 20;
        for (;; ++at) {
            const int64_t slot = table.begin + static_cast<int64_t>(at & table.mask);
            if (!slots_[slot].used || slots_[slot].bin == bin) return slot;
        }
    }

    double width_;
    std::vector<Table> table_;  // (T,)
    std::vector<Slot> slots_;
};

}  // namespace qwyc
