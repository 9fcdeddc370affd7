// Counts of policies along a path for AVX-512.
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/path_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN(
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,avx2,bmi,bmi2,lzcnt,popcnt")

namespace qwyc::avx512 {
namespace {

constexpr int32_t kMostCounted = 255;  // by a byte

// A table of 16 * Parts floats in registers.
template <int Parts>
struct Bounds {
    __m512 part[Parts];
    explicit Bounds(const float* table) {
        for (int i = 0; i < Parts; ++i) part[i] = _mm512_load_ps(table + 16 * i);
    }
    __m512 at(__m512i index, __mmask16 upper) const {
        if constexpr (Parts == 1) return _mm512_permutexvar_ps(index, part[0]);
        if constexpr (Parts == 2) return _mm512_permutex2var_ps(part[0], index, part[1]);
        if constexpr (Parts == 4)
            return _mm512_mask_blend_ps(upper, _mm512_permutex2var_ps(part[0], index, part[1]),
                                        _mm512_permutex2var_ps(part[2], index, part[3]));
    }
};

inline __m512d loaded(const float* from) {
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
}
inline __m512d loaded(const double* from) {
    return _mm512_loadu_pd(from);
}

template <int Parts, class Score>
int32_t advance_in(const PathStep& step, const Score* column, int32_t n, const PathRows& rows,
                   int32_t* found) {
    const Bounds<Parts> low(step.low), high(step.high);
    __m512i number = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    int32_t n_found = 0;
    alignas(64) Score last[16] = {};
    for (int32_t i = 0; i < n; i += 16) {
        const Score* from = column + i;
        if (n - i < 16) {  // nothing is read past the column
            for (int32_t k = 0; k < n - i; ++k) last[k] = from[k];
            from = last;
        }
        const __m512d first = _mm512_add_pd(_mm512_load_pd(rows.sum + i), loaded(from));
        const __m512d second = _mm512_add_pd(_mm512_load_pd(rows.sum + i + 8), loaded(from + 8));
        _mm512_store_pd(rows.sum + i, first);
        _mm512_store_pd(rows.sum + i + 8, second);
        const __m512 sum = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(first)),
                                              _mm512_cvtpd_ps(second), 1);
        const __m512i boldest = _mm512_cvtepu8_epi32(
            _mm_load_si128(reinterpret_cast<const __m128i*>(rows.boldest + i)));
        const __mmask16 upper =
            Parts == 4 ? _mm512_test_epi32_mask(boldest, _mm512_set1_epi32(32)) : 0;
        const __mmask16 may = _mm512_cmp_ps_mask(sum, low.at(boldest, upper), _CMP_LE_OQ) |
                              _mm512_cmp_ps_mask(sum, high.at(boldest, upper), _CMP_GE_OQ);
        _mm512_storeu_si512(found + n_found, _mm512_maskz_compress_epi32(may, number));
        n_found += __builtin_popcount(may);
        number = _mm512_add_epi32(number, _mm512_set1_epi32(16));
    }
    return n_found;
}

template <class Score>
int32_t advance(const PathStep& step, int32_t n_policies, const Score* column, int32_t n,
                const PathRows& rows, int32_t* found) {
    if (n_policies <= 16) return advance_in<1>(step, column, n, rows, found);
    if (n_policies <= 32) return advance_in<2>(step, column, n, rows, found);
    return advance_in<4>(step, column, n, rows, found);
}

inline void add_bytes(__m512i counted, uint32_t* counts) {
    for (int k = 0; k < 4; ++k) {
        const __m128i some = k == 0   ? _mm512_extracti32x4_epi32(counted, 0)
                             : k == 1 ? _mm512_extracti32x4_epi32(counted, 1)
                             : k == 2 ? _mm512_extracti32x4_epi32(counted, 2)
                                      : _mm512_extracti32x4_epi32(counted, 3);
        _mm512_storeu_si512(counts + 16 * k, _mm512_add_epi32(_mm512_loadu_si512(counts + 16 * k),
                                                              _mm512_cvtepu8_epi32(some)));
    }
}

// Of 8 * Blocks policies, those whose threshold is above x.
template <int Blocks>
inline uint64_t below(__m512d x, const double* thresholds) {
    __mmask8 m[8] = {};
    for (int b = 0; b < Blocks; ++b)
        m[b] = _mm512_cmp_pd_mask(x, _mm512_load_pd(thresholds + 8 * b), _CMP_LT_OQ);
    if constexpr (Blocks == 1) return m[0];
    const __mmask16 first = _mm512_kunpackb(m[1], m[0]);
    if constexpr (Blocks == 2) return first;
    const __mmask32 half = _mm512_kunpackw(_mm512_kunpackb(m[3], m[2]), first);
    if constexpr (Blocks == 4) return half;
    const __mmask16 third = _mm512_kunpackb(m[5], m[4]);
    if constexpr (Blocks == 6) return _mm512_kunpackd(third, half);
    return _mm512_kunpackd(_mm512_kunpackw(_mm512_kunpackb(m[7], m[6]), third), half);
}

// Separate: a sum crosses thresholds of one kind.
template <int Blocks, bool Separate>
void settle_in(const PathStep& step, const int32_t* found, int32_t n_found, const PathRows& rows,
               uint32_t* counts) {
    const __m512i one = _mm512_set1_epi8(1);
    const __m512d sign = _mm512_set1_pd(-0.0);
    for (int32_t begin = 0; begin < n_found; begin += kMostCounted) {
        const int32_t end = n_found - begin < kMostCounted ? n_found : begin + kMostCounted;
        __m512i counted = _mm512_setzero_si512();
        for (int32_t at = begin; at < end; ++at) {
            const int32_t i = found[at];
            PathRow& row = rows.row[i];
            const __m512d sum = _mm512_set1_pd(rows.sum[i]);
            const uint64_t full = row.positive ? ~uint64_t{0} : 0;
            uint64_t quit, wrong;
            if constexpr (Separate) {
                const uint64_t positive = rows.sum[i] < step.split ? 0 : ~uint64_t{0};
                const __m512d x =
                    _mm512_xor_pd(sum, _mm512_and_pd(sign, _mm512_castsi512_pd(_mm512_set1_epi64(
                                                               static_cast<int64_t>(positive)))));
                quit = below<Blocks>(x, positive ? step.minus_upper : step.lower) & row.alive;
                wrong = quit & (positive ^ full);
            } else {
                const uint64_t negative = below<Blocks>(sum, step.lower) & row.alive;
                quit = negative |
                       (below<Blocks>(_mm512_xor_pd(sum, sign), step.minus_upper) & row.alive);
                wrong = (negative & full) | (quit & ~negative & ~full);
            }
            counted = _mm512_mask_add_epi8(counted, quit, counted, one);
            const uint64_t alive = row.alive & ~quit, left = alive & step.later;
            row.alive = alive;
            row.wrong |= wrong;
            rows.boldest[i] = static_cast<uint8_t>(63 - _lzcnt_u64(left | 1));
            if (left == 0) rows.sum[i] = std::numeric_limits<double>::quiet_NaN();
        }
        add_bytes(counted, counts);
    }
}

template <bool Separate>
void settle_as(const PathStep& step, int32_t n_policies, const int32_t* found, int32_t n_found,
               const PathRows& rows, uint32_t* counts) {
    if (n_policies <= 8) return settle_in<1, Separate>(step, found, n_found, rows, counts);
    if (n_policies <= 16) return settle_in<2, Separate>(step, found, n_found, rows, counts);
    if (n_policies <= 32) return settle_in<4, Separate>(step, found, n_found, rows, counts);
    if (n_policies <= 48) return settle_in<6, Separate>(step, found, n_found, rows, counts);
    return settle_in<8, Separate>(step, found, n_found, rows, counts);
}

void settle(const PathStep& step, int32_t n_policies, const int32_t* found, int32_t n_found,
            const PathRows& rows, uint32_t* counts) {
    (step.separate ? settle_as<true> : settle_as<false>)(step, n_policies, found, n_found, rows,
                                                         counts);
}

void compact_single(const uint64_t* keep, int32_t n, const float* from, float* to) {
    for (int32_t i = 0; i < n; i += 16) {
        const auto in = static_cast<__mmask16>(n - i < 16 ? (1 << (n - i)) - 1 : -1);
        const auto some = static_cast<__mmask16>(keep[i / 64] >> i % 64);
        _mm512_storeu_ps(to, _mm512_maskz_compress_ps(some, _mm512_maskz_loadu_ps(in, from + i)));
        to += __builtin_popcount(some);
    }
}

void compact_double(const uint64_t* keep, int32_t n, const double* from, double* to) {
    for (int32_t i = 0; i < n; i += 8) {
        const auto in = static_cast<__mmask8>(n - i < 8 ? (1 << (n - i)) - 1 : -1);
        const auto some = static_cast<__mmask8>(keep[i / 64] >> i % 64);
        _mm512_storeu_pd(to, _mm512_maskz_compress_pd(some, _mm512_maskz_loadu_pd(in, from + i)));
        to += __builtin_popcount(some);
    }
}

void tally(const uint64_t* sets, int32_t n, uint32_t* counts) {
    const __m512i one = _mm512_set1_epi8(1);
    for (int32_t begin = 0; begin < n; begin += kMostCounted) {
        const int32_t end = n - begin < kMostCounted ? n : begin + kMostCounted;
        __m512i counted = _mm512_setzero_si512();
        for (int32_t i = begin; i < end; ++i)
            counted = _mm512_mask_add_epi8(counted, sets[i], counted, one);
        add_bytes(counted, counts);
    }
}

}  // namespace

extern const PathKernels path_table;  // for choose.cpp
const PathKernels path_table{
    "avx512", advance<float>, advance<double>, settle, compact_single, compact_double, tally};

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
