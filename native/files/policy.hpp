// Policies out of a file: when rows quit, of each target.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "files/container.hpp"

namespace qwyc::files {

enum class Target : uint8_t { kTwoClasses, kManyClasses, kOneClass, kWithin };

// Spans refer to the container.
struct PolicyParts {
    Target target = Target::kTwoClasses;
    double threshold = 0;                           // of two classes, and within a tolerance
    std::span<const int32_t> order;                 // (T,)
    std::span<const double> lower, upper;           // (T,) of two classes, and within a tolerance
    std::vector<double> lead;                       // (T, K) of many classes, or one
    std::span<const double> drop;                   // (T,) or none: where classes are ruled out
    int32_t only = -1;                              // the class of a filter
    std::span<const double> slope, knots, offsets;  // within a tolerance
    std::span<const int64_t> begin;                 // (T + 1,) of knots
    double tolerance = 0;
    std::vector<double> survival;  // (T,) the share of rows that reaches each step
};

Target target_of(const Json& facts);

// `facts` are those of the target. T base models of K scores. FileError where the policy is not
// sound.
PolicyParts read_policy(const Container& file, Target target, const Json& facts, int64_t T,
                        int64_t K);

// Checks what a certificate says, and sets the policy's survival by it.
void read_certificate(const Container& file, const Json& facts, int64_t n_classes,
                      PolicyParts& policy);

}  // namespace qwyc::files
