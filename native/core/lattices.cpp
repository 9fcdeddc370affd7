#include "core/lattices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/float_mode.hpp"

namespace qwyc {

namespace {

void require(bool ok, const char* message) {
    if (!ok) throw std::invalid_argument(message);
}

[[noreturn]] void refuse(const char* what, int64_t i, const char* message) {
    throw std::invalid_argument(std::string(what) + " " + std::to_string(i) + " " + message);
}

// Whether `begin` divides `size` entries among `n` parts.
bool divides(std::span<const int64_t> begin, size_t n, size_t size) {
    if (begin.size() != n + 1 || begin[0] != 0) return false;
    for (size_t i = 0; i < n; ++i)
        if (begin[i + 1] < begin[i]) return false;
    return begin[n] == static_cast<int64_t>(size);
}

template <class Real>
bool all_finite(std::span<const Real> values) {
    return std::all_of(values.begin(), values.end(), [](Real x) { return std::isfinite(x); });
}

}  // namespace

Grid Grid::of(double total) {
    int exponent = 0;
    if (total > 0 && std::frexp(total, &exponent) == 0.5) --exponent;  // 2^exponent >= total
    return {std::ldexp(1.5, exponent + 1)};  // 1.5 * 2^52 steps of 2^(exponent - 51)
}

template <class Real>
std::pair<Real, Real> Calibrator<Real>::range() const {
    Real low = least, high = most;
    const auto widen = [&](Real y) {
        low = std::min(low, y);
        high = std::max(high, y);
    };
    if (has_missing) widen(missing_output);
    if (kind == CalibratorKind::kCategorical) widen(other_output);
    return {low, high};
}

template <class Real>
Lattices<Real>::Lattices(const FlatLattices<Real>& flat, int64_t n_features, double base)
    : n_features_(n_features) {
    const PlainFloats plain;  // slopes, ranges and the grid are part of what is computed
    require(n_features >= 0 && n_features < (int64_t{1} << 27), "too many features");
    require(std::isfinite(base), "the base must be finite");
    const size_t C = flat.calibrator_kind.size(), T = flat.interpolation.size();
    require(T > 0, "there are no base models");
    require(T < (size_t{1} << 31) && C < (size_t{1} << 31), "there are too many base models");
    require(flat.calibrator_feature.size() == C && flat.has_missing.size() == C &&
                flat.missing_value.size() == C && flat.missing_output.size() == C &&
                flat.other_output.size() == C,
            "arrays of calibrators must have one entry per calibrator");
    require(flat.weight.size() == T, "weight must have one entry per base model");
    require(
        flat.output.size() == flat.point.size() && divides(flat.point_begin, C, flat.point.size()),
        "point_begin must divide the keypoints among the calibrators");
    require(
        flat.size.size() == flat.input.size() && divides(flat.input_begin, T, flat.input.size()),
        "input_begin must divide the inputs among the base models");
    require(divides(flat.vertex_begin, T, flat.vertex.size()),
            "vertex_begin must divide the vertices among the base models");
    require(all_finite(flat.point) && all_finite(flat.output) && all_finite(flat.vertex) &&
                all_finite(flat.missing_output) && all_finite(flat.other_output) &&
                all_finite(flat.weight),
            "keypoints, outputs, vertices and weights must be finite");
    add_calibrators(flat);
    add_lattices(flat);
    set_grid(base);
}

template <class Real>
void Lattices<Real>::add_calibrators(const FlatLattices<Real>& flat) {
    point_.assign(flat.point.begin(), flat.point.end());
    output_.assign(flat.output.begin(), flat.output.end());
    slope_.assign(point_.size(), 0);
    for (size_t c = 0; c < flat.calibrator_kind.size(); ++c) {
        if (flat.calibrator_kind[c] > 1) refuse("calibrator", c, "is of an unknown kind");
        const auto kind = static_cast<CalibratorKind>(flat.calibrator_kind[c]);
        const bool categorical = kind == CalibratorKind::kCategorical;
        const int32_t feature = flat.calibrator_feature[c];
        if (feature < 0 || feature >= n_features_) refuse("calibrator", c, "has no such feature");
        if (flat.has_missing[c] > 1) refuse("calibrator", c, "must have a missing value or none");
        if (flat.has_missing[c] && std::isinf(flat.missing_value[c]))
            refuse("calibrator", c, "has an infinite missing value");
        const int64_t begin = flat.point_begin[c], count = flat.point_begin[c + 1] - begin;
        if (count < (categorical ? 1 : 2) || count > (1 << 24))
            refuse("calibrator", c, "has too few or too many keypoints");
        const Real *point = point_.data() + begin, *output = output_.data() + begin;
        for (int64_t k = 0; k + 1 < count && !categorical; ++k) {
            const Real length = point[k + 1] - point[k];
            const Real slope = (output[k + 1] - output[k]) / length;
            if (!(point[k] < point[k + 1]) || !std::isfinite(length) || !std::isfinite(slope))
                refuse("calibrator", c, "must have rising keypoints and finite slopes");
            slope_[begin + k] = slope;
        }
        const auto [least, most] = std::minmax_element(output, output + count);
        calibrators_.push_back({kind, flat.has_missing[c] != 0, feature,
                                static_cast<int32_t>(count), point, output, slope_.data() + begin,
                                *least, *most, flat.missing_value[c], flat.missing_output[c],
                                flat.other_output[c]});
    }
}

template <class Real>
void Lattices<Real>::add_lattices(const FlatLattices<Real>& flat) {
    input_.assign(flat.input.begin(), flat.input.end());
    size_.assign(flat.size.begin(), flat.size.end());
    stride_.assign(flat.size.size(), 0);
    vertex_.assign(flat.vertex.begin(), flat.vertex.end());
    vertex_.resize(vertex_.size() + kLatticePad);  // kernels load whole registers
    for (int32_t input : input_)
        require(input >= 0 && input < static_cast<int64_t>(calibrators_.size()),
                "an input names a calibrator that there is not");
    networks_.resize(kMaxInputs + 1);
    const size_t T = flat.interpolation.size();
    lattices_.reserve(T);
    for (size_t t = 0; t < T; ++t) lattices_.push_back(lattice(flat, static_cast<int64_t>(t)));
}

// Base model t, checked.
template <class Real>
Lattice<Real> Lattices<Real>::lattice(const FlatLattices<Real>& flat, int64_t t) {
    constexpr const char* kName = "base model";
    if (flat.interpolation[t] > 2) refuse(kName, t, "is interpolated in an unknown way");
    Lattice<Real> made{};
    made.interpolation = static_cast<Interpolation>(flat.interpolation[t]);
    made.weight = flat.weight[t];
    const int64_t first = flat.input_begin[t], d = flat.input_begin[t + 1] - first;
    const bool linear = made.interpolation == Interpolation::kLinear;
    if (d < 1 || d > kMaxInputs) refuse(kName, t, "has too few or too many inputs");
    made.n_inputs = static_cast<int32_t>(d);
    made.input = input_.data() + first;
    made.size = size_.data() + first;
    made.stride = stride_.data() + first;
    made.vertex = vertex_.data() + flat.vertex_begin[t];
    made.n_vertices = flat.vertex_begin[t + 1] - flat.vertex_begin[t];
    made.binary = true;
    int64_t vertices = 1;
    for (int64_t i = d - 1; i >= 0 && !linear; --i) {
        if (made.size[i] < 2) refuse(kName, t, "must have two vertices or more along each input");
        if (made.size[i] > kMaxSize) refuse(kName, t, "has too many vertices along an input");
        made.binary = made.binary && made.size[i] == 2;
        stride_[first + i] = static_cast<int32_t>(vertices);
        vertices *= made.size[i];
        if (vertices > kMaxVertices) refuse(kName, t, "has too many vertices");
    }
    if (made.n_vertices != (linear ? d + 1 : vertices))
        refuse(kName, t, "must have one value per vertex");
    for (int64_t v = 0; v < made.n_vertices; ++v)  // differences of values must be finite
        if (std::abs(made.vertex[v]) > std::numeric_limits<Real>::max() / 4)
            refuse(kName, t, "has a value that is too large");
    if (made.interpolation == Interpolation::kHypercube) {
        scratch_ = std::max(scratch_, made.n_blocks());
        if (!made.binary) {
            std::vector<int32_t> corner(size_t{1} << d, 0);
            for (int64_t at = 0; at < static_cast<int64_t>(corner.size()); ++at)
                for (int64_t i = 0; i < d; ++i)
                    if (at >> (d - 1 - i) & 1) corner[at] += made.stride[i];
            made.corner = corner.data();
            corner_.push_back(std::move(corner));
        }
    } else if (made.interpolation == Interpolation::kSimplex) {
        if (networks_[d].empty()) networks_[d] = sorting_network(made.n_inputs);
        made.network = networks_[d].data();
        made.n_comparators = static_cast<int32_t>(networks_[d].size());
    }
    set_range(made);
    return made;
}

template <class Real>
void Lattices<Real>::set_range(Lattice<Real>& lattice) const {
    if (lattice.interpolation != Interpolation::kLinear) {
        const auto [least, most] =
            std::minmax_element(lattice.vertex, lattice.vertex + lattice.n_vertices);
        lattice.least = *least, lattice.most = *most;
        return;
    }
    // The sum that an evaluation computes, at both ends of each input.
    lattice.least = lattice.most = lattice.vertex[lattice.n_inputs];
    for (int32_t i = 0; i < lattice.n_inputs; ++i) {
        const auto [low, high] = calibrators_[lattice.input[i]].range();
        const Real weight = lattice.vertex[i];
        lattice.least = std::fma(weight, weight < 0 ? high : low, lattice.least);
        lattice.most = std::fma(weight, weight < 0 ? low : high, lattice.most);
    }
    require(std::isfinite(lattice.least) && std::isfinite(lattice.most),
            "a linear base model has values that are not finite");
}

template <class Real>
void Lattices<Real>::set_grid(double base) {
    total_ = std::abs(base);
    for (const Lattice<Real>& lattice : lattices_)
        total_ += std::max(
            std::abs(static_cast<double>(static_cast<Real>(lattice.least * lattice.weight))),
            std::abs(static_cast<double>(static_cast<Real>(lattice.most * lattice.weight))));
    require(total_ < 1e300, "the base models' values are too large to be summed");
    grid_ = Grid::of(total_);
    base_ = grid_.round(base);
    for (const Lattice<Real>& lattice : lattices_)  // a large base makes the grid coarse
        require(std::isfinite(step(lattice, lattice.least)) &&
                    std::isfinite(step(lattice, lattice.most)),
                "a base model's value is too large to be rounded to the grid");
}

template <class Real>
std::pair<double, double> Lattices<Real>::bounds(int64_t t) const {
    const PlainFloats plain;
    const Lattice<Real>& of = lattices_[t];
    const double a = step(of, of.least), b = step(of, of.most);
    return {std::min(a, b), std::max(a, b)};
}

template <class Real>
double Lattices<Real>::operations(const Lattice<Real>& lattice) const {
    switch (lattice.interpolation) {
        case Interpolation::kHypercube:
            return std::ldexp(1.0, lattice.n_inputs);
        case Interpolation::kSimplex:
            return lattice.n_comparators + lattice.n_inputs + 1;
        default:
            return lattice.n_inputs;
    }
}

template <class Real>
double Lattices<Real>::operations(const Calibrator<Real>& calibrator) const {
    return calibrator.kind == CalibratorKind::kCategorical ? 1 : calibrator.count;
}

// Batcher's odd-even merge sort for the next power of two, without the comparators of positions
// that there are not: those would hold values below all others, which stay where they are.
std::vector<Comparator> sorting_network(int32_t n) {
    std::vector<Comparator> network;
    int32_t whole = 1;
    while (whole < n) whole *= 2;
    for (int32_t p = 1; p < whole; p *= 2)
        for (int32_t k = p; k >= 1; k /= 2)
            for (int32_t j = k % p; j + k < whole; j += 2 * k)
                for (int32_t i = 0; i < k; ++i) {
                    const int32_t a = i + j, b = i + j + k;
                    if (a / (2 * p) == b / (2 * p) && b < n) network.push_back({a, b});
                }
    return network;
}

template struct Calibrator<float>;
template struct Calibrator<double>;
template class Lattices<float>;
template class Lattices<double>;

}  // namespace qwyc
