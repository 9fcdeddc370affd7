// Policies along a path from Python, and what is counted of them.
#pragma once

#include <algorithm>

#include "core/path.hpp"
#include "python/arrays.hpp"

namespace qwyc {

inline PathView path_view(int64_t n_models, const Vector<int32_t>& order,
                          const Matrix<double>& lower, const Matrix<double>& upper,
                          double threshold) {
    check_order(n_models, order);
    const auto K = static_cast<int64_t>(lower.shape(0));
    require(K > 0 && static_cast<int64_t>(upper.shape(0)) == K &&
                static_cast<int64_t>(lower.shape(1)) == n_models &&
                static_cast<int64_t>(upper.shape(1)) == n_models,
            "lower and upper must be (K, T)");
    const auto size = static_cast<size_t>(K * n_models);
    return {span(order), {lower.data(), size}, {upper.data(), size}, threshold, K};
}

// NumPy arrays for the counts of n rows.
struct PathArrays {
    PathCountsOut out;
    OutMatrix<int64_t> stops, differences;
    OutMatrix<uint64_t> wrong;

    PathArrays(const PathView& path, int64_t n, bool with_wrong) {
        const int64_t K = path.n_policies, T = static_cast<int64_t>(path.order.size());
        stops = new_matrix<int64_t>(K, T, out.stops);
        differences = new_matrix<int64_t>(K, 2, out.differences);
        wrong = new_matrix<uint64_t>(with_wrong ? n : 0, path_words(K), out.wrong);
        std::fill_n(out.stops, K * T, int64_t{0});
        std::fill_n(out.differences, 2 * K, int64_t{0});
        if (!with_wrong) out.wrong = nullptr;
    }
};

}  // namespace qwyc
