// Trees on masks for AVX-512 with VBMI2 (Intel since 2019, AMD since 2022).
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/mask_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")

namespace qwyc::avx512 {

#define QWYC_ISA "avx512"

// Entry t = 16q + 4a + k of a tile is row 16k + 4q + a. Leaf numbers are then bytes of which the
// k-th of each four, a shift away, belong to the 16 rows from row 16k on.
template <class V>
constexpr int32_t row_of(int32_t t) {
    return t % 4 * 16 + t / 16 * 4 + t / 4 % 4;
}
template <class V>
constexpr int32_t bit_of(int32_t t) {
    return t;
}

// ---- reading ---------------------------------------------------------------------------------

inline __m128 load_four(const float* x) {
    return _mm_loadu_ps(x);
}
inline __m128 load_four(const double* x) {
    return _mm256_cvtpd_ps(_mm256_loadu_pd(x));
}

// Four features, each quarter of a register those of one row, into a register a feature.
inline void transpose(const __m512* x, float* out0, float* out1, float* out2, float* out3) {
    const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1]));
    const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3]));
    const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1]));
    const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
    _mm512_store_ps(out0, _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23)));
    _mm512_store_ps(out1, _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23)));
    _mm512_store_ps(out2, _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23)));
    _mm512_store_ps(out3, _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23)));
}

template <class In>
inline void read_quad(const In* const* row, int32_t feature, float* out0, float* out1, float* out2,
                      float* out3) {
    for (int q = 0; q < 64; q += 16) {
        __m512 x[4];  // x[k], quarter a: four features of the row of entry q + 4a + k
        for (int k = 0; k < 4; ++k) {
            x[k] = _mm512_castps128_ps512(load_four(row[q + k] + feature));
            x[k] = _mm512_insertf32x4(x[k], load_four(row[q + 4 + k] + feature), 1);
            x[k] = _mm512_insertf32x4(x[k], load_four(row[q + 8 + k] + feature), 2);
            x[k] = _mm512_insertf32x4(x[k], load_four(row[q + 12 + k] + feature), 3);
        }
        transpose(x, out0 + q, out1 + q, out2 + q, out3 + q);
    }
}

inline void read_quad(const double* const* row, int32_t feature, double* out0, double* out1,
                      double* out2, double* out3) {
    for (int t = 0; t < 64; t += 4) {
        const __m256d a = _mm256_loadu_pd(row[t] + feature);
        const __m256d b = _mm256_loadu_pd(row[t + 1] + feature);
        const __m256d c = _mm256_loadu_pd(row[t + 2] + feature);
        const __m256d d = _mm256_loadu_pd(row[t + 3] + feature);
        const __m256d ab = _mm256_unpacklo_pd(a, b), AB = _mm256_unpackhi_pd(a, b);
        const __m256d cd = _mm256_unpacklo_pd(c, d), CD = _mm256_unpackhi_pd(c, d);
        _mm256_store_pd(out0 + t, _mm256_permute2f128_pd(ab, cd, 0x20));
        _mm256_store_pd(out1 + t, _mm256_permute2f128_pd(AB, CD, 0x20));
        _mm256_store_pd(out2 + t, _mm256_permute2f128_pd(ab, cd, 0x31));
        _mm256_store_pd(out3 + t, _mm256_permute2f128_pd(AB, CD, 0x31));
    }
}

constexpr int32_t bit_of_row(int32_t i) {
    return i % 16 * 4 + i / 16;
}
// Sixteen rows in their own order.
template <class In>
inline void read_few_quad(const In* const* row, int32_t feature, float* out0, float* out1,
                          float* out2, float* out3) {
    __m512 x[4];  // x[k], quarter a: four features of row 4a + k
    for (int k = 0; k < 4; ++k) {
        x[k] = _mm512_castps128_ps512(load_four(row[k] + feature));
        x[k] = _mm512_insertf32x4(x[k], load_four(row[4 + k] + feature), 1);
        x[k] = _mm512_insertf32x4(x[k], load_four(row[8 + k] + feature), 2);
        x[k] = _mm512_insertf32x4(x[k], load_four(row[12 + k] + feature), 3);
    }
    transpose(x, out0, out1, out2, out3);
}
inline void read_few_quad(const double* const* row, int32_t feature, double* out0, double* out1,
                          double* out2, double* out3) {
    for (int i = 0; i < 16; ++i) {
        const double* const x = row[i] + feature;
        out0[i] = x[0], out1[i] = x[1], out2[i] = x[2], out3[i] = x[3];
    }
}

inline __m512 load_sixteen(const float* x) {
    return _mm512_loadu_ps(x);
}
inline __m512 load_sixteen(const double* x) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(_mm512_loadu_pd(x))),
                              _mm512_cvtpd_ps(_mm512_loadu_pd(x + 8)), 1);
}

template <class In>
inline void read_column(const In* x, float* out) {
    const __m512 x0 = load_sixteen(x), x1 = load_sixteen(x + 16);
    const __m512 x2 = load_sixteen(x + 32), x3 = load_sixteen(x + 48);
    const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(x0, x1));
    const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(x2, x3));
    const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(x0, x1));
    const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(x2, x3));
    // a[i], quarter q: rows 4q + i of the four
    const __m512d a[4] = {_mm512_unpacklo_pd(low01, low23), _mm512_unpackhi_pd(low01, low23),
                          _mm512_unpacklo_pd(high01, high23), _mm512_unpackhi_pd(high01, high23)};
    const __m512d p = _mm512_shuffle_f64x2(a[0], a[1], 0x44);
    const __m512d q = _mm512_shuffle_f64x2(a[0], a[1], 0xee);
    const __m512d r = _mm512_shuffle_f64x2(a[2], a[3], 0x44);
    const __m512d s = _mm512_shuffle_f64x2(a[2], a[3], 0xee);
    _mm512_store_ps(out, _mm512_castpd_ps(_mm512_shuffle_f64x2(p, r, 0x88)));
    _mm512_store_ps(out + 16, _mm512_castpd_ps(_mm512_shuffle_f64x2(p, r, 0xdd)));
    _mm512_store_ps(out + 32, _mm512_castpd_ps(_mm512_shuffle_f64x2(q, s, 0x88)));
    _mm512_store_ps(out + 48, _mm512_castpd_ps(_mm512_shuffle_f64x2(q, s, 0xdd)));
}
inline void read_column(const double* x, double* out) {
    for (int t = 0; t < 64; t += 4)
        for (int k = 0; k < 4; ++k) out[t + k] = x[row_of<double>(t + k)];
}

// ---- questions -------------------------------------------------------------------------------

// Parts of a mask are stored one by one: putting them together in a register takes longer.
typedef uint16_t __attribute__((may_alias)) Sixteen;
typedef uint8_t __attribute__((may_alias)) Eight;

template <int Predicate>
inline void compare(const float* x, __m512 cut, uint64_t* mask) {
    auto* const part = reinterpret_cast<Sixteen*>(mask);
    for (int i = 0; i < 4; ++i)
        part[i] = _mm512_cmp_ps_mask(cut, _mm512_load_ps(x + 16 * i), Predicate);
}
template <int Predicate>
inline void compare(const double* x, __m512d cut, uint64_t* mask) {
    auto* const part = reinterpret_cast<Eight*>(mask);
    for (int i = 0; i < 8; ++i)
        part[i] = _mm512_cmp_pd_mask(cut, _mm512_load_pd(x + 8 * i), Predicate);
}
inline __m512 spread(float x) {
    return _mm512_set1_ps(x);
}
inline __m512d spread(double x) {
    return _mm512_set1_pd(x);
}
template <class V>
inline void at_least(const V* x, V cut, uint64_t* mask) {
    compare<_CMP_LE_OQ>(x, spread(cut), mask);
}
template <class V>
inline void at_least_or_missing(const V* x, V cut, uint64_t* mask) {
    compare<_CMP_NGT_UQ>(x, spread(cut), mask);
}
template <class V>
inline void is_missing(const V* x, uint64_t* mask) {
    compare<_CMP_UNORD_Q>(x, spread(V(0)), mask);
}

template <int Predicate>
inline uint64_t few(const float* x, float cut) {
    const __mmask16 yes = _mm512_cmp_ps_mask(spread(cut), _mm512_load_ps(x), Predicate);
    return _pdep_u64(yes, 0x1111111111111111);
}
template <int Predicate>
inline uint64_t few(const double* x, double cut) {
    const unsigned low = _mm512_cmp_pd_mask(spread(cut), _mm512_load_pd(x), Predicate);
    const unsigned high = _mm512_cmp_pd_mask(spread(cut), _mm512_load_pd(x + 8), Predicate);
    return _pdep_u64(low | high << 8, 0x1111111111111111);
}
template <class V>
inline uint64_t few_at_least(const V* x, V cut) {
    return few<_CMP_LE_OQ>(x, cut);
}
template <class V>
inline uint64_t few_at_least_or_missing(const V* x, V cut) {
    return few<_CMP_NGT_UQ>(x, cut);
}
template <class V>
inline uint64_t few_missing(const V* x) {
    return few<_CMP_UNORD_Q>(x, V(0));
}

inline uint64_t in_set(const uint8_t* codes, const uint8_t* set) {
    const __m512i bits =
        _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(set)));
    const __m512i code = _mm512_load_si512(codes);
    const __m512i byte = _mm512_and_si512(_mm512_srli_epi16(code, 3), _mm512_set1_epi8(31));
    const __m512i bit =
        _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201)),
                            _mm512_and_si512(code, _mm512_set1_epi8(7)));
    return _mm512_test_epi8_mask(_mm512_permutexvar_epi8(byte, bits), bit);
}

// ---- trees -----------------------------------------------------------------------------------

using Wide = __m512i;
using Narrow = __m128i;

template <class Lanes>
inline Lanes load(const uint64_t* from) {
    if constexpr (sizeof(Lanes) == sizeof(Narrow))
        return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
    else
        return _mm512_load_si512(from);
}
template <class Lanes>
inline Lanes zero() {
    return Lanes{};
}
template <class Lanes>
inline Lanes ones() {
    return ~Lanes{};
}
inline Wide choose(Wide mask, Wide no, Wide yes) {
    return _mm512_ternarylogic_epi64(mask, yes, no, 0xca);  // mask ? yes : no
}
inline Narrow choose(Narrow mask, Narrow no, Narrow yes) {
    return _mm_ternarylogic_epi64(mask, yes, no, 0xca);
}
inline Wide both(Wide a, Wide b) {
    return _mm512_and_si512(a, b);
}
inline Wide first_only(Wide a, Wide b) {
    return _mm512_andnot_si512(b, a);
}
inline Wide either(Wide a, Wide b) {
    return _mm512_or_si512(a, b);
}
inline void store(uint64_t* to, Wide x) {
    _mm512_store_si512(to, x);
}
inline Narrow both(Narrow a, Narrow b) {
    return _mm_and_si128(a, b);
}
inline Narrow first_only(Narrow a, Narrow b) {
    return _mm_andnot_si128(b, a);
}
inline Narrow either(Narrow a, Narrow b) {
    return _mm_or_si128(a, b);
}
inline void store(uint64_t* to, Narrow x) {
    _mm_store_si128(reinterpret_cast<__m128i*>(to), x);
}

template <int Bits>
inline void number_of(const uint64_t* masks, const int32_t* planes, uint8_t* number) {
    __m512i n = _mm512_setzero_si512();
    for (int b = 0; b < Bits; ++b)
        n = _mm512_mask_or_epi64(
            n, 0xff, n,
            _mm512_maskz_set1_epi8(masks[planes[b] * kSlabWords], char(1 << (Bits - 1 - b))));
    _mm512_store_si512(number, n);
}

// The values of the 16 rows from row 16k on, k = 0 to 3, from a table of 32 or 64.
template <bool Large>
struct Table {
    __m512 part[Large ? 4 : 2];
    explicit Table(const float* table) {
        for (int i = 0; i < (Large ? 4 : 2); ++i) part[i] = _mm512_loadu_ps(table + 16 * i);
    }
    __m512 at(__m512i numbers, int k) const {
        const __m512i index = _mm512_srli_epi32(numbers, 8 * k);  // the low bits of each count
        const __m512 value = _mm512_permutex2var_ps(part[0], index, part[1]);
        if constexpr (Large)
            return _mm512_mask_blend_ps(_mm512_test_epi32_mask(index, _mm512_set1_epi32(32)), value,
                                        _mm512_permutex2var_ps(part[2], index, part[3]));
        return value;
    }
};

// ---- sums ------------------------------------------------------------------------------------

inline __m512d lower_half(__m512 x) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
inline __m512d upper_half(__m512 x) {
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}

// Adds the trees' values to 64 running sums, of rows that are alive; count: trees evaluated. A row
// whose sum is < lower or > upper is no longer alive (`compare` in core/rule.hpp).
template <bool Large>
inline uint64_t quit_word(const MaskedTrees& trees, const double* lower, const double* upper,
                          const uint8_t* number, double* sums, uint64_t alive, uint8_t* count) {
    alignas(64) uint8_t on[kMaxSegmentTrees][8];  // bit per row: alive after each tree
    const int32_t n = trees.n_trees();
    for (int g = 0; g < 64; g += 32) {
        if ((alive >> g & 0xffffffff) == 0) {
            for (int32_t t = 0; t < n; ++t) std::memset(on[t] + g / 8, 0, 4);
            continue;
        }
        __m512d x[4];
        __mmask8 a[4];
        for (int j = 0; j < 4; ++j) {
            x[j] = _mm512_load_pd(sums + g + 8 * j);
            a[j] = static_cast<__mmask8>(alive >> (g + 8 * j));
        }
        for (int32_t t = 0; t < n; ++t) {
            const Table<Large> table(trees.step_value.data() + trees.trees[t].table_begin);
            const __m512i numbers = _mm512_load_si512(number + t * kWord);
            for (int k = 0; k < 2; ++k) {
                const __m512 value = table.at(numbers, g / 16 + k);
                __m512d &first = x[2 * k], &second = x[2 * k + 1];
                first = _mm512_mask_add_pd(first, a[2 * k], first, lower_half(value));
                second = _mm512_mask_add_pd(second, a[2 * k + 1], second, upper_half(value));
            }
            if (lower[t] > -kInf) {
                const __m512d bound = _mm512_set1_pd(lower[t]);
                for (int j = 0; j < 4; ++j)
                    a[j] = _mm512_mask_cmp_pd_mask(a[j], x[j], bound, _CMP_NLT_UQ);
            }
            if (upper[t] < kInf) {
                const __m512d bound = _mm512_set1_pd(upper[t]);
                for (int j = 0; j < 4; ++j)
                    a[j] = _mm512_mask_cmp_pd_mask(a[j], x[j], bound, _CMP_NGT_UQ);
            }
            for (int j = 0; j < 4; ++j) on[t][g / 8 + j] = a[j];
        }
        for (int j = 0; j < 4; ++j) _mm512_store_pd(sums + g + 8 * j, x[j]);
    }
    __m512i counted = _mm512_set1_epi8(1);
    uint64_t left = 0;
    for (int32_t t = 0; t < n; ++t) {
        std::memcpy(&left, on[t], sizeof left);
        if (t + 1 < n) counted = _mm512_mask_add_epi8(counted, left, counted, _mm512_set1_epi8(1));
    }
    _mm512_store_si512(count, counted);
    return left;
}

template <bool Large>
inline void values_word(const float* table, const uint8_t* number, float* out) {
    const Table<Large> values(table);
    const __m512i numbers = _mm512_load_si512(number);
    for (int k = 0; k < 4; ++k) _mm512_storeu_ps(out + 16 * k, values.at(numbers, k));
}

template <bool Large>
inline void add_single_word(const MaskedTrees& trees, int32_t begin, int32_t end,
                            const uint8_t* number, float* sums) {
    __m512 sum[4];
    for (int k = 0; k < 4; ++k) sum[k] = _mm512_load_ps(sums + 16 * k);
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const Table<Large> table(trees.step_value.data() + trees.trees[t].table_begin);
        const __m512i numbers = _mm512_load_si512(number);
        for (int k = 0; k < 4; ++k) sum[k] = _mm512_add_ps(sum[k], table.at(numbers, k));
    }
    for (int k = 0; k < 4; ++k) _mm512_store_ps(sums + 16 * k, sum[k]);
}

template <bool Large>
inline void add_double_word(const MaskedTrees& trees, const double* tables, int32_t begin,
                            int32_t end, const uint8_t* number, double* sums) {
    __m512d sum[8];
    for (int k = 0; k < 8; ++k) sum[k] = _mm512_load_pd(sums + 8 * k);
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const double* const table = tables + trees.trees[t].table_begin;
        const __m512i numbers = _mm512_load_si512(number);
        for (int k = 0; k < 4; ++k) {
            const __m512i index =
                _mm512_and_si512(_mm512_srli_epi32(numbers, 8 * k), _mm512_set1_epi32(255));
            sum[2 * k] = _mm512_add_pd(
                sum[2 * k], _mm512_i32gather_pd(_mm512_castsi512_si256(index), table, 8));
            sum[2 * k + 1] = _mm512_add_pd(
                sum[2 * k + 1], _mm512_i32gather_pd(_mm512_extracti64x4_epi64(index, 1), table, 8));
        }
    }
    for (int k = 0; k < 8; ++k) _mm512_store_pd(sums + 8 * k, sum[k]);
}

// ---- decisions -------------------------------------------------------------------------------

// 64 rows whose decisions follow each other. What is written for rows that go on is written over
// later.
inline void write_word(const double* sums, const uint8_t* count, double split, int32_t step,
                       const DecisionsOut& out) {
    const __m512d bound = _mm512_set1_pd(split);
    uint64_t positive = 0;
    for (int i = 0; i < 64; i += 8) {
        const __m512d sum = _mm512_load_pd(sums + i);
        _mm512_storeu_pd(out.score + i, sum);
        positive |= static_cast<uint64_t>(_mm512_cmp_pd_mask(sum, bound, _CMP_GT_OQ)) << i;
    }
    for (int i = 0; i < 64; i += 16) {
        const __m128i counts = _mm_load_si128(reinterpret_cast<const __m128i*>(count + i));
        _mm512_storeu_si512(
            out.steps + i, _mm512_add_epi32(_mm512_cvtepu8_epi32(counts), _mm512_set1_epi32(step)));
    }
    _mm512_storeu_si512(out.positive, _mm512_maskz_set1_epi8(positive, 1));
}

// Rows (or first, first + 1...) and sums of those that are alive, in order. Writes up to 16 rows
// past them.
inline void keep_word(uint64_t alive, const int32_t* row, int32_t first, const double* sums,
                      int32_t* to_row, double* to_sums) {
    const __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for (int i = 0; i < 64; i += 16) {
        const auto some = static_cast<__mmask16>(alive >> i);
        const __m512i rows = row ? _mm512_loadu_si512(row + i)
                                 : _mm512_add_epi32(iota, _mm512_set1_epi32(first + i));
        const int32_t n = __builtin_popcount(some & 255);
        _mm512_storeu_si512(to_row, _mm512_maskz_compress_epi32(some, rows));
        _mm512_storeu_pd(to_sums, _mm512_maskz_compress_pd(static_cast<__mmask8>(some),
                                                           _mm512_load_pd(sums + i)));
        _mm512_storeu_pd(to_sums + n, _mm512_maskz_compress_pd(static_cast<__mmask8>(some >> 8),
                                                               _mm512_load_pd(sums + i + 8)));
        to_row += __builtin_popcount(some);
        to_sums += __builtin_popcount(some);
    }
}

#include "kernels/masks.inc"

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
