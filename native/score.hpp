// Every base model on every row, and the full score.
#pragma once

#include "forest.hpp"

namespace qwyc {

// rows: (n, n_features) C order. values: (T, n), tree by tree, what each tree adds to the running
// sum; may be null. full: (n,) the source library's own score.
template <class Real>
void score(const Forest<Real>& forest, const Real* rows, int64_t n, float* values, double* full,
           int threads);

// Mean number of nodes that rows (n, n_features) visit in each tree, out: (T,).
template <class Real>
void mean_path_lengths(const Forest<Real>& forest, const Real* rows, int64_t n, double* out,
                       int threads);

// Seconds that each tree takes for a row on this machine, one thread, out: (T,): the median over
// `repeats` passes of the time for all rows, divided by their number.
template <class Real>
void measure_seconds(const Forest<Real>& forest, const Real* rows, int64_t n, int repeats,
                     double* out);

}  // namespace qwyc
