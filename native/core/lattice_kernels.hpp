// The hot loops of lattices, as a table of functions per instruction set. All give the same bits.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/lattices.hpp"

namespace qwyc {

// Arrays of n values may be read and written up to the next multiple of kLatticePad.
template <class Real>
struct LatticeKernels {
    std::string_view isa;

    // The outputs of a calibrator for n values.
    void (*calibrate)(const Calibrator<Real>& calibrator, const Real* x, int32_t n, Real* out);
    Real (*calibrate_one)(const Calibrator<Real>& calibrator, Real x);

    // The values of a lattice for n rows; inputs[i] are its i-th input's calibrated values.
    // `scratch` holds kLatticePad values for each of Lattices::scratch() + 1.
    void (*interpolate)(const Lattice<Real>& lattice, const Real* const* inputs, int32_t n,
                        Real* scratch, Real* out);

    // The same for one row. `scratch` holds Lattices::scratch() + kLatticePad values.
    Real (*interpolate_one)(const Lattice<Real>& lattice, const Real* inputs, Real* scratch);

    // Values of a base model become what it adds to running sums, and are added.
    void (*add)(double weight, const Grid& grid, int32_t n, Real* values, double* sums);

    // quits[i] = 1 where a sum is below `lower` or above `upper`, as `compare` in core/rule.hpp
    // says, and 0 elsewhere. Returns whether any is.
    bool (*compare)(const double* sums, int32_t n, double lower, double upper, uint8_t* quits);

    // floor(sum / width) of n sums.
    void (*bin)(const double* sums, int32_t n, double width, double* bins);

    // values[i] = values[keep[i]] for n rising positions.
    void (*move)(const int32_t* keep, int32_t n, Real* values);
};

// The kernels of the best instruction set that this machine runs, or of `isa`;
// std::invalid_argument where the machine does not run it. Defined in kernels/choose.cpp.
template <class Real>
const LatticeKernels<Real>& lattice_kernels(std::string_view isa = "");
template <>
const LatticeKernels<float>& lattice_kernels<float>(std::string_view isa);
template <>
const LatticeKernels<double>& lattice_kernels<double>(std::string_view isa);

}  // namespace qwyc
