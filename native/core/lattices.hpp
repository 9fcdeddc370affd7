// An ensemble of lattices: interpolated look-up tables over calibrated features.
//
// docs/decisions/0015-lattices.md has the reasons for the arithmetic. In short: every operation is
// defined to the last bit, with fused multiply-adds, and each base model's value is rounded to a
// grid on which all sums are exact. So neither the instruction set, nor the number of rows, nor
// the order of the base models changes a score.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace qwyc {

// The numbers of qwyc.model.lattices.models.CalibratorKind and Interpolation; a test compares them.
enum class CalibratorKind : uint8_t { kPiecewiseLinear = 0, kCategorical = 1 };
enum class Interpolation : uint8_t { kHypercube = 0, kSimplex = 1, kLinear = 2 };

inline constexpr int32_t kMaxInputs = 20;      // of one base model
inline constexpr int32_t kMaxInnerInputs = 3;  // of a hypercube: the others are halved
inline constexpr int64_t kMaxVertices = int64_t{1} << 26;
inline constexpr int32_t kMaxSize = 1 << 24;  // along one input: float holds all places up to here
inline constexpr int32_t kLatticePad = 16;    // values that kernels may read or write past an end

// The arrays of an ensemble, as in qwyc.model.lattices.models.LatticeArrays.
template <class Real>
struct FlatLattices {
    std::span<const uint8_t> calibrator_kind;     // (C,)
    std::span<const int32_t> calibrator_feature;  // (C,)
    std::span<const int64_t> point_begin;         // (C + 1,) into point and output
    std::span<const Real> point, output;          // keypoints (or codes) and their outputs
    std::span<const uint8_t> has_missing;         // (C,)
    std::span<const Real> missing_value, missing_output, other_output;  // (C,)
    std::span<const uint8_t> interpolation;                             // (T,)
    std::span<const double> weight;                                     // (T,)
    std::span<const int64_t> input_begin;                               // (T + 1,)
    std::span<const int32_t> input, size;   // calibrators, and vertices along each
    std::span<const int64_t> vertex_begin;  // (T + 1,)
    std::span<const Real> vertex;           // row-major, the first input is the slowest
};

// From a feature's value to a number.
template <class Real>
struct Calibrator {
    CalibratorKind kind;
    bool has_missing;
    int32_t feature;
    int32_t count;        // keypoints, or categories
    const Real* point;    // (count,) rising
    const Real* output;   // (count,)
    const Real* slope;    // (count,) from each keypoint to the next; 0 at the last
    Real least, most;     // of the outputs
    Real missing_value;   // NaN: NaN is missing
    Real missing_output;  // where has_missing
    Real other_output;    // of a code that is not in the table

    bool is_missing(Real x) const {
        return has_missing && (x == missing_value || (x != x && missing_value != missing_value));
    }
    // All outputs that there can be.
    std::pair<Real, Real> range() const;
};

// Two positions of a list; a sorting network puts the greater value at the first.
struct Comparator {
    int32_t first, second;
};

// A base model. A lattice has a value at each vertex; between vertices it is interpolated.
template <class Real>
struct Lattice {
    Interpolation interpolation;
    bool binary;  // two vertices along every input
    int32_t n_inputs;
    int64_t n_vertices;
    const int32_t* input;       // (n_inputs,) calibrators
    const int32_t* size;        // (n_inputs,)
    const int32_t* stride;      // (n_inputs,) in vertices
    const Real* vertex;         // (n_vertices,); linear: the weights, then the constant
    const int32_t* corner;      // (2^n_inputs,) offsets of a cell's corners; hypercube, not binary
    const Comparator* network;  // sorts n_inputs values; simplex
    int32_t n_comparators;
    Real least, most;  // of the vertices; of all values for a linear base model
    double weight;

    int32_t inner() const { return n_inputs < kMaxInnerInputs ? n_inputs : kMaxInnerInputs; }
    // Corners of a cell for each inner one.
    int64_t n_blocks() const { return int64_t{1} << (n_inputs - inner()); }
};

// The grid on which sums are exact: multiples of a power of two.
struct Grid {
    double shift = 0x1.8p52;  // 1.5 * 2^52 steps: adding it and taking it away rounds to a step

    double round(double x) const { return (x + shift) - shift; }
    // For sums whose terms add up to `total` at most, in absolute value.
    static Grid of(double total);
};

template <class Real>
class Lattices {
  public:
    // Validates all arrays, which may come from hostile files: std::invalid_argument where an
    // evaluation could leave the arrays or give a number that is not finite.
    Lattices(const FlatLattices<Real>& flat, int64_t n_features, double base);

    // Calibrators and lattices point into this object's arrays.
    Lattices(const Lattices&) = delete;
    Lattices& operator=(const Lattices&) = delete;

    int64_t n_models() const { return static_cast<int64_t>(lattices_.size()); }
    int64_t n_features() const { return n_features_; }
    std::span<const Calibrator<Real>> calibrators() const { return calibrators_; }
    std::span<const Lattice<Real>> lattices() const { return lattices_; }

    double base() const { return base_; }    // on the grid
    double total() const { return total_; }  // no partial sum exceeds it, in absolute value
    const Grid& grid() const { return grid_; }

    // What base model t adds to a running sum for its own value.
    Real step(const Lattice<Real>& lattice, Real value) const {
        return static_cast<Real>(grid_.round(static_cast<Real>(value * lattice.weight)));
    }
    // The least and the most that base model t can add.
    std::pair<double, double> bounds(int64_t t) const;

    // Operations that a base model and a calibrator take for a row: multiply-adds, comparisons and
    // look-ups.
    double operations(const Lattice<Real>& lattice) const;
    double operations(const Calibrator<Real>& calibrator) const;

    // The values that an evaluation of the largest base model keeps for one row.
    int64_t scratch() const { return scratch_; }

  private:
    void add_calibrators(const FlatLattices<Real>& flat);
    void add_lattices(const FlatLattices<Real>& flat);
    Lattice<Real> lattice(const FlatLattices<Real>& flat, int64_t t);
    void set_range(Lattice<Real>& lattice) const;
    void set_grid(double base);

    std::vector<Calibrator<Real>> calibrators_;
    std::vector<Lattice<Real>> lattices_;
    std::vector<Real> point_, output_, slope_, vertex_;
    std::vector<int32_t> input_, size_, stride_;
    std::vector<std::vector<int32_t>> corner_;
    std::vector<std::vector<Comparator>> networks_;  // by number of inputs
    int64_t n_features_, scratch_ = 1;
    double base_ = 0, total_ = 0;
    Grid grid_;
};

// A sorting network for n values, by Batcher's method.
std::vector<Comparator> sorting_network(int32_t n);

extern template struct Calibrator<float>;
extern template struct Calibrator<double>;
extern template class Lattices<float>;
extern template class Lattices<double>;

}  // namespace qwyc
