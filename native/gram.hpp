// Inner products of base models over the sample, for orders that need them.
#pragma once

#include <cstdint>

namespace qwyc {

// out (T, T) = V V^t in float64 for values (T, n). The additions are in a fixed order, so the
// result is the same bits on any number of threads and on every instruction set.
template <class Score>
void gram(const Score* values, int64_t n_models, int64_t n, double* out, int threads);

}  // namespace qwyc
