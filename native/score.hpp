// Every base model on every row, and the full score.
#pragma once

#include "forest.hpp"

namespace qwyc {

// rows: (n, n_features) C order. values: (T, n), tree by tree, what each tree adds to the running
// sum; may be null. full: (n,) the source library's own score.
template <class Real>
void score(const Forest<Real>& forest, const Real* rows, int64_t n, float* values, double* full,
           int threads);

}  // namespace qwyc
