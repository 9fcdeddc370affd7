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

template <class In, class V>
void encode(const CodedTrees& trees, const In* row, uint8_t* line) {
    constexpr int32_t kGroup = CodedTrees::kGroup;
    const V* const cuts = trees.cuts<V>();
    _mm512_store_si512(line, _mm512_setzero_si512());
    for (const CodedTrees::Column& column : trees.columns) {
        V x = static_cast<V>(row[column.feature]);
        if (column.zero_is_missing && (x < 0 ? -x : x) <= V(1e-35f))
            x = std::numeric_limits<V>::quiet_NaN();
        const V* cut = cuts + column.begin;
        int32_t code;
        if (x != x) {
            code = column.asks == Asks::kAtLeast ? 0 : column.count;
        } else if (column.asks == Asks::kMissing) {
            code = 0;
        } else if (column.count <= kGroup) {
            code = count_of(cut, x);
        } else {
            const int32_t groups = count_of(cut, x);  // whose first cut is at most x
            const int32_t last = groups > 0 ? kGroup * (groups - 1) : 0;
            code = last + count_of(cut + kGroup + last, x);
        }
        *line++ = static_cast<uint8_t>(code);
    }
}

// Every split's next is the child that the row goes to, then the child's, and so on until all of
// them are leaves on the row's path. Trees do not wait for each other.
template <int Doublings>
inline void leaves_as(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
                      int32_t* leaf) {
    const __m512i codes = _mm512_load_si512(line);
    for (int32_t i = 0; i < n; ++i) {
        const CodedTree& at = trees.trees[trees.place[tree[i]]];
        const __m512i code = _mm512_permutexvar_epi8(_mm512_load_si512(at.column), codes);
        const __mmask64 yes = _mm512_cmpge_epu8_mask(code, _mm512_load_si512(at.code));
        __m512i next = _mm512_mask_loadu_epi8(_mm512_load_si512(at.left), yes, at.right);
        for (int d = 0; d < Doublings; ++d)
            next = _mm512_mask_permutexvar_epi8(next, _knot_mask64(_mm512_movepi8_mask(next)), next,
                                                next);
        leaf[i] = trees.first_leaf[tree[i]] +
                  (_mm_cvtsi128_si32(_mm512_castsi512_si128(next)) & (CodedTree::kLeaf - 1));
    }
}

void leaves(const CodedTrees& trees, const uint8_t* line, const int32_t* tree, int32_t n,
            int32_t* leaf) {
    switch (trees.doublings) {
        case 0:
            return leaves_as<0>(trees, line, tree, n, leaf);
        case 1:
            return leaves_as<1>(trees, line, tree, n, leaf);
        case 2:
            return leaves_as<2>(trees, line, tree, n, leaf);
        case 3:
            return leaves_as<3>(trees, line, tree, n, leaf);
        case 4:
            return leaves_as<4>(trees, line, tree, n, leaf);
        case 5:
            return leaves_as<5>(trees, line, tree, n, leaf);
        default:
            return leaves_as<6>(trees, line, tree, n, leaf);
    }
}

}  // namespace

extern const CodedKernels coded_table;
const CodedKernels coded_table{encode<float, float>, encode<double, float>, encode<double, double>,
                               leaves};

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
