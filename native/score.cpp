#include "score.hpp"

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

template void score(const Forest<float>&, const float*, int64_t, float*, double*, int);
template void score(const Forest<double>&, const double*, int64_t, float*, double*, int);

}  // namespace qwyc
