// What the library keeps for each thread from one call to the next.
#pragma once

#include "core/scratch.hpp"

namespace qwyc::capi {

struct CallScratch {
    Buffer<uint8_t> positive;
    Buffer<int32_t> label, steps;
    Buffer<double> score, full;
    Buffer<float> single_row, wide;
    Buffer<double> double_row, narrow;
};

inline CallScratch& call_scratch() {
    thread_local CallScratch mine;
    return mine;
}

}  // namespace qwyc::capi
