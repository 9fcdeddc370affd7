// One row through many trees at once, for AVX-512.
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

void walk(const RowTrees& trees, const int32_t* tree, int32_t n, const float* row, int32_t* leaf) {
    int32_t levels;
    const __m512i begin = start(trees, tree, n, levels);
    __m512i at = begin;
    for (; levels > 0; --levels) {
        const __m512i word = _mm512_i32gather_epi32(at, trees.word.data(), 4);
        const __m512 cut = _mm512_i32gather_ps(at, trees.cut_single.data(), 4);
        const __m512 x = _mm512_i32gather_ps(feature_of(word), row, 4);
        at = step(begin, word, _mm512_cmp_ps_mask(x, cut, _CMP_GE_OQ),
                  _mm512_cmp_ps_mask(x, cut, _CMP_NLT_UQ));
    }
    finish(trees, at, n, leaf);
}

void walk(const RowTrees& trees, const int32_t* tree, int32_t n, const double* row, int32_t* leaf) {
    int32_t levels;
    const __m512i begin = start(trees, tree, n, levels);
    __m512i at = begin;
    const double* const cuts = trees.cut_double.data();
    for (; levels > 0; --levels) {
        const __m512i word = _mm512_i32gather_epi32(at, trees.word.data(), 4);
        const __m512i feature = feature_of(word);
        unsigned at_least = 0, not_less = 0;
        for (int half = 0; half < 2; ++half) {
            const __m256i entry =
                half ? _mm512_extracti64x4_epi64(at, 1) : _mm512_castsi512_si256(at);
            const __m256i which =
                half ? _mm512_extracti64x4_epi64(feature, 1) : _mm512_castsi512_si256(feature);
            const __m512d cut = _mm512_i32gather_pd(entry, cuts, 8);
            const __m512d x = _mm512_i32gather_pd(which, row, 8);
            at_least |= static_cast<unsigned>(_mm512_cmp_pd_mask(x, cut, _CMP_GE_OQ)) << 8 * half;
            not_less |= static_cast<unsigned>(_mm512_cmp_pd_mask(x, cut, _CMP_NLT_UQ)) << 8 * half;
        }
        at = step(begin, word, static_cast<__mmask16>(at_least), static_cast<__mmask16>(not_less));
    }
    finish(trees, at, n, leaf);
}

}  // namespace

extern const RowKernels row_table;
const RowKernels row_table{walk, walk};

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
