// Kernels of lattices for any machine: 4 floats or 2 doubles at a time. On machines without fused
// multiply-adds the C library computes them, which is slow and gives the same bits.
#include <cmath>

#include "core/lattice_kernels.hpp"
#include "kernels/targets.hpp"

namespace qwyc::portable {

#define QWYC_ISA "portable"

template <class Real>
struct Lanes;

template <>
struct Lanes<float> {
    static constexpr int32_t kCount = 4;
    static constexpr int32_t kGroups = 1, kHalved = 2, kHalvedTogether = 2;
    typedef float Vector __attribute__((vector_size(16)));
    typedef int32_t Index __attribute__((vector_size(16)));
    static Vector set1(float x) { return Vector{x, x, x, x}; }
    static Vector fma(Vector a, Vector b, Vector c) {
        for (int32_t i = 0; i < kCount; ++i) c[i] = std::fma(a[i], b[i], c[i]);
        return c;
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
    static Vector set1(double x) { return Vector{x, x}; }
    static Vector fma(Vector a, Vector b, Vector c) {
        for (int32_t i = 0; i < kCount; ++i) c[i] = std::fma(a[i], b[i], c[i]);
        return c;
    }
    static Vector gather(const double* table, Index at) {
        return Vector{table[at[0]], table[at[1]]};
    }
    static Vector floor(Vector x) { return Vector{std::floor(x[0]), std::floor(x[1])}; }
};

#include "kernels/lattice_body.inc"

}  // namespace qwyc::portable
