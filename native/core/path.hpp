// What every policy of a path does with the same rows, in one pass over their scores.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/path_kernels.hpp"
#include "core/scratch.hpp"

namespace qwyc {

// K policies along one order, from cautious to bold. The bolder ones mostly quit first, which makes
// the pass fast; the results do not depend on it.
struct PathView {
    std::span<const int32_t> order;        // (T,)
    std::span<const double> lower, upper;  // (K, T) eps- and eps+
    double threshold;
    int64_t n_policies;  // K
};

struct PathCountsOut {
    int64_t* stops;        // (K, T) rows that took 1, 2, ..., T steps; zeros at first
    int64_t* differences;  // (K, 2) full-positive rows that quit negative, full-negative rows that
                           // quit positive; zeros at first
    uint64_t* wrong;       // (n, path_words(K)) bit k % 63 of word k / 63: policy k decides the row
                           // differently; or null
};

inline constexpr int64_t kPathChunk = 64 * 1024;  // rows that a thread counts before it adds them

inline int64_t path_words(int64_t n_policies) {
    return (n_policies + kPathPolicies - 1) / kPathPolicies;
}

// The thresholds of a path, laid out for the kernels.
class PathTables {
  public:
    explicit PathTables(const PathView& path);

    // Policies [first, first + n), and what they do after each step up to the last after which one
    // of them may quit.
    struct Group {
        int64_t first;
        int32_t n;
        std::vector<PathStep> steps;
    };
    const std::vector<Group>& groups() const { return groups_; }
    std::span<const int32_t> order() const { return order_; }
    double threshold() const { return threshold_; }
    int64_t n_steps() const { return static_cast<int64_t>(order_.size()); }

  private:
    std::span<const int32_t> order_;
    double threshold_;
    std::vector<Group> groups_;
};

// Counts rows, on one thread.
//
// Rows are followed a slab at a time. Of leaf numbers, those of rows that go on after some steps
// are copied, until there is a slab of such rows: steps then take many rows at once.
class PathCounter {
  public:
    // wrong: as in PathCountsOut.
    PathCounter(const PathTables& tables, const PathKernels& kernels, uint64_t* wrong);

    // Scores by base model, (T, stride).
    template <class Score>
    struct Scores {
        const Score* values;
        int64_t stride;
    };
    // Leaf numbers by tree, (T, kPathRows), in the order of the kernels' places, and the values of
    // the leaves. Where the kernels have advance_leaves. The trees are the same in all calls.
    struct Leaves {
        const uint8_t* number;
        std::span<const PathLeaves> trees;  // (T,) without `number`
    };

    // n <= kPathRows rows from row `first` on, full (n,).
    template <class Source>
    void add(const Source& source, double base, const double* full, int64_t first, int32_t n);

    // Once all rows have come: adds what was counted.
    void add_to(const PathCountsOut& out);

  private:
    struct Counts {
        std::vector<uint32_t> stops;                                // (steps, kPathBits)
        std::array<std::array<uint32_t, kPathBits>, 2> wrong = {};  // by the full decision
    };
    static constexpr int32_t kMore = 64;  // that kernels read or write past the rows of a slab

    // Rows at the same step, by place.
    struct Slab {
        size_t begin, end;  // the steps for which they are followed
        int32_t n = 0;
        double sum[kPathRows];
        uint8_t bound[kPathRows];
        PathPlace state[kPathRows];
        Buffer<uint8_t> number;  // (steps from `begin` on, kPathRows + kMore) where copied
    };

    template <class Source>
    void follow(size_t group, size_t level, const Source& source);
    template <class Score>
    void advance(const Scores<Score>& scores, size_t step, const PathStep& bounds, bool whole);
    void advance(const Leaves& leaves, size_t step, const PathStep& bounds, bool whole);
    const uint8_t* number_at(const Leaves& leaves, size_t step) const;
    void hand_on(size_t group, size_t level, const Leaves& leaves);
    void start(Slab& slab);
    void finish(size_t group, Slab& slab);
    void keep();
    void pad();

    const PathTables& tables_;
    const PathKernels& kernels_;
    uint64_t* const wrong_;
    std::vector<Counts> counts_;                             // by group
    std::vector<std::vector<std::unique_ptr<Slab>>> slabs_;  // by group; and by the first step
    std::span<const PathLeaves> trees_;
    int64_t n_rows_ = 0;

    // Rows of the slab in hand that are followed.
    const Slab* copied_ = nullptr;  // the slab, if its leaf numbers are copies
    int32_t n_, most_;              // how many rows; no bound is above this
    alignas(64) double sum_[kPathRows + kMore];
    alignas(64) uint8_t bound_[kPathRows + kMore];
    alignas(64) uint16_t place_[kPathRows + kMore];
    PathRows rows_{sum_, bound_, place_, nullptr};
    int32_t row_[2 * kPathRows + kMore];
    PathFound found_{row_, 0};
    std::vector<const uint8_t*> columns_;
};

// Over scores that are known already: values (T, stride) by base model, full (stride,). `rows` are
// the n rows that count, or null for the first n. A row that quits nowhere is decided by `full`.
template <class Score>
void count_path(const PathView& path, const Score* values, double base, const double* full,
                int64_t stride, const int64_t* rows, int64_t n, const PathCountsOut& out,
                int threads, std::string_view isa = "");

}  // namespace qwyc
