// Estimates of the full score from the step and the running sum at which a row quits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace qwyc {

// The full score that is expected at a running sum: a line, plus an offset that is interpolated
// between knots and constant beyond them. next: the first knot above the sum; there is a knot.
inline double estimated_score(double slope, std::span<const double> knot,
                              std::span<const double> offset, double sum, size_t next) {
    const size_t left = next == 0 ? 0 : next - 1;
    const size_t right = std::min(next, knot.size() - 1);
    const double width = knot[right] - knot[left];
    const double share = width > 0 ? (sum - knot[left]) / width : 0.0;
    return slope * sum + (offset[left] + share * (offset[right] - offset[left]));
}

// What is expected at each step. src/qwyc/policy/estimates.py has the same arrays.
struct EstimatesView {
    std::span<const double> slope;         // (T,)
    std::span<const int64_t> begin;        // (T + 1,) step r owns knots begin[r] to begin[r + 1]
    std::span<const double> knot, offset;  // (knots,) ascending within a step

    // The estimate of a row that took so many steps, 1 to T. A row that completed, and one that
    // quits at a step without knots, keeps its score.
    double operator()(int32_t steps, double score) const {
        const auto n_steps = static_cast<int32_t>(slope.size());
        if (steps <= 0 || steps >= n_steps) return score;
        const int64_t from = begin[steps - 1], n = begin[steps] - from;
        if (n == 0) return score;
        const auto at = knot.subspan(from, n);
        size_t next = 0;  // there are few knots: counting has no branch to mispredict
        for (const double x : at) next += x <= score;
        return estimated_score(slope[steps - 1], at, offset.subspan(from, n), score, next);
    }
};

}  // namespace qwyc
