// Macros that compile the functions of one kernel file, and no others, for an instruction set.
// Shared headers must be included before QWYC_TARGET_BEGIN: inline functions that other files use
// too must not be compiled for an instruction set that the machine may lack.
#pragma once

#include "core/kernels.hpp"

#if defined(QWYC_PORTABLE_ONLY)
#define QWYC_X86 0
#elif defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define QWYC_X86 1
#else
#define QWYC_X86 0
#endif

// NEON is a part of every 64-bit ARM processor, so its kernels need no other target.
#if defined(__aarch64__) && defined(__AARCH64EL__) && !defined(QWYC_PORTABLE_ONLY)
#define QWYC_NEON 1
#else
#define QWYC_NEON 0
#endif

#define QWYC_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define QWYC_TARGET_BEGIN(isa) \
    QWYC_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define QWYC_TARGET_END QWYC_PRAGMA(clang attribute pop)
#else
#define QWYC_TARGET_BEGIN(isa) QWYC_PRAGMA(GCC push_options) QWYC_PRAGMA(GCC target(isa))
#define QWYC_TARGET_END QWYC_PRAGMA(GCC pop_options)
#endif

namespace qwyc {

inline constexpr int32_t kWord = 64;
inline constexpr int32_t kTile = 64;  // rows that are encoded together

}  // namespace qwyc
