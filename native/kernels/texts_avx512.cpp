// Texts of up to 63 bytes, each compared at once, for AVX-512.
#include "core/short_texts.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")

namespace qwyc::avx512 {

namespace {

template <class Offset>
struct OffsetAt {
    static TextSpan of(const TextCells& cells, int64_t i) {
        Offset offset[2];  // which need not be aligned
        std::memcpy(offset, cells.data + (cells.first + i) * sizeof(Offset), sizeof offset);
        return {reinterpret_cast<const char*>(cells.bytes) + offset[0],
                static_cast<uint64_t>(offset[1] - offset[0])};
    }
};

// As ViewAt of core/table.cpp has them.
struct ViewAt {
    static TextSpan of(const TextCells& cells, int64_t i) {
        const uint8_t* const view = cells.data + 16 * (cells.first + i);
        int32_t part[4];
        std::memcpy(part, view, sizeof part);
        const bool is_here = part[0] <= 12;
        const uint8_t* const block = cells.blocks[is_here ? 0 : part[2]];
        const uint8_t* const begin = is_here ? view + 4 : block + part[3];
        return {reinterpret_cast<const char*>(begin), static_cast<uint64_t>(part[0])};
    }
};

struct SpanAt {
    static TextSpan of(const TextCells& cells, int64_t i) {
        return reinterpret_cast<const TextSpan*>(cells.data)[i];
    }
};

inline bool is_null(const TextCells& cells, int64_t i) {
    const int64_t at = cells.first + i;
    return (cells.valid && !(cells.valid[at / 8] >> at % 8 & 1)) || (cells.null && cells.null[i]);
}

// by_size, picked, nulls: whether keys are sizes, some rows are read, and some are null.
template <class At, bool by_size, bool picked, bool nulls, class Out>
bool read(const ShortTexts& known, const TextCells& cells, Out* out) {
    const uint8_t* const numbers = known.number.data();
    const ShortTexts::Padded* const texts = known.text.data();
    const uint32_t* const sizes = known.size.data();
    const Out* const codes = known.codes(Out());
    const __m512i picked_bytes = _mm512_load_si512(&known.picked);
    const uint64_t factor = known.factor;
    const int shift = known.shift;
    const uint32_t other = known.other;
    bool others = false, is_any_null = false;
    for (int64_t k = 0; k < cells.n; ++k) {
        const int64_t i = cells.before + (picked ? cells.row[k] : k);
        Out& to = out[picked ? cells.row[k] : k];
        if (nulls && is_null(cells, i)) {
            is_any_null = true, to = codes[other + 1];
            continue;
        }
        const auto [begin, size] = At::of(cells, i);
        // All of a known text, and never more than there is: sizes past 255 leave out some bytes.
        const __mmask64 within = _bzhi_u64(~uint64_t{0} >> 1, static_cast<uint32_t>(size));
        const __m512i text = _mm512_maskz_loadu_epi8(within, begin);
        uint64_t place;
        if constexpr (by_size) {
            place = std::min<uint64_t>(size, ShortTexts::kMost + 1);
        } else {
            const __m512i bytes = _mm512_permutexvar_epi8(picked_bytes, text);
            const auto word =
                static_cast<uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(bytes)));
            place = ((word + size) * factor) >> shift;
        }
        uint32_t number = numbers[place];
        const __mmask64 differ = _mm512_cmpneq_epi8_mask(text, _mm512_load_si512(&texts[number]));
        if (differ != 0 || (!by_size && size != sizes[number])) [[unlikely]]
            number = other, others = true;
        to = codes[number];
    }
    return !(others && known.refuses_other) && !(is_any_null && known.refuses_null);
}

template <class At, bool by_size, bool picked, class Out>
bool read_some(const ShortTexts& known, const TextCells& cells, Out* out) {
    return cells.valid || cells.null ? read<At, by_size, picked, true>(known, cells, out)
                                     : read<At, by_size, picked, false>(known, cells, out);
}

template <class At, class Out>
bool read_cells(const ShortTexts& known, const TextCells& cells, Out* out) {
    if (known.by_size)
        return cells.row ? read_some<At, true, true>(known, cells, out)
                         : read_some<At, true, false>(known, cells, out);
    return cells.row ? read_some<At, false, true>(known, cells, out)
                     : read_some<At, false, false>(known, cells, out);
}

template <class Out>
constexpr TextKernels::Reads<Out> kReads{read_cells<OffsetAt<int32_t>, Out>,
                                         read_cells<OffsetAt<int64_t>, Out>,
                                         read_cells<ViewAt, Out>, read_cells<SpanAt, Out>};

}  // namespace

extern const TextKernels texts_table;
const TextKernels texts_table{kReads<float>, kReads<double>};

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
