// The codes of categories that are text.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace qwyc {

// Stands for a value that is to be refused, in place of a code.
inline constexpr double kRefused = std::numeric_limits<double>::infinity();

// A hash table of open addressing, at most half full. Most texts are told apart by their length and
// their first eight bytes.
class TextCodes {
  public:
    // unseen: the code of any other text, or kRefused. null: that of no text at all. Of equal
    // texts, the last counts.
    TextCodes(const std::vector<std::string>& texts, const std::vector<double>& codes,
              double unseen, double null)
        : texts_(texts), slots_(std::bit_ceil(2 * texts.size() + 1)), unseen_(unseen), null_(null) {
        for (size_t i = 0; i < texts_.size(); ++i) {
            const Slot key{head_of(texts_[i]), texts_[i].data(), texts_[i].size(), codes[i]};
            slots_[place_of(key.head, texts_[i])] = key;
            refuses_ |= codes[i] == kRefused;
        }
        refuses_ |= unseen == kRefused || null == kRefused;
    }
    TextCodes(const TextCodes&) = delete;  // slots refer to the texts
    TextCodes& operator=(const TextCodes&) = delete;

    double of(std::string_view text) const {
        const Slot& slot = slots_[place_of(head_of(text), text)];
        return slot.text ? slot.code : unseen_;
    }
    double null() const { return null_; }
    bool refuses() const { return refuses_; }  // some text, or null

  private:
    struct Slot {
        uint64_t head = 0;
        const char* text = nullptr;  // null: the slot is free
        size_t size = 0;
        double code = 0;
    };

    // The first eight bytes; those of a shorter text, and zeros.
    static uint64_t head_of(std::string_view text) {
        uint64_t head = 0;
        if (text.size() >= 8) {
            std::memcpy(&head, text.data(), 8);
        } else if (text.size() >= 4) {
            uint32_t first, last;
            std::memcpy(&first, text.data(), 4);
            std::memcpy(&last, text.data() + text.size() - 4, 4);
            head = first | static_cast<uint64_t>(last) << 8 * (text.size() - 4);
        } else {
            for (size_t i = 0; i < text.size(); ++i)
                head |= static_cast<uint64_t>(static_cast<uint8_t>(text[i])) << 8 * i;
        }
        return head;
    }

    static uint64_t hash_of(uint64_t head, std::string_view text) {
        uint64_t tail = 0;
        if (text.size() > 8) std::memcpy(&tail, text.data() + text.size() - 8, 8);
        uint64_t hash = (head ^ text.size()) * 0x9e3779b97f4a7c15u;
        hash = (hash ^ hash >> 32 ^ tail) * 0xbf58476d1ce4e5b9u;
        return hash ^ hash >> 29;
    }

    // The slot that holds a text, or the free one where it would go.
    size_t place_of(uint64_t head, std::string_view text) const {
        const size_t mask = slots_.size() - 1;
        size_t at = hash_of(head, text) & mask;
        while (slots_[at].text && !is(slots_[at], head, text)) at = (at + 1) & mask;
        return at;
    }
    static bool is(const Slot& slot, uint64_t head, std::string_view text) {
        return slot.head == head && slot.size == text.size() &&
               (text.size() <= 8 ||
                std::memcmp(slot.text + 8, text.data() + 8, text.size() - 8) == 0);
    }

    const std::vector<std::string> texts_;
    std::vector<Slot> slots_;
    double unseen_, null_;
    bool refuses_ = false;
};

}  // namespace qwyc
