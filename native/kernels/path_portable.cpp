// Counts of policies along a path for any machine, one row and one policy at a time.
#include <algorithm>
#include <bit>

#include "core/path_kernels.hpp"

namespace qwyc::portable {
namespace {

template <class Score>
void advance(const PathStep& step, int32_t, const Score* column, bool, int32_t n,
             const PathRows& rows, PathFound& found) {
    int32_t n_found = 0;
    for (int32_t i = 0; i < n; ++i) {
        const double sum = rows.sum[i] += column[rows.place[i]];
        const auto rounded = static_cast<float>(sum);
        const uint8_t bound = rows.bound[i];
        found.row[n_found] = i;
        n_found += rounded <= step.low[bound];
        found.row[n_found] = ~i;
        n_found += rounded >= step.high[bound];
    }
    found.n = n_found;
}

// A policy whose sum is below its lower threshold has quit before the upper one is looked at, as in
// `compare`.
void settle(const PathStep& step, int32_t, const PathFound& found, const PathRows& rows,
            uint32_t* counts) {
    for (int32_t at = 0; at < found.n; ++at) {
        const bool high = found.row[at] < 0;
        const int32_t i = high ? ~found.row[at] : found.row[at];
        const double sum = high ? -rows.sum[i] : rows.sum[i];
        PathPlace& state = rows.state[rows.place[i]];
        uint64_t quit = 0;
        for (uint64_t bits = state.alive; bits != 0; bits &= bits - 1) {
            const int k = std::countr_zero(bits);
            const bool quits = sum < step.threshold[high][k];
            quit |= uint64_t{quits} << k;
            counts[k] += quits;
        }
        state.wrong |= quit & (high ? ~state.positive : state.positive);
        state.alive &= ~quit;
        rows.bound[i] = static_cast<uint8_t>(std::bit_width(state.alive & step.later));
    }
}

#include "kernels/path_rows.inc"

}  // namespace

extern const PathKernels path_table;  // for choose.cpp
const PathKernels path_table{
    "portable", advance<float>, advance<double>, nullptr, nullptr, nullptr, settle, keep, tally};

}  // namespace qwyc::portable
