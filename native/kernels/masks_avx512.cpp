// Trees on masks for AVX-512 with VBMI2 and GFNI (Intel since 2019, AMD since 2022).
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "core/mask_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN(
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,avx2,bmi,bmi2,popcnt")

namespace qwyc::avx512 {

#define QWYC_ISA "avx512"
#define QWYC_HAS_CODES    // rows as bytes
#define QWYC_HAS_KEEP     // values of rows that go on
#define QWYC_HAS_EXACT    // sums as integers
#define QWYC_HAS_BYTES    // tables as bytes
#define QWYC_HAS_NUMBERS  // leaf numbers of a slab

constexpr int32_t kRankFrom = 160;  // questions about a value

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
constexpr int32_t row_of_bit(int32_t p) {
    return row_of<float>(p);
}

#include "kernels/masks_avx512_tiles.inc"

// ---- trees -----------------------------------------------------------------------------------

using Wide = __m512i;
using OneWord = __m128i;

template <class Lanes>
inline Lanes load(const uint64_t* from) {
    if constexpr (sizeof(Lanes) == sizeof(OneWord))
        return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
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
inline OneWord choose(OneWord mask, OneWord no, OneWord yes) {
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
inline OneWord both(OneWord a, OneWord b) {
    return _mm_and_si128(a, b);
}
inline OneWord first_only(OneWord a, OneWord b) {
    return _mm_andnot_si128(b, a);
}
inline OneWord either(OneWord a, OneWord b) {
    return _mm_or_si128(a, b);
}
inline void store(uint64_t* to, OneWord x) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), x);
}

// For each of 8 bytes of 8 rows, where the planes of its rows are among Bits words of planes: that
// of bit i in byte 7 - i.
template <int Bits>
struct PlaneBytes {
    alignas(64) uint8_t at[64];
    constexpr PlaneBytes() : at() {
        for (int g = 0; g < 8; ++g)
            for (int i = 0; i < 8; ++i)
                at[8 * g + 7 - i] = static_cast<uint8_t>(8 * (i < Bits ? Bits - 1 - i : 7) + g);
    }
};

template <int Bits, int32_t Stride>
inline void number_of(const uint64_t* masks, const int32_t* planes, bool adjacent,
                      uint8_t* number) {
    static constexpr PlaneBytes<Bits> bytes;
    const __mmask8 some = (1 << Bits) - 1;
    __m512i words;
    if (Stride == 1 && Bits > 0 && adjacent) {
        words = _mm512_maskz_loadu_epi64(some, masks + planes[0]);
    } else {  // a gather takes longer
        words = _mm512_setzero_si512();
        for (int i = 0; i < Bits; ++i)
            words = _mm512_mask_set1_epi64(words, static_cast<__mmask8>(1 << i),
                                           static_cast<int64_t>(masks[planes[i] * Stride]));
    }
    const __m512i matrix = _mm512_permutexvar_epi8(_mm512_load_si512(bytes.at), words);
    // Transposes each matrix of 8 x 8 bits.
    const __m512i unit = _mm512_set1_epi64(static_cast<int64_t>(0x8040201008040201));
    _mm512_store_si512(number, _mm512_gf2p8affine_epi64_epi8(unit, matrix, 0));
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

#include "kernels/masks_avx512_quit.inc"
// Needs the part before it.
#include "kernels/masks_avx512_exact.inc"

template <bool Large>
inline void values_word(const float* table, const uint8_t* number, float* out) {
    const Table<Large> values(table);
    const __m512i numbers = _mm512_load_si512(number);
    for (int k = 0; k < 4; ++k) _mm512_storeu_ps(out + 16 * k, values.at(numbers, k));
}

// stride: from a tree's numbers to those of the next.
template <bool Large>
inline void add_single_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                            int32_t end, const uint8_t* number, float* sums,
                            int32_t stride = kWord) {
    __m512 sum[4];
    for (int k = 0; k < 4; ++k) sum[k] = _mm512_load_ps(sums + 16 * k);
    for (int32_t t = begin; t < end; ++t, number += stride) {
        const Table<Large> table(tables + trees.trees[t].table_begin);
        const __m512i numbers = _mm512_load_si512(number);
        for (int k = 0; k < 4; ++k) sum[k] = _mm512_add_ps(sum[k], table.at(numbers, k));
    }
    for (int k = 0; k < 4; ++k) _mm512_store_ps(sums + 16 * k, sum[k]);
}

template <bool Large>
inline void add_steps_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                           int32_t end, const uint8_t* number, double* sums) {
    __m512d sum[8];
    alignas(64) float values[kLookedUp * kWord];
    for (int k = 0; k < 8; ++k) sum[k] = _mm512_load_pd(sums + 8 * k);
    for (int32_t from = begin, to; from < end; from = to) {
        to = end - from < kLookedUp ? end : from + kLookedUp;
        float* value = values;
        for (int32_t t = from; t < to; ++t, number += kWord, value += kWord) {
            const Table<Large> table(tables + trees.trees[t].table_begin);
            const __m512i numbers = _mm512_load_si512(number);
            for (int k = 0; k < 4; ++k) _mm512_store_ps(value + 16 * k, table.at(numbers, k));
        }
        // Values are converted as they are loaded: from registers takes one port more.
        value = values;
        for (int32_t t = from; t < to; ++t, value += kWord)
            for (int k = 0; k < 8; ++k)
                sum[k] = _mm512_add_pd(sum[k], _mm512_cvtps_pd(_mm256_load_ps(value + 8 * k)));
    }
    for (int k = 0; k < 8; ++k) _mm512_store_pd(sums + 8 * k, sum[k]);
}

// Doubles of 16 rows, from a table of 32 or 64: the low words and the high words are looked up,
// then put together.
template <bool Large>
struct DoubleTable {
    __m512i low[Large ? 4 : 2], high[Large ? 4 : 2];
    explicit DoubleTable(const uint32_t* halves) {
        for (int i = 0; i < (Large ? 4 : 2); ++i) {
            low[i] = _mm512_loadu_si512(halves + 32 * i);
            high[i] = _mm512_loadu_si512(halves + 32 * i + 16);
        }
    }
    static __m512i look_up(const __m512i* part, __m512i index, __mmask16 upper) {
        const __m512i value = _mm512_permutex2var_epi32(part[0], index, part[1]);
        if constexpr (Large)
            return _mm512_mask_blend_epi32(upper, value,
                                           _mm512_permutex2var_epi32(part[2], index, part[3]));
        return value;
    }
    // Of the rows from row 16k on, the 1st, 2nd, 5th, 6th, 9th... in `first`, the 3rd, 4th, 7th...
    // in `second`.
    void add(__m512i numbers, int k, __m512d& first, __m512d& second) const {
        const __m512i index = _mm512_srli_epi32(numbers, 8 * k);  // the low bits of each count
        const __mmask16 upper =
            Large ? _mm512_movepi32_mask(_mm512_slli_epi32(numbers, 26 - 8 * k)) : 0;  // bit 5
        const __m512i l = look_up(low, index, upper), h = look_up(high, index, upper);
        first = _mm512_add_pd(first, _mm512_castsi512_pd(_mm512_unpacklo_epi32(l, h)));
        second = _mm512_add_pd(second, _mm512_castsi512_pd(_mm512_unpackhi_epi32(l, h)));
    }
};

template <bool Large>
inline void add_double_word(const MaskedTrees& trees, const DoubleTables& tables, int32_t begin,
                            int32_t end, const uint8_t* number, double* sums) {
    const __m512i first = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0);
    const __m512i second = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
    const __m512i front = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    const __m512i back = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    __m512d sum[8];
    for (int k = 0; k < 4; ++k) {
        const __m512d a = _mm512_load_pd(sums + 16 * k), b = _mm512_load_pd(sums + 16 * k + 8);
        sum[2 * k] = _mm512_permutex2var_pd(a, first, b);
        sum[2 * k + 1] = _mm512_permutex2var_pd(a, second, b);
    }
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const DoubleTable<Large> table(tables.halves.data() + trees.trees[t].halves_begin);
        const __m512i numbers = _mm512_load_si512(number);
        for (int k = 0; k < 4; ++k) table.add(numbers, k, sum[2 * k], sum[2 * k + 1]);
    }
    for (int k = 0; k < 4; ++k) {
        const __m512d a = sum[2 * k], b = sum[2 * k + 1];
        _mm512_store_pd(sums + 16 * k, _mm512_permutex2var_pd(a, front, b));
        _mm512_store_pd(sums + 16 * k + 8, _mm512_permutex2var_pd(a, back, b));
    }
}

// The numbers of the 16 rows from row 16k on.
inline __m512i large_numbers(const uint8_t* number, int k) {
    const __m512i byte = _mm512_set1_epi32(255);
    const __m512i lower = _mm512_srli_epi32(_mm512_load_si512(number), 8 * k);
    const __m512i upper = _mm512_srli_epi32(_mm512_load_si512(number + kWord), 8 * k);
    return _mm512_or_si512(_mm512_and_si512(lower, byte),
                           _mm512_slli_epi32(_mm512_and_si512(upper, byte), 8));
}
inline void large_values_word(const float* table, const uint8_t* number, float* out) {
    for (int k = 0; k < 4; ++k)
        _mm512_store_ps(out + 16 * k, _mm512_i32gather_ps(large_numbers(number, k), table, 4));
}
template <class Number>
inline void add_large_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                           int32_t end, const Number& number_into, float* sums) {
    alignas(64) uint8_t number[2 * kWord];
    __m512 sum[4];
    for (int k = 0; k < 4; ++k) sum[k] = _mm512_load_ps(sums + 16 * k);
    for (int32_t t = begin; t < end; ++t) {
        const float* const table = tables + trees.trees[t].table_begin;
        number_into(t, number);
        for (int k = 0; k < 4; ++k)
            sum[k] = _mm512_add_ps(sum[k], _mm512_i32gather_ps(large_numbers(number, k), table, 4));
    }
    for (int k = 0; k < 4; ++k) _mm512_store_ps(sums + 16 * k, sum[k]);
}
template <class Number>
inline void add_large_word(const MaskedTrees& trees, const double* tables, int32_t begin,
                           int32_t end, const Number& number_into, double* sums) {
    alignas(64) uint8_t number[2 * kWord];
    __m512d sum[8];
    for (int k = 0; k < 8; ++k) sum[k] = _mm512_load_pd(sums + 8 * k);
    for (int32_t t = begin; t < end; ++t) {
        const double* const table = tables + trees.trees[t].table_begin;
        number_into(t, number);
        for (int k = 0; k < 4; ++k) {
            const __m512i index = large_numbers(number, k);
            const __m256i first = _mm512_castsi512_si256(index);
            const __m256i second = _mm512_extracti64x4_epi64(index, 1);
            sum[2 * k] = _mm512_add_pd(sum[2 * k], _mm512_i32gather_pd(first, table, 8));
            sum[2 * k + 1] = _mm512_add_pd(sum[2 * k + 1], _mm512_i32gather_pd(second, table, 8));
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
