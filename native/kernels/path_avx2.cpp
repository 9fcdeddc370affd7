// Counts of policies along a path for AVX2.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/path_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

namespace qwyc::avx2 {
namespace {

// The places of the bits that are set, lowest first, of each of 256 bytes.
constexpr std::array<std::array<uint8_t, 8>, 256> kPlaces = [] {
    std::array<std::array<uint8_t, 8>, 256> places{};
    for (int byte = 0; byte < 256; ++byte)
        for (int bit = 0, n = 0; bit < 8; ++bit)
            if (byte >> bit & 1) places[byte][n++] = static_cast<uint8_t>(bit);
    return places;
}();

inline __m256i load_places(unsigned bits) {
    return _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kPlaces[bits].data())));
}

// Finds the rows that may quit among 8, from their sums.
inline void find(const PathStep& step, __m256d first, __m256d second, int32_t number,
                 const uint8_t* bound_of, PathFound& found) {
    const __m256 sum = _mm256_set_m128(_mm256_cvtpd_ps(second), _mm256_cvtpd_ps(first));
    const __m256i bound =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bound_of)));
    const __m256 low = _mm256_i32gather_ps(step.low, bound, 4);
    const __m256 high = _mm256_i32gather_ps(step.high, bound, 4);
    const __m256 a = _mm256_cmp_ps(sum, low, _CMP_LE_OQ), b = _mm256_cmp_ps(sum, high, _CMP_GE_OQ);
    const auto some = static_cast<unsigned>(_mm256_movemask_ps(_mm256_or_ps(a, b)));
    const __m256i place = load_places(some);
    const __m256i sign = _mm256_permutevar8x32_epi32(_mm256_castps_si256(_mm256_andnot_ps(a, b)),
                                                     place);  // all bits, where it quits positive
    const __m256i row = _mm256_add_epi32(place, _mm256_set1_epi32(number));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(found.row + found.n),
                        _mm256_xor_si256(row, sign));
    found.n += __builtin_popcount(some);
    const auto both = static_cast<unsigned>(_mm256_movemask_ps(_mm256_and_ps(a, b)));
    if (both != 0) {  // thresholds cross, or are as good as equal
        const __m256i rows = _mm256_add_epi32(load_places(both), _mm256_set1_epi32(number));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(found.row + found.n),
                            _mm256_xor_si256(rows, _mm256_set1_epi32(-1)));
        found.n += __builtin_popcount(both);
    }
}

// Scores of 4 rows as doubles: the rows that follow each other, or those at some places.
inline __m256d load_scores(const float* from) {
    return _mm256_cvtps_pd(_mm_loadu_ps(from));
}
inline __m256d load_scores(const double* from) {
    return _mm256_loadu_pd(from);
}
inline __m256d gather_scores(const float* column, __m128i place) {
    return _mm256_cvtps_pd(_mm_i32gather_ps(column, place, 4));
}
inline __m256d gather_scores(const double* column, __m128i place) {
    return _mm256_i32gather_pd(column, place, 8);
}

template <class Score>
void advance(const PathStep& step, int32_t, const Score* column, bool whole, int32_t n,
             const PathRows& rows, PathFound& into) {
    PathFound found{into.row, 0};
    Score last[8] = {};
    for (int32_t i = 0; i < n; i += 8) {
        __m256d score[2];
        const Score* from = column + i;
        if (whole && n - i < 8) {  // nothing is read past the column
            for (int32_t k = 0; k < n - i; ++k) last[k] = from[k];
            from = last;
        }
        for (int h = 0; h < 2; ++h) {
            const auto* const place = reinterpret_cast<const __m128i*>(rows.place + i + 4 * h);
            const __m256d x =
                whole ? load_scores(from + 4 * h)
                      : gather_scores(column, _mm_cvtepu16_epi32(_mm_loadl_epi64(place)));
            double* const sum = rows.sum + i + 4 * h;
            score[h] = _mm256_add_pd(_mm256_load_pd(sum), x);
            _mm256_store_pd(sum, score[h]);
        }
        find(step, score[0], score[1], i, rows.bound + i, found);
    }
    into = found;
}

// Of the first 4 * Blocks policies, those whose threshold is above x.
template <int Blocks>
inline uint64_t below(__m256d x, const double* thresholds) {
    uint64_t bits = 0;
#pragma GCC unroll 16
    for (int b = 0; b < Blocks; ++b) {
        const __m256d less = _mm256_cmp_pd(x, _mm256_load_pd(thresholds + 4 * b), _CMP_LT_OQ);
        bits |= static_cast<uint64_t>(static_cast<unsigned>(_mm256_movemask_pd(less))) << 4 * b;
    }
    return bits;
}

// Counts of 32 policies in bytes.
struct Counted {
    __m256i count;

    Counted() : count(_mm256_setzero_si256()) {}

    void add(uint32_t bits) {
        // A byte has the 8 bits that its policy is one of; then only its own.
        const __m256i eight = _mm256_shuffle_epi8(
            _mm256_set1_epi32(static_cast<int>(bits)),
            _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
        const __m256i own = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
        count = _mm256_sub_epi8(count, _mm256_cmpeq_epi8(_mm256_and_si256(eight, own), own));
    }
    void add_to(uint32_t* counts) const {
        alignas(32) uint8_t each[32];
        _mm256_store_si256(reinterpret_cast<__m256i*>(each), count);
        for (int k = 0; k < 32; ++k) counts[k] += each[k];
    }
};

template <int Blocks>
void settle_in(const PathStep& step, const PathFound& found, const PathRows& rows,
               uint32_t* counts) {
    constexpr int32_t kMostCounted = 255;  // by a byte
    for (int32_t begin = 0; begin < found.n; begin += kMostCounted) {
        const int32_t end = found.n - begin < kMostCounted ? found.n : begin + kMostCounted;
        Counted counted[2];
        for (int32_t at = begin; at < end; ++at) {
            const int32_t row = found.row[at];
            const int32_t side = row >> 31;  // -1: upper thresholds, and signs are changed
            const int32_t i = row ^ side;
            PathPlace& state = rows.state[rows.place[i]];
            const __m256d sign = _mm256_set1_pd(side ? -0.0 : 0.0);
            const __m256d x = _mm256_xor_pd(_mm256_set1_pd(rows.sum[i]), sign);
            const uint64_t quit = below<Blocks>(x, step.threshold[-side]) & state.alive;
            const uint64_t alive = state.alive & ~quit, later = alive & step.later;
            state.alive = alive;
            state.wrong |= quit & (state.positive ^ static_cast<uint64_t>(int64_t{side}));
            rows.bound[i] = static_cast<uint8_t>(later ? 64 - __builtin_clzll(later) : 0);
            counted[0].add(static_cast<uint32_t>(quit));
            if constexpr (Blocks > 8) counted[1].add(static_cast<uint32_t>(quit >> 32));
        }
        counted[0].add_to(counts);
        if constexpr (Blocks > 8) counted[1].add_to(counts + 32);
    }
}

void settle(const PathStep& step, int32_t most, const PathFound& found, const PathRows& rows,
            uint32_t* counts) {
    if (most <= 16) return settle_in<4>(step, found, rows, counts);
    if (most <= 32) return settle_in<8>(step, found, rows, counts);
    if (most <= 48) return settle_in<12>(step, found, rows, counts);
    return settle_in<16>(step, found, rows, counts);
}

#include "kernels/path_rows.inc"

}  // namespace

extern const PathKernels path_table;  // for choose.cpp
const PathKernels path_table{
    "avx2", advance<float>, advance<double>, nullptr, nullptr, nullptr, settle, keep, tally};

}  // namespace qwyc::avx2

QWYC_TARGET_END
#endif
