// Running sums as integers, for the trees of a segment whose values allow it.
//
// What a step adds is a float, and often all of these floats are multiples of some unit that is not
// too small: every running sum is then an integer number of units below 2^51, so that sums of
// doubles are never rounded, and integers give the same bits. A sum has an upper part, whose steps
// are 2^22 units, and a lower part. The upper part nearly always says on which side of a threshold
// a row is, for 16 rows with one comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/forest.hpp"
#include "core/masked_trees.hpp"
#include "core/policy.hpp"

namespace qwyc {

struct ExactSums {
    static constexpr int32_t kBits = 51;       // of a sum in units
    static constexpr int32_t kLowerBits = 22;  // of its lower part, once carried
    static constexpr int32_t kCountFrom = 27;  // a lower part counts trees from this bit on
    static constexpr int32_t kAtOnce = 16;     // trees until lower parts are carried

    struct alignas(64) Sixteen {
        int32_t of[16];
    };

    // For kAtOnce trees. Upper parts `low` to `low + width` certainly go on; those from `near_low`
    // to `near_low + near_width` may, and all others certainly quit. Unsigned comparisons after a
    // subtraction.
    struct Windows {
        Sixteen low, width, near_low, near_width;
    };

    double unit;                // a power of two
    std::vector<Sixteen> part;  // by tree: the upper parts of 32 leaves, or of 64 where any tree of
                                // the segment has more than 32; then the lower parts
    std::vector<Windows> windows;
};

// The units of an order's prefixes: whether the running sums of its first steps are integers.
class ExactUnits {
  public:
    template <class Real>
    ExactUnits(const Forest<Real>& forest, std::span<const int32_t> order);

    // For the trees of a layout at steps [begin, begin + trees.n_trees()), or nothing if their sums
    // can be rounded.
    std::optional<ExactSums> sums(const MaskedTrees& trees, const ThresholdRule& rule,
                                  int32_t begin) const;

  private:
    std::vector<int32_t> least_;  // by step: every sum so far is a multiple of 2 to this power
    std::vector<double> most_;    // and no larger than this
};

}  // namespace qwyc
