// IEEE 754 floating point in whatever mode the calling thread is. Some libraries set a mode in
// which denormal numbers count as zero; a threshold next to zero may be such a number. Others let
// NaN or a number that becomes too large end the program; here both are ordinary.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace qwyc {

#if defined(__SSE2__) || defined(__aarch64__)
#define QWYC_FLOAT_MODES 1
#if defined(__SSE2__)
struct FloatMode {  // the register MXCSR
    using Bits = unsigned;
    static constexpr Bits kNoDenormals = 0x0040 | 0x8000;  // denormals are zero, flush to zero
    static constexpr Bits kRounding = 0x6000;              // 0: to nearest
    static constexpr Bits kTraps = 0x1f80;                 // set: no exception is a trap
    static Bits plain(Bits bits) { return (bits & ~(kNoDenormals | kRounding)) | kTraps; }
    static Bits get() { return _mm_getcsr(); }
    static void set(Bits bits) { _mm_setcsr(bits); }
};
#else
struct FloatMode {  // the register FPCR
    using Bits = uint64_t;
    static constexpr Bits kNoDenormals = 1u << 24;  // FZ, of what comes and of results
    static constexpr Bits kRounding = 3u << 22;     // RMode, 0: to nearest
    // DN: results that are NaN are all the same one. FIZ, AH and NEP, which few processors have:
    // denormals that come are zero, other rules for NaN and tiny numbers, other upper lanes.
    static constexpr Bits kOthers = 1u << 25 | 7u;
    static constexpr Bits kTraps = 0x9f00;  // set: an exception is a trap, if there are any
    static Bits plain(Bits bits) { return bits & ~(kNoDenormals | kRounding | kOthers | kTraps); }
    static Bits get() {
        Bits bits;
        asm volatile("mrs %0, fpcr" : "=r"(bits) : : "memory");
        return bits;
    }
    static void set(Bits bits) { asm volatile("msr fpcr, %0" : : "r"(bits) : "memory"); }
};
#endif

class PlainFloats {
  public:
    PlainFloats() : before_(FloatMode::get()) {
        if (const Bits plain = FloatMode::plain(before_); plain != before_) FloatMode::set(plain);
    }
    ~PlainFloats() {
        if (FloatMode::plain(before_) != before_) FloatMode::set(before_);
    }
    PlainFloats(const PlainFloats&) = delete;
    PlainFloats& operator=(const PlainFloats&) = delete;

  private:
    using Bits = FloatMode::Bits;
    Bits before_;
};
#else
#define QWYC_FLOAT_MODES 0
struct PlainFloats {
    PlainFloats() {}  // not trivial, so that compilers do not warn of unused variables
};
#endif

}  // namespace qwyc
