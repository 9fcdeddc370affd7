// The hot loops that count what the policies of a path do with rows whose scores are known, as a
// table of functions per instruction set. All give the same counts.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace qwyc {

inline constexpr int32_t kPathPolicies = 64;  // of a group: policies that are followed together
inline constexpr int32_t kPathRows = 512;     // of a slab: rows that are followed together

// What the policies of a group do after one step. Policies have a bit each, the boldest the
// highest; those that are missing never quit.
struct alignas(64) PathStep {
    // Of policies [0, k], the highest lower threshold and the least upper one, rounded outwards: a
    // sum that lets one of them quit is, as a float, at most low[k] or at least high[k].
    float low[kPathPolicies], high[kPathPolicies];
    double lower[kPathPolicies];        // -inf where a policy does not quit
    double minus_upper[kPathPolicies];  // the same: a sum above the threshold, with signs changed
    double split;                       // the highest of `lower`, and
    bool separate;   // no upper threshold is below it: no sum crosses thresholds of both kinds
    uint64_t later;  // policies that may quit after a later step
};

// A row of a slab.
struct PathRow {
    uint64_t alive;  // policies that have not quit
    uint64_t wrong;  // those that have, with another decision than the full one
    int32_t row;     // its place in the slab
    bool positive;   // the full decision
};

// Rows of a slab that are followed, in arrays with space for 16 rows more.
struct PathRows {
    double* sum;  // running sums; NaN, also past the last row, where no policy may quit any more
    uint8_t* boldest;  // of the policies that are alive
    PathRow* row;
};

struct PathKernels {
    std::string_view isa;

    // Adds a column to the sums of n rows. found: the rows that one of their policies may have
    // quit, ascending; the number of them is returned. n_policies: no row has a bolder policy.
    // `found` has space for 16 rows more than n.
    template <class Score>
    using Advance = int32_t (*)(const PathStep& step, int32_t n_policies, const Score* column,
                                int32_t n, const PathRows& rows, int32_t* found);
    Advance<float> advance_single;
    Advance<double> advance_double;

    template <class Score>
    Advance<Score> advance() const {
        if constexpr (std::is_same_v<Score, float>)
            return advance_single;
        else
            return advance_double;
    }

    // Lets the policies of such rows quit. counts: (kPathPolicies,) rows that a policy quits here.
    void (*settle)(const PathStep& step, int32_t n_policies, const int32_t* found, int32_t n_found,
                   const PathRows& rows, uint32_t* counts);

    // Copies those of n scores whose bits are set in `keep`; `to` may be `from`, and has space for
    // 16 more.
    template <class Score>
    using Compact = void (*)(const uint64_t* keep, int32_t n, const Score* from, Score* to);
    Compact<float> compact_single;
    Compact<double> compact_double;

    template <class Score>
    Compact<Score> compact() const {
        if constexpr (std::is_same_v<Score, float>)
            return compact_single;
        else
            return compact_double;
    }

    // counts[k] += how many of n sets of policies have bit k.
    void (*tally)(const uint64_t* sets, int32_t n, uint32_t* counts);
};

// The kernels of the best instruction set that this machine runs, or of `isa`, as for `kernels`.
const PathKernels& path_kernels(std::string_view isa = "");

}  // namespace qwyc
