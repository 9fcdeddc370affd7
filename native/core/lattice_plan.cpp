#include "core/lattice_plan.hpp"

namespace qwyc {

namespace {

// What a base model takes for a row of a large batch, in nanoseconds, measured on a 2023 Xeon with
// AVX-512. Only ratios to the cost of moving rows matter, and only for speed.
template <class Real>
double nanoseconds(const Lattices<Real>& lattices, const Lattice<Real>& lattice) {
    const double operations = lattices.operations(lattice) * sizeof(Real) / sizeof(float);
    const bool streams = lattice.interpolation == Interpolation::kHypercube && lattice.binary;
    return 0.5 + operations * (streams ? 0.02 : 0.2);
}

}  // namespace

template <class Real>
LatticePlan::LatticePlan(const Lattices<Real>& lattices, std::span<const int32_t> order)
    : order(order.begin(), order.end()),
      steps(order.size()),
      slot(lattices.calibrators().size(), -1),
      first_use_(slot.size(), n_steps()),
      last_use_(slot.size(), -1) {
    const auto inputs_of = [&](int32_t r) {
        const Lattice<Real>& lattice = lattices.lattices()[this->order[r]];
        return std::span<const int32_t>(lattice.input, lattice.n_inputs);
    };
    for (int32_t r = 0; r < n_steps(); ++r) {
        for (int32_t c : inputs_of(r)) {
            if (last_use_[c] < 0) {
                first_use_[c] = r;
                steps[r].calibrate.push_back(c);
            }
            last_use_[c] = r;
        }
    }
    std::vector<bool> freed(slot.size(), false);
    std::vector<int32_t> unused;  // slots
    int32_t held = 0;             // slots in use
    for (int32_t r = 0; r < n_steps(); ++r) {
        for (int32_t c : steps[r].calibrate) {
            if (unused.empty()) unused.push_back(n_slots++);
            slot[c] = unused.back();
            unused.pop_back();
            ++held;
        }
        for (int32_t c : inputs_of(r)) steps[r].inputs.push_back(slot[c]);
        for (int32_t c : inputs_of(r)) {
            if (last_use_[c] > r || freed[c]) continue;  // an input may be there twice
            freed[c] = true;
            unused.push_back(slot[c]);
            --held;
        }
        steps[r].n_kept = held;
        steps[r].cost = nanoseconds(lattices, lattices.lattices()[this->order[r]]);
    }
}

std::vector<int32_t> LatticePlan::in_use(int32_t step) const {
    std::vector<int32_t> found;
    for (int32_t c = 0; c < static_cast<int32_t>(slot.size()); ++c)
        if (first_use_[c] < step && last_use_[c] >= step) found.push_back(c);
    return found;
}

template LatticePlan::LatticePlan(const Lattices<float>&, std::span<const int32_t>);
template LatticePlan::LatticePlan(const Lattices<double>&, std::span<const int32_t>);

}  // namespace qwyc
