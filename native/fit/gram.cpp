#include "fit/gram.hpp"

#include <algorithm>
#include <vector>

#include "core/parallel.hpp"

namespace qwyc {

namespace {

// Rows at a time: a tile of all base models fits the second-level cache.
constexpr int64_t kRows = 512;
constexpr int64_t kLanes = 8;  // partial sums of a dot product, which a vector unit may run at once

double dot(const double* a, const double* b) {
    double lane[kLanes] = {};
    for (int64_t i = 0; i < kRows; i += kLanes)
        for (int64_t l = 0; l < kLanes; ++l) lane[l] += a[i + l] * b[i + l];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

}  // namespace

template <class Score>
void gram(const Score* values, int64_t n_models, int64_t n, const double* centre,
          const double* scale, double* out, int threads) {
    std::fill(out, out + n_models * n_models, 0.0);
    std::vector<double> tile(n_models * kRows);  // by base model; zeros past the last row
    for (int64_t first = 0; first < n; first += kRows) {
        const int64_t rows = std::min(kRows, n - first);
        std::fill(tile.begin(), tile.end(), 0.0);
        for (int64_t t = 0; t < n_models; ++t) {
            const double shift = centre ? centre[t] : 0.0;
            for (int64_t i = 0; i < rows; ++i)
                tile[t * kRows + i] =
                    (values[t * n + first + i] - shift) * (scale ? scale[first + i] : 1.0);
        }
        parallel_for(n_models, 4, threads, [&](int64_t begin, int64_t end) {
            for (int64_t j = 0; j < n_models; ++j)
                for (int64_t i = begin; i < std::min(end, j + 1); ++i)
                    out[i * n_models + j] += dot(&tile[i * kRows], &tile[j * kRows]);
        });
    }
    for (int64_t i = 0; i < n_models; ++i)
        for (int64_t j = 0; j < i; ++j) out[i * n_models + j] = out[j * n_models + i];
}

template void gram(const float*, int64_t, int64_t, const double*, const double*, double*, int);
template void gram(const double*, int64_t, int64_t, const double*, const double*, double*, int);

}  // namespace qwyc
