// The hot loops that count what the policies of a path do with rows whose scores are known, as a
// table of functions per instruction set. All give the same counts.
#pragma once

#include <array>
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

// Rows of a slab that are followed together. Each has a number, and a place in the slab, which it
// keeps. Arrays by number have space for 64 rows more.
struct PathRows {
    double* sum;         // by number: running sums; NaN, also past the last row, where no policy
                         // may quit any more
    uint8_t* boldest;    // by number: of the policies that are alive
    uint16_t* place;     // by number
    uint64_t* alive;     // by place: policies that have not quit
    uint64_t* wrong;     // by place: those that have, with another decision than the full one
    uint64_t* positive;  // by place: all bits, where the full decision is positive, or none
};

// Numbers of rows that a policy of theirs may have quit, ascending: negative, or positive. Both
// have space for 16 numbers more.
struct PathFound {
    int32_t *low, *high;
    int32_t n_low, n_high;
};

// What a tree adds to the rows of a slab.
struct PathLeaves {
    const uint8_t* number;  // (kPathRows,) by place, of leaves
    const float* table;     // by number, 32 entries or, if large, 64
    bool large;
};

struct PathKernels {
    std::string_view isa;

    // Adds a column of scores, by place, to the sums of n rows, and finds those that may quit.
    // n_policies: no row has a bolder policy. whole: rows are those at places [0, n).
    template <class Score>
    using Advance = void (*)(const PathStep& step, int32_t n_policies, const Score* column,
                             bool whole, int32_t n, const PathRows& rows, PathFound& found);
    Advance<float> advance_single;
    Advance<double> advance_double;

    template <class Score>
    Advance<Score> advance() const {
        if constexpr (std::is_same_v<Score, float>)
            return advance_single;
        else
            return advance_double;
    }

    // The same for a tree. Null where an instruction set has none.
    void (*advance_leaves)(const PathStep& step, int32_t n_policies, const PathLeaves& leaves,
                           bool whole, int32_t n, const PathRows& rows, PathFound& found);

    // Copies leaf numbers of a slab, those at n places; `to` has space for 64 more. Null as above.
    void (*pick)(const uint8_t* number, const uint16_t* place, int32_t n, uint8_t* to);

    // (64,) the row of a word that has each place, where places are those of leaf numbers.
    const uint8_t* row_of;

    // Lets the policies of rows quit, of those that were found. counts: (kPathPolicies,) rows that
    // a policy quits here.
    void (*settle)(const PathStep& step, int32_t n_policies, const PathFound& found,
                   const PathRows& rows, uint32_t* counts);

    // Leaves out rows whose sum is NaN, and moves those of which no policy from `limit` on is
    // alive to the end of `others`. Returns how many rows are left.
    int32_t (*keep)(const PathRows& rows, int32_t n, int32_t limit, const PathRows& others,
                    int32_t& n_others);

    // counts[p][k] += how many of n places, where the full decision is p, have bit k of `wrong`.
    void (*tally)(const PathRows& rows, int32_t n, std::array<uint32_t, kPathPolicies>* counts);
};

// The kernels of the best instruction set that this machine runs, or of `isa`, as for `kernels`.
const PathKernels& path_kernels(std::string_view isa = "");

}  // namespace qwyc
