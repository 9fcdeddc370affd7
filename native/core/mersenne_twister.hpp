// The numbers of std::mt19937_64, several at a time: loops over the whole state are vectorised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace qwyc {

class MersenneTwister {
  public:
    explicit MersenneTwister(uint64_t seed) {
        state_[0] = seed;
        for (size_t i = 1; i < kWords; ++i) {
            const uint64_t before = state_[i - 1];
            state_[i] = 6364136223846793005ULL * (before ^ (before >> 62)) + i;
        }
    }

    uint64_t operator()() {
        if (next_ == kWords) refill();
        return numbers_[next_++];
    }

  private:
    static constexpr size_t kWords = 312, kApart = 156;

    static uint64_t twisted(uint64_t high, uint64_t low) {
        constexpr uint64_t kLow = 0x7FFFFFFF;
        return (((high & ~kLow) | (low & kLow)) >> 1) ^ (-(low & 1) & 0xB5026F5AA96619E9ULL);
    }

    void refill() {
        constexpr size_t kTurn = kWords - kApart;
        for (size_t i = 0; i < kTurn; ++i)
            state_[i] = state_[i + kApart] ^ twisted(state_[i], state_[i + 1]);
        for (size_t i = kTurn; i + 1 < kWords; ++i)
            state_[i] = state_[i - kTurn] ^ twisted(state_[i], state_[i + 1]);
        state_[kWords - 1] = state_[kApart - 1] ^ twisted(state_[kWords - 1], state_[0]);
        for (size_t i = 0; i < kWords; ++i) {
            uint64_t x = state_[i];
            x ^= (x >> 29) & 0x5555555555555555ULL;
            x ^= (x << 17) & 0x71D67FFFEDA60000ULL;
            x ^= (x << 37) & 0xFFF7EEE000000000ULL;
            numbers_[i] = x ^ (x >> 43);
        }
        next_ = 0;
    }

    std::array<uint64_t, kWords> state_, numbers_;
    size_t next_ = kWords;
};

}  // namespace qwyc
