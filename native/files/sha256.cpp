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

// `n` blocks of each of N messages. The instructions keep a state as two registers, a b e f and
// c d g h, the first word highest, and do two rounds at a time.
template <int N>
__attribute__((target("sha,sse4.1"))) inline void compress_some(uint32_t* const* state,
                                                                const std::byte* const* blocks,
                                                                size_t n) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i abef[N], cdgh[N];
    for (int k = 0; k < N; ++k) {
        const auto word = [&](int i) { return static_cast<int>(state[k][i]); };
        abef[k] = _mm_set_epi32(word(0), word(1), word(4), word(5));
        cdgh[k] = _mm_set_epi32(word(2), word(3), word(6), word(7));
    }
    for (size_t block = 0; block < n; ++block) {
        __m128i abef_before[N], cdgh_before[N];
        __m128i w[N][4];  // the next 16 words, four each
        for (int k = 0; k < N; ++k) {
            abef_before[k] = abef[k], cdgh_before[k] = cdgh[k];
            const auto* const from = reinterpret_cast<const __m128i*>(blocks[k] + 64 * block);
            for (int i = 0; i < 4; ++i) w[k][i] = _mm_shuffle_epi8(_mm_loadu_si128(from + i), swap);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
            const __m128i round = _mm_load_si128(reinterpret_cast<const __m128i*>(kRound) + i);
#pragma GCC unroll 2
            for (int k = 0; k < N; ++k) {
                const __m128i now = w[k][i % 4], added = _mm_add_epi32(now, round);
                cdgh[k] = _mm_sha256rnds2_epu32(cdgh[k], abef[k], added);
                abef[k] = _mm_sha256rnds2_epu32(abef[k], cdgh[k], _mm_shuffle_epi32(added, 0x0e));
                if (i >= 12) continue;
                const __m128i next = w[k][(i + 1) % 4], last = w[k][(i + 3) % 4];
                const __m128i middle = _mm_alignr_epi8(last, w[k][(i + 2) % 4], 4);
                const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, next), middle);
                w[k][i % 4] = _mm_sha256msg2_epu32(sum, last);
            }
        }
        for (int k = 0; k < N; ++k) {
            abef[k] = _mm_add_epi32(abef[k], abef_before[k]);
            cdgh[k] = _mm_add_epi32(cdgh[k], cdgh_before[k]);
        }
    }
    for (int k = 0; k < N; ++k) {
        alignas(16) uint32_t high[4], low[4];
        _mm_store_si128(reinterpret_cast<__m128i*>(high), abef[k]);
        _mm_store_si128(reinterpret_cast<__m128i*>(low), cdgh[k]);
        const uint32_t after[8] = {high[3], high[2], low[3], low[2],
                                   high[1], high[0], low[1], low[0]};
        std::copy_n(after, 8, state[k]);
    }
}

__attribute__((target("sha,sse4.1"))) void compress_with_sha(uint32_t* state,
                                                             const std::byte* blocks, size_t n) {
    compress_some<1>(&state, &blocks, n);
}

__attribute__((target("sha,sse4.1"))) void compress_both_with_sha(uint32_t* const* state,
                                                                  const std::byte* const* blocks,
                                                                  size_t n) {
    compress_some<2>(state, blocks, n);
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

Sha256::Compress best() {
    return Sha256::instructions() ? Sha256::instructions() : Sha256::portable();
}

void compress_in_turn(uint32_t* const* state, const std::byte* const* blocks, size_t n) {
    for (int k = 0; k < 2; ++k) best()(state[k], blocks[k], n);
}

// Does `n` blocks of each of two messages.
auto compress_both() {
#if defined(__x86_64__)
    if (Sha256::instructions()) return compress_both_with_sha;
#endif
    return compress_in_turn;
}

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

Sha256::Sha256() : Sha256(best()) {}

Sha256::Sha256(Compress compress)
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      compress_(compress) {}

// The whole blocks of a message, a run at a time; what is left of it stays in `sha`.
class Sha256::Blocks {
  public:
    Blocks(Sha256& sha, std::span<const std::span<const std::byte>> pieces)
        : sha_(sha), pieces_(pieces) {
        for (const auto piece : pieces) sha.size_ += piece.size();
        next();
    }

    std::span<const std::byte> run() const { return run_; }  // none at the end

    void take(size_t n_blocks) {
        run_ = run_.subspan(64 * n_blocks);
        if (run_.empty()) next();
    }

  private:
    void next() {
        auto& rest = sha_.rest_;
        size_t& n_rest = sha_.n_rest_;
        for (;; piece_ = pieces_.front(), pieces_ = pieces_.subspan(1)) {
            if (n_rest == 0 && piece_.size() >= rest.size()) {
                run_ = piece_.first(piece_.size() / 64 * 64);
                piece_ = piece_.subspan(run_.size());
                return;
            }
            const size_t some = std::min(piece_.size(), rest.size() - n_rest);
            std::copy_n(piece_.begin(), some, rest.begin() + static_cast<std::ptrdiff_t>(n_rest));
            n_rest += some;
            piece_ = piece_.subspan(some);
            if (n_rest == rest.size()) {
                n_rest = 0;
                run_ = rest;
                return;
            }
            run_ = {};
            if (pieces_.empty()) return;
        }
    }

    Sha256& sha_;
    std::span<const std::span<const std::byte>> pieces_;  // after the one that is read
    std::span<const std::byte> piece_, run_;              // what is left of each
};

void Sha256::add(std::span<const std::byte> bytes) {
    for (Blocks blocks(*this, {&bytes, 1}); !blocks.run().empty();) {
        const size_t n = blocks.run().size() / 64;
        compress_(state_.data(), blocks.run().data(), n);
        blocks.take(n);
    }
}
std::pair<std::string, std::string> Sha256::hex_of_both(const Message& a, const Message& b) {
    Sha256 first, second;
    Blocks blocks[2] = {{first, a.pieces()}, {second, b.pieces()}};
    uint32_t* const state[2] = {first.state_.data(), second.state_.data()};
    while (!blocks[0].run().empty() || !blocks[1].run().empty()) {
        const auto run = blocks[0].run(), other = blocks[1].run();
        if (const size_t n = std::min(run.size(), other.size()) / 64; n > 0) {
            const std::byte* const from[2] = {run.data(), other.data()};
            compress_both()(state, from, n);
            blocks[0].take(n), blocks[1].take(n);
            continue;
        }
        const int k = run.empty();  // the one that is left
        const size_t n = blocks[k].run().size() / 64;
        first.compress_(state[k], blocks[k].run().data(), n);
        blocks[k].take(n);
    }
    return {first.hex(), second.hex()};
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
