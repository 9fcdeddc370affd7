// Kernels of lattices for AVX-512: 16 floats or 8 doubles at a time.
#include "core/lattice_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi,bmi2")

namespace qwyc::avx512 {

#define QWYC_ISA "avx512"

template <class Real>
struct Lanes;

template <>
struct Lanes<float> {
    static constexpr int32_t kCount = 16;
    static constexpr int32_t kGroups = 2, kHalved = 3, kHalvedTogether = 2;
    typedef float Vector __attribute__((vector_size(64)));
    typedef int32_t Index __attribute__((vector_size(64)));
    static Vector set1(float x) { return _mm512_set1_ps(x); }
    static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
    static Vector gather(const float* table, Index at) {
        return _mm512_i32gather_ps(reinterpret_cast<__m512i>(at), table, 4);
    }
};

template <>
struct Lanes<double> {
    static constexpr int32_t kCount = 8;
    static constexpr int32_t kGroups = 2, kHalved = 3, kHalvedTogether = 2;
    typedef double Vector __attribute__((vector_size(64)));
    typedef int32_t Index __attribute__((vector_size(32)));
    static Vector set1(double x) { return _mm512_set1_pd(x); }
    static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
    static Vector gather(const double* table, Index at) {
        return _mm512_i32gather_pd(reinterpret_cast<__m256i>(at), table, 8);
    }
    static Vector floor(Vector x) { return _mm512_floor_pd(x); }
};

#include "kernels/lattice_body.inc"

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
