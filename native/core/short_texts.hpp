// The categories of a column whose texts are short, for kernels that compare a whole text at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qwyc {

// Stands for a value that is to be refused, in place of a code.
inline constexpr double kRefused = std::numeric_limits<double>::infinity();

// K texts of up to kMost bytes, each padded with zeros. A key of a text leads to the one known text
// that it can be equal to: its size, or its size and eight of its bytes. No two known texts have
// the same key, so nothing is searched, and one comparison decides.
class ShortTexts {
  public:
    static constexpr size_t kMost = 63, kPadded = 64;
    struct alignas(kPadded) Padded {
        uint8_t bytes[kPadded] = {};
    };

    // Nothing if there are other texts than these can be, or too many. Of equal texts, the last
    // counts.
    static std::unique_ptr<const ShortTexts> of(const std::vector<std::string>& texts,
                                                const std::vector<double>& codes, double unseen,
                                                double null) {
        const bool fit =
            texts.size() <= kMostTexts &&
            std::all_of(texts.begin(), texts.end(),
                        [](const std::string& text) { return text.size() <= kMost; }) &&
            std::find(codes.begin(), codes.end(), kRefused) == codes.end();
        if (!fit) return nullptr;
        std::unique_ptr<ShortTexts> made(new ShortTexts);
        made->add(texts, codes, unseen, null);
        if (!made->find_keys()) return nullptr;
        made->prepare_groups();
        return made;
    }

    // The place of a text in `number`: by its size if by_size, otherwise also by the bytes at
    // `picked`. Other texts have any place.
    size_t place_of(uint64_t picked_bytes, size_t size) const {
        return by_size ? std::min(size, kMost + 1) : ((picked_bytes + size) * factor) >> shift;
    }

    bool by_size = true;
    Padded picked;  // the positions of eight bytes, and zeros
    uint64_t factor = 0;
    int shift = 0;
    uint8_t other = 0;            // the number of any other text: K; K + 1 is that of null
    std::vector<uint8_t> number;  // by place
    std::vector<Padded>
        text;  // (K + 1,) by number; the last byte of `other` is 1, so no text is it
    std::vector<uint32_t> size;  // (K + 1,)
    std::vector<float> code32;   // (K + 2,)
    std::vector<double> code64;  // (K + 2,)
    bool refuses_other = false, refuses_null = false;

    static constexpr size_t kLongestNarrow = 31;
    bool is_narrow = false;  // all texts have up to 31 bytes, so that 32 are compared

    // For kernels that read a group of cells at once, if there are few texts and short ones.
    static constexpr size_t kMostGrouped = 63, kLongestGrouped = 62;
    bool in_groups = false;
    bool has_byte_codes = false;  // codes of known texts are 0, 1, ..., 255
    Padded number_of_size;        // if by_size; otherwise any
    Padded size_of, code_of;      // by number; 255 is the size of `other`

    const float* codes(float) const { return code32.data(); }
    const double* codes(double) const { return code64.data(); }

  private:
    static constexpr size_t kMostTexts = 250, kPicked = 8;
    static constexpr int kMostBits = 14, kSeeds = 16;  // places are 16 KB at most

    void add(const std::vector<std::string>& texts, const std::vector<double>& codes, double unseen,
             double null) {
        for (size_t i = 0; i < texts.size(); ++i) {
            Padded padded;
            std::copy(texts[i].begin(), texts[i].end(), padded.bytes);
            size_t at = 0;
            while (at < text.size() && (size[at] != texts[i].size() ||
                                        std::memcmp(text[at].bytes, padded.bytes, kPadded) != 0))
                ++at;
            if (at == text.size()) {
                text.push_back(padded), code64.push_back(0);
                size.push_back(static_cast<uint32_t>(texts[i].size()));
            }
            code64[at] = codes[i];
        }
        other = static_cast<uint8_t>(text.size());
        text.emplace_back().bytes[kMost] = 1, size.push_back(~uint32_t{0});
        text.back().bytes[kLongestNarrow] = 1;  // the same for the first 32 bytes
        code64.push_back(unseen), code64.push_back(null);
        code32.assign(code64.begin(), code64.end());
        refuses_other = unseen == kRefused, refuses_null = null == kRefused;
    }

    void prepare_groups() {
        uint32_t longest = 0;
        for (uint8_t k = 0; k < other; ++k) longest = std::max(longest, size[k]);
        is_narrow = longest <= kLongestNarrow;
        in_groups = other <= kMostGrouped && longest <= kLongestGrouped;
        if (!in_groups) return;
        if (by_size) std::copy_n(number.begin(), kPadded, number_of_size.bytes);
        has_byte_codes = true;
        for (uint8_t k = 0; k <= other; ++k) {
            size_of.bytes[k] = static_cast<uint8_t>(std::min(size[k], uint32_t{255}));
            if (k == other) break;
            const auto byte = static_cast<uint8_t>(std::clamp(code64[k], 0.0, 255.0));
            code_of.bytes[k] = byte;
            has_byte_codes = has_byte_codes && static_cast<double>(byte) == code64[k] &&
                             !std::signbit(code64[k]);
        }
    }

    bool find_keys() {
        if (fill(kMost + 2)) return true;
        by_size = false;
        for (size_t i = 0; i < kPicked; ++i) picked.bytes[i] = static_cast<uint8_t>(i);
        if (count_keys(kPicked) < other) pick();
        if (count_keys(kPicked) < other) return false;
        uint64_t state = 0;
        for (int bits = std::bit_width(4u * other); bits <= kMostBits; ++bits)
            for (int seed = 0; seed < kSeeds; ++seed) {
                factor = next_random(state) | 1;
                shift = 64 - bits;
                if (fill(size_t{1} << bits)) return true;
            }
        return false;
    }

    // Picks one byte after the other: that which tells most texts apart.
    void pick() {
        for (size_t i = 0; i < kPicked; ++i) {
            size_t most = 0;
            uint8_t best = 0;
            for (uint8_t at = 0; at < kMost; ++at) {
                picked.bytes[i] = at;
                const size_t n = count_keys(i + 1);
                if (n > most) most = n, best = at;
            }
            picked.bytes[i] = best;
        }
    }

    // How many keys known texts have, if only some of the bytes are picked.
    size_t count_keys(size_t n_picked) const {
        std::vector<std::pair<uint64_t, uint32_t>> keys;
        for (uint8_t k = 0; k < other; ++k) keys.emplace_back(bytes_of(text[k], n_picked), size[k]);
        std::sort(keys.begin(), keys.end());
        return static_cast<size_t>(std::unique(keys.begin(), keys.end()) - keys.begin());
    }

    uint64_t bytes_of(const Padded& one, size_t n_picked) const {
        uint64_t bytes = 0;
        for (size_t i = 0; i < n_picked; ++i)
            bytes |= uint64_t{one.bytes[picked.bytes[i]]} << 8 * i;
        return bytes;
    }

    // Whether all known texts have places of their own.
    bool fill(size_t places) {
        number.assign(places, other);
        for (uint8_t k = 0; k < other; ++k) {
            uint8_t& at = number[place_of(bytes_of(text[k], kPicked), size[k])];
            if (at != other) return false;
            at = k;
        }
        return true;
    }

    static uint64_t next_random(uint64_t& state) {  // SplitMix64
        uint64_t x = state += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
    }
};

// Cells of text, and which of them are read.
struct TextCells {
    const uint8_t* data;                     // offsets, Arrow's views, or spans
    const uint8_t* bytes = nullptr;          // of text with offsets
    const uint8_t* const* blocks = nullptr;  // of text with views
    const int64_t* block_bytes = nullptr;    // of each; null where no text is in a block
    int64_t first = 0;                       // cells before these, in `data` and `valid`
    const uint8_t* valid = nullptr;          // bit a cell; null: there are no nulls
    const uint8_t* null = nullptr;           // byte a cell, from the first of these on; or null
    const int32_t* row = nullptr;            // cells before + row[0..n), to out[row[0..n)]
    int64_t before = 0, n = 0;               // without `row`: before + [0, n), to out[0..n)
};

// A text anywhere in memory.
struct TextSpan {
    const char* begin;
    uint64_t size;
};

// Cells that point to objects, whose text is in them. Texts that are read have the same header but
// for some bits: four words from `header` on, of which the first is their type, which all objects
// have, and the second the size of the text. Pointers may be null.
struct TextObjects {
    const uint8_t* const* object;
    int32_t header, size, text;  // bytes from the begin of an object on
    uint64_t mask[4], kind[4];   // bits of a header that tell kinds apart, and those of texts
};

// Each writes codes, and returns false where a value is refused.
struct TextKernels {
    template <class Out>
    using Read = bool (*)(const ShortTexts&, const TextCells&, Out*);
    // Of known texts that are read in groups: codes of the n objects from the first on, up to one
    // that is no text or not known, or somewhat less. Returns how many are written.
    template <class Out>
    using ReadObjects = int64_t (*)(const ShortTexts&, const TextObjects&, int64_t n, Out*);
    template <class Out>
    struct Reads {
        Read<Out> text32, text64, views;
        Read<Out> spans;           // or null
        ReadObjects<Out> objects;  // null if that is
    };
    Reads<float> of_float;
    Reads<double> of_double;

    const Reads<float>& reads(float) const { return of_float; }
    const Reads<double>& reads(double) const { return of_double; }
};

// Those of the best instruction set that this machine runs, or of `isa`; null if it has none, and
// std::invalid_argument where the machine does not run it. Defined in kernels/choose.cpp.
const TextKernels* text_kernels(std::string_view isa = "");

}  // namespace qwyc
