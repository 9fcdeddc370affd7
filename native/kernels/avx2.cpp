// Kernels for AVX2 (Intel since 2013, AMD since 2015): 32 bytes at a time.
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

namespace qwyc::avx2 {

#define QWYC_ISA "avx2"

inline __m256i load_ints(const int32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void gather(const float* table, const int32_t* index, float* out) {
    for (int i = 0; i < kTile; i += 8)
        _mm256_storeu_ps(out + i, _mm256_i32gather_ps(table, load_ints(index + i), 4));
}
inline void gather(const double* table, const int32_t* index, double* out) {
    for (int i = 0; i < kTile; i += 4) {
        const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(index + i));
        _mm256_storeu_pd(out + i, _mm256_i32gather_pd(table, four, 8));
    }
}
inline void gather(const int32_t* table, const int32_t* index, int32_t* out) {
    for (int i = 0; i < kTile; i += 8)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                            _mm256_i32gather_epi32(table, load_ints(index + i), 4));
}

// A gather is one instruction to the compiler, which may read memory of any type: nothing is
// dereferenced through the pointer that is cast.
template <class T>
inline void gather(const std::byte* table, const int32_t* index, T* out) {
    gather(reinterpret_cast<const T*>(table), index, out);
}

inline uint64_t exceed_word(const double* values, double least) {
    const __m256d limit = _mm256_set1_pd(least);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 4)
        mask |= static_cast<uint64_t>(_mm256_movemask_pd(
                    _mm256_cmp_pd(_mm256_loadu_pd(values + i), limit, _CMP_GT_OQ)))
                << i;
    return mask;
}

inline uint64_t lead_word(const double* sums, int64_t stride, int32_t n_classes, double least) {
    const __m256d limit = _mm256_set1_pd(least);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 16) {  // four registers hide the latency of each other
        __m256d best[4], second[4];
        for (int j = 0; j < 4; ++j)
            best[j] = second[j] = _mm256_set1_pd(-std::numeric_limits<double>::infinity());
        const double* at = sums + i;
        for (int32_t k = 0; k < n_classes; ++k, at += stride)
            for (int j = 0; j < 4; ++j) {
                const __m256d sum = _mm256_loadu_pd(at + 4 * j);
                second[j] = _mm256_max_pd(_mm256_min_pd(best[j], sum), second[j]);
                best[j] = _mm256_max_pd(sum, best[j]);
            }
        for (int j = 0; j < 4; ++j)
            mask |= static_cast<uint64_t>(_mm256_movemask_pd(
                        _mm256_cmp_pd(_mm256_sub_pd(best[j], second[j]), limit, _CMP_GT_OQ)))
                    << (i + 4 * j);
    }
    return mask;
}

// For one sum: `compare` in core/rule.hpp.
inline uint64_t quits(double* sums, const float* values, double lower, double upper) {
    const __m256d low = _mm256_set1_pd(lower), high = _mm256_set1_pd(upper);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 4) {
        const __m256d sum =
            _mm256_add_pd(_mm256_loadu_pd(sums + i), _mm256_cvtps_pd(_mm_loadu_ps(values + i)));
        _mm256_storeu_pd(sums + i, sum);
        const __m256d out =
            _mm256_or_pd(_mm256_cmp_pd(sum, low, _CMP_LT_OQ), _mm256_cmp_pd(sum, high, _CMP_GT_OQ));
        mask |= static_cast<uint64_t>(_mm256_movemask_pd(out)) << i;
    }
    return mask;
}

inline void add_and_bin_word(const float* values, double width, double* sums, double* bins) {
    const __m256d divisor = _mm256_set1_pd(width);
    for (int i = 0; i < 64; i += 4) {
        const __m256d sum =
            _mm256_add_pd(_mm256_loadu_pd(sums + i), _mm256_cvtps_pd(_mm_loadu_ps(values + i)));
        _mm256_storeu_pd(sums + i, sum);
        _mm256_storeu_pd(bins + i, _mm256_floor_pd(_mm256_div_pd(sum, divisor)));
    }
}

// Eight 32-bit values, those whose byte in `wanted` is 255 first.
inline __m256i take_first(__m256i values, uint64_t wanted) {
    const uint64_t indices = _pext_u64(0x0706050403020100, wanted);
    const __m128i bytes = _mm_cvtsi64_si128(static_cast<int64_t>(indices));
    return _mm256_permutevar8x32_epi32(values, _mm256_cvtepu8_epi32(bytes));
}
inline void compress_doubles(uint64_t mask, const double* from, double* to) {
    for (int i = 0; i < 64; i += 4) {
        const uint64_t chosen = mask >> i & 15;
        const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
        const uint64_t wanted = _pdep_u64(chosen, 0x0001000100010001) * 65535;
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), take_first(values, wanted));
        to += __builtin_popcountll(chosen);
    }
}
inline void compress_ints(uint64_t mask, const int32_t* from, int32_t* to) {
    for (int i = 0; i < 64; i += 8) {
        const uint64_t chosen = mask >> i & 255;
        const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
        const uint64_t wanted = _pdep_u64(chosen, 0x0101010101010101) * 255;
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), take_first(values, wanted));
        to += __builtin_popcountll(chosen);
    }
}

#include "kernels/body.inc"

}  // namespace qwyc::avx2

QWYC_TARGET_END
#endif
