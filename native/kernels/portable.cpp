// Kernels for any machine: 16 bytes at a time, with the compiler's vector types.
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/kernels.hpp"
#include "kernels/targets.hpp"

namespace qwyc::portable {

#define QWYC_ISA "portable"

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
    uint64_t mask = 0;
    for (int i = 0; i < 64; ++i) mask |= static_cast<uint64_t>(values[i] > least) << i;
    return mask;
}

inline uint64_t lead_word(const double* sums, int64_t stride, int32_t n_classes, double least) {
    uint64_t mask = 0;
    for (int i = 0; i < 64; ++i) {
        double best = -std::numeric_limits<double>::infinity(), second = best;
        const double* at = sums + i;
        for (int32_t k = 0; k < n_classes; ++k, at += stride) {
            const double smaller = best < *at ? best : *at;
            second = smaller > second ? smaller : second;
            best = *at > best ? *at : best;
        }
        mask |= static_cast<uint64_t>(best - second > least) << i;
    }
    return mask;
}

// For one sum: `compare` in core/rule.hpp.
inline uint64_t quits(double* sums, const float* values, double lower, double upper) {
    uint64_t mask = 0;
    for (int i = 0; i < 64; ++i) {
        sums[i] += values[i];
        mask |= static_cast<uint64_t>(sums[i] < lower || sums[i] > upper) << i;
    }
    return mask;
}

inline void add_and_bin_word(const float* values, double width, double* sums, double* bins) {
    for (int i = 0; i < 64; ++i) {
        sums[i] += values[i];
        bins[i] = __builtin_floor(sums[i] / width);
    }
}

template <class T>
inline void compress(uint64_t mask, const T* from, T* to) {
    for (; mask != 0; mask &= mask - 1) *to++ = from[__builtin_ctzll(mask)];
}
inline void compress_doubles(uint64_t m, const double* from, double* to) {
    compress(m, from, to);
}
inline void compress_ints(uint64_t m, const int32_t* from, int32_t* to) {
    compress(m, from, to);
}

#include "kernels/body.inc"

}  // namespace qwyc::portable
