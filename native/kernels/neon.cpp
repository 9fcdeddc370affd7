// Kernels for NEON (64-bit ARM): 16 bytes at a time. It has no gathers, so walks load value by
// value.
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_NEON
#include <arm_neon.h>

namespace qwyc::neon {

#define QWYC_ISA "neon"

namespace {

#include "kernels/neon_words.inc"

template <class T>
inline void gather(const T* table, const int32_t* index, T* out) {
    for (int i = 0; i < kTile; ++i) out[i] = table[index[i]];
}
template <class T>
inline void gather(const std::byte* table, const int32_t* index, T* out) {
    for (int i = 0; i < kTile; ++i)
        std::memcpy(out + i, table + static_cast<int64_t>(sizeof(T)) * index[i], sizeof(T));
}

inline uint64_t exceed_word(const double* values, double least) {
    const float64x2_t limit = vdupq_n_f64(least);
    return word_where(values, [&](float64x2_t x) { return vcgtq_f64(x, limit); });
}

// Comparisons and choices, not vmaxq_f64: that gives NaN where either number is.
inline uint64_t lead_word(const double* sums, int64_t stride, int32_t n_classes, double least) {
    const float64x2_t limit = vdupq_n_f64(least);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 16) {
        float64x2_t best[8], second[8];
        for (int j = 0; j < 8; ++j)
            best[j] = second[j] = vdupq_n_f64(-std::numeric_limits<double>::infinity());
        const double* at = sums + i;
        for (int32_t k = 0; k < n_classes; ++k, at += stride)
            for (int j = 0; j < 8; ++j) {
                const float64x2_t sum = vld1q_f64(at + 2 * j);
                const float64x2_t smaller = vbslq_f64(vcltq_f64(best[j], sum), best[j], sum);
                second[j] = vbslq_f64(vcgtq_f64(smaller, second[j]), smaller, second[j]);
                best[j] = vbslq_f64(vcgtq_f64(sum, best[j]), sum, best[j]);
            }
        uint64x2_t leads[8];
        for (int j = 0; j < 8; ++j) leads[j] = vcgtq_f64(vsubq_f64(best[j], second[j]), limit);
        mask |= bits_of(narrow(leads)) << i;
    }
    return mask;
}

// Adds two values to two sums.
inline float64x2_t add_two(double* sums, const float* values) {
    const float64x2_t sum = vaddq_f64(vld1q_f64(sums), vcvt_f64_f32(vld1_f32(values)));
    vst1q_f64(sums, sum);
    return sum;
}

// For one sum: `compare` in core/rule.hpp.
inline uint64_t quits(double* sums, const float* values, double lower, double upper) {
    const float64x2_t low = vdupq_n_f64(lower), high = vdupq_n_f64(upper);
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 16) {
        uint64x2_t out[8];
        for (int j = 0; j < 8; ++j) {
            const float64x2_t sum = add_two(sums + i + 2 * j, values + i + 2 * j);
            out[j] = vorrq_u64(vcltq_f64(sum, low), vcgtq_f64(sum, high));
        }
        mask |= bits_of(narrow(out)) << i;
    }
    return mask;
}

inline void add_and_bin_word(const float* values, double width, double* sums, double* bins) {
    const float64x2_t divisor = vdupq_n_f64(width);
    for (int i = 0; i < 64; i += 2)
        vst1q_f64(bins + i, vrndmq_f64(vdivq_f64(add_two(sums + i, values + i), divisor)));
}

template <class T>
inline void compress(uint64_t mask, const T* from, T* to) {
    for (; mask != 0; mask &= mask - 1) *to++ = from[__builtin_ctzll(mask)];
}
inline void compress_doubles(uint64_t mask, const double* from, double* to) {
    compress(mask, from, to);
}
inline void compress_ints(uint64_t mask, const int32_t* from, int32_t* to) {
    compress(mask, from, to);
}

}  // namespace

#include "kernels/body.inc"

}  // namespace qwyc::neon

#endif
