// IEEE 754 floating point in whatever mode the calling thread is. Some libraries set a mode in
// which denormal numbers count as zero; a threshold next to zero may be such a number.
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
    PlainFloats() {}  // not trivial, so that compilers do not warn of unused variables
};
#endif

}  // namespace qwyc
