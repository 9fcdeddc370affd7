// The hot loops that count what the policies of a path do with rows whose scores are known, as a
// table of functions per instruction set. All give the same counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace qwyc {

inline constexpr int32_t kPathPolicies = 63;  // of a group: policies that are followed together
inline constexpr int32_t kPathBits = 64;      // of a set of policies
inline constexpr int32_t kPathRows = 512;     // of a slab: rows that are followed together

// What the policies of a group do after one step. Policies have a bit each, the boldest the
// highest; those that are missing never quit.
struct alignas(64) PathStep {
    // Of the first k policies, the highest lower threshold and the least upper one. Rounding keeps
    // the order of numbers: a sum that lets one of them quit is, as a float, at most low[k] or at
    // least high[k]. NaN for none.
    float low[kPathBits], high[kPathBits];
    // Lower thresholds, which a sum is below; and upper ones, which it is above: with the signs
    // changed, it is below those too. -inf where a policy does not quit.
    double threshold[2][kPathBits];
    uint64_t later;  // policies that may quit after a later step
};

// What is known of a row at a place of a slab.
struct PathPlace {
    uint64_t alive;     // policies that have not quit
    uint64_t wrong;     // those that have, with another decision than the full one
    uint64_t positive;  // all bits, where the full decision is positive, or none
    int64_t row;        // its number among all rows
};

// Rows of a slab that are followed together. Each has a number, and a place in the slab, which it
// keeps. Arrays by number have space for 64 rows more.
struct PathRows {
    double* sum;       // by number: running sums
    uint8_t* bound;    // by number: only so many policies, the first ones, may quit later. 0, also
                       // past the last row, where none may
    uint16_t* place;   // by number
    PathPlace* state;  // by place
};

// Rows that a policy of theirs may have quit: i where row i may quit negative, ~i where it may quit
// positive. A row for which both may be comes twice, and i first. There is space for 16 more.
struct PathFound {
    int32_t* row;
    int32_t n;
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
    // No bound of a row is above `most`. whole: rows are those at places [0, n).
    template <class Score>
    using Advance = void (*)(const PathStep& step, int32_t most, const Score* column, bool whole,
                             int32_t n, const PathRows& rows, PathFound& found);
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
    void (*advance_leaves)(const PathStep& step, int32_t most, const PathLeaves& leaves, bool whole,
                           int32_t n, const PathRows& rows, PathFound& found);

    // Copies leaf numbers of n_columns slabs, those at n places: from number[i] to `to` plus i
    // times `stride`, which has space for 64 more. Null as above.
    void (*pick)(const uint8_t* const* number, size_t n_columns, const uint16_t* place, int32_t n,
                 uint8_t* to, int64_t stride);

    // (64,) the row of a word that has each place, where places are those of leaf numbers.
    const uint8_t* row_of;

    // Lets the policies of rows quit, of those that were found. counts: (kPathBits,) rows that
    // a policy quits here.
    void (*settle)(const PathStep& step, int32_t most, const PathFound& found, const PathRows& rows,
                   uint32_t* counts);

    // Leaves out rows whose bound is 0. Returns how many are left; most: their largest bound.
    int32_t (*keep)(const PathRows& rows, int32_t n, int32_t& most);

    // counts[p][k] += how many of n places, where the full decision is p, have bit k of `wrong`.
    void (*tally)(const PathPlace* state, int32_t n, std::array<uint32_t, kPathBits>* counts);
};

// The kernels of the best instruction set that this machine runs, or of `isa`, as for `kernels`.
const PathKernels& path_kernels(std::string_view isa = "");

}  // namespace qwyc
