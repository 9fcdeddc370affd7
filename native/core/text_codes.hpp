// The codes of categories that are text.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/short_texts.hpp"

namespace qwyc {

// A hash table of open addressing, at most half full. Lengths of texts follow no pattern, so a
// lookup of up to 32 bytes does not branch by them: it compares four words, which may
// overlap. The hash is chosen so that a text that is known is mostly found at first sight.
class TextCodes {
  public:
    // unseen: the code of any other text, or kRefused. null: that of no text at all. Of equal
    // texts, the last counts. isa: of the kernels that look up many texts at once.
    TextCodes(const std::vector<std::string>& texts, const std::vector<double>& codes,
              double unseen, double null, std::string_view isa = "")
        : texts_(texts), kernels_(text_kernels(isa)), unseen_(unseen), null_(null) {
        if (kernels_) short_ = ShortTexts::of(texts, codes, unseen, null);
        const size_t n = std::max<size_t>(texts.size(), 1);
        slots_.resize(std::bit_ceil((n <= kFew ? 4 : 2) * n));
        shift_ = 64 - std::countr_zero(slots_.size());
        fill(codes, choose_seed(codes));
        refuses_ = unseen == kRefused || null == kRefused ||
                   std::find(codes.begin(), codes.end(), kRefused) != codes.end();
    }
    TextCodes(const TextCodes&) = delete;  // slots refer to the texts
    TextCodes& operator=(const TextCodes&) = delete;

    [[gnu::noinline]] double of(std::string_view text) const {
        if (text.size() >= kWord) return of_ahead(text.data(), text.size());
        char copy[kWord] = {};
        std::copy(text.begin(), text.end(), copy);
        return of_ahead(copy, text.size());
    }
    // The same where eight bytes from `text` on may be read, although it may be shorter.
    [[gnu::always_inline]] double of_ahead(const char* text, size_t size) const {
        return look_up(words_ahead(text, size), text, size);
    }
    // The same where eight bytes before `text` may be read.
    [[gnu::always_inline]] double of_behind(const char* text, size_t size) const {
        return look_up(words_behind(text, size), text, size);
    }
    double null() const { return null_; }
    bool refuses() const { return refuses_; }  // some text, or null

    // For many texts at once; null where this machine or these texts are not made for it.
    const ShortTexts* short_texts() const { return short_.get(); }
    const TextKernels& kernels() const { return *kernels_; }

  private:
    static constexpr size_t kWord = 8, kFew = 256, kFree = ~size_t{0};

    // The first eight bytes, or fewer and zeros; the last eight of more than eight; and of more
    // than 16 those next to these. Zeros otherwise.
    struct Words {
        uint64_t first, second, third, last;
    };
    struct alignas(64) Slot {
        Words words{};
        size_t size = kFree;
        double code = 0;
        const char* text = nullptr;
    };

    static uint64_t word_at(const char* text) {
        uint64_t word;
        std::memcpy(&word, text, kWord);
        return word;
    }
    static Words words_ahead(const char* text, size_t size) {
        static constexpr uint64_t kKept[kWord + 1] = {
            0,           0xff,         0xffff,         0xffffff,
            0xffffffff,  0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
            ~uint64_t{0}};
        return words(word_at(text) & kKept[std::min(size, kWord)], text, size);
    }
    static Words words_behind(const char* text, size_t size) {
        const size_t n = std::min(size, kWord), half = 4 * (kWord - n);  // a shift by 64 is none
        const char* const at = text + n - kWord;
        return words(word_at(at) >> half >> half, at, size);
    }
    // at: the first word, wherever it may be read.
    static Words words(uint64_t first, const char* at, size_t size) {
        static_assert(std::endian::native == std::endian::little);
        const uint64_t more = -uint64_t{size > kWord}, many = -uint64_t{size > 2 * kWord};
        return {first, word_at(at + (many & kWord)) & many,
                word_at(at + (many & (size - 2 * kWord))) & many,
                word_at(at + (more & (size - kWord))) & more};
    }

    [[gnu::always_inline]] double look_up(const Words& words, const char* text, size_t size) const {
        const Slot& slot = slots_[place_of(words, size)];
        if (size <= 4 * kWord && has_words(slot, words, size)) [[likely]]
            return slot.code;
        return search(words, text, size);
    }
    [[gnu::noinline]] double search(const Words& words, const char* text, size_t size) const {
        for (size_t at = place_of(words, size);; at = (at + 1) & (slots_.size() - 1)) {
            if (is(slots_[at], words, text, size)) return slots_[at].code;
            if (slots_[at].size == kFree) return unseen_;
        }
    }
    size_t place_of(const Words& words, size_t size) const {
        return (words.first * factor_[0] + words.last * factor_[1] + size * factor_[2]) >> shift_;
    }
    static bool has_words(const Slot& slot, const Words& words, size_t size) {
        return ((slot.words.first ^ words.first) | (slot.words.second ^ words.second) |
                (slot.words.third ^ words.third) | (slot.words.last ^ words.last) |
                (slot.size ^ size)) == 0;
    }
    static bool is(const Slot& slot, const Words& words, const char* text, size_t size) {
        return has_words(slot, words, size) &&
               (size <= 4 * kWord ||
                std::memcmp(slot.text + 2 * kWord, text + 2 * kWord, size - 4 * kWord) == 0);
    }

    // The seed of the hash under which most texts are in their own place; tries some for few texts.
    uint64_t choose_seed(const std::vector<double>& codes) {
        constexpr uint64_t kSeeds = 32;
        uint64_t best = 0;
        size_t least = kFree;
        for (uint64_t seed = 0; seed < (texts_.size() <= kFew ? kSeeds : 1) && least > 0; ++seed) {
            const size_t apart = fill(codes, seed);
            if (apart < least) best = seed, least = apart;
        }
        return best;
    }

    // Returns how many texts are not in their own place.
    size_t fill(const std::vector<double>& codes, uint64_t seed) {
        for (uint64_t& factor : factor_) factor = next_random(seed) | 1;
        std::fill(slots_.begin(), slots_.end(), Slot{});
        size_t apart = 0;
        for (size_t i = 0; i < texts_.size(); ++i) {
            const std::string& text = texts_[i];
            std::string padded = text;
            padded.resize(std::max(text.size(), kWord));
            const Words words = words_ahead(padded.data(), text.size());
            size_t at = place_of(words, text.size());
            const size_t own = at;
            while (slots_[at].size != kFree && !is(slots_[at], words, text.data(), text.size()))
                at = (at + 1) & (slots_.size() - 1);
            apart += at != own;
            slots_[at] = {words, text.size(), codes[i], text.data()};
        }
        return apart;
    }
    static uint64_t next_random(uint64_t& seed) {
        uint64_t x = seed += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
    }

    const std::vector<std::string> texts_;
    const TextKernels* const kernels_;
    std::unique_ptr<const ShortTexts> short_;
    std::vector<Slot> slots_;
    uint64_t factor_[3];
    int shift_;
    double unseen_, null_;
    bool refuses_ = false;
};

}  // namespace qwyc
