// Trees on masks for any machine: what every kernel computes, in plain loops.
#include <cstring>
#include <limits>

#include "core/mask_kernels.hpp"
#include "kernels/targets.hpp"

namespace qwyc::portable {

#define QWYC_ISA "portable"

constexpr int32_t kRankFrom = 32;  // questions about a value

template <class V>
constexpr int32_t row_of(int32_t t) {
    return t;
}
template <class V>
constexpr int32_t bit_of(int32_t t) {
    return t;
}
constexpr int32_t row_of_bit(int32_t p) {
    return p;
}

template <class In, class V>
inline void read_quad(const In* const* row, int32_t feature, V* out0, V* out1, V* out2, V* out3) {
    for (int t = 0; t < 64; ++t) {
        const In* const x = row[t] + feature;
        out0[t] = static_cast<V>(x[0]), out1[t] = static_cast<V>(x[1]);
        out2[t] = static_cast<V>(x[2]), out3[t] = static_cast<V>(x[3]);
    }
}

constexpr int32_t bit_of_row(int32_t i) {
    return i;
}
template <class In, class V>
inline void read_few_quad(const In* const* row, int32_t feature, V* out0, V* out1, V* out2,
                          V* out3) {
    for (int i = 0; i < 16; ++i) {
        const In* const x = row[i] + feature;
        out0[i] = static_cast<V>(x[0]), out1[i] = static_cast<V>(x[1]);
        out2[i] = static_cast<V>(x[2]), out3[i] = static_cast<V>(x[3]);
    }
}

template <class In, class V>
inline void read_column(const In* x, V* out) {
    for (int t = 0; t < 64; ++t) out[t] = static_cast<V>(x[t]);
}

template <class In, class V>
inline void read_some(const In* x, const int32_t* number, V* out) {
    for (int t = 0; t < 64; ++t) out[t] = static_cast<V>(x[number[t]]);
}

// ---- questions -------------------------------------------------------------------------------

// 64 bytes that are 0 or 1, as bits.
inline uint64_t bits_of(const uint8_t* bytes) {
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 8) {
        uint64_t eight;
        std::memcpy(&eight, bytes + i, 8);
        mask |= (eight * 0x0102040810204080) >> 56 << i;
    }
    return mask;
}
template <class V>
inline void at_least(const V* x, V cut, uint64_t* mask) {
    uint8_t yes[64];
    for (int t = 0; t < 64; ++t) yes[t] = x[t] >= cut;
    *mask = bits_of(yes);
}
template <class V>
inline void at_least_or_missing(const V* x, V cut, uint64_t* mask) {
    uint8_t yes[64];
    for (int t = 0; t < 64; ++t) yes[t] = !(x[t] < cut);
    *mask = bits_of(yes);
}
template <class V>
inline void is_missing(const V* x, uint64_t* mask) {
    uint8_t yes[64];
    for (int t = 0; t < 64; ++t) yes[t] = x[t] != x[t];
    *mask = bits_of(yes);
}
template <class V>
inline uint64_t few_at_least(const V* x, V cut) {
    uint64_t mask = 0;
    for (int i = 0; i < 16; ++i) mask |= uint64_t{x[i] >= cut} << i;
    return mask;
}
template <class V>
inline uint64_t few_at_least_or_missing(const V* x, V cut) {
    uint64_t mask = 0;
    for (int i = 0; i < 16; ++i) mask |= uint64_t{!(x[i] < cut)} << i;
    return mask;
}
template <class V>
inline uint64_t few_missing(const V* x) {
    uint64_t mask = 0;
    for (int i = 0; i < 16; ++i) mask |= uint64_t{x[i] != x[i]} << i;
    return mask;
}
// A step of all searches at a time: their loads do not wait for each other.
template <class V>
inline void ranks_of(const V* x, const V* cut, int32_t count, int32_t* rank) {
    for (int t = 0; t < 64; ++t) rank[t] = 0;
    for (int32_t n = count, half; n > 0; n -= half) {
        half = (n + 1) / 2;
        for (int t = 0; t < 64; ++t) rank[t] += cut[rank[t] + half - 1] <= x[t] ? half : 0;
    }
}

inline uint64_t in_set(const uint8_t* codes, const uint8_t* set) {
    uint8_t yes[64];
    for (int t = 0; t < 64; ++t) yes[t] = set[codes[t] / 8] >> codes[t] % 8 & 1;
    return bits_of(yes);
}

// ---- trees -----------------------------------------------------------------------------------

typedef uint64_t Wide __attribute__((vector_size(16)));
using OneWord = uint64_t;

template <class Lanes>
inline Lanes load(const uint64_t* from) {
    Lanes x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
template <class Lanes>
inline void store(uint64_t* to, Lanes x) {
    std::memcpy(to, &x, sizeof x);
}
template <class Lanes>
inline Lanes zero() {
    return Lanes{};
}
template <class Lanes>
inline Lanes ones() {
    return ~Lanes{};
}
template <class Lanes>
inline Lanes choose(Lanes mask, Lanes no, Lanes yes) {
    return no ^ (mask & (no ^ yes));
}
template <class Lanes>
inline Lanes both(Lanes a, Lanes b) {
    return a & b;
}
template <class Lanes>
inline Lanes first_only(Lanes a, Lanes b) {
    return a & ~b;
}
template <class Lanes>
inline Lanes either(Lanes a, Lanes b) {
    return a | b;
}

template <int Bits, int32_t Stride>
inline void number_of(const uint64_t* masks, const int32_t* planes, bool, uint8_t* number) {
    uint64_t bits[Bits + 1];
    for (int b = 0; b < Bits; ++b) bits[b] = masks[planes[b] * Stride];
    for (int i = 0; i < 64; i += 8) {
        uint64_t eight = 0;  // a byte a row
        for (int b = 0; b < Bits; ++b) {
            // Byte k keeps bit k alone; adding 127 moves any bit but the highest to the highest.
            const uint64_t one = (bits[b] >> i & 255) * 0x0101010101010101 & 0x8040201008040201;
            const uint64_t high = ((one & 0x7f7f7f7f7f7f7f7f) + 0x7f7f7f7f7f7f7f7f) | one;
            eight = eight << 1 | (high >> 7 & 0x0101010101010101);
        }
        std::memcpy(number + i, &eight, 8);
    }
}

// ---- sums ------------------------------------------------------------------------------------

#include "kernels/masks_plain.inc"

// Adds the trees' values to 64 running sums, of rows that are alive; count: trees evaluated. A row
// whose sum is < lower or > upper is no longer alive (`compare` in core/rule.hpp).
template <bool Large>
inline uint64_t quit_word(const MaskedTrees& trees, const double* lower, const double* upper,
                          const uint8_t* number, double* sums, uint64_t alive, uint8_t* count) {
    uint64_t left = 0;
    for (int i = 0; i < 64; ++i) {
        if (!(alive >> i & 1)) continue;
        double sum = sums[i];
        bool on = true;
        int32_t t = 0;
        for (; t < trees.n_trees() && on; ++t) {
            sum += trees.step_value[trees.trees[t].table_begin + number[t * kWord + i]];
            on = compare(sum, lower[t], upper[t]) == Outcome::kContinue;
        }
        sums[i] = sum;
        count[i] = static_cast<uint8_t>(t);
        left |= static_cast<uint64_t>(on) << i;
    }
    return left;
}

template <bool Large>
inline void values_word(const float* table, const uint8_t* number, float* out) {
    for (int i = 0; i < 64; ++i) out[i] = table[number[i]];
}

template <bool Large>
inline void add_single_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                            int32_t end, const uint8_t* number, float* sums) {
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const float* const table = tables + trees.trees[t].table_begin;
        for (int i = 0; i < 64; ++i) sums[i] += table[number[i]];
    }
}

template <bool Large>
inline void add_steps_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                           int32_t end, const uint8_t* number, double* sums) {
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const float* const table = tables + trees.trees[t].table_begin;
        for (int i = 0; i < 64; ++i) sums[i] += table[number[i]];
    }
}

#include "kernels/masks.inc"

}  // namespace qwyc::portable
