// Kernels for any machine: 16 bytes at a time, with the compiler's vector types.
#include <cstddef>
#include <cstring>

#include "core/kernels.hpp"
#include "kernels/targets.hpp"

namespace qwyc::portable {

#define QWYC_ISA "portable"
#define QWYC_LANES 16

typedef uint8_t Bytes __attribute__((vector_size(QWYC_LANES)));
typedef int8_t Signed __attribute__((vector_size(QWYC_LANES)));
using Mask = Bytes;  // 255 or 0
using Set = const uint8_t*;

inline Bytes load(const uint8_t* from) {
    Bytes bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return bytes;
}
inline void store(uint8_t* to, Bytes bytes) {
    std::memcpy(to, &bytes, sizeof bytes);
}
inline Bytes set1(uint8_t value) {
    return Bytes{} + value;
}
inline Mask greater(Bytes codes, Bytes rank) {
    return reinterpret_cast<Mask>(reinterpret_cast<Signed>(codes) > reinterpret_cast<Signed>(rank));
}
inline Set load_set(const uint8_t* set) {
    return set;
}
inline Mask in_set(Bytes codes, Set set) {
    Mask mask{};
    for (int i = 0; i < QWYC_LANES; ++i) {
        const int code = codes[i] ^ 128;  // codes are stored less 128
        mask[i] = set[code / 8] >> code % 8 & 1 ? 255 : 0;
    }
    return mask;
}
inline Bytes add_where(Bytes number, Mask mask, Bytes left) {
    return number + (mask & left);
}
inline Bytes add_where_at(Bytes number, Mask mask, Bytes first, Bytes left) {
    return number + (mask & reinterpret_cast<Mask>(number == first) & left);
}

inline void look_up_word(const float* table, int32_t, const uint8_t* number, float* out) {
    for (int i = 0; i < 64; ++i) out[i] = table[number[i]];
}

inline void add_word(const double* table, const uint8_t* number, double* sums) {
    for (int i = 0; i < 64; ++i) sums[i] += table[number[i]];
}

template <class T>
inline void gather(const T* table, const int32_t* index, T* out) {
    for (int i = 0; i < kTile; ++i) out[i] = table[index[i]];
}

template <class T>
inline void gather(const std::byte* table, const int32_t* index, T* out) {
    for (int i = 0; i < kTile; ++i)
        std::memcpy(out + i, table + static_cast<int64_t>(sizeof(T)) * index[i], sizeof(T));
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
inline void compress_bytes(uint64_t m, const uint8_t* from, uint8_t* to) {
    compress(m, from, to);
}
inline void compress_doubles(uint64_t m, const double* from, double* to) {
    compress(m, from, to);
}
inline void compress_ints(uint64_t m, const int32_t* from, int32_t* to) {
    compress(m, from, to);
}

#include "kernels/body.inc"

}  // namespace qwyc::portable
