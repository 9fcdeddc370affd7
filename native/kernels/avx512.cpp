// Kernels for AVX-512 with VBMI2 (Intel since 2019, AMD since 2022): 64 bytes at a time.

#include <cstddef>

#include "core/kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")

namespace qwyc::avx512 {

#define QWYC_ISA "avx512"
#define QWYC_LANES 64

using Bytes = __m512i;
using Mask = __mmask64;

inline Bytes load(const uint8_t* from) {
    return _mm512_loadu_si512(from);
}
inline void store(uint8_t* to, Bytes bytes) {
    _mm512_storeu_si512(to, bytes);
}
inline Bytes set1(uint8_t value) {
    return _mm512_set1_epi8(static_cast<char>(value));
}
inline Mask greater(Bytes codes, Bytes rank) {
    return _mm512_cmpgt_epi8_mask(codes, rank);
}

using Set = __m512i;  // twice
inline Set load_set(const uint8_t* set) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(set)));
}
inline Mask in_set(Bytes codes, Set set) {
    const __m512i code = _mm512_xor_si512(codes, _mm512_set1_epi8(-128));
    const __m512i byte = _mm512_and_si512(_mm512_srli_epi16(code, 3), _mm512_set1_epi8(31));
    const __m512i bit =
        _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201)),
                            _mm512_and_si512(code, _mm512_set1_epi8(7)));
    return _mm512_test_epi8_mask(_mm512_permutexvar_epi8(byte, set), bit);
}
inline Bytes add_where(Bytes number, Mask mask, Bytes left) {
    return _mm512_mask_add_epi8(number, mask, number, left);
}
inline Bytes add_where_at(Bytes number, Mask mask, Bytes first, Bytes left) {
    return _mm512_mask_add_epi8(number, _mm512_mask_cmpeq_epi8_mask(mask, number, first), number,
                                left);
}

inline void look_up_word(const float* table, int32_t n_leaves, const uint8_t* number, float* out) {
    const auto numbers = [number](int i) {
        return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(number + i)));
    };
    if (n_leaves <= 32) {  // the table fits two registers; it is padded to a whole one
        const __m512 low = _mm512_loadu_ps(table), high = _mm512_loadu_ps(table + 16);
        for (int i = 0; i < 64; i += 16)
            _mm512_storeu_ps(out + i, _mm512_permutex2var_ps(low, numbers(i), high));
        return;
    }
    if (n_leaves <= 64) {
        const __m512 a = _mm512_loadu_ps(table), b = _mm512_loadu_ps(table + 16);
        const __m512 c = _mm512_loadu_ps(table + 32), d = _mm512_loadu_ps(table + 48);
        for (int i = 0; i < 64; i += 16) {
            const __m512i at = numbers(i);
            const __mmask16 upper = _mm512_test_epi32_mask(at, _mm512_set1_epi32(32));
            _mm512_storeu_ps(out + i, _mm512_mask_blend_ps(upper, _mm512_permutex2var_ps(a, at, b),
                                                           _mm512_permutex2var_ps(c, at, d)));
        }
        return;
    }
    for (int i = 0; i < 64; i += 16)
        _mm512_storeu_ps(out + i, _mm512_i32gather_ps(numbers(i), table, 4));
}

inline void add_word(const double* table, const uint8_t* number, double* sums) {
    for (int i = 0; i < 64; i += 8) {
        const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(number + i));
        const __m512d values = _mm512_i32gather_pd(_mm256_cvtepu8_epi32(eight), table, 8);
        _mm512_storeu_pd(sums + i, _mm512_add_pd(_mm512_loadu_pd(sums + i), values));
    }
}

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

inline void compress_bytes(uint64_t mask, const uint8_t* from, uint8_t* to) {
    store(to, _mm512_maskz_compress_epi8(mask, load(from)));
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

#include "kernels/body.inc"

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
