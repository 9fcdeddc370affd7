// Trees on masks for AVX2 (Intel since 2013, AMD since 2015).
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/mask_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

namespace qwyc::avx2 {

#define QWYC_ISA "avx2"

constexpr int32_t kRankFrom = 144;  // questions about a value

// Bit 4i + k of either half of a mask belongs to row 8k + i of that half. Leaf numbers are then
// bytes of which the k-th of each four, a shift away, belong to the 8 rows from row 8k on. Floats
// are compared in registers of 8, and packing the results of four registers changes their order
// once more; doubles are compared in registers of 4, which stay in order.
constexpr int32_t row_of_bit(int32_t p) {
    return p / 32 * 32 + p % 4 * 8 + p % 32 / 4;
}
template <class V>
constexpr int32_t bit_of(int32_t t) {
    return sizeof(V) == 8 ? t : t / 32 * 32 + t % 8 / 4 * 16 + t % 32 / 8 * 4 + t % 4;
}
template <class V>
constexpr int32_t row_of(int32_t t) {
    return row_of_bit(bit_of<V>(t));
}

#include "kernels/masks_avx2_tiles.inc"

// ---- trees -----------------------------------------------------------------------------------

using Wide = __m256i;
using OneWord = __m128i;

template <class Lanes>
inline Lanes load(const uint64_t* from) {
    if constexpr (sizeof(Lanes) == sizeof(OneWord))
        return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    else
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
template <class Lanes>
inline Lanes zero() {
    return Lanes{};
}
template <class Lanes>
inline Lanes ones() {
    return ~Lanes{};
}
inline Wide both(Wide a, Wide b) {
    return _mm256_and_si256(a, b);
}
inline Wide first_only(Wide a, Wide b) {
    return _mm256_andnot_si256(b, a);
}
inline Wide either(Wide a, Wide b) {
    return _mm256_or_si256(a, b);
}
inline void store(uint64_t* to, Wide x) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), x);
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
template <class Lanes>
inline Lanes choose(Lanes mask, Lanes no, Lanes yes) {
    return either(both(mask, yes), first_only(no, mask));
}

// Byte i is -1 where bit i is set.
inline __m256i bytes_of(uint32_t bits) {
    const __m256i where = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                           2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
    const __m256i spread =
        _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int32_t>(bits)), where);
    return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
}

template <int Bits, int32_t Stride>
inline void number_of(const uint64_t* masks, const int32_t* planes, bool, uint8_t* number) {
    for (int half = 0; half < 2; ++half) {
        __m256i n = _mm256_setzero_si256();
        for (int b = 0; b < Bits; ++b)
            n = _mm256_sub_epi8(
                _mm256_add_epi8(n, n),
                bytes_of(static_cast<uint32_t>(masks[planes[b] * Stride] >> 32 * half)));
        _mm256_store_si256(reinterpret_cast<__m256i*>(number + 32 * half), n);
    }
}

// The values of the 8 rows from row 8j on, j = 0 to 7, from a table of 32 or 64.
template <bool Large>
struct Table {
    __m256 part[Large ? 8 : 4];
    explicit Table(const float* table) {
        for (int i = 0; i < (Large ? 8 : 4); ++i) part[i] = _mm256_loadu_ps(table + 8 * i);
    }
    __m256 at(const uint8_t* number, int j) const {
        const __m256i four =
            _mm256_load_si256(reinterpret_cast<const __m256i*>(number + j / 4 * 32));
        return of(_mm256_srli_epi32(four, j % 4 * 8));
    }
    // The lowest bits count.
    __m256 of(__m256i index) const {
        const __m256 third = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
        const __m256 fourth = _mm256_castsi256_ps(_mm256_slli_epi32(index, 27));
        const auto from = [&](int i) { return _mm256_permutevar8x32_ps(part[i], index); };
        const auto half = [&](int i) {
            return _mm256_blendv_ps(_mm256_blendv_ps(from(i), from(i + 1), third),
                                    _mm256_blendv_ps(from(i + 2), from(i + 3), third), fourth);
        };
        if constexpr (!Large)
            return half(0);
        else
            return _mm256_blendv_ps(half(0), half(4),
                                    _mm256_castsi256_ps(_mm256_slli_epi32(index, 26)));
    }
};

// ---- sums ------------------------------------------------------------------------------------

inline __m256d lower_half(__m256 x) {
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
inline __m256d upper_half(__m256 x) {
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}

#include "kernels/masks_avx2_quit.inc"

template <bool Large>
inline void values_word(const float* table, const uint8_t* number, float* out) {
    const Table<Large> values(table);
    for (int j = 0; j < 8; ++j) _mm256_storeu_ps(out + 8 * j, values.at(number, j));
}

template <bool Large>
inline void add_single_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                            int32_t end, const uint8_t* number, float* sums) {
    __m256 sum[8];
    for (int j = 0; j < 8; ++j) sum[j] = _mm256_load_ps(sums + 8 * j);
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const Table<Large> table(tables + trees.trees[t].table_begin);
        for (int j = 0; j < 8; ++j) sum[j] = _mm256_add_ps(sum[j], table.at(number, j));
    }
    for (int j = 0; j < 8; ++j) _mm256_store_ps(sums + 8 * j, sum[j]);
}

template <bool Large>
inline void add_steps_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                           int32_t end, const uint8_t* number, double* sums) {
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const Table<Large> table(tables + trees.trees[t].table_begin);
        for (int j = 0; j < 8; ++j) {
            const __m256 value = table.at(number, j);
            double* const to = sums + 8 * j;
            _mm256_store_pd(to, _mm256_add_pd(_mm256_load_pd(to), lower_half(value)));
            _mm256_store_pd(to + 4, _mm256_add_pd(_mm256_load_pd(to + 4), upper_half(value)));
        }
    }
}

template <bool Large>
inline void add_double_word(const MaskedTrees& trees, const DoubleTables& tables, int32_t begin,
                            int32_t end, const uint8_t* number, double* sums) {
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const double* const table = tables.whole.data() + trees.trees[t].table_begin;
        for (int j = 0; j < 8; ++j) {
            const __m256i four =
                _mm256_load_si256(reinterpret_cast<const __m256i*>(number + j / 4 * 32));
            const __m256i index =
                _mm256_and_si256(_mm256_srli_epi32(four, j % 4 * 8), _mm256_set1_epi32(255));
            double* const to = sums + 8 * j;
            const __m256d first = _mm256_i32gather_pd(table, _mm256_castsi256_si128(index), 8);
            const __m256d second =
                _mm256_i32gather_pd(table, _mm256_extracti128_si256(index, 1), 8);
            _mm256_store_pd(to, _mm256_add_pd(_mm256_load_pd(to), first));
            _mm256_store_pd(to + 4, _mm256_add_pd(_mm256_load_pd(to + 4), second));
        }
    }
}

// The numbers of the 8 rows from row 8j on.
inline __m256i large_numbers(const uint8_t* number, int j) {
    const auto bytes = [&](const uint8_t* from) {
        const __m256i four = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + j / 4 * 32));
        return _mm256_and_si256(_mm256_srli_epi32(four, j % 4 * 8), _mm256_set1_epi32(255));
    };
    return _mm256_or_si256(bytes(number), _mm256_slli_epi32(bytes(number + kWord), 8));
}
inline void large_values_word(const float* table, const uint8_t* number, float* out) {
    for (int j = 0; j < 8; ++j)
        _mm256_store_ps(out + 8 * j, _mm256_i32gather_ps(table, large_numbers(number, j), 4));
}
inline void add_gathered(const float* table, __m256i index, float* to) {
    _mm256_store_ps(to, _mm256_add_ps(_mm256_load_ps(to), _mm256_i32gather_ps(table, index, 4)));
}
inline void add_gathered(const double* table, __m256i index, double* to) {
    const __m256d first = _mm256_i32gather_pd(table, _mm256_castsi256_si128(index), 8);
    const __m256d second = _mm256_i32gather_pd(table, _mm256_extracti128_si256(index, 1), 8);
    _mm256_store_pd(to, _mm256_add_pd(_mm256_load_pd(to), first));
    _mm256_store_pd(to + 4, _mm256_add_pd(_mm256_load_pd(to + 4), second));
}
template <class T, class Number>
inline void add_large_word(const MaskedTrees& trees, const T* tables, int32_t begin, int32_t end,
                           const Number& number_into, T* sums) {
    alignas(32) uint8_t number[2 * kWord];
    for (int32_t t = begin; t < end; ++t) {
        number_into(t, number);
        for (int j = 0; j < 8; ++j)
            add_gathered(tables + trees.trees[t].table_begin, large_numbers(number, j),
                         sums + 8 * j);
    }
}

// ---- decisions -------------------------------------------------------------------------------

// 64 rows whose decisions follow each other. What is written for rows that go on is written over
// later.
inline void write_word(const double* sums, const uint8_t* count, double split, int32_t step,
                       const DecisionsOut& out) {
    const __m256d bound = _mm256_set1_pd(split);
    uint64_t positive = 0;
    for (int i = 0; i < 64; i += 4) {
        const __m256d sum = _mm256_load_pd(sums + i);
        _mm256_storeu_pd(out.score + i, sum);
        positive |= static_cast<uint64_t>(_mm256_movemask_pd(_mm256_cmp_pd(sum, bound, _CMP_GT_OQ)))
                    << i;
    }
    for (int i = 0; i < 64; i += 8) {
        const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(count + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.steps + i),
                            _mm256_add_epi32(_mm256_cvtepu8_epi32(eight), _mm256_set1_epi32(step)));
    }
    for (int half = 0; half < 2; ++half)
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(out.positive + 32 * half),
            _mm256_and_si256(_mm256_set1_epi8(1),
                             bytes_of(static_cast<uint32_t>(positive >> 32 * half))));
}

// Rows (or first, first + 1...) and sums of those that are alive, in order.
inline void keep_word(uint64_t alive, const int32_t* row, int32_t first, const double* sums,
                      int32_t* to_row, double* to_sums) {
    for (; alive != 0; alive &= alive - 1) {
        const int i = __builtin_ctzll(alive);
        *to_row++ = row ? row[i] : first + i;
        *to_sums++ = sums[i];
    }
}

#include "kernels/masks.inc"

}  // namespace qwyc::avx2

QWYC_TARGET_END
#endif
