// Random lattices, and their values by plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/lattices.hpp"
#include "tests/forests.hpp"

namespace qwyc::tests {

// The arrays of an ensemble, by hand or at random.
template <class Real>
struct Arrays {
    std::vector<uint8_t> calibrator_kind, has_missing, interpolation;
    std::vector<int32_t> calibrator_feature, input, size;
    std::vector<int64_t> point_begin{0}, input_begin{0}, vertex_begin{0};
    std::vector<Real> point, output, missing_value, missing_output, other_output, vertex;
    std::vector<double> weight;
    int32_t n_features = 0;
    double base = 0;

    FlatLattices<Real> flat() const {
        return {calibrator_kind, calibrator_feature, point_begin,    point,        output,
                has_missing,     missing_value,      missing_output, other_output, interpolation,
                weight,          input_begin,        input,          size,         vertex_begin,
                vertex};
    }
    int32_t n_models() const { return static_cast<int32_t>(weight.size()); }

    void add_calibrator(CalibratorKind kind, int32_t feature, const std::vector<Real>& points,
                        const std::vector<Real>& outputs) {
        calibrator_kind.push_back(static_cast<uint8_t>(kind));
        calibrator_feature.push_back(feature);
        point.insert(point.end(), points.begin(), points.end());
        output.insert(output.end(), outputs.begin(), outputs.end());
        point_begin.push_back(static_cast<int64_t>(point.size()));
        has_missing.push_back(0);
        missing_value.push_back(0), missing_output.push_back(0), other_output.push_back(0);
    }
    void set_missing(Real value, Real missing) {
        has_missing.back() = 1, missing_value.back() = value, missing_output.back() = missing;
    }
    void add_model(Interpolation how, const std::vector<int32_t>& inputs,
                   const std::vector<int32_t>& sizes, const std::vector<Real>& vertices,
                   double times) {
        interpolation.push_back(static_cast<uint8_t>(how));
        input.insert(input.end(), inputs.begin(), inputs.end());
        size.insert(size.end(), sizes.begin(), sizes.end());
        vertex.insert(vertex.end(), vertices.begin(), vertices.end());
        input_begin.push_back(static_cast<int64_t>(input.size()));
        vertex_begin.push_back(static_cast<int64_t>(vertex.size()));
        weight.push_back(times);
    }
};

template <class Real>
Arrays<Real> random_lattices(uint64_t seed, int32_t most_inputs = 9) {
    Random random(seed);
    const auto real = [&] { return static_cast<Real>(random.normal()); };
    Arrays<Real> made;
    made.n_features = 4 + random.below(6);
    made.base = random.normal();
    for (int32_t feature = 0; feature < made.n_features; ++feature)
        for (int32_t copies = 1 + random.below(2); copies > 0; --copies) {
            const bool categorical = random.below(4) == 0;
            const int32_t sizes[] = {2, 3, 10, 31, 33, 70};
            const int32_t count = categorical ? 1 + random.below(6) : sizes[random.below(6)];
            std::vector<Real> points, outputs;
            for (int32_t k = 0; k < count; ++k) {
                points.push_back(categorical ? static_cast<Real>(k) : real());
                outputs.push_back(static_cast<Real>(3 * random.uniform() - 0.5));
            }
            std::sort(points.begin(), points.end());
            made.add_calibrator(
                categorical ? CalibratorKind::kCategorical : CalibratorKind::kPiecewiseLinear,
                feature, points, outputs);
            made.other_output.back() = categorical ? static_cast<Real>(0.25) : 0;
            if (random.below(2))
                made.set_missing(random.below(2) ? std::numeric_limits<Real>::quiet_NaN() : -1,
                                 static_cast<Real>(random.uniform()));
        }
    const auto n_calibrators = static_cast<int32_t>(made.calibrator_kind.size());
    for (int32_t models = 1 + random.below(12); models > 0; --models) {
        const auto how = static_cast<Interpolation>(random.below(3));
        const int32_t d = 1 + random.below(most_inputs);
        std::vector<int32_t> inputs, sizes;
        const bool binary = random.below(2);
        int64_t vertices = 1;
        for (int32_t i = 0; i < d; ++i) {
            inputs.push_back(random.below(n_calibrators));
            sizes.push_back(how == Interpolation::kLinear ? 0 : binary ? 2 : 2 + random.below(3));
            vertices *= std::max(sizes.back(), 1);
        }
        std::vector<Real> values(how == Interpolation::kLinear ? d + 1 : vertices);
        std::generate(values.begin(), values.end(), real);
        made.add_model(how, inputs, sizes, values, random.normal());
    }
    return made;
}

// What calibrator c makes of a value.
template <class Real>
Real calibrated(const Arrays<Real>& of, int32_t c, Real x) {
    const int64_t begin = of.point_begin[c], end = of.point_begin[c + 1];
    const auto is_missing = [&](Real value) {
        const Real missing = of.missing_value[c];
        return of.has_missing[c] &&
               (value == missing || (std::isnan(value) && std::isnan(missing)));
    };
    if (of.calibrator_kind[c] == 1) {
        const Real code = std::trunc(x);
        if (is_missing(code)) return of.missing_output[c];
        if (!(code >= 0 && code < static_cast<Real>(end - begin))) return of.other_output[c];
        return of.output[begin + static_cast<int64_t>(code)];
    }
    if (is_missing(x)) return of.missing_output[c];
    if (!(x > of.point[begin])) x = of.point[begin];
    if (!(x < of.point[end - 1])) x = of.point[end - 1];
    int64_t k = begin;
    while (k + 1 < end && of.point[k + 1] <= x) ++k;
    const Real slope =
        k + 1 < end ? (of.output[k + 1] - of.output[k]) / (of.point[k + 1] - of.point[k]) : 0;
    const auto [least, most] =
        std::minmax_element(of.output.begin() + begin, of.output.begin() + end);
    return std::clamp(std::fma(x - of.point[k], slope, of.output[k]), *least, *most);
}

// Base model t for calibrated inputs.
template <class Real>
Real lattice_value(const Arrays<Real>& of, int32_t t, const std::vector<Real>& inputs) {
    const auto d = static_cast<int32_t>(inputs.size());
    const Real* vertex = of.vertex.data() + of.vertex_begin[t];
    const auto how = static_cast<Interpolation>(of.interpolation[t]);
    if (how == Interpolation::kLinear) {
        Real sum = vertex[d];
        for (int32_t i = 0; i < d; ++i) sum = std::fma(vertex[i], inputs[i], sum);
        return sum;
    }
    std::vector<int64_t> stride(d, 1);
    const int32_t* size = of.size.data() + of.input_begin[t];
    for (int32_t i = d - 2; i >= 0; --i) stride[i] = stride[i + 1] * size[i + 1];
    std::vector<Real> within(d);
    int64_t first = 0;
    for (int32_t i = 0; i < d; ++i) {
        const Real z = std::clamp<Real>(inputs[i], 0, static_cast<Real>(size[i] - 1));
        const auto cell = std::min<int64_t>(static_cast<int64_t>(z), size[i] - 2);
        within[i] = z - static_cast<Real>(cell);
        first += cell * stride[i];
    }
    const auto [least, most] =
        std::minmax_element(vertex, of.vertex.data() + of.vertex_begin[t + 1]);
    if (how == Interpolation::kSimplex) {
        std::vector<std::pair<Real, int64_t>> by_size;
        for (int32_t i = 0; i < d; ++i) by_size.push_back({within[i], stride[i]});
        std::sort(by_size.begin(), by_size.end(),
                  [](const auto& a, const auto& b) { return a.first > b.first; });
        by_size.push_back({0, 0});
        Real sum = (1 - by_size[0].first) * vertex[first];
        for (int32_t i = 0; i < d; ++i) {
            first += by_size[i].second;
            sum = std::fma(by_size[i].first - by_size[i + 1].first, vertex[first], sum);
        }
        return std::clamp(sum, *least, *most);
    }
    const int32_t inner = std::min(d, 3);
    std::vector<Real> weights{1};
    for (int32_t i = 0; i < inner; ++i) {
        std::vector<Real> next;
        for (Real w : weights) next.push_back(w * (1 - within[i])), next.push_back(w * within[i]);
        weights = next;
    }
    const int64_t blocks = int64_t{1} << (d - inner);
    const auto corner = [&](int64_t at) {
        int64_t offset = first;
        for (int32_t i = 0; i < d; ++i) offset += (at >> (d - 1 - i) & 1) * stride[i];
        return vertex[offset];
    };
    std::vector<Real> sums(blocks);
    for (int64_t b = 0; b < blocks; ++b) {
        sums[b] = weights[0] * corner(b);
        for (size_t i = 1; i < weights.size(); ++i)
            sums[b] = std::fma(weights[i], corner(static_cast<int64_t>(i) * blocks + b), sums[b]);
    }
    for (int32_t i = inner; i < d; ++i) {
        const size_t half = sums.size() / 2;
        for (size_t b = 0; b < half; ++b)
            sums[b] = std::fma(within[i], sums[b + half] - sums[b], sums[b]);
        sums.resize(half);
    }
    return std::clamp(sums[0], *least, *most);
}

// (T, n) what each base model adds, before it is rounded to the grid.
template <class Real, class In>
std::vector<Real> lattice_values(const Arrays<Real>& of, const std::vector<In>& rows) {
    std::vector<Real> values;
    for (int32_t t = 0; t < of.n_models(); ++t)
        for (size_t at = 0; at < rows.size(); at += of.n_features) {
            std::vector<Real> inputs;
            for (int64_t i = of.input_begin[t]; i < of.input_begin[t + 1]; ++i) {
                const int32_t c = of.input[i];
                inputs.push_back(
                    calibrated(of, c, static_cast<Real>(rows[at + of.calibrator_feature[c]])));
            }
            values.push_back(static_cast<Real>(lattice_value(of, t, inputs) * of.weight[t]));
        }
    return values;
}

}  // namespace qwyc::tests
