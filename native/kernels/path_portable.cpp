// Counts of policies along a path for any machine, one row and one policy at a time.
#include <bit>
#include <limits>

#include "core/path_kernels.hpp"
#include "core/rule.hpp"

namespace qwyc::portable {
namespace {

template <class Score>
int32_t advance(const PathStep& step, int32_t, const Score* column, int32_t n, const PathRows& rows,
                int32_t* found) {
    int32_t n_found = 0;
    for (int32_t i = 0; i < n; ++i) {
        const double sum = rows.sum[i] += column[i];
        const auto rounded = static_cast<float>(sum);
        const uint8_t boldest = rows.boldest[i];
        found[n_found] = i;
        n_found += (rounded <= step.low[boldest]) | (rounded >= step.high[boldest]);
    }
    return n_found;
}

// One policy after the other, as `compare` decides.
void settle_one(const PathStep& step, int32_t i, const PathRows& rows, uint32_t* counts) {
    const double sum = rows.sum[i];
    PathRow& row = rows.row[i];
    uint64_t quit = 0;
    for (uint64_t bits = row.alive; bits != 0; bits &= bits - 1) {
        const int k = std::countr_zero(bits);
        const Outcome outcome = compare(sum, step.lower[k], -step.minus_upper[k]);
        if (outcome == Outcome::kContinue) continue;
        const uint64_t policy = bits & -bits;
        quit |= policy;
        if ((outcome == Outcome::kPositive) != row.positive) row.wrong |= policy;
        ++counts[k];
    }
    row.alive &= ~quit;
    const uint64_t left = row.alive & step.later;
    rows.boldest[i] = static_cast<uint8_t>(63 - std::countl_zero(left | 1));
    if (left == 0) rows.sum[i] = std::numeric_limits<double>::quiet_NaN();
}

void settle(const PathStep& step, int32_t, const int32_t* found, int32_t n_found,
            const PathRows& rows, uint32_t* counts) {
    for (int32_t i = 0; i < n_found; ++i) settle_one(step, found[i], rows, counts);
}

template <class Score>
void compact(const uint64_t* keep, int32_t n, const Score* from, Score* to) {
    for (int32_t begin = 0; begin < n; begin += 64)
        for (uint64_t bits = keep[begin / 64]; bits != 0; bits &= bits - 1)
            *to++ = from[begin + std::countr_zero(bits)];
}

void tally(const uint64_t* sets, int32_t n, uint32_t* counts) {
    for (int32_t i = 0; i < n; ++i)
        for (uint64_t bits = sets[i]; bits != 0; bits &= bits - 1) ++counts[std::countr_zero(bits)];
}

}  // namespace

extern const PathKernels path_table;  // for choose.cpp
const PathKernels path_table{
    "portable", advance<float>, advance<double>, settle, compact<float>, compact<double>, tally};

}  // namespace qwyc::portable
