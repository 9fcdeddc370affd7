#include "core/exact_sums.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "core/float_mode.hpp"

namespace qwyc {

namespace {

constexpr int32_t kAny = std::numeric_limits<int32_t>::max();  // zero is a multiple of everything
constexpr int32_t kMaxExponent = 500;                          // of a unit, in either direction

// The power of two of the lowest bit of a finite number.
int32_t lowest_bit(double x) {
    if (x == 0) return kAny;
    int exponent;
    const double mantissa = std::frexp(x, &exponent);  // 53 bits
    const auto bits = static_cast<int64_t>(std::ldexp(mantissa, 53));
    return exponent - 53 + std::countr_zero(static_cast<uint64_t>(bits));
}

// A threshold in steps of upper parts, rounded down; all sums are below 2^29 of them.
int32_t in_steps(double threshold, double step) {
    constexpr double kBeyond = 1 << 30;
    return static_cast<int32_t>(std::floor(std::clamp(threshold / step, -kBeyond, kBeyond)));
}

// As an unsigned number.
int32_t difference(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

}  // namespace

template <class Real>
ExactUnits::ExactUnits(const Forest<Real>& forest, std::span<const int32_t> order) {
    const PlainFloats plain;
    const double base = forest.rules().base / forest.rules().divisor;
    const bool usable = std::isfinite(base) && !(base == 0 && std::signbit(base));
    int32_t least = usable ? lowest_bit(base) : std::numeric_limits<int32_t>::min();
    double most = std::abs(base);
    for (int32_t tree : order) {
        const auto first = static_cast<int32_t>(forest.nodes_of(tree).first + tree);
        double largest = 0;
        for (int32_t i = first; i < first + forest.leaves_of(tree); ++i) {
            const double value = forest.step_value(i);
            largest = std::max(largest, std::abs(value));
            if (!std::isfinite(value))
                least = std::numeric_limits<int32_t>::min();
            else
                least = std::min(least, lowest_bit(value));
        }
        most += largest;
        least_.push_back(least);
        most_.push_back(most);
    }
}

std::optional<ExactSums> ExactUnits::sums(const MaskedTrees& trees, const ThresholdRule& rule,
                                          int32_t begin) const {
    const PlainFloats plain;
    const int32_t n = trees.n_trees(), last = begin + n - 1;
    int exponent;  // 2^exponent is above all sums, also where `most_` was rounded
    std::frexp(most_[last], &exponent);
    exponent = exponent + 1 - ExactSums::kBits;
    if (!std::isfinite(most_[last]) || std::abs(exponent) > kMaxExponent) return {};
    if (least_[last] < exponent) return {};
    ExactSums out{std::ldexp(1.0, exponent), {}, {}};
    bool large = false;
    for (const MaskedTree& tree : trees.trees) large |= tree.bits > 5;
    const int32_t entries = large ? 64 : 32;
    out.part.resize(n * 2 * entries / 16);
    for (int32_t t = 0; t < n; ++t) {
        const MaskedTree& tree = trees.trees[t];
        ExactSums::Sixteen* const upper = &out.part[t * 2 * entries / 16];
        ExactSums::Sixteen* const lower = upper + entries / 16;
        for (int32_t i = 0; i < size_of_table(tree); ++i) {
            const float value = trees.step_value[tree.table_begin + i];
            const auto units = static_cast<int64_t>(std::ldexp(double{value}, -exponent));
            constexpr int32_t kLower = (1 << ExactSums::kLowerBits) - 1;
            upper[i / 16].of[i % 16] = static_cast<int32_t>(units >> ExactSums::kLowerBits);
            lower[i / 16].of[i % 16] =
                static_cast<int32_t>(units & kLower) | 1 << ExactSums::kCountFrom;
        }
    }
    const double step = std::ldexp(out.unit, ExactSums::kLowerBits);
    out.windows.resize((n + ExactSums::kAtOnce - 1) / ExactSums::kAtOnce);
    for (int32_t t = 0; t < n; ++t) {
        const double lower = rule.lower[begin + t], upper = rule.upper[begin + t];
        if (!(lower <= upper)) return {};
        // A sum is less than `above` steps above its upper part.
        const int32_t i = t % ExactSums::kAtOnce, above = i + 2;
        const int32_t least = in_steps(lower, step), most = in_steps(upper, step);
        // Rounded up. A quotient that is too small for a double must not become zero.
        const int32_t low = least + (least * step < lower), high = most - above;
        ExactSums::Windows& to = out.windows[t / ExactSums::kAtOnce];
        to.low.of[i] = low <= high ? low : std::numeric_limits<int32_t>::max();  // of no sum
        to.width.of[i] = low <= high ? difference(high, low) : 0;
        to.near_low.of[i] = least - above + 1;
        to.near_width.of[i] = difference(most, to.near_low.of[i]);
    }
    return out;
}

template ExactUnits::ExactUnits(const Forest<float>&, std::span<const int32_t>);
template ExactUnits::ExactUnits(const Forest<double>&, std::span<const int32_t>);

}  // namespace qwyc
