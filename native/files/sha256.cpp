#include "files/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16)
#if defined(__clang__)
#define QWYC_ARM_SHA "sha2"
#else
#define QWYC_ARM_SHA "+crypto"
#endif
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

namespace qwyc::files {

namespace {

alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const std::byte* bytes) {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | static_cast<uint32_t>(bytes[i]);
    return word;
}

void compress_portable(uint32_t* state, const std::byte* blocks, size_t n) {
    for (; n > 0; --n, blocks += 64) {
        uint32_t w[64];
        for (int i = 0; i < 16; ++i) w[i] = big_endian(blocks + 4 * i);
        for (int i = 16; i < 64; ++i) {
            const uint32_t a = w[i - 15], b = w[i - 2];
            const uint32_t small = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3;
            const uint32_t large = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
            w[i] = w[i - 16] + small + w[i - 7] + large;
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int i = 0; i < 64; ++i) {
            const uint32_t sum_e = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
            const uint32_t first = h + sum_e + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
            const uint32_t sum_a = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
            const uint32_t second = sum_a + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + first;
            d = c, c = b, b = a, a = first + second;
        }
        const uint32_t added[8] = {a, b, c, d, e, f, g, h};
        for (int i = 0; i < 8; ++i) state[i] += added[i];
    }
}

#if defined(__x86_64__)
bool has_sha() {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b >> 29 & 1)) return false;  // SHA
    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 19 & 1);                        // SSE4.1
}

// The instructions keep the state as two registers, a b e f and c d g h, the first word highest,
// and do two rounds at a time.
__attribute__((target("sha,sse4.1"))) void compress_with_sha(uint32_t* state,
                                                             const std::byte* blocks, size_t n) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    const auto load = [](const void* at) {
        return _mm_loadu_si128(static_cast<const __m128i*>(at));
    };
    __m128i abef = _mm_set_epi32(static_cast<int>(state[0]), static_cast<int>(state[1]),
                                 static_cast<int>(state[4]), static_cast<int>(state[5]));
    __m128i cdgh = _mm_set_epi32(static_cast<int>(state[2]), static_cast<int>(state[3]),
                                 static_cast<int>(state[6]), static_cast<int>(state[7]));
    for (; n > 0; --n, blocks += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];  // the next 16 words, four each
        for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(blocks + 16 * i), swap);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
            const __m128i now = w[i % 4];
            const __m128i added = _mm_add_epi32(now, load(kRound + 4 * i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
            if (i >= 12) continue;
            const __m128i next = w[(i + 1) % 4], last = w[(i + 3) % 4];
            const __m128i middle = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
            const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, next), middle);
            w[i % 4] = _mm_sha256msg2_epu32(sum, last);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    alignas(16) uint32_t high[4], low[4];
    _mm_store_si128(reinterpret_cast<__m128i*>(high), abef);
    _mm_store_si128(reinterpret_cast<__m128i*>(low), cdgh);
    const uint32_t after[8] = {high[3], high[2], low[3], low[2], high[1], high[0], low[1], low[0]};
    std::copy_n(after, 8, state);
}
#elif defined(QWYC_ARM_SHA)
bool has_sha() {
#if defined(__linux__)
    return getauxval(AT_HWCAP) >> 6 & 1;  // HWCAP_SHA2
#elif defined(__APPLE__)
    return true;
#else
    return false;
#endif
}

// The instructions keep the state as two registers, a b c d and e f g h, and do four rounds at a
// time.
__attribute__((target(QWYC_ARM_SHA))) void compress_with_sha(uint32_t* state,
                                                             const std::byte* blocks, size_t n) {
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
    for (; n > 0; --n, blocks += 64) {
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        uint32x4_t w[4];  // the next 16 words, four each
        for (int i = 0; i < 4; ++i) {
            const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const uint8_t*>(blocks) + 16 * i);
            w[i] = vreinterpretq_u32_u8(vrev32q_u8(bytes));
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
            const uint32x4_t added = vaddq_u32(w[i % 4], vld1q_u32(kRound + 4 * i));
            if (i < 12)
                w[i % 4] = vsha256su1q_u32(vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]),
                                           w[(i + 2) % 4], w[(i + 3) % 4]);
            const uint32x4_t before = abcd;
            abcd = vsha256hq_u32(abcd, efgh, added);
            efgh = vsha256h2q_u32(efgh, before, added);
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}
#endif

}  // namespace

Sha256::Compress Sha256::portable() {
    return compress_portable;
}

Sha256::Compress Sha256::instructions() {
#if defined(__x86_64__) || defined(QWYC_ARM_SHA)
    static const bool known = has_sha();
    return known ? compress_with_sha : nullptr;
#else
    return nullptr;
#endif
}

Sha256::Sha256() : Sha256(instructions() ? instructions() : portable()) {}

Sha256::Sha256(Compress compress)
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      compress_(compress) {}

void Sha256::add(std::span<const std::byte> bytes) {
    size_ += bytes.size();
    if (n_rest_ > 0) {
        const size_t some = std::min(bytes.size(), rest_.size() - n_rest_);
        std::copy_n(bytes.begin(), some, rest_.begin() + static_cast<std::ptrdiff_t>(n_rest_));
        n_rest_ += some;
        bytes = bytes.subspan(some);
        if (n_rest_ < rest_.size()) return;
        compress_(state_.data(), rest_.data(), 1);
        n_rest_ = 0;
    }
    const size_t blocks = bytes.size() / 64;
    if (blocks > 0) compress_(state_.data(), bytes.data(), blocks);
    bytes = bytes.subspan(64 * blocks);
    std::copy(bytes.begin(), bytes.end(), rest_.begin());
    n_rest_ = bytes.size();
}

std::string Sha256::hex() {
    // A bit that is set, zeros, and the number of bits in the last eight bytes of a block.
    std::array<std::byte, 72> end{std::byte{0x80}};
    const uint64_t bits = size_ * 8;
    const size_t zeros = (119 - n_rest_) % 64;
    for (int i = 0; i < 8; ++i) end[1 + zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
    add(std::span<const std::byte>(end).first(1 + zeros + 8));
    std::string out;
    for (const uint32_t word : state_)
        for (int shift = 28; shift >= 0; shift -= 4)
            out.push_back("0123456789abcdef"[word >> shift & 15]);
    return out;
}

}  // namespace qwyc::files
