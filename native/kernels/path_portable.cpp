// Counts of policies along a path for any machine, one row and one policy at a time.
#include <bit>

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
        const uint8_t bound = rows.bound[i];
        found.low[found.n_low] = found.high[found.n_high] = i;
        found.n_low += rounded <= step.low[bound];
        found.n_high += rounded >= step.high[bound];
    }
}

// The policies of a row that quit, negative if Low and otherwise positive.
template <bool Low>
void settle_one(const PathStep& step, int32_t i, const PathRows& rows, uint32_t* counts) {
    const double sum = Low ? rows.sum[i] : -rows.sum[i];
    const double* const threshold = Low ? step.lower : step.minus_upper;
    PathPlace& state = rows.state[rows.place[i]];
    uint64_t quit = 0;
    for (uint64_t bits = state.alive; bits != 0; bits &= bits - 1) {
        const int k = std::countr_zero(bits);
        const bool quits = sum < threshold[k];
        quit |= uint64_t{quits} << k;
        counts[k] += quits;
    }
    state.wrong |= quit & (Low ? state.positive : ~state.positive);
    state.alive &= ~quit;
    rows.bound[i] = static_cast<uint8_t>(std::bit_width(state.alive & step.later));
}

// A policy whose sum is below its lower threshold has quit before the upper one is looked at, as in
// `compare`.
void settle(const PathStep& step, int32_t, const PathFound& found, const PathRows& rows,
            uint32_t* counts) {
    for (int32_t i = 0; i < found.n_low; ++i) settle_one<true>(step, found.low[i], rows, counts);
    for (int32_t i = 0; i < found.n_high; ++i) settle_one<false>(step, found.high[i], rows, counts);
}

void move(const PathRows& from, int32_t i, const PathRows& to, int32_t k) {
    to.sum[k] = from.sum[i], to.bound[k] = from.bound[i], to.place[k] = from.place[i];
}

int32_t keep(const PathRows& rows, int32_t n, int32_t most, const PathRows& others,
             int32_t& n_others) {
    int32_t kept = 0;
    for (int32_t i = 0; i < n; ++i) {
        if (rows.bound[i] == 0) continue;
        if (rows.bound[i] <= most)
            move(rows, i, others, n_others++);
        else
            move(rows, i, rows, kept++);
    }
    return kept;
}

void tally(const PathPlace* state, int32_t n, std::array<uint32_t, kPathBits>* counts) {
    for (int32_t i = 0; i < n; ++i)
        for (uint64_t bits = state[i].wrong; bits != 0; bits &= bits - 1)
            ++counts[state[i].positive & 1][std::countr_zero(bits)];
}

}  // namespace

extern const PathKernels path_table;  // for choose.cpp
const PathKernels path_table{
    "portable", advance<float>, advance<double>, nullptr, nullptr, nullptr, settle, keep, tally};

}  // namespace qwyc::portable
