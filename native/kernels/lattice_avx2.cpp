// Kernels of lattices for AVX2 with FMA: 8 floats or 4 doubles at a time.
#include "core/lattice_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx2,fma,bmi,bmi2")

namespace qwyc::avx2 {

#define QWYC_ISA "avx2"

template <class Real>
struct Lanes;

template <>
struct Lanes<float> {
    static constexpr int32_t kCount = 8;
    static constexpr int32_t kGroups = 1, kHalved = 2, kHalvedTogether = 2;
    typedef float Vector __attribute__((vector_size(32)));
    typedef int32_t Index __attribute__((vector_size(32)));
    static Vector set1(float x) { return _mm256_set1_ps(x); }
    static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
    static Vector gather(const float* table, Index at) {
        return _mm256_i32gather_ps(table, reinterpret_cast<__m256i>(at), 4);
    }
};

template <>
struct Lanes<double> {
    static constexpr int32_t kCount = 4;
    static constexpr int32_t kGroups = 1, kHalved = 2, kHalvedTogether = 2;
    typedef double Vector __attribute__((vector_size(32)));
    typedef int32_t Index __attribute__((vector_size(16)));
    static Vector set1(double x) { return _mm256_set1_pd(x); }
    static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
    static Vector gather(const double* table, Index at) {
        return _mm256_i32gather_pd(table, reinterpret_cast<__m128i>(at), 8);
    }
    static Vector floor(Vector x) { return _mm256_floor_pd(x); }
};

#include "kernels/lattice_body.inc"

}  // namespace qwyc::avx2

QWYC_TARGET_END
#endif
