// Floating point as IEEE 754 has it, whatever the calling thread is set to: some libraries make
// their callers treat the smallest numbers as zero, and a threshold next to zero is such a number.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace qwyc {

#if defined(__SSE2__)
class PlainFloats {
  public:
    PlainFloats() : before_(_mm_getcsr()) {
        if (before_ & kChanged) _mm_setcsr(before_ & ~kChanged);
    }
    ~PlainFloats() {
        if (before_ & kChanged) _mm_setcsr(before_);
    }
    PlainFloats(const PlainFloats&) = delete;
    PlainFloats& operator=(const PlainFloats&) = delete;

  private:
    // Denormals are zero, flush to zero, rounding other than to nearest.
    static constexpr unsigned kChanged = 0x0040 | 0x8000 | 0x6000;
    unsigned before_;
};
#else
struct PlainFloats {
    PlainFloats() {}  // not trivial, so that nobody calls it unused
};
#endif

}  // namespace qwyc
