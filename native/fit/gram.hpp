// Inner products of base models over the sample, for orders that need them.
#pragma once

#include <cstdint>

namespace qwyc {

// out (T, T) = W W^t in float64 for values (T, n), where W[t, i] = (values[t, i] - centre[t]) *
// scale[i]; centre (T,) or scale (n,) may be null for 0 and 1. The additions are in a fixed order,
// so the result is the same bits on any number of threads and on every instruction set.
template <class Score>
void gram(const Score* values, int64_t n_models, int64_t n, const double* centre,
          const double* scale, double* out, int threads);

}  // namespace qwyc
