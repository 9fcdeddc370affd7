// CityHash64, version 1, by which CatBoost knows a category: src/qwyc/rows/cityhash.py in C++.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace qwyc {

class CityHash {
  public:
    static uint64_t of(std::string_view text) {
        const char* const data = text.data();
        const uint64_t n = text.size();
        return n <= 16   ? up_to_16(data, n)
               : n <= 32 ? up_to_32(data, n)
               : n <= 64 ? up_to_64(data, n)
                         : longer(data, n);
    }

  private:
    static constexpr uint64_t k0 = 0xC3A5C85C97CB3127, k1 = 0xB492B66FBE98F273,
                              k2 = 0x9AE16A3B2F90404F, k3 = 0xC949D7C7509E6557,
                              kMix = 0x9DDFEA08EB382D69;
    struct Pair {
        uint64_t first, second;
    };

    static uint64_t word(const char* at) {
        uint64_t out;
        std::memcpy(&out, at, sizeof out);
        return out;
    }
    static uint64_t half_word(const char* at) {
        uint32_t out;
        std::memcpy(&out, at, sizeof out);
        return out;
    }
    static uint64_t byte(const char* at) { return static_cast<unsigned char>(*at); }
    static uint64_t fold(uint64_t x) { return x ^ x >> 47; }
    static uint64_t join(uint64_t low, uint64_t high) {  // 128 bits to 64
        const uint64_t a = fold((low ^ high) * kMix);
        return fold((high ^ a) * kMix) * kMix;
    }

    static uint64_t up_to_16(const char* data, uint64_t n) {
        if (n > 8) {
            const uint64_t a = word(data), b = word(data + n - 8);
            return join(a, std::rotr(b + n, static_cast<int>(n))) ^ b;
        }
        if (n >= 4) return join(n + (half_word(data) << 3), half_word(data + n - 4));
        if (n == 0) return k2;
        const uint64_t y = byte(data) + (byte(data + n / 2) << 8);
        const uint64_t z = n + (byte(data + n - 1) << 2);
        return fold(y * k2 ^ z * k3) * k2;
    }
    static uint64_t up_to_32(const char* data, uint64_t n) {
        const uint64_t a = word(data) * k1, b = word(data + 8);
        const uint64_t c = word(data + n - 8) * k2, d = word(data + n - 16) * k0;
        return join(std::rotr(a - b, 43) + std::rotr(c, 30) + d, a + std::rotr(b ^ k3, 20) - c + n);
    }
    static Pair half(uint64_t a, uint64_t z, uint64_t second, uint64_t third) {
        const uint64_t b = std::rotr(a + z, 52);
        uint64_t c = std::rotr(a, 37);
        a += second;
        c += std::rotr(a, 7);
        a += third;
        return {a + z, b + std::rotr(a, 31) + c};
    }
    static uint64_t up_to_64(const char* data, uint64_t n) {
        const char* const end = data + n;
        const Pair v = half(word(data) + (n + word(end - 16)) * k0, word(data + 24), word(data + 8),
                            word(data + 16));
        const Pair w =
            half(word(data + 16) + word(end - 32), word(end - 8), word(end - 24), word(end - 16));
        const uint64_t r = fold((v.first + w.second) * k2 + (w.first + v.second) * k0);
        return fold(r * k0 + v.second) * k2;
    }
    static Pair weak(const char* at, uint64_t a, uint64_t b) {  // 32 bytes and two seeds
        const uint64_t z = word(at + 24);
        a += word(at);
        b = std::rotr(b + a + z, 21);
        const uint64_t c = a;
        a += word(at + 8) + word(at + 16);
        return {a + z, b + std::rotr(a, 44) + c};
    }
    static uint64_t longer(const char* data, uint64_t n) {
        const char* const end = data + n;
        uint64_t x = word(data), y = word(end - 16) ^ k1, z = word(end - 56) ^ k0;
        Pair v = weak(end - 64, n, y), w = weak(end - 32, n * k1, k0);
        z += fold(v.second) * k1;
        x = std::rotr(z + x, 39) * k1;
        y = std::rotr(y, 33) * k1;
        const char* const last = data + ((n - 1) & ~uint64_t{63});
        for (const char* at = data; at != last; at += 64) {
            x = std::rotr(x + y + v.first + word(at + 16), 37) * k1;
            y = std::rotr(y + v.second + word(at + 48), 42) * k1;
            x ^= w.second, y ^= v.first;
            z = std::rotr(z ^ w.first, 33);
            v = weak(at, v.second * k1, x + w.first);
            w = weak(at + 32, z + w.second, y);
            const uint64_t before = z;
            z = x, x = before;
        }
        return join(join(v.first, w.first) + fold(y) * k1 + z, join(v.second, w.second) + x);
    }
};

}  // namespace qwyc
