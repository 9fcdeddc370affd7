// A policy of Fan's rule for tests, and a plain loop that applies it.
#pragma once

#include <cmath>
#include <map>
#include <vector>

#include "core/policy.hpp"
#include "tests/forests.hpp"

namespace qwyc::tests {

// Thresholds for most of the bins that rows fall into, along the order of another policy. Holds
// what view() refers to.
struct FanTable {
    std::vector<int32_t> order;
    std::vector<int64_t> begin = {0}, bin;
    std::vector<double> lower, upper;
    double width, threshold;

    // `spread`: of the running sums. Bins are wide, narrow, or so narrow that they are far apart.
    template <class Score>
    FanTable(uint64_t seed, const Policy& like, const std::vector<Score>& values, double base,
             int64_t n, double spread)
        : order(like.order), threshold(like.threshold) {
        Random random(seed);
        const double widths[] = {0.3, 0.02, 1e-7};
        width = spread * widths[seed % 3];
        std::vector<double> sums(n, base);
        for (size_t r = 0; r < order.size(); ++r) {
            std::map<int64_t, bool> seen;  // whether it is kept
            for (int64_t i = 0; i < n; ++i) {
                sums[i] += values[order[r] * n + i];
                const double at = std::floor(sums[i] / width);
                if (std::abs(at) < 0x1p53) seen.emplace(at, random.below(20) > 0);
            }
            for (const auto& [at, kept] : seen) {
                if (!kept || r + 1 == order.size()) continue;
                bin.push_back(at);
                const double middle = (static_cast<double>(at) + 0.5) * width;
                const int quits = random.below(12);  // at 0 and 1 all rows of the bin do
                lower.push_back(quits == 0 ? middle + width : quits == 2 ? middle : -kInf);
                upper.push_back(quits == 1 ? middle - width : quits == 3 ? middle : kInf);
            }
            begin.push_back(static_cast<int64_t>(bin.size()));
        }
    }
    FanView view() const { return {order, {begin, bin, lower, upper, width}, {threshold}}; }
};

template <class Score>
Decided decide_plainly(const FanTable& fan, const std::vector<Score>& values, double base,
                       const std::vector<double>& full) {
    std::vector<std::map<double, int64_t>> known(fan.order.size());  // each bin's entry, by step
    for (size_t r = 0; r < fan.order.size(); ++r)
        for (int64_t b = fan.begin[r]; b < fan.begin[r + 1]; ++b)
            known[r][static_cast<double>(fan.bin[b])] = b;
    const auto rule = [&](int32_t r, double sum) {
        const double at = std::floor(sum / fan.width);
        if (!std::isfinite(at) || !known[r].contains(at)) return Outcome::kInFull;
        const int64_t b = known[r][at];
        if (sum > fan.upper[b]) return Outcome::kPositive;
        return sum < fan.lower[b] ? Outcome::kNegative : Outcome::kContinue;
    };
    return decide_by(rule, fan.order, fan.threshold, values, base, full);
}

}  // namespace qwyc::tests
