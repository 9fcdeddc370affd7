// What every policy of a path does with the same rows, in one pass over their scores.
#pragma once

#include <cstdint>
#include <span>

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
    uint8_t* decided;      // (K, n) decisions, or null
};

// Over scores that are known already: values (T, stride) by base model, full (stride,). `rows` are
// the n rows that count, or null for the first n. A row that quits nowhere is decided by `full`.
template <class Score>
void count_path(const PathView& path, const Score* values, double base, const double* full,
                int64_t stride, const int64_t* rows, int64_t n, const PathCountsOut& out,
                int threads);

}  // namespace qwyc
