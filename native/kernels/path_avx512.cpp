// Counts of policies along a path for AVX-512.
#include <array>
#include <cstddef>
#include <cstdint>

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
        for (int i = 0; i < Parts; ++i) part[i] = _mm512_loadu_ps(table + 16 * i);
    }
    __m512 at(__m512i index, __mmask16 upper) const {
        if constexpr (Parts == 1) return _mm512_permutexvar_ps(index, part[0]);
        if constexpr (Parts == 2) return _mm512_permutex2var_ps(part[0], index, part[1]);
        if constexpr (Parts == 4)
            return _mm512_mask_blend_ps(upper, _mm512_permutex2var_ps(part[0], index, part[1]),
                                        _mm512_permutex2var_ps(part[2], index, part[3]));
    }
};

// Finds the rows that may quit among 16, from their sums.
template <int Parts>
struct Finder {
    Bounds<Parts> low, high;
    __m512i number = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);

    explicit Finder(const PathStep& step) : low(step.low), high(step.high) {}

    void add(__m512d first, __m512d second, const uint8_t* bound_of, PathFound& found) {
        const __m512 sum = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(first)),
                                              _mm512_cvtpd_ps(second), 1);
        const __m512i bound =
            _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(bound_of)));
        const __mmask16 upper =
            Parts == 4 ? _mm512_test_epi32_mask(bound, _mm512_set1_epi32(32)) : 0;
        const __mmask16 a = _mm512_cmp_ps_mask(sum, low.at(bound, upper), _CMP_LE_OQ);
        const __mmask16 b = _mm512_cmp_ps_mask(sum, high.at(bound, upper), _CMP_GE_OQ);
        const __m512i row = _mm512_mask_xor_epi32(number, static_cast<__mmask16>(b & ~a), number,
                                                  _mm512_set1_epi32(-1));
        const auto some = static_cast<__mmask16>(a | b);
        _mm512_storeu_si512(found.row + found.n, _mm512_maskz_compress_epi32(some, row));
        found.n += __builtin_popcount(some);
        if ((a & b) != 0) {  // thresholds cross, or are as good as equal
            _mm512_storeu_si512(found.row + found.n, _mm512_maskz_compress_epi32(
                                                         static_cast<__mmask16>(a & b), ~number));
            found.n += __builtin_popcount(a & b);
        }
        number = _mm512_add_epi32(number, _mm512_set1_epi32(16));
    }
};

// Scores of 16 rows as doubles.
inline void load_scores(const float* from, __m512d* to) {
    for (int h = 0; h < 2; ++h) to[h] = _mm512_cvtps_pd(_mm256_loadu_ps(from + 8 * h));
}
inline void load_scores(const double* from, __m512d* to) {
    for (int h = 0; h < 2; ++h) to[h] = _mm512_loadu_pd(from + 8 * h);
}
inline void gather_scores(const float* column, __m512i place, __m512d* to) {
    const __m512 all = _mm512_i32gather_ps(place, column, 4);
    to[0] = _mm512_cvtps_pd(_mm512_castps512_ps256(all));
    to[1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(all, 1));
}
inline void gather_scores(const double* column, __m512i place, __m512d* to) {
    to[0] = _mm512_i32gather_pd(_mm512_castsi512_si256(place), column, 8);
    to[1] = _mm512_i32gather_pd(_mm512_extracti64x4_epi64(place, 1), column, 8);
}

template <int Parts, class Score>
void advance_in(const PathStep& step, const Score* column, bool whole, int32_t n,
                const PathRows& rows, PathFound& into) {
    Finder<Parts> finder(step);
    PathFound found{into.row, 0};
    alignas(64) Score last[16] = {};
    for (int32_t i = 0; i < n; i += 16) {
        __m512d score[2];
        if (!whole) {
            gather_scores(column,
                          _mm512_cvtepu16_epi32(
                              _mm256_load_si256(reinterpret_cast<const __m256i*>(rows.place + i))),
                          score);
        } else if (n - i < 16) {  // nothing is read past the column
            for (int32_t k = 0; k < n - i; ++k) last[k] = column[i + k];
            load_scores(last, score);
        } else {
            load_scores(column + i, score);
        }
        for (int h = 0; h < 2; ++h) {
            double* const sum = rows.sum + i + 8 * h;
            score[h] = _mm512_add_pd(_mm512_load_pd(sum), score[h]);
            _mm512_store_pd(sum, score[h]);
        }
        finder.add(score[0], score[1], rows.bound + i, found);
    }
    into = found;
}

template <class Score>
void advance(const PathStep& step, int32_t most, const Score* column, bool whole, int32_t n,
             const PathRows& rows, PathFound& found) {
    if (most < 16) return advance_in<1>(step, column, whole, n, rows, found);
    if (most < 32) return advance_in<2>(step, column, whole, n, rows, found);
    return advance_in<4>(step, column, whole, n, rows, found);
}

// ---- trees -----------------------------------------------------------------------------------

// 64 places of a slab, as indices of bytes.
struct Places {
    __m512i index;  // by bits 0 to 6
    __mmask64 bit_7, bit_8;

    explicit Places(const uint16_t* place) {
        const __m512i a = _mm512_load_si512(place), b = _mm512_load_si512(place + 32);
        const __m512i bit = _mm512_set1_epi16(256);
        bit_8 = _mm512_kunpackd(_mm512_test_epi16_mask(b, bit), _mm512_test_epi16_mask(a, bit));
        index = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(a)),
                                   _mm512_cvtepi16_epi8(b), 1);
        bit_7 = _mm512_movepi8_mask(index);
    }
};

// Leaf numbers of a slab in registers.
struct SlabNumbers {
    __m512i word[kPathRows / 64];
    explicit SlabNumbers(const uint8_t* number) {
        for (int i = 0; i < kPathRows / 64; ++i) word[i] = _mm512_load_si512(number + 64 * i);
    }
    __m512i at(const Places& places) const {
        __m512i part[4];  // by bits 7 and 8
        for (int i = 0; i < 4; ++i)
            part[i] = _mm512_permutex2var_epi8(word[2 * i], places.index, word[2 * i + 1]);
        return _mm512_mask_blend_epi8(places.bit_8,
                                      _mm512_mask_blend_epi8(places.bit_7, part[0], part[1]),
                                      _mm512_mask_blend_epi8(places.bit_7, part[2], part[3]));
    }
};

template <int Parts, int TableParts>
void advance_leaves_in(const PathStep& step, const PathLeaves& leaves, bool whole, int32_t n,
                       const PathRows& rows, PathFound& into) {
    Finder<Parts> finder(step);
    const Bounds<TableParts> table(leaves.table);
    const SlabNumbers numbers(leaves.number);
    PathFound found{into.row, 0};
    alignas(64) uint8_t number[64];
    for (int32_t i = 0; i < n; i += 64) {
        _mm512_store_si512(number, whole ? _mm512_load_si512(leaves.number + i)
                                         : numbers.at(Places(rows.place + i)));
        for (int32_t k = 0; k < 64 && i + k < n; k += 16) {
            const __m512i index =
                _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<__m128i*>(number + k)));
            const __mmask16 upper =
                TableParts == 4 ? _mm512_test_epi32_mask(index, _mm512_set1_epi32(32)) : 0;
            const __m512 value = table.at(index, upper);
            double* const sum = rows.sum + i + k;
            const __m512d first =
                _mm512_add_pd(_mm512_load_pd(sum), _mm512_cvtps_pd(_mm512_castps512_ps256(value)));
            const __m512d second = _mm512_add_pd(_mm512_load_pd(sum + 8),
                                                 _mm512_cvtps_pd(_mm512_extractf32x8_ps(value, 1)));
            _mm512_store_pd(sum, first);
            _mm512_store_pd(sum + 8, second);
            finder.add(first, second, rows.bound + i + k, found);
        }
    }
    into = found;
}

template <int Parts>
void advance_leaves_as(const PathStep& step, const PathLeaves& leaves, bool whole, int32_t n,
                       const PathRows& rows, PathFound& found) {
    if (leaves.large) return advance_leaves_in<Parts, 4>(step, leaves, whole, n, rows, found);
    return advance_leaves_in<Parts, 2>(step, leaves, whole, n, rows, found);
}

void advance_leaves(const PathStep& step, int32_t most, const PathLeaves& leaves, bool whole,
                    int32_t n, const PathRows& rows, PathFound& found) {
    if (most < 16) return advance_leaves_as<1>(step, leaves, whole, n, rows, found);
    if (most < 32) return advance_leaves_as<2>(step, leaves, whole, n, rows, found);
    return advance_leaves_as<4>(step, leaves, whole, n, rows, found);
}

void pick(const uint8_t* const* number, size_t n_columns, const uint16_t* place, int32_t n,
          uint8_t* to, int64_t stride) {
    // Two words of rows at a time, so that their places stay in registers.
    for (int32_t i = 0; i < n; i += 128) {
        const Places first(place + i), second(place + (i + 64 < n ? i + 64 : i));
        for (size_t k = 0; k < n_columns; ++k) {
            const SlabNumbers numbers(number[k]);
            uint8_t* const here = to + static_cast<int64_t>(k) * stride + i;
            _mm512_storeu_si512(here, numbers.at(first));
            if (i + 64 < n) _mm512_storeu_si512(here + 64, numbers.at(second));
        }
    }
}

// As in masks_avx512.cpp.
constexpr std::array<uint8_t, 64> kRowOf = [] {
    std::array<uint8_t, 64> row{};
    for (int t = 0; t < 64; ++t) row[t] = static_cast<uint8_t>(t % 4 * 16 + t / 16 * 4 + t / 4 % 4);
    return row;
}();

// ---- quitting --------------------------------------------------------------------------------

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
    const __mmask16 first = _mm512_kunpackb(m[1], m[0]);
    if constexpr (Blocks == 2) return first;
    const __mmask16 second = Blocks == 3 ? m[2] : _mm512_kunpackb(m[3], m[2]);
    const __mmask32 half = _mm512_kunpackw(second, first);
    if constexpr (Blocks <= 4) return half;
    const __mmask32 third = Blocks == 5 ? m[4] : _mm512_kunpackb(m[5], m[4]);
    if constexpr (Blocks <= 6) return _mm512_kunpackd(third, half);
    return _mm512_kunpackd(
        _mm512_kunpackw(_mm512_kunpackb(m[7], m[6]), static_cast<__mmask16>(third)), half);
}

template <int Blocks>
void settle_in(const PathStep& step, const PathFound& found, const PathRows& rows,
               uint32_t* counts) {
    const __m512i one = _mm512_set1_epi8(1);
    const uint64_t later = step.later;
    const double* const sums = rows.sum;
    uint8_t* __restrict const bound = rows.bound;
    const uint16_t* __restrict const places = rows.place;
    PathPlace* __restrict const states = rows.state;
    for (int32_t begin = 0; begin < found.n; begin += kMostCounted) {
        const int32_t end = found.n - begin < kMostCounted ? found.n : begin + kMostCounted;
        __m512i counted = _mm512_setzero_si512();
        for (int32_t at = begin; at < end; ++at) {
            const int32_t row = found.row[at];
            const int32_t side = row >> 31;  // -1: upper thresholds, and signs are changed
            const int32_t i = row ^ side;
            PathPlace& state = states[places[i]];
            const auto sign = static_cast<long long>(static_cast<uint64_t>(side) << 63);
            const __m512d x = _mm512_xor_pd(_mm512_set1_pd(sums[i]),
                                            _mm512_castsi512_pd(_mm512_set1_epi64(sign)));
            const uint64_t quit = below<Blocks>(x, step.threshold[-side]) & state.alive;
            counted = _mm512_mask_add_epi8(counted, quit, counted, one);
            const uint64_t alive = state.alive & ~quit;
            state.alive = alive;
            state.wrong |= quit & (state.positive ^ static_cast<uint64_t>(int64_t{side}));
            bound[i] = static_cast<uint8_t>(64 - _lzcnt_u64(alive & later));
        }
        add_bytes(counted, counts);
    }
}

void settle(const PathStep& step, int32_t most, const PathFound& found, const PathRows& rows,
            uint32_t* counts) {
    if (most <= 16) return settle_in<2>(step, found, rows, counts);
    if (most <= 24) return settle_in<3>(step, found, rows, counts);
    if (most <= 32) return settle_in<4>(step, found, rows, counts);
    if (most <= 40) return settle_in<5>(step, found, rows, counts);
    if (most <= 48) return settle_in<6>(step, found, rows, counts);
    return settle_in<8>(step, found, rows, counts);
}

int32_t keep(const PathRows& rows, int32_t n, int32_t& most) {
    int32_t kept = 0;
    __m128i largest = _mm_setzero_si128();
    for (int32_t i = 0; i < n; i += 16) {
        const __m512d first = _mm512_load_pd(rows.sum + i);
        const __m512d second = _mm512_load_pd(rows.sum + i + 8);
        const __m128i bound = _mm_load_si128(reinterpret_cast<const __m128i*>(rows.bound + i));
        const __m256i place = _mm256_load_si256(reinterpret_cast<const __m256i*>(rows.place + i));
        const __mmask16 some = _mm_test_epi8_mask(bound, bound);
        const auto of_first = static_cast<__mmask8>(some);
        const auto of_second = static_cast<__mmask8>(some >> 8);
        double* const to = rows.sum + kept;
        _mm512_storeu_pd(to, _mm512_maskz_compress_pd(of_first, first));
        _mm512_storeu_pd(to + __builtin_popcount(of_first),
                         _mm512_maskz_compress_pd(of_second, second));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(rows.bound + kept),
                         _mm_maskz_compress_epi8(some, bound));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows.place + kept),
                            _mm256_maskz_compress_epi16(some, place));
        largest = _mm_max_epu8(largest, bound);
        kept += __builtin_popcount(some);
    }
    alignas(16) uint8_t each[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(each), largest);
    most = 0;
    for (const uint8_t bound : each) most = bound > most ? bound : most;
    return kept;
}

void tally(const PathPlace* state, int32_t n, std::array<uint32_t, kPathBits>* counts) {
    const __m512i one = _mm512_set1_epi8(1);
    for (int32_t begin = 0; begin < n; begin += kMostCounted) {
        const int32_t end = n - begin < kMostCounted ? n : begin + kMostCounted;
        __m512i negative = _mm512_setzero_si512(), positive = negative;
        for (int32_t i = begin; i < end; ++i) {
            const uint64_t wrong = state[i].wrong, which = state[i].positive;
            negative = _mm512_mask_add_epi8(negative, wrong & ~which, negative, one);
            positive = _mm512_mask_add_epi8(positive, wrong & which, positive, one);
        }
        add_bytes(negative, counts[0].data());
        add_bytes(positive, counts[1].data());
    }
}

}  // namespace

extern const PathKernels path_table;  // for choose.cpp
const PathKernels path_table{"avx512",       advance<float>, advance<double>,
                             advance_leaves, pick,           kRowOf.data(),
                             settle,         keep,           tally};

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
