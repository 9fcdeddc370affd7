// Lattices in one order, with a place for every calibrated feature that a later step needs again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/lattices.hpp"

namespace qwyc {

struct LatticeStep {
    std::vector<int32_t> calibrate;  // calibrators that no earlier step needed
    std::vector<int32_t> inputs;     // (n_inputs,) slots of the base model's inputs
    int32_t n_kept;                  // slots that hold what a later step needs
    double cost;                     // of the base model for a row, about, in nanoseconds
};

// A calibrator's outputs are kept in a slot from the step that first needs them to the last one.
struct LatticePlan {
    std::vector<int32_t> order;      // (T,) base model at each step
    std::vector<LatticeStep> steps;  // (T,)
    std::vector<int32_t> slot;       // (C,) of each calibrator; -1 where none needs it
    int32_t n_slots = 0;

    template <class Real>
    LatticePlan(const Lattices<Real>& lattices, std::span<const int32_t> order);

    int32_t n_steps() const { return static_cast<int32_t>(order.size()); }

    // Calibrators that steps before `step` needed and that are needed again.
    std::vector<int32_t> in_use(int32_t step) const;

    // The last step that needs a calibrator; -1 where none does.
    int32_t last_use(int32_t calibrator) const { return last_use_[calibrator]; }

  private:
    std::vector<int32_t> first_use_, last_use_;  // (C,) steps
};

}  // namespace qwyc
