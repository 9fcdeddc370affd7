// Prints the widest instruction set of this processor that is known here, and the most float32
// multiply-adds per second that one thread reached in it: a loop over registers only, with more
// independent chains than the latency of a fused multiply-add needs. Argument: seconds to measure
// for.

#include <chrono>
#include <cstdio>
#include <cstdlib>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define QWYC_X86 1
#include <immintrin.h>
#endif

namespace {

constexpr long kTurns = 200'000;  // of the loop, in one timed call: about a millisecond
volatile float sink;              // so that no result is unused

#ifdef QWYC_X86

// 24 chains of 16 numbers; 26 of 32 registers.
__attribute__((target("avx512f"))) double avx512() {
    constexpr int kChains = 24;
    const __m512 factor = _mm512_set1_ps(0.5F), term = _mm512_set1_ps(1.0F);
    __m512 chain[kChains];
    for (int i = 0; i < kChains; ++i) chain[i] = _mm512_set1_ps(static_cast<float>(i));
    for (long turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 24
        for (int i = 0; i < kChains; ++i) chain[i] = _mm512_fmadd_ps(chain[i], factor, term);
    }
    for (int i = 1; i < kChains; ++i) chain[0] = _mm512_add_ps(chain[0], chain[i]);
    sink = _mm512_reduce_add_ps(chain[0]);
    return 16.0 * kChains * kTurns;
}

// 12 chains of 8 numbers; 14 of 16 registers.
__attribute__((target("avx2,fma"))) double avx2() {
    constexpr int kChains = 12;
    const __m256 factor = _mm256_set1_ps(0.5F), term = _mm256_set1_ps(1.0F);
    __m256 chain[kChains];
    for (int i = 0; i < kChains; ++i) chain[i] = _mm256_set1_ps(static_cast<float>(i));
    for (long turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 12
        for (int i = 0; i < kChains; ++i) chain[i] = _mm256_fmadd_ps(chain[i], factor, term);
    }
    for (int i = 1; i < kChains; ++i) chain[0] = _mm256_add_ps(chain[0], chain[i]);
    sink = _mm256_cvtss_f32(chain[0]);
    return 8.0 * kChains * kTurns;
}

#endif

// Whatever the compiler makes of 32 independent numbers: a multiplication and an addition each.
double generic() {
    constexpr int kChains = 32;
    float chain[kChains];
    for (int i = 0; i < kChains; ++i) chain[i] = static_cast<float>(i);
    for (long turn = 0; turn < kTurns; ++turn) {
        for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * 0.5F + 1.0F;
    }
    for (int i = 1; i < kChains; ++i) chain[0] += chain[i];
    sink = chain[0];
    return 1.0 * kChains * kTurns;
}

}  // namespace

int main(int count, char** arguments) {
    const double seconds = count > 1 ? std::atof(arguments[1]) : 0.5;
    double (*loop)() = generic;
    const char* name = "generic";
#ifdef QWYC_X86
    if (__builtin_cpu_supports("avx512f")) {
        loop = avx512;
        name = "AVX-512";
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        loop = avx2;
        name = "AVX2";
    }
#endif
    using Clock = std::chrono::steady_clock;
    const auto started = Clock::now();
    double best = 0;
    do {
        const auto before = Clock::now();
        const double done = loop();
        const double took = std::chrono::duration<double>(Clock::now() - before).count();
        if (done / took > best) best = done / took;
    } while (std::chrono::duration<double>(Clock::now() - started).count() < seconds);
    std::printf("%s %.6g\n", name, best);
}
