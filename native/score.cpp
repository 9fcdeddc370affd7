#include "score.hpp"

#include <algorithm>
#include <chrono>

#include "parallel.hpp"

namespace qwyc {

template <class Real>
void score(const Forest<Real>& forest, const Real* rows, int64_t n, float* values, double* full,
           int threads) {
    constexpr int64_t kBlock = 128;  // rows that share a tree while it is in the first cache
    const int64_t n_trees = forest.n_trees(), width = forest.n_features();
    parallel_for(n, kBlock, threads, [=, &forest](int64_t begin, int64_t end) {
        FullSum sums[kBlock];
        std::fill(sums, sums + (end - begin), forest.start());
        for (int64_t t = 0; t < n_trees; ++t) {
            for (int64_t i = begin; i < end; ++i) {
                const int32_t leaf = forest.leaf(t, rows + i * width);
                forest.add(sums[i - begin], leaf);
                if (values) values[t * n + i] = forest.step_value(leaf);
            }
        }
        for (int64_t i = begin; i < end; ++i) full[i] = forest.finish(sums[i - begin]);
    });
}

template <class Real>
void mean_path_lengths(const Forest<Real>& forest, const Real* rows, int64_t n, double* out,
                       int threads) {
    const int64_t width = forest.n_features();
    parallel_for(forest.n_trees(), 1, threads, [=, &forest](int64_t t, int64_t) {
        int64_t visited = 0;
        for (int64_t i = 0; i < n; ++i) visited += forest.path_length(t, rows + i * width);
        out[t] = static_cast<double>(visited) / static_cast<double>(n);
    });
}

template <class Real>
void measure_seconds(const Forest<Real>& forest, const Real* rows, int64_t n, int repeats,
                     double* out) {
    using Clock = std::chrono::steady_clock;
    const int64_t n_trees = forest.n_trees(), width = forest.n_features();
    std::vector<std::vector<double>> seconds(n_trees);
    volatile float sink = 0;
    for (int pass = 0; pass < repeats; ++pass) {
        for (int64_t t = 0; t < n_trees; ++t) {
            const auto begin = Clock::now();
            float sum = 0;
            for (int64_t i = 0; i < n; ++i)
                sum += forest.step_value(forest.leaf(t, rows + i * width));
            sink = sum;
            seconds[t].push_back(std::chrono::duration<double>(Clock::now() - begin).count());
        }
    }
    for (int64_t t = 0; t < n_trees; ++t) {
        auto middle = seconds[t].begin() + repeats / 2;
        std::nth_element(seconds[t].begin(), middle, seconds[t].end());
        out[t] = *middle / static_cast<double>(n);
    }
}

template void score(const Forest<float>&, const float*, int64_t, float*, double*, int);
template void score(const Forest<double>&, const double*, int64_t, float*, double*, int);
template void mean_path_lengths(const Forest<float>&, const float*, int64_t, double*, int);
template void mean_path_lengths(const Forest<double>&, const double*, int64_t, double*, int);
template void measure_seconds(const Forest<float>&, const float*, int64_t, int, double*);
template void measure_seconds(const Forest<double>&, const double*, int64_t, int, double*);

}  // namespace qwyc
