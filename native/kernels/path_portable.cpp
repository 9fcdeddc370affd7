// Counts of policies along a path for any machine, one row and one policy at a time.
#include <algorithm>
#include <bit>
#include <limits>

#include "core/path_kernels.hpp"

namespace qwyc::portable {
namespace {

template <class Score>
void advance(const PathStep& step, int32_t, const Score* column, bool, int32_t n,
             const PathRows& rows, PathFound& found) {
    found.n_low = found.n_high = 0;
    for (int32_t i = 0; i < n; ++i) {
        const double sum = rows.sum[i] += column[rows.place[i]];
        const auto rounded = static_cast<float>(sum);
        const uint8_t boldest = rows.boldest[i];
        found.low[found.n_low] = found.high[found.n_high] = i;
        found.n_low += rounded <= step.low[boldest];
        found.n_high += rounded >= step.high[boldest];
    }
}

// The policies of a row that quit, negative if Low and otherwise positive.
template <bool Low>
void settle_one(const PathStep& step, int32_t i, const PathRows& rows, uint32_t* counts) {
    const double sum = Low ? rows.sum[i] : -rows.sum[i];
    const double* const bound = Low ? step.lower : step.minus_upper;
    const uint16_t place = rows.place[i];
    uint64_t quit = 0;
    for (uint64_t bits = rows.alive[place]; bits != 0; bits &= bits - 1) {
        const int k = std::countr_zero(bits);
        const bool quits = sum < bound[k];
        quit |= uint64_t{quits} << k;
        counts[k] += quits;
    }
    rows.wrong[place] |= quit & (Low ? rows.positive[place] : ~rows.positive[place]);
    const uint64_t left = (rows.alive[place] &= ~quit) & step.later;
    rows.boldest[i] = static_cast<uint8_t>(63 - std::countl_zero(left | 1));
    if (left == 0) rows.sum[i] = std::numeric_limits<double>::quiet_NaN();
}

// A policy whose sum is below its lower threshold has quit before the upper one is looked at, as in
// `compare`.
void settle(const PathStep& step, int32_t, const PathFound& found, const PathRows& rows,
            uint32_t* counts) {
    for (int32_t i = 0; i < found.n_low; ++i) settle_one<true>(step, found.low[i], rows, counts);
    for (int32_t i = 0; i < found.n_high; ++i) settle_one<false>(step, found.high[i], rows, counts);
}

void move(const PathRows& from, int32_t i, const PathRows& to, int32_t k) {
    to.sum[k] = from.sum[i], to.boldest[k] = from.boldest[i], to.place[k] = from.place[i];
}

int32_t keep(const PathRows& rows, int32_t n, int32_t limit, const PathRows& others,
             int32_t& n_others) {
    int32_t kept = 0;
    for (int32_t i = 0; i < n; ++i) {
        if (rows.sum[i] != rows.sum[i]) continue;
        if (rows.boldest[i] < limit)
            move(rows, i, others, n_others++);
        else
            move(rows, i, rows, kept++);
    }
    return kept;
}

void tally(const PathRows& rows, int32_t n, std::array<uint32_t, kPathPolicies>* counts) {
    for (int32_t i = 0; i < n; ++i)
        for (uint64_t bits = rows.wrong[i]; bits != 0; bits &= bits - 1)
            ++counts[rows.positive[i] & 1][std::countr_zero(bits)];
}

}  // namespace

extern const PathKernels path_table;  // for choose.cpp
const PathKernels path_table{
    "portable", advance<float>, advance<double>, nullptr, nullptr, nullptr, settle, keep, tally};

}  // namespace qwyc::portable
