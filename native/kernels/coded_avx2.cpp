// One row's codes through trees of up to 64 leaves, for AVX2.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/coded_trees.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

namespace qwyc::avx2 {

namespace {

// How many of 16 cuts are at most x.
inline int32_t count_of(const float* cut, float x) {
    const __m256 value = _mm256_set1_ps(x);
    const auto at_most = [&](int i) {
        return static_cast<uint32_t>(
            _mm256_movemask_ps(_mm256_cmp_ps(value, _mm256_loadu_ps(cut + i), _CMP_GE_OQ)));
    };
    return __builtin_popcount(at_most(0) | at_most(8) << 8);
}
inline int32_t count_of(const double* cut, double x) {
    const __m256d value = _mm256_set1_pd(x);
    const auto at_most = [&](int i) {
        return static_cast<uint32_t>(
            _mm256_movemask_pd(_mm256_cmp_pd(value, _mm256_loadu_pd(cut + i), _CMP_GE_OQ)));
    };
    return __builtin_popcount(at_most(0) | at_most(4) << 4 | at_most(8) << 8 | at_most(12) << 12);
}

inline __m256i* half_line(uint8_t* of, int half) {
    return reinterpret_cast<__m256i*>(of) + half;
}
inline void clear_line(uint8_t* to) {
    for (int half = 0; half < 2; ++half)
        _mm256_store_si256(half_line(to, half), _mm256_setzero_si256());
}
inline void copy_line(const uint8_t* from, uint8_t* to) {
    const auto* const halves = reinterpret_cast<const __m256i*>(from);
    for (int half = 0; half < 2; ++half)
        _mm256_storeu_si256(half_line(to, half), _mm256_loadu_si256(halves + half));
}

#include "kernels/coded_rows.inc"

inline __m256i load(const uint8_t* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}

// A row's codes, by column: 16 codes a part, in both halves of a register.
template <int Parts>  // 2, 4, 8 or 16
struct Line {
    __m256i part[Parts];
    explicit Line(const uint8_t* line) {
        for (int i = 0; i < Parts; ++i)
            part[i] = _mm256_broadcastsi128_si256(
                _mm_load_si128(reinterpret_cast<const __m128i*>(line + 16 * i)));
    }
    __m256i at(__m256i column) const {
        return from<0, Parts>(
            Parts == 16 ? _mm256_and_si256(column, _mm256_set1_epi8(127)) : column, column);
    }

  private:
    // From parts Begin, Begin + 1...; the bit that tells their halves apart becomes the highest.
    template <int Begin, int N>
    __m256i from(__m256i place, __m256i column) const {
        if constexpr (N == 1) {
            return _mm256_shuffle_epi8(part[Begin], place);
        } else {
            constexpr int kShift = N == 2 ? 3 : N == 4 ? 2 : N == 8 ? 1 : 0;
            return _mm256_blendv_epi8(from<Begin, N / 2>(place, column),
                                      from<Begin + N / 2, N / 2>(place, column),
                                      _mm256_slli_epi16(column, kShift));
        }
    }
};

constexpr int32_t kTogether = 8;  // trees, whose steps down do not wait for each other

// (64,) 0, 1...; or with the bit of a leaf
template <int32_t Splits>
struct alignas(64) Leaves {
    uint8_t at[64];
    constexpr Leaves() : at{} {
        for (int i = 0; i < 64; ++i) at[i] = static_cast<uint8_t>(leaf_bit<Splits> | i);
    }
};
template <int32_t Splits>
constexpr Leaves<Splits> kLeaves;

// Every split's next is the child that the row goes to, and a leaf's is itself. They are written to
// memory, and each step down is a load.
template <int32_t Splits, int Parts, bool Sets>
void leaves_as(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
               int32_t* leaf) {
    const Line<Parts> codes(line);
    const __m256i first_set = _mm256_set1_epi8(static_cast<char>(trees.columns.size()));
    alignas(64) uint8_t next[kTogether][leaf_bit<Splits> + Splits];
    for (auto& of : next) std::memcpy(of + leaf_bit<Splits>, kLeaves<Splits>.at, Splits);
    for (int32_t i = 0; i < n; i += kTogether) {
        int32_t levels = 0, which[kTogether];
        for (int32_t k = 0; k < kTogether; ++k) {
            which[k] = tree[i + k < n ? i + k : i];
            const int32_t place = trees.place[which[k]];
            levels = std::max<int32_t>(levels, trees.levels[which[k]]);
            const CodedTree<Splits>* at;
            if constexpr (Splits == 32)
                at = &trees.small[place];
            else
                at = &trees.trees[place];
            for (int32_t s = 0; s < Splits; s += 32) {
                const __m256i column = load(at->column + s), other = load(at->code + s);
                __m256i code = codes.at(column);
                if constexpr (Sets) {  // only the bit that is tested
                    const __m256i in_set =
                        _mm256_cmpeq_epi8(_mm256_min_epu8(column, first_set), first_set);
                    code = _mm256_andnot_si256(_mm256_andnot_si256(other, in_set), code);
                }
                const __m256i yes = _mm256_cmpeq_epi8(_mm256_max_epu8(code, other), code);
                _mm256_store_si256(
                    reinterpret_cast<__m256i*>(next[k] + s),
                    _mm256_blendv_epi8(load(at->left + s), load(at->right + s), yes));
            }
        }
        uint32_t at[kTogether] = {};
        for (; levels > 0; --levels)
#pragma GCC unroll 8
            for (int32_t k = 0; k < kTogether; ++k) at[k] = next[k][at[k]];
        for (int32_t k = 0; k < kTogether && i + k < n; ++k)
            leaf[i + k] =
                trees.first_leaf[which[k]] + static_cast<int32_t>(at[k] & (leaf_bit<Splits> - 1));
    }
}

template <int32_t Splits, int Parts>
void leaves_of(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
               int32_t* leaf) {
    if (trees.categories.empty())
        leaves_as<Splits, Parts, false>(trees, line, tree, n, leaf);
    else
        leaves_as<Splits, Parts, true>(trees, line, tree, n, leaf);
}

template <int32_t Splits>
void leaves_of(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
               int32_t* leaf) {
    if (trees.n_codes <= 32) return leaves_of<Splits, 2>(trees, line, tree, n, leaf);
    if (trees.n_codes <= 64) return leaves_of<Splits, 4>(trees, line, tree, n, leaf);
    if (trees.n_codes <= 128) return leaves_of<Splits, 8>(trees, line, tree, n, leaf);
    leaves_of<Splits, 16>(trees, line, tree, n, leaf);
}

void leaves(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
            int32_t* leaf) {
    if (trees.trees.empty())
        leaves_of<32>(trees, line, tree, n, leaf);
    else
        leaves_of<64>(trees, line, tree, n, leaf);
}

}  // namespace

extern const CodedKernels coded_table;
const CodedKernels coded_table{{.small_tree = 3,
                                .any_tree = 4.5,
                                .wide = 1.7,
                                .column = 1.1,
                                .long_column = 1.1,
                                .categories = 2},
                               encode<float, float>,
                               encode<double, float>,
                               encode<double, double>,
                               leaves};

}  // namespace qwyc::avx2

QWYC_TARGET_END
#endif
