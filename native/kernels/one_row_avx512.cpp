// A few rows through many trees at once, for AVX-512.
#include <cstring>

#include "core/row_trees.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")

namespace qwyc::avx512 {

namespace {

// Where the first entries of n trees are, and the most levels of any. Trees from n on repeat the
// first.
inline __m512i start(const RowTrees& trees, const int32_t* tree, int32_t n, int32_t& levels) {
    const __mmask16 some = static_cast<__mmask16>((1u << n) - 1);
    const __m512i number = _mm512_mask_loadu_epi32(_mm512_set1_epi32(tree[0]), some, tree);
    levels = _mm512_reduce_max_epi32(_mm512_i32gather_epi32(number, trees.levels.data(), 4));
    return _mm512_i32gather_epi32(number, trees.begin.data(), 4);
}

inline void finish(const RowTrees& trees, __m512i at, int32_t n, int32_t* leaf) {
    const __mmask16 some = static_cast<__mmask16>((1u << n) - 1);
    _mm512_mask_storeu_epi32(leaf, some, _mm512_i32gather_epi32(at, trees.leaf.data(), 4));
}

inline __m512i feature_of(__m512i word) {
    return _mm512_and_si512(word, _mm512_set1_epi32((1 << RowTrees::kRowFeatureBits) - 1));
}

// The next entries: left children, and one more where a row goes right.
inline __m512i step(__m512i begin, __m512i word, __mmask16 at_least, __mmask16 not_less) {
    const __mmask16 missing_right =
        _mm512_test_epi32_mask(word, _mm512_set1_epi32(RowTrees::kMissingRight));
    const auto right = static_cast<__mmask16>(at_least | (not_less & missing_right));
    const __m512i left = _mm512_add_epi32(begin, _mm512_srli_epi32(word, RowTrees::kChildShift));
    return _mm512_mask_add_epi32(left, right, left, _mm512_set1_epi32(1));
}

// The values of a row, by feature: in memory, or in registers.
struct Stored {
    const float* row;
    Stored(const float* values, int64_t) : row(values) {}
    bool any_missing() const { return true; }  // or not
    __m512 at(__m512i feature) const { return _mm512_i32gather_ps(feature, row, 4); }
};
template <int Registers>  // 2 or 4
struct Held {
    static constexpr int64_t kMost = 16 * Registers;
    __m512 part[Registers];
    Held(const float* values, int64_t width) {
        const uint64_t some = width < 64 ? (uint64_t{1} << width) - 1 : ~uint64_t{0};
        for (int i = 0; i < Registers; ++i)
            part[i] =
                _mm512_maskz_loadu_ps(static_cast<__mmask16>(some >> 16 * i), values + 16 * i);
    }
    bool any_missing() const {
        unsigned any = 0;
        for (int i = 0; i < Registers; ++i)
            any |= _mm512_cmp_ps_mask(part[i], part[i], _CMP_UNORD_Q);
        return any != 0;
    }
    __m512 at(__m512i feature) const {
        const __m512 low = _mm512_permutex2var_ps(part[0], feature, part[1]);
        if constexpr (Registers == 2)
            return low;
        else
            return _mm512_mask_blend_ps(_mm512_test_epi32_mask(feature, _mm512_set1_epi32(32)), low,
                                        _mm512_permutex2var_ps(part[2], feature, part[3]));
    }
};
struct StoredDoubles {
    const double* row;
    StoredDoubles(const double* values, int64_t) : row(values) {}
};

// One level down: the comparisons of the entries at `at` with a row.
template <class Row>
inline __m512i down(const RowTrees& trees, __m512i begin, __m512i at, const Row& row) {
    const auto* const entries = trees.single.data();
    const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), entries, 8);
    const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), entries, 8);
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512 cut = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
    const __m512i word =
        _mm512_permutex2var_epi32(low, _mm512_add_epi32(even, _mm512_set1_epi32(1)), high);
    const __m512 x = row.at(feature_of(word));
    return step(begin, word, _mm512_cmp_ps_mask(x, cut, _CMP_GE_OQ),
                _mm512_cmp_ps_mask(x, cut, _CMP_NLT_UQ));
}

inline __m512i down(const RowTrees& trees, __m512i begin, __m512i at, const StoredDoubles& row) {
    const auto* const entries = trees.both.data();
    static_assert(sizeof *entries == 16);
    const __m512i twice = _mm512_slli_epi32(at, 1);
    const __m512i word = _mm512_i32gather_epi32(twice, &entries->word, 8);
    const __m512i feature = feature_of(word);
    unsigned at_least = 0, not_less = 0;
    for (int half = 0; half < 2; ++half) {
        const __m256i entry =
            half ? _mm512_extracti64x4_epi64(twice, 1) : _mm512_castsi512_si256(twice);
        const __m256i which =
            half ? _mm512_extracti64x4_epi64(feature, 1) : _mm512_castsi512_si256(feature);
        const __m512d cut = _mm512_i32gather_pd(entry, &entries->cut, 8);
        const __m512d x = _mm512_i32gather_pd(which, row.row, 8);
        at_least |= static_cast<unsigned>(_mm512_cmp_pd_mask(x, cut, _CMP_GE_OQ)) << 8 * half;
        not_less |= static_cast<unsigned>(_mm512_cmp_pd_mask(x, cut, _CMP_NLT_UQ)) << 8 * half;
    }
    return step(begin, word, static_cast<__mmask16>(at_least), static_cast<__mmask16>(not_less));
}

// A step down waits for its loads, so rows that walk together take little longer than one.
template <class Row, class V>
inline void walk_two(const RowTrees& trees, const int32_t* tree, int32_t n, const V* const* row,
                     int32_t* leaf) {
    int32_t levels;
    const __m512i begin = start(trees, tree, n, levels);
    const Row first(row[0], trees.n_features), second(row[1], trees.n_features);
    __m512i at0 = begin, at1 = begin;
    for (; levels > 0; --levels) {
        at0 = down(trees, begin, at0, first);
        at1 = down(trees, begin, at1, second);
    }
    finish(trees, at0, n, leaf);
    finish(trees, at1, n, leaf + kWalksAtOnce);
}

template <class Row, class V>
inline void walk_one(const RowTrees& trees, const int32_t* tree, int32_t n, const V* row,
                     int32_t* leaf) {
    int32_t levels;
    const __m512i begin = start(trees, tree, n, levels);
    const Row values(row, trees.n_features);
    __m512i at = begin;
    for (; levels > 0; --levels) at = down(trees, begin, at, values);
    finish(trees, at, n, leaf);
}

template <class Row, class V>
inline void walk_as(const RowTrees& trees, const int32_t* tree, int32_t n, const V* const* row,
                    int32_t n_rows, int32_t* leaf) {
    int32_t i = 0;
    for (; i + 2 <= n_rows; i += 2) walk_two<Row>(trees, tree, n, row + i, leaf + i * kWalksAtOnce);
    if (i < n_rows) walk_one<Row>(trees, tree, n, row[i], leaf + i * kWalksAtOnce);
}

#include "kernels/one_row_flat.inc"

void walk(const RowTrees& trees, const int32_t* tree, int32_t n, const float* const* row,
          int32_t n_rows, int32_t* leaf) {
    if (!trees.oblivious.empty() || !trees.flat.empty()) {
        walk_side_by_side(trees, tree, n, row, n_rows, leaf);
        return;
    }
    if (trees.n_features <= Held<2>::kMost)
        walk_as<Held<2>>(trees, tree, n, row, n_rows, leaf);
    else if (trees.n_features <= Held<4>::kMost)
        walk_as<Held<4>>(trees, tree, n, row, n_rows, leaf);
    else
        walk_as<Stored>(trees, tree, n, row, n_rows, leaf);
}

void walk(const RowTrees& trees, const int32_t* tree, int32_t n, const double* const* row,
          int32_t n_rows, int32_t* leaf) {
    walk_as<StoredDoubles>(trees, tree, n, row, n_rows, leaf);
}

}  // namespace

extern const RowKernels row_table;
const RowKernels row_table{walk, walk, true};

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
