// Stopping rules: what becomes of a row after a step, given its running sum.
#pragma once

#include <algorithm>
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
// Bins that lie close together, as they nearly always do, have a slot each in their own order, so
// that a lookup is one comparison and neighbouring sums share cache lines. A binary search over the
// bins, a few hundred per step, takes two to four times as long.
class FanRule {
  public:
    FanRule(const FanBins& bins, size_t n_steps) : width_(bins.width) {
        for (size_t r = 0; r < n_steps; ++r) add_step(bins, bins.begin[r], bins.begin[r + 1]);
    }

    double width() const { return width_; }

    // The rule at one step. Valid as long as the FanRule is.
    class Step;
    Step at(int64_t step) const;

    Outcome operator()(int64_t step, double sum) const;
    bool can_quit(int64_t step) const { return table_[step].can_quit; }

  private:
    static constexpr int64_t kFree = std::numeric_limits<int64_t>::min();  // is no bin
    static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

    struct Slot {
        int64_t bin = kFree;
        double lower = 0, upper = 0;
    };
    struct Table {
        int64_t begin;  // of its slots
        uint64_t mask;  // number of its slots - 1
        uint64_t
            multiplier;  // the slot of a bin is bin * multiplier >> shift, or the next free one
        int32_t shift;
        bool can_quit;
    };

    void add_step(const FanBins& bins, int64_t first, int64_t last) {
        const auto n = static_cast<uint64_t>(last - first);
        const uint64_t size = std::bit_ceil(2 * n + 1);
        Table table{static_cast<int64_t>(slots_.size()), size - 1, kGolden, 20, false};
        if (n > 0) {
            const auto named = bins.bin.subspan(first, n);
            const auto [least, most] = std::minmax_element(named.begin(), named.end());
            const uint64_t range = static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least);
            if (range < size) table.multiplier = 1, table.shift = 0;
        }
        slots_.resize(slots_.size() + size);
        for (int64_t b = first; b < last; ++b) {
            slots_[table.begin + find(&slots_[table.begin], table, bins.bin[b])] = {
                bins.bin[b], bins.lower[b], bins.upper[b]};
            table.can_quit |= bins.lower[b] > -kInf || bins.upper[b] < kInf;
        }
        table_.push_back(table);
    }

    // The slot that holds `bin`, or the free one where it would go.
    static uint64_t find(const Slot* slots, const Table& table, int64_t bin) {
        uint64_t at = static_cast<uint64_t>(bin) * table.multiplier >> table.shift & table.mask;
        while (slots[at].bin != bin && slots[at].bin != kFree) at = (at + 1) & table.mask;
        return at;
    }

    double width_;
    std::vector<Table> table_;  // (T,)
    std::vector<Slot> slots_;
};

class FanRule::Step {
  public:
    Step(const Slot* slots, const Table& table) : slots_(slots), table_(table) {}

    // `bin` is floor(sum / width).
    Outcome operator()(double sum, double bin) const {
        if (!(std::abs(bin) < 0x1p62)) return Outcome::kInFull;  // no integer, so it is unknown
        const Slot& slot = slots_[find(slots_, table_, static_cast<int64_t>(bin))];
        return slot.bin == kFree ? Outcome::kInFull : compare(sum, slot.lower, slot.upper);
    }

  private:
    const Slot* slots_;
    Table table_;
};

inline FanRule::Step FanRule::at(int64_t step) const {
    return {slots_.data() + table_[step].begin, table_[step]};
}

inline Outcome FanRule::operator()(int64_t step, double sum) const {
    return at(step)(sum, std::floor(sum / width_));
}

}  // namespace qwyc
