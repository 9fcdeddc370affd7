// One row's codes through trees of up to 64 leaves, for AVX-512.
#include <limits>

#include "core/coded_trees.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")

namespace qwyc::avx512 {

namespace {

// How many of 16 cuts are at most x.
inline int32_t count_of(const float* cut, float x) {
    return __builtin_popcount(
        _mm512_cmp_ps_mask(_mm512_set1_ps(x), _mm512_loadu_ps(cut), _CMP_GE_OQ));
}
inline int32_t count_of(const double* cut, double x) {
    const __m512d value = _mm512_set1_pd(x);
    return __builtin_popcount(
        _mm512_kunpackb(_mm512_cmp_pd_mask(value, _mm512_loadu_pd(cut + 8), _CMP_GE_OQ),
                        _mm512_cmp_pd_mask(value, _mm512_loadu_pd(cut), _CMP_GE_OQ)));
}

inline void clear_line(uint8_t* to) {
    _mm512_store_si512(to, _mm512_setzero_si512());
}
inline void copy_line(const uint8_t* from, uint8_t* to) {
    _mm512_storeu_si512(to, _mm512_loadu_si512(from));
}

#include "kernels/coded_rows.inc"

// Of a row's codes.
inline int32_t registers_of(const CodedTrees& trees) {
    return trees.n_codes <= 64 ? 1 : trees.n_codes <= 128 ? 2 : 4;
}

// A row's codes, by column.
template <int Registers>  // 1, 2 or 4
struct Line {
    __m512i part[Registers];
    explicit Line(const uint8_t* line) {
        for (int i = 0; i < Registers; ++i) part[i] = _mm512_load_si512(line + 64 * i);
    }
    __m512i at(__m512i column) const {
        if constexpr (Registers == 1) {
            return _mm512_permutexvar_epi8(column, part[0]);
        } else {
            const __m512i low = _mm512_permutex2var_epi8(part[0], column, part[1]);
            if constexpr (Registers == 2)
                return low;
            else
                return _mm512_mask_blend_epi8(_mm512_movepi8_mask(column), low,
                                              _mm512_permutex2var_epi8(part[2], column, part[3]));
        }
    }
};

// (64,) 0, 1...
struct alignas(64) Places {
    uint8_t at[64];
    constexpr Places() : at{} {
        for (int i = 0; i < 64; ++i) at[i] = static_cast<uint8_t>(i);
    }
};
constexpr Places kPlaces;

// Of a tree's splits.
template <int32_t Splits>
inline __m512i splits_of(const uint8_t* of) {
    if constexpr (Splits == 64)
        return _mm512_load_si512(of);
    else
        return _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(of)));
}

// Every split's next is the child that the row goes to, then the child's, and so on until all of
// them are leaves on the row's path. Trees do not wait for each other. In a register of 64 numbers
// there is room for the leaves of a small tree, too: they lead to themselves.
template <int32_t Splits, int Registers, bool Sets, int Doublings>
void leaves_as(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
               int32_t* leaf) {
    const Line<Registers> codes(line);
    const __m512i leaves = _mm512_load_si512(kPlaces.at);
    for (int32_t i = 0; i < n; ++i) {
        const int32_t place = trees.place[tree[i]];
        const CodedTree<Splits>* at;
        if constexpr (Splits == 32)
            at = &trees.small[place];
        else
            at = &trees.trees[place];
        const __m512i code = codes.at(splits_of<Splits>(at->column));
        const __m512i other = splits_of<Splits>(at->code);
        __mmask64 yes;
        if constexpr (Sets) {
            const __mmask64 in_set = trees.in_set[place];
            yes = _mm512_mask_cmpge_epu8_mask(~in_set, code, other) |
                  _mm512_mask_test_epi8_mask(in_set, code, other);
        } else {
            yes = _mm512_cmpge_epu8_mask(code, other);
        }
        __m512i next =
            _mm512_mask_blend_epi8(yes, splits_of<Splits>(at->left), splits_of<Splits>(at->right));
        if constexpr (Splits == 32) next = _mm512_mask_mov_epi8(leaves, 0xFFFFFFFF, next);
        for (int d = 0; d < Doublings; ++d)
            if constexpr (Splits == 32)
                next = _mm512_permutexvar_epi8(next, next);
            else
                next = _mm512_mask_permutexvar_epi8(next, _knot_mask64(_mm512_movepi8_mask(next)),
                                                    next, next);
        leaf[i] = trees.first_leaf[tree[i]] +
                  (_mm_cvtsi128_si32(_mm512_castsi512_si128(next)) & (leaf_bit<Splits> - 1));
    }
}

template <int32_t Splits, int Registers, bool Sets>
void leaves_in(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
               int32_t* leaf) {
    constexpr decltype(&leaves_as<Splits, Registers, Sets, 0>) kByDoublings[] = {
        leaves_as<Splits, Registers, Sets, 0>, leaves_as<Splits, Registers, Sets, 1>,
        leaves_as<Splits, Registers, Sets, 2>, leaves_as<Splits, Registers, Sets, 3>,
        leaves_as<Splits, Registers, Sets, 4>, leaves_as<Splits, Registers, Sets, 5>,
        leaves_as<Splits, Registers, Sets, 6>};
    kByDoublings[trees.doublings](trees, line, tree, n, leaf);
}

template <int32_t Splits, int Registers>
void leaves_of(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
               int32_t* leaf) {
    if (trees.in_set.empty())
        leaves_in<Splits, Registers, false>(trees, line, tree, n, leaf);
    else
        leaves_in<Splits, Registers, true>(trees, line, tree, n, leaf);
}

template <int32_t Splits>
void leaves_of(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
               int32_t* leaf) {
    switch (registers_of(trees)) {
        case 1:
            return leaves_of<Splits, 1>(trees, line, tree, n, leaf);
        case 2:
            return leaves_of<Splits, 2>(trees, line, tree, n, leaf);
        default:
            return leaves_of<Splits, 4>(trees, line, tree, n, leaf);
    }
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
const CodedKernels coded_table{
    {.small_tree = 4, .any_tree = 5.5, .wide = 1, .column = 1.2, .long_column = 0, .categories = 4},
    encode<float, float>,
    encode<double, float>,
    encode<double, double>,
    leaves};

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
