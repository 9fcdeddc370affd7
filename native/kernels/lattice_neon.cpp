// Kernels of lattices for NEON: 4 floats or 2 doubles at a time, with fused multiply-adds.
#include "core/lattice_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_NEON
#include <arm_neon.h>

namespace qwyc::neon {

#define QWYC_ISA "neon"

template <class Real>
struct Lanes;

template <>
struct Lanes<float> {
    static constexpr int32_t kCount = 4;
    static constexpr int32_t kGroups = 1, kHalved = 2, kHalvedTogether = 2;
    typedef float Vector __attribute__((vector_size(16)));
    typedef int32_t Index __attribute__((vector_size(16)));
    static Vector set1(float x) { return (Vector)vdupq_n_f32(x); }
    static Vector fma(Vector a, Vector b, Vector c) {
        return (Vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
    }
    static Vector gather(const float* table, Index at) {
        return Vector{table[at[0]], table[at[1]], table[at[2]], table[at[3]]};
    }
};

template <>
struct Lanes<double> {
    static constexpr int32_t kCount = 2;
    static constexpr int32_t kGroups = 1, kHalved = 2, kHalvedTogether = 2;
    typedef double Vector __attribute__((vector_size(16)));
    typedef int32_t Index __attribute__((vector_size(8)));
    static Vector set1(double x) { return (Vector)vdupq_n_f64(x); }
    static Vector fma(Vector a, Vector b, Vector c) {
        return (Vector)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
    }
    static Vector gather(const double* table, Index at) {
        return Vector{table[at[0]], table[at[1]]};
    }
    static Vector floor(Vector x) { return (Vector)vrndmq_f64((float64x2_t)x); }
};

#include "kernels/lattice_body.inc"

}  // namespace qwyc::neon

#endif
