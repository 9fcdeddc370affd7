// Kernels for AVX-512 with VBMI2 (Intel since 2019, AMD since 2022): 64 bytes at a time.

#include <cstddef>
#include <limits>

#include "core/kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")

namespace qwyc::avx512 {

#define QWYC_ISA "avx512"

inline void gather(const float* table, const int32_t* index, float* out) {
    for (int i = 0; i < kTile; i += 16)
        _mm512_storeu_ps(out + i, _mm512_i32gather_ps(_mm512_loadu_si512(index + i), table, 4));
}
inline void gather(const double* table, const int32_t* index, double* out) {
    for (int i = 0; i < kTile; i += 8) {
        const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index + i));
        _mm512_storeu_pd(out + i, _mm512_i32gather_pd(eight, table, 8));
    }
}
inline void gather(const int32_t* table, const int32_t* index, int32_t* out) {
    for (int i = 0; i < kTile; i += 16)
        _mm512_storeu_si512(out + i,
                            _mm512_i32gather_epi32(_mm512_loadu_si512(index + i), table, 4));
}

// A gather is one instruction to the compiler, which may read memory of any type: nothing is
// dereferenced through the pointer that is cast.
template <class T>
inline void gather(const std::byte* table, const int32_t* index, T* out) {
    gather(reinterpret_cast<const T*>(table), index, out);
}

inline uint64_t exceed_word(const double* values, double least) {
    const __m512d limit = _mm512_set1_pd(least);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 8)
        mask |= static_cast<uint64_t>(
                    _mm512_cmp_pd_mask(_mm512_loadu_pd(values + i), limit, _CMP_GT_OQ))
                << i;
    return mask;
}

inline uint64_t lead_word(const double* sums, int64_t stride, int32_t n_classes, double least) {
    const __m512d limit = _mm512_set1_pd(least);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 32) {  // four registers hide the latency of each other
        __m512d best[4], second[4];
        for (int j = 0; j < 4; ++j)
            best[j] = second[j] = _mm512_set1_pd(-std::numeric_limits<double>::infinity());
        const double* at = sums + i;
        for (int32_t k = 0; k < n_classes; ++k, at += stride)
            for (int j = 0; j < 4; ++j) {
                const __m512d sum = _mm512_loadu_pd(at + 8 * j);
                second[j] = _mm512_max_pd(_mm512_min_pd(best[j], sum), second[j]);
                best[j] = _mm512_max_pd(sum, best[j]);
            }
        for (int j = 0; j < 4; ++j)
            mask |= static_cast<uint64_t>(
                        _mm512_cmp_pd_mask(_mm512_sub_pd(best[j], second[j]), limit, _CMP_GT_OQ))
                    << (i + 8 * j);
    }
    return mask;
}

// For one sum: `compare` in core/rule.hpp.
inline uint64_t quits(double* sums, const float* values, double lower, double upper) {
    const __m512d low = _mm512_set1_pd(lower), high = _mm512_set1_pd(upper);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 8) {
        const __m512d sum =
            _mm512_add_pd(_mm512_loadu_pd(sums + i), _mm512_cvtps_pd(_mm256_loadu_ps(values + i)));
        _mm512_storeu_pd(sums + i, sum);
        const unsigned out =
            _mm512_cmp_pd_mask(sum, low, _CMP_LT_OQ) | _mm512_cmp_pd_mask(sum, high, _CMP_GT_OQ);
        mask |= static_cast<uint64_t>(out) << i;
    }
    return mask;
}

inline void add_and_bin_word(const float* values, double width, double* sums, double* bins) {
    const __m512d divisor = _mm512_set1_pd(width);
    for (int i = 0; i < 64; i += 8) {
        const __m512d sum =
            _mm512_add_pd(_mm512_loadu_pd(sums + i), _mm512_cvtps_pd(_mm256_loadu_ps(values + i)));
        _mm512_storeu_pd(sums + i, sum);
        _mm512_storeu_pd(bins + i, _mm512_floor_pd(_mm512_div_pd(sum, divisor)));
    }
}

inline void compress_doubles(uint64_t mask, const double* from, double* to) {
    for (int i = 0; i < 64; i += 8) {
        const auto chosen = static_cast<__mmask8>(mask >> i);
        _mm512_storeu_pd(to, _mm512_maskz_compress_pd(chosen, _mm512_loadu_pd(from + i)));
        to += __builtin_popcountll(chosen);
    }
}
inline void compress_ints(uint64_t mask, const int32_t* from, int32_t* to) {
    for (int i = 0; i < 64; i += 16) {
        const auto chosen = static_cast<__mmask16>(mask >> i);
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(chosen, _mm512_loadu_si512(from + i)));
        to += __builtin_popcountll(chosen);
    }
}

// Walks of deep trees, 16 (8 on doubles) in a register. Two gathers of 32 bits for the parts of a
// node take less time than gathers of 64 bits and permutations.
#define QWYC_WALK
template <int Groups>
inline void walk_lanes(const DeepNode<int32_t>* tree, const int32_t* codes, const int32_t* offset,
                       int32_t* leaf) {
    const __m512i column = _mm512_set1_epi32((1 << kColumnBits) - 1), one = _mm512_set1_epi32(1);
    const auto* const words = reinterpret_cast<const std::byte*>(tree) + 4;
    __m512i at[Groups], key[Groups];
    for (int g = 0; g < Groups; ++g) at[g] = _mm512_setzero_si512();
    __mmask16 moved;
    do {
        moved = 0;
#pragma GCC unroll 4
        for (int g = 0; g < Groups; ++g) {
            key[g] = _mm512_i32gather_epi32(at[g], tree, 8);
            const __m512i word = _mm512_i32gather_epi32(at[g], words, 8);
            const __m512i from = _mm512_add_epi32(_mm512_and_si512(word, column),
                                                  _mm512_loadu_si512(offset + 16 * g));
            const __m512i code = _mm512_i32gather_epi32(from, codes, 4);
            const __m512i left = _mm512_srli_epi32(word, kColumnBits);
            const __mmask16 right = _mm512_cmpgt_epi32_mask(code, key[g]);
            const __m512i next = _mm512_mask_add_epi32(left, right, left, one);
            moved |= _mm512_cmpneq_epi32_mask(next, at[g]);
            at[g] = next;
        }
    } while (moved != 0);
    for (int g = 0; g < Groups; ++g) _mm512_storeu_si512(leaf + 16 * g, key[g]);
}
inline __m256i load8(const int32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
template <int Groups>
inline void walk_lanes(const DeepNode<int64_t>* tree, const int64_t* codes, const int32_t* offset,
                       int32_t* leaf) {
    const __m256i column = _mm256_set1_epi32((1 << kColumnBits) - 1), one = _mm256_set1_epi32(1);
    const auto* const words = reinterpret_cast<const int*>(tree) + 2;
    __m256i at[2 * Groups];
    __m512i key[2 * Groups];
    for (int g = 0; g < 2 * Groups; ++g) at[g] = _mm256_setzero_si256();
    __mmask8 moved;
    do {
        moved = 0;
#pragma GCC unroll 8
        for (int g = 0; g < 2 * Groups; ++g) {
            const __m256i node = _mm256_add_epi32(at[g], at[g]);  // in units of 8 bytes
            key[g] = _mm512_i32gather_epi64(node, tree, 8);
            const __m256i word = _mm256_i32gather_epi32(words, node, 8);
            const __m256i from =
                _mm256_add_epi32(_mm256_and_si256(word, column), load8(offset + 8 * g));
            const __m512i code = _mm512_i32gather_epi64(from, codes, 8);
            const __m256i left = _mm256_srli_epi32(word, kColumnBits);
            const __mmask8 right = _mm512_cmpgt_epi64_mask(code, key[g]);
            const __m256i next = _mm256_mask_add_epi32(left, right, left, one);
            moved |= _mm256_cmpneq_epi32_mask(next, at[g]);
            at[g] = next;
        }
    } while (moved != 0);
    for (int g = 0; g < 2 * Groups; ++g)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(leaf + 8 * g),
                            _mm512_cvtepi64_epi32(key[g]));
}

#include "kernels/body.inc"

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
