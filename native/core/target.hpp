// Decision targets: what a full score decides, and what a quitting row is decided as.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/rule.hpp"

namespace qwyc {

// What a target must offer. Its decisions are what DecisionsOut holds for each row.
template <class T>
concept DecisionTarget = requires(const T& target, double full, Outcome outcome) {
    { target.decide(full) } -> std::same_as<uint8_t>;      // of a row that never quits
    { T::decision_of(outcome) } -> std::same_as<uint8_t>;  // of a row that quits
};

// Positive where the full score is at least the threshold. Decisions are 1 (positive) and 0.
// src/qwyc/target/two_classes.py has the same rule.
struct TwoClasses {
    double threshold;  // the paper's beta

    uint8_t decide(double full) const { return full >= threshold; }
    bool is_negative(double full) const { return !decide(full); }

    static uint8_t decision_of(Outcome quit) { return quit == Outcome::kPositive; }
};
static_assert(DecisionTarget<TwoClasses>);

}  // namespace qwyc
