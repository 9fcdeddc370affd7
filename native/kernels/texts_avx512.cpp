// Texts of up to 63 bytes, each compared at once, for AVX-512. Where texts are few, and all cells
// are read, 16 cells are read together: nothing is decided before it is known that all of them are
// known.
#include "core/short_texts.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")

namespace qwyc::avx512 {

namespace {

inline __m512i joined(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// 16 numbers of 64 bits as 32 bits; large ones become the largest.
inline __m512i narrowed(__m512i low, __m512i high) {
    return joined(_mm512_cvtusepi64_epi32(low), _mm512_cvtusepi64_epi32(high));
}

template <class Number>
inline Number number_at(const uint8_t* at) {  // which need not be aligned
    Number number;
    std::memcpy(&number, at, sizeof number);
    return number;
}

template <class Offset>
struct OffsetAt {
    static constexpr int64_t kBytes = sizeof(Offset);  // of a cell, in `data`
    static constexpr bool kFetches = true;             // texts that follow are fetched ahead

    // The sizes of 16 texts from a cell on.
    static __m512i sizes(const uint8_t* at) {
        if constexpr (kBytes == 4)
            return _mm512_sub_epi32(_mm512_loadu_si512(at + 4), _mm512_loadu_si512(at));
        return narrowed(_mm512_sub_epi64(_mm512_loadu_si512(at + 8), _mm512_loadu_si512(at)),
                        _mm512_sub_epi64(_mm512_loadu_si512(at + 72), _mm512_loadu_si512(at + 64)));
    }
    static TextSpan of(const TextCells& cells, const uint8_t* at) {
        const auto begin = number_at<Offset>(at), end = number_at<Offset>(at + kBytes);
        return {reinterpret_cast<const char*>(cells.bytes) + begin,
                static_cast<std::make_unsigned_t<Offset>>(end - begin)};
    }
};

// As ViewAt of core/table.cpp has them.
struct ViewAt {
    static constexpr int64_t kBytes = 16;
    static constexpr bool kFetches = true;

    static TextSpan of(const TextCells& cells, const uint8_t* at) {
        const auto size = number_at<int32_t>(at);
        const bool is_here = size <= 12;
        const uint8_t* const block = cells.blocks[is_here ? 0 : number_at<int32_t>(at + 8)];
        const uint8_t* const begin = is_here ? at + 4 : block + number_at<int32_t>(at + 12);
        return {reinterpret_cast<const char*>(begin), static_cast<uint64_t>(size)};
    }
};

struct SpanAt {
    static constexpr int64_t kBytes = sizeof(TextSpan);
    static constexpr bool kFetches = true;

    static __m512i sizes(const uint8_t* at) {
        const __m512i second = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        const auto eight = [&](const uint8_t* from) {
            return _mm512_permutex2var_epi64(_mm512_loadu_si512(from), second,
                                             _mm512_loadu_si512(from + 64));
        };
        return narrowed(eight(at), eight(at + 128));
    }
    static TextSpan of(const TextCells&, const uint8_t* at) { return number_at<TextSpan>(at); }
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
        const auto [begin, size] = At::of(cells, cells.data + (cells.first + i) * At::kBytes);
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

inline bool has_nulls(const TextCells& cells, int64_t i) {  // in the group from cell i on
    if (cells.valid) {
        const int64_t first = cells.first + i;
        const uint8_t* const at = cells.valid + first / 8;
        const uint32_t shift = first % 8, last = shift > 0 ? at[2] : 0;  // if it is needed
        const uint32_t bits = at[0] | uint32_t{at[1]} << 8 | last << 16;
        if ((bits >> shift & 0xffff) != 0xffff) return true;
    }
    if (!cells.null) return false;
    const __m128i null = _mm_loadu_si128(reinterpret_cast<const __m128i*>(cells.null + i));
    return _mm_test_epi8_mask(null, null) != 0;
}

inline void write(__m512i values, float* out) {
    _mm512_storeu_ps(out, _mm512_cvtepi32_ps(values));
}
inline void write(__m512i values, double* out) {
    _mm512_storeu_pd(out, _mm512_cvtepi32_pd(_mm512_castsi512_si256(values)));
    _mm512_storeu_pd(out + 8, _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(values, 1)));
}

template <bool narrow>
struct RegisterOf {
    using Type = __m512i;
};
template <>
struct RegisterOf<true> {
    using Type = __m256i;
};

constexpr int64_t kGroup = 16;

// The texts of 16 cells.
template <class At>
class Texts {
  public:
    Texts(const TextCells& cells, const uint8_t* data) : cells_(cells), data_(data) {}

    __m512i sizes() const { return At::sizes(data_); }
    TextSpan operator[](int j) const { return At::of(cells_, data_ + j * At::kBytes); }

  private:
    const TextCells& cells_;
    const uint8_t* const data_;
};

// Views are taken apart together.
template <>
class Texts<ViewAt> {
  public:
    Texts(const TextCells& cells, const uint8_t* data) : data_(data) {
        for (int i = 0; i < 2; ++i) find(cells, i);
    }

    __m512i sizes() const { return joined(size_[0], size_[1]); }
    TextSpan operator[](int j) const {
        const auto size = number_at<uint32_t>(data_ + j * ViewAt::kBytes);
        return {reinterpret_cast<const char*>(begin_[j]), size};
    }

  private:
    static int64_t address(const uint8_t* at) {
        return static_cast<int64_t>(reinterpret_cast<uintptr_t>(at));
    }
    void find(const TextCells& cells, int i) {  // eight of them
        const uint8_t* const at = data_ + 8 * ViewAt::kBytes * i;
        const __m512i low = _mm512_loadu_si512(at), high = _mm512_loadu_si512(at + 64);
        const auto part = [&](int k) {
            const __m512i each = _mm512_setr_epi32(k, k + 4, k + 8, k + 12, k + 16, k + 20, k + 24,
                                                   k + 28, 0, 0, 0, 0, 0, 0, 0, 0);
            return _mm512_castsi512_si256(_mm512_permutex2var_epi32(low, each, high));
        };
        size_[i] = part(0);
        const __mmask8 is_far = _mm256_cmpgt_epi32_mask(size_[i], _mm256_set1_epi32(12));
        __m512i block = _mm512_set1_epi64(address(cells.blocks[0]));  // most often the only one
        if (const __m256i number = part(2); _mm256_mask_test_epi32_mask(is_far, number, number))
            block = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), is_far, number,
                                                cells.blocks, sizeof(void*));
        const __m512i here = _mm512_add_epi64(_mm512_set1_epi64(address(at)),
                                              _mm512_setr_epi64(4, 20, 36, 52, 68, 84, 100, 116));
        const __m512i far = _mm512_add_epi64(block, _mm512_cvtepi32_epi64(part(3)));
        _mm512_store_si512(begin_ + 8 * i, _mm512_mask_mov_epi64(here, is_far, far));
    }

    const uint8_t* const data_;
    __m256i size_[2];
    alignas(64) uint64_t begin_[kGroup];
};

// Cells of a column by 16. narrow: known texts have up to 31 bytes.
template <class At, bool by_size, bool narrow, class Out>
class Groups {
  public:
    explicit Groups(const ShortTexts& known) : known_(known) {}

    // Writes the codes of 16 cells from cell i on. Returns false if one is not known; codes are
    // wrong then.
    bool read(const TextCells& cells, int64_t i, Out* out) const {
        const uint8_t* const data = cells.data + (cells.first + i) * At::kBytes;
        return read(Texts<At>(cells, data), data, out);
    }
    bool read(const Texts<At>& texts, const uint8_t* data, Out* out) const {
        const __m512i size = texts.sizes();
        __m512i numbers;
        uint64_t low = 0, high = 0;  // numbers of eight cells each
        if constexpr (by_size) {
            const __m512i places = _mm512_min_epu32(size, _mm512_set1_epi32(ShortTexts::kMost));
            numbers = in_table(places, number_of_size_);
            const __m128i bytes = _mm512_cvtepi32_epi8(numbers);
            low = static_cast<uint64_t>(_mm_cvtsi128_si64(bytes));
            high = static_cast<uint64_t>(_mm_extract_epi64(bytes, 1));
        }
        for (int64_t line = 0; line < kGroup * At::kBytes; line += 64) fetch_ahead(data + line);
        Register differ{};
#pragma GCC unroll 16
        for (int j = 0; j < kGroup; ++j) {
            const auto [begin, n] = texts[j];
            if (At::kFetches && j % 4 == 0) fetch_ahead(begin);
            const Register text = load(begin, n);
            uint64_t found;
            if constexpr (by_size) {
                found = (j < 8 ? low : high) >> j % 8 * 8 & 0xff;
            } else {
                found = numbers_[((picked(text) + n) * factor_) >> shift_];
                (j < 8 ? low : high) |= found << j % 8 * 8;
            }
            differ = differing(differ, text, texts_[found].bytes);
        }
        bool same = is_zero(differ);
        if constexpr (!by_size) {
            const __m128i bytes =
                _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
            numbers = _mm512_cvtepu8_epi32(bytes);
            same = same && _mm512_cmpneq_epi32_mask(in_table(numbers, size_of_), size) == 0;
        }
        if (has_byte_codes_)
            write(in_table(numbers, code_of_), out);
        else
            write_codes(numbers, out);
        return same;
    }

  private:
    using Register = typename RegisterOf<narrow>::Type;
    static constexpr int64_t kAhead = 2048;  // bytes

    void write_codes(__m512i numbers, float* out) const {
        _mm512_storeu_ps(out, _mm512_i32gather_ps(numbers, codes_, sizeof(float)));
    }
    void write_codes(__m512i numbers, double* out) const {
        const __m256i low = _mm512_castsi512_si256(numbers),
                      high = _mm512_extracti64x4_epi64(numbers, 1);
        _mm512_storeu_pd(out, _mm512_i32gather_pd(low, codes_, sizeof(double)));
        _mm512_storeu_pd(out + 8, _mm512_i32gather_pd(high, codes_, sizeof(double)));
    }
    static __m512i in_table(__m512i at, __m512i table) {  // bytes, by numbers below 64
        return _mm512_and_si512(_mm512_permutexvar_epi8(at, table), _mm512_set1_epi32(255));
    }
    template <class Pointer>
    static void fetch_ahead(Pointer at) {  // which may be past the end
        _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(at) + kAhead),
                     _MM_HINT_T0);
    }
    // A text that can be known, and zeros. Of others, the last byte is left out.
    static Register load(const char* text, uint64_t size) {
        const auto n = static_cast<uint32_t>(size);
        if constexpr (narrow)
            return _mm256_maskz_loadu_epi8(_bzhi_u32(~uint32_t{0} >> 1, n), text);
        else
            return _mm512_maskz_loadu_epi8(_bzhi_u64(~uint64_t{0} >> 1, n), text);
    }
    uint64_t picked(Register text) const {
        __m128i bytes;
        if constexpr (narrow)
            bytes = _mm256_castsi256_si128(_mm256_permutexvar_epi8(picked_, text));
        else
            bytes = _mm512_castsi512_si128(_mm512_permutexvar_epi8(picked_, text));
        return static_cast<uint64_t>(_mm_cvtsi128_si64(bytes));
    }
    // Bits of `before`, and of those that differ.
    static Register differing(Register before, Register text, const uint8_t* known) {
        constexpr int kOrXor = 0xf6;
        const Register other = load_known(known);
        if constexpr (narrow)
            return _mm256_ternarylogic_epi64(before, text, other, kOrXor);
        else
            return _mm512_ternarylogic_epi64(before, text, other, kOrXor);
    }
    static Register load_known(const uint8_t* from) {
        if constexpr (narrow)
            return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
        else
            return _mm512_load_si512(from);
    }
    static bool is_zero(Register bits) {
        if constexpr (narrow)
            return _mm256_testz_si256(bits, bits);
        else
            return _mm512_test_epi64_mask(bits, bits) == 0;
    }

    const ShortTexts& known_;
    const uint8_t* const numbers_ = known_.number.data();
    const ShortTexts::Padded* const texts_ = known_.text.data();
    const Out* const codes_ = known_.codes(Out());
    const Register picked_ = load_known(known_.picked.bytes);
    const __m512i number_of_size_ = _mm512_load_si512(&known_.number_of_size),
                  size_of_ = _mm512_load_si512(&known_.size_of),
                  code_of_ = _mm512_load_si512(&known_.code_of);
    const uint64_t factor_ = known_.factor;
    const int shift_ = known_.shift;
    const bool has_byte_codes_ = known_.has_byte_codes;
};

// Cells [begin, begin + n), one by one.
template <class At, bool by_size, class Out>
[[gnu::noinline]] bool read_singly(const ShortTexts& known, const TextCells& cells, int64_t begin,
                                   int64_t n, Out* out) {
    TextCells part = cells;
    part.before += begin, part.n = n;
    return read_some<At, by_size, false>(known, part, out + begin);
}

// A group in which a cell is null or unknown is read cell by cell, and so is the rest where there
// are many such groups.
template <class At, bool by_size, bool narrow, class Out>
bool read_groups(const ShortTexts& known, const TextCells& cells, Out* out) {
    constexpr int64_t kMost = 8, kShare = 4;  // at most 8, and one in four
    const Groups<At, by_size, narrow, Out> groups(known);
    const int64_t n = cells.n, before = cells.before;
    const bool may_be_null = cells.valid || cells.null;
    bool taken = true;
    int64_t others = 0, k = 0;
    for (; k + kGroup <= n; k += kGroup) {
        const bool any_null = may_be_null && has_nulls(cells, before + k);
        if (!any_null && groups.read(cells, before + k, out + k)) [[likely]]
            continue;
        if (++others > kMost + k / (kShare * kGroup)) break;
        taken &= read_singly<At, by_size>(known, cells, k, kGroup, out);
    }
    if (k < n) taken &= read_singly<At, by_size>(known, cells, k, n - k, out);
    return taken;
}

template <class At, bool by_size, class Out>
bool read_all(const ShortTexts& known, const TextCells& cells, Out* out) {
    if (!known.in_groups || cells.n < kGroup)
        return read_some<At, by_size, false>(known, cells, out);
    return known.is_narrow ? read_groups<At, by_size, true>(known, cells, out)
                           : read_groups<At, by_size, false>(known, cells, out);
}

#include "kernels/texts_avx512_objects.inc"

template <class At, class Out>
bool read_cells(const ShortTexts& known, const TextCells& cells, Out* out) {
    if (known.by_size)
        return cells.row ? read_some<At, true, true>(known, cells, out)
                         : read_all<At, true>(known, cells, out);
    return cells.row ? read_some<At, false, true>(known, cells, out)
                     : read_all<At, false>(known, cells, out);
}

template <class Out>
constexpr TextKernels::Reads<Out> kReads{
    read_cells<OffsetAt<int32_t>, Out>, read_cells<OffsetAt<int64_t>, Out>, read_cells<ViewAt, Out>,
    read_cells<SpanAt, Out>, read_objects<Out>};

}  // namespace

extern const TextKernels texts_table;
const TextKernels texts_table{kReads<float>, kReads<double>};

}  // namespace qwyc::avx512

QWYC_TARGET_END
#endif
