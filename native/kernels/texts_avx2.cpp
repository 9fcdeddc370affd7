// Texts of up to 63 bytes, each compared at once, for AVX2. A text is read together with what
// follows it in its buffer; where that ends too soon, a copy is read.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "core/short_texts.hpp"
#include "kernels/targets.hpp"

#if QWYC_X86
#include <immintrin.h>

QWYC_TARGET_BEGIN("avx2,bmi,bmi2,popcnt")

namespace qwyc::avx2 {

namespace {

template <class Number>
inline Number number_at(const uint8_t* at) {  // which need not be aligned
    Number number;
    std::memcpy(&number, at, sizeof number);
    return number;
}

// A text, and where the memory that it is in ends, or before.
struct Text {
    const uint8_t* begin;
    uint64_t size;
    const uint8_t* end;
};

// The texts of cells; `last` is one of them, mostly the last.
template <class Offset>
class OffsetTexts {
  public:
    OffsetTexts(const TextCells& cells, int64_t last)
        : data_(cells.data), bytes_(cells.bytes), end_(bytes_ + offset(cells.first + last + 1)) {}

    Text operator[](int64_t i) const {
        const Offset begin = offset(i), end = offset(i + 1);
        return {bytes_ + begin, static_cast<std::make_unsigned_t<Offset>>(end - begin), end_};
    }

  private:
    Offset offset(int64_t i) const {
        return number_at<Offset>(data_ + i * int64_t{sizeof(Offset)});
    }

    const uint8_t *const data_, *const bytes_, *const end_;
};

// As ViewAt of core/table.cpp has them.
class ViewTexts {
  public:
    ViewTexts(const TextCells& cells, int64_t last)
        : data_(cells.data),
          blocks_(cells.blocks),
          block_bytes_(cells.block_bytes),
          end_(data_ + 16 * (cells.first + last + 1)) {}

    Text operator[](int64_t i) const {
        const uint8_t* const at = data_ + 16 * i;
        const auto size = number_at<int32_t>(at);
        const bool is_far = size > 12;
        const int32_t mask = -int32_t{is_far};  // no branch: both kinds may be in a column
        const int32_t number = number_at<int32_t>(at + 8) & mask;  // there is always a block 0
        const uint8_t* const block = blocks_[number];
        const uint8_t* const far = block + (number_at<int32_t>(at + 12) & mask);
        const uint8_t* const far_end = block + (block_bytes_ ? block_bytes_[number] : 0);
        return {is_far ? far : at + 4, static_cast<uint64_t>(size), is_far ? far_end : end_};
    }

  private:
    const uint8_t* const data_;
    const uint8_t* const* const blocks_;
    const int64_t* const block_bytes_;
    const uint8_t* const end_;
};

// From byte 63 - n on, n bytes that are set and then none.
alignas(64) constexpr std::array<uint8_t, 128> kWithin = [] {
    std::array<uint8_t, 128> bytes{};
    for (int i = 0; i < 63; ++i) bytes[i] = 255;
    return bytes;
}();

inline __m256i load(const uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Looks texts up in registers of 32 bytes: one, if no known text is longer than 31, or two.
template <int Parts, bool by_size>
class Finder {
  public:
    explicit Finder(const ShortTexts& known) {
        for (int half = 0; half < 2 * Parts; ++half) {  // picked bytes that are in this half
            alignas(16) uint8_t from[16];
            for (int i = 0; i < 16; ++i) {
                const uint8_t at = known.picked.bytes[i];
                from[i] = i < 8 && at / 16 == half ? at % 16 : 0x80;
            }
            pick_[half] = _mm_load_si128(reinterpret_cast<const __m128i*>(from));
        }
        numbers_ = known.number.data(), texts_ = known.text.data(), sizes_ = known.size.data();
        factor_ = known.factor, shift_ = known.shift, other_ = known.other;
    }

    // The number of a text, and that of others if it is not known.
    [[gnu::always_inline]] uint32_t operator()(const Text& text) const {
        const uint64_t n = std::min(text.size, kBytes - 1);
        const uint8_t* from = text.begin;
        alignas(32) uint8_t copy[kBytes];
        if (text.end - text.begin < static_cast<int64_t>(kBytes)) [[unlikely]] {
            std::memset(copy, 0, kBytes);
            std::memcpy(copy, text.begin, n);
            from = copy;
        }
        const uint8_t* const within = kWithin.data() + 63 - n;
        __m256i part[Parts];
        for (int i = 0; i < Parts; ++i)
            part[i] = _mm256_and_si256(load(from + 32 * i), load(within + 32 * i));
        uint64_t place;
        if constexpr (by_size)
            place = std::min<uint64_t>(text.size, ShortTexts::kMost + 1);
        else
            place = ((picked(part) + text.size) * factor_) >> shift_;
        const uint32_t number = numbers_[place];
        __m256i differ = _mm256_setzero_si256();
        for (int i = 0; i < Parts; ++i)
            differ = _mm256_or_si256(
                differ, _mm256_xor_si256(part[i], load(texts_[number].bytes + 32 * i)));
        if (!_mm256_testz_si256(differ, differ) || (!by_size && text.size != sizes_[number]))
            [[unlikely]]
            return other_;
        return number;
    }

  private:
    static constexpr uint64_t kBytes = 32 * Parts;

    uint64_t picked(const __m256i* part) const {
        __m128i bytes = _mm_setzero_si128();
        for (int i = 0; i < Parts; ++i) {
            const __m128i low = _mm256_castsi256_si128(part[i]),
                          high = _mm256_extracti128_si256(part[i], 1);
            bytes = _mm_or_si128(bytes, _mm_or_si128(_mm_shuffle_epi8(low, pick_[2 * i]),
                                                     _mm_shuffle_epi8(high, pick_[2 * i + 1])));
        }
        return static_cast<uint64_t>(_mm_cvtsi128_si64(bytes));
    }

    __m128i pick_[2 * Parts];
    const uint8_t* numbers_;
    const ShortTexts::Padded* texts_;
    const uint32_t* sizes_;
    uint64_t factor_;
    int shift_;
    uint32_t other_;
};

inline bool is_null(const TextCells& cells, int64_t i) {
    const int64_t at = cells.first + i;
    return (cells.valid && !(cells.valid[at / 8] >> at % 8 & 1)) || (cells.null && cells.null[i]);
}

// The numbers of some cells, from the k-th on.
template <class Texts, int Parts, bool by_size>
void number_cells(const ShortTexts& known, const TextCells& cells, const Texts& texts, int64_t k,
                  int64_t n, uint8_t* number) {
    const Finder<Parts, by_size> number_of(known);
    if (!cells.row && !cells.valid && !cells.null) {
        const int64_t first = cells.first + cells.before + k;
        for (int64_t j = 0; j < n; ++j)
            number[j] = static_cast<uint8_t>(number_of(texts[first + j]));
        return;
    }
    for (int64_t j = 0; j < n; ++j) {
        const int64_t i = cells.before + (cells.row ? cells.row[k + j] : k + j);
        number[j] = is_null(cells, i) ? static_cast<uint8_t>(known.other + 1)
                                      : static_cast<uint8_t>(number_of(texts[cells.first + i]));
    }
}

template <class Texts>
auto* numbering(const ShortTexts& known) {
    if (known.by_size)
        return known.is_narrow ? &number_cells<Texts, 1, true> : &number_cells<Texts, 2, true>;
    return known.is_narrow ? &number_cells<Texts, 1, false> : &number_cells<Texts, 2, false>;
}

template <class Texts, class Out>
bool read(const ShortTexts& known, const TextCells& cells, Out* out) {
    if (cells.n == 0) return true;
    const auto place = [&](int64_t k) { return cells.row ? cells.row[k] : k; };
    const Texts texts(cells, cells.before + place(cells.n - 1));
    auto* const number_some = numbering<Texts>(known);
    const Out* const codes = known.codes(Out());
    constexpr int64_t kAtOnce = 512;
    uint8_t number[kAtOnce];
    bool taken = true;
    for (int64_t k = 0; k < cells.n; k += kAtOnce) {
        const int64_t n = std::min(kAtOnce, cells.n - k);
        number_some(known, cells, texts, k, n, number);
        for (int64_t j = 0; j < n; ++j) out[place(k + j)] = codes[number[j]];
        const auto has = [&](int value) { return std::memchr(number, value, n) != nullptr; };
        if (known.refuses_other) taken = taken && !has(known.other);
        if (known.refuses_null) taken = taken && !has(known.other + 1);
    }
    return taken;
}

template <class Out>
constexpr TextKernels::Reads<Out> kReads{read<OffsetTexts<int32_t>, Out>,
                                         read<OffsetTexts<int64_t>, Out>, read<ViewTexts, Out>,
                                         nullptr, nullptr};

}  // namespace

extern const TextKernels texts_table;  // for choose.cpp
const TextKernels texts_table{kReads<float>, kReads<double>};

}  // namespace qwyc::avx2

QWYC_TARGET_END
#endif
