// Arrays from and to Python, and checks of arguments.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <tuple>
#include <vector>

#include "core/policy.hpp"
#include "core/rows_view.hpp"

namespace qwyc {

namespace nb = nanobind;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // of any strides
template <class T>
using OutVector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <class T>
using OutMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <class T>
std::span<const T> span(const Vector<T>& array) {
    return {array.data(), array.shape(0)};
}

// Strides may be anything where there are not two rows, or two columns, to count from.
template <class T>
RowsView<T> view(const Rows<T>& rows) {
    const auto n = static_cast<int64_t>(rows.shape(0)), width = static_cast<int64_t>(rows.shape(1));
    const int64_t column = width > 1 ? rows.stride(1) : 1;
    return {rows.data(), n, width, n > 1 ? rows.stride(0) : column == 1 ? width : 1, column};
}

// A new NumPy array that owns its memory; `data` gives access for filling it.
template <class T>
OutVector<T> new_vector(int64_t n, T*& data) {
    data = new T[static_cast<size_t>(n)];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return OutVector<T>(data, {static_cast<size_t>(n)}, owner);
}

template <class T>
OutMatrix<T> new_matrix(int64_t rows, int64_t columns, T*& data) {
    data = new T[static_cast<size_t>(rows) * static_cast<size_t>(columns)];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return OutMatrix<T>(data, {static_cast<size_t>(rows), static_cast<size_t>(columns)}, owner);
}

template <class T>
OutVector<T> to_numpy(const std::vector<T>& values) {
    T* data;
    auto out = new_vector<T>(static_cast<int64_t>(values.size()), data);
    std::copy(values.begin(), values.end(), data);
    return out;
}

inline void require(bool ok, const char* message) {
    if (!ok) throw std::invalid_argument(message);
}

inline void check_order(int64_t n_models, const Vector<int32_t>& order) {
    require(static_cast<int64_t>(order.shape(0)) == n_models,
            "order must have one entry per base model");
    std::vector<bool> seen(n_models, false);
    for (int32_t t : span(order)) {
        require(t >= 0 && t < n_models && !seen[t], "order must name every base model once");
        seen[t] = true;
    }
}

inline PolicyView policy_view(int64_t n_models, const Vector<int32_t>& order,
                              const Vector<double>& lower, const Vector<double>& upper,
                              double threshold) {
    check_order(n_models, order);
    require(lower.shape(0) == order.shape(0) && upper.shape(0) == order.shape(0),
            "lower and upper must have one entry per base model");
    for (size_t r = 0; r < order.shape(0); ++r)
        require(lower.data()[r] <= upper.data()[r], "lower must not exceed upper at any step");
    return {span(order), {span(lower), span(upper)}, {threshold}};
}

inline FanView fan_view(int64_t n_models, const Vector<int32_t>& order,
                        const Vector<int64_t>& bin_begin, const Vector<int64_t>& bin,
                        const Vector<double>& lower, const Vector<double>& upper, double bin_width,
                        double threshold) {
    check_order(n_models, order);
    require(bin_begin.shape(0) == order.shape(0) + 1 && bin_width > 0,
            "bin_begin must have one entry more than there are steps, bin_width be positive");
    require(bin.shape(0) == lower.shape(0) && bin.shape(0) == upper.shape(0) &&
                bin_begin.data()[order.shape(0)] == static_cast<int64_t>(bin.shape(0)),
            "bins, lower and upper must have equal lengths");
    for (size_t r = 0; r < order.shape(0); ++r)
        require(bin_begin.data()[0] == 0 && bin_begin.data()[r] <= bin_begin.data()[r + 1],
                "bin_begin must start at 0 and never fall");
    return {span(order),
            {span(bin_begin), span(bin), span(lower), span(upper), bin_width},
            {threshold}};
}

using DecisionArrays = std::tuple<OutVector<uint8_t>, OutVector<int32_t>, OutVector<double>>;

// Allocates the three result arrays, lets `run` fill them without the GIL, returns them.
template <class Run>
DecisionArrays collect_decisions(int64_t n, Run run) {
    DecisionsOut out{};
    auto positive = new_vector<uint8_t>(n, out.positive);
    auto steps = new_vector<int32_t>(n, out.steps);
    auto score = new_vector<double>(n, out.score);
    {
        nb::gil_scoped_release release;
        run(out);
    }
    return {std::move(positive), std::move(steps), std::move(score)};
}

// Each adds the classes and functions of one file to the module.
void bind_forest(nb::module_& m);
void bind_lattices(nb::module_& m);
void bind_quitter(nb::module_& m);
void bind_class_trees(nb::module_& m);
void bind_combinations(nb::module_& m);
void bind_outputs(nb::module_& m);
void bind_tables(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_monitoring(nb::module_& m);
void bind_one_row(nb::module_& m);
void bind_one_value(nb::module_& m);
void bind_plain_arrays(nb::module_& m);
void bind_fitting(nb::module_& m);

}  // namespace qwyc
