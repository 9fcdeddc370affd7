// Trees on masks for NEON (64-bit ARM). Bits are in the order of rows.
#include <cstddef>
#include <cstring>
#include <limits>

#include "core/mask_kernels.hpp"
#include "kernels/targets.hpp"

#if QWYC_NEON
#include <arm_neon.h>

namespace qwyc::neon {

#define QWYC_ISA "neon"

namespace {

// Between that of the portable kernels and AVX2's, by the number of instructions; not measured.
constexpr int32_t kRankFrom = 96;  // questions about a value

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
constexpr int32_t bit_of_row(int32_t i) {
    return i;
}

#include "kernels/masks_neon_tiles.inc"

// ---- trees -----------------------------------------------------------------------------------

using Wide = uint64x2_t;
using OneWord = uint64_t;

template <class Lanes>
inline Lanes load(const uint64_t* from) {
    if constexpr (sizeof(Lanes) == sizeof(OneWord))
        return *from;
    else
        return vld1q_u64(from);
}
inline void store(uint64_t* to, Wide x) {
    vst1q_u64(to, x);
}
inline void store(uint64_t* to, OneWord x) {
    *to = x;
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
    return vbslq_u64(mask, yes, no);
}
inline OneWord choose(OneWord mask, OneWord no, OneWord yes) {
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

// The byte of a word that holds the bits of rows 16 k to 16 k + 15, for each of them.
inline uint8x16_t byte_of_row(int k) {
    return vcombine_u8(vdup_n_u8(static_cast<uint8_t>(2 * k)),
                       vdup_n_u8(static_cast<uint8_t>(2 * k + 1)));
}

template <int Bits, int32_t Stride>
inline void number_of(const uint64_t* masks, const int32_t* planes, bool, uint8_t* number) {
    const uint8x16_t bit = bit_of_byte();
    uint8x16_t n[4];
    for (int k = 0; k < 4; ++k) n[k] = vdupq_n_u8(0);
    for (int b = 0; b < Bits; ++b) {
        const uint8x16_t plane = vreinterpretq_u8_u64(vdupq_n_u64(masks[planes[b] * Stride]));
        for (int k = 0; k < 4; ++k) {
            const uint8x16_t set = vtstq_u8(vqtbl1q_u8(plane, byte_of_row(k)), bit);  // -1 or 0
            n[k] = vsubq_u8(vaddq_u8(n[k], n[k]), set);
        }
    }
    for (int k = 0; k < 4; ++k) vst1q_u8(number + 16 * k, n[k]);
}

// A table of 32 floats, or 64, that looks up 16 values at a time. The first bytes of all floats
// are one table of bytes, the second ones the next, and so on: an instruction looks up 16 bytes.
template <bool Large>
struct Table {
    uint8x16x4_t part[Large ? 4 : 2];  // floats 16 i to 16 i + 15: their four bytes

    // bits: of the leaf numbers. Tables can be read 32 entries past their ends, so a small one
    // among large ones is not read as if it were large.
    Table(const float* table, int32_t bits) {
        const auto* const bytes = reinterpret_cast<const uint8_t*>(table);
        part[0] = vld4q_u8(bytes), part[1] = vld4q_u8(bytes + 64);
        if constexpr (Large) {
            const bool all = bits > 5;
            part[2] = all ? vld4q_u8(bytes + 128) : part[0];
            part[3] = all ? vld4q_u8(bytes + 192) : part[1];
        }
    }

    // out[i]: floats of rows 4 i to 4 i + 3.
    void at(const uint8_t* number, float32x4_t* out) const {
        const uint8x16_t index = vld1q_u8(number);
        uint8x16_t byte[4];
        for (int b = 0; b < 4; ++b) {
            if constexpr (Large)
                byte[b] = vqtbl4q_u8(
                    {part[0].val[b], part[1].val[b], part[2].val[b], part[3].val[b]}, index);
            else
                byte[b] = vqtbl2q_u8({part[0].val[b], part[1].val[b]}, index);
        }
        const uint16x8_t low[2] = {vreinterpretq_u16_u8(vzip1q_u8(byte[0], byte[1])),
                                   vreinterpretq_u16_u8(vzip2q_u8(byte[0], byte[1]))};
        const uint16x8_t high[2] = {vreinterpretq_u16_u8(vzip1q_u8(byte[2], byte[3])),
                                    vreinterpretq_u16_u8(vzip2q_u8(byte[2], byte[3]))};
        for (int h = 0; h < 2; ++h) {
            out[2 * h] = vreinterpretq_f32_u16(vzip1q_u16(low[h], high[h]));
            out[2 * h + 1] = vreinterpretq_f32_u16(vzip2q_u16(low[h], high[h]));
        }
    }
};

// ---- sums ------------------------------------------------------------------------------------

inline float64x2_t lower_half(float32x4_t x) {
    return vcvt_f64_f32(vget_low_f32(x));
}
inline float64x2_t upper_half(float32x4_t x) {
    return vcvt_high_f64_f32(x);
}

// Adds the trees' values to 64 running sums, of rows that are alive; count: trees evaluated. A row
// whose sum is < lower or > upper is no longer alive (`compare` in core/rule.hpp).
template <bool Large>
inline uint64_t quit_word(const MaskedTrees& trees, const double* lower, const double* upper,
                          const uint8_t* number, double* sums, uint64_t alive, uint8_t* count) {
    const int32_t n = trees.n_trees();
    const uint64x2_t bits = {1, 2};
    uint64_t left = 0;
    for (int g = 0; g < 64; g += 16) {
        float64x2_t x[8];
        uint64x2_t on[8];
        for (int j = 0; j < 8; ++j) {
            x[j] = vld1q_f64(sums + g + 2 * j);
            on[j] = vtstq_u64(vdupq_n_u64(alive >> (g + 2 * j)), bits);
        }
        uint8x16_t counted = vdupq_n_u8(1), now = vdupq_n_u8(0);
        for (int32_t t = 0; t < n; ++t) {
            const MaskedTree& tree = trees.trees[t];
            const Table<Large> table(trees.step_value.data() + tree.table_begin, tree.bits);
            const float64x2_t low = vdupq_n_f64(lower[t]), high = vdupq_n_f64(upper[t]);
            float32x4_t value[4];
            table.at(number + t * kWord + g, value);
            for (int j = 0; j < 8; ++j) {
                const float64x2_t added =
                    j % 2 ? upper_half(value[j / 2]) : lower_half(value[j / 2]);
                // A sum of a row that has quit stays as it is, -0.0 too.
                x[j] = vbslq_f64(on[j], vaddq_f64(x[j], added), x[j]);
                on[j] = vbicq_u64(vbicq_u64(on[j], vcltq_f64(x[j], low)), vcgtq_f64(x[j], high));
            }
            now = narrow(on);
            if (t + 1 < n) counted = vsubq_u8(counted, now);
        }
        for (int j = 0; j < 8; ++j) vst1q_f64(sums + g + 2 * j, x[j]);
        vst1q_u8(count + g, counted);
        left |= bits_of(now) << g;
    }
    return left;
}

template <bool Large>
inline void values_word(const float* table, const uint8_t* number, float* out) {
    const Table<Large> values(table, Large ? 6 : 5);
    for (int g = 0; g < 64; g += 16) {
        float32x4_t value[4];
        values.at(number + g, value);
        for (int j = 0; j < 4; ++j) vst1q_f32(out + g + 4 * j, value[j]);
    }
}

template <bool Large>
inline void add_single_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                            int32_t end, const uint8_t* number, float* sums) {
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const Table<Large> table(tables + trees.trees[t].table_begin, trees.trees[t].bits);
        for (int g = 0; g < 64; g += 16) {
            float32x4_t value[4];
            table.at(number + g, value);
            for (int j = 0; j < 4; ++j) {
                float* const to = sums + g + 4 * j;
                vst1q_f32(to, vaddq_f32(vld1q_f32(to), value[j]));
            }
        }
    }
}

template <bool Large>
inline void add_steps_word(const MaskedTrees& trees, const float* tables, int32_t begin,
                           int32_t end, const uint8_t* number, double* sums) {
    for (int32_t t = begin; t < end; ++t, number += kWord) {
        const Table<Large> table(tables + trees.trees[t].table_begin, trees.trees[t].bits);
        for (int g = 0; g < 64; g += 16) {
            float32x4_t value[4];
            table.at(number + g, value);
            for (int j = 0; j < 4; ++j) {
                double* const to = sums + g + 4 * j;
                vst1q_f64(to, vaddq_f64(vld1q_f64(to), lower_half(value[j])));
                vst1q_f64(to + 2, vaddq_f64(vld1q_f64(to + 2), upper_half(value[j])));
            }
        }
    }
}

#include "kernels/masks_plain.inc"

}  // namespace

#include "kernels/masks.inc"

}  // namespace qwyc::neon

#endif
