#include <algorithm>
#include <numeric>

#include "core/engine.hpp"
#include "core/full_worker.hpp"
#include "core/parallel.hpp"

namespace qwyc {

namespace {

std::vector<int32_t> indices(int64_t n) {
    std::vector<int32_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    return all;
}

}  // namespace

template <class Real>
FullEngine<Real>::FullEngine(const Forest<Real>& forest)
    : plan_(forest, indices(forest.n_trees())) {
    columns_ = indices(static_cast<int64_t>(plan_.columns.size()));
    sort_by_feature(plan_, columns_);
}

template <class Real>
template <class In>
double FullEngine<Real>::score_one(const In* row) const {
    const Forest<Real>& forest = *plan_.forest;
    FullSum sum = forest.start();
    int32_t leaf[kWalksAtOnce];
    for (int32_t t = 0; t < plan_.n_steps(); t += kWalksAtOnce) {
        const int32_t end = std::min(t + kWalksAtOnce, plan_.n_steps());
        walk_trees(forest, plan_.order.data(), t, end, row, leaf);
        for (int32_t k = 0; k < end - t; ++k) forest.add(sum, leaf[k]);
    }
    return forest.finish(sum);
}

template <class Real>
template <class In>
void FullEngine<Real>::score(const In* rows, int64_t n, float* values, double* full, int threads,
                             std::string_view isa) const {
    const Kernels& chosen = kernels(isa);
    if (n <= kMaxScalarRows && !values) {
        const PlainFloats plain;
        for (int64_t i = 0; i < n; ++i) full[i] = score_one(rows + i * forest().n_features());
        return;
    }
    Worker<In> worker(*this, chosen);
    const int64_t width = forest().n_features();
    const int64_t chunk = std::min<int64_t>(kChunk, max_rows_in_int32(width));
    parallel_for(n, chunk, threads, [=](int64_t begin, int64_t end) mutable {
        worker.run(rows + begin * width, nullptr, static_cast<int32_t>(end - begin),
                   values ? values + begin : nullptr, n, full + begin);
    });
}

template <class Real>
template <class In>
void FullEngine<Real>::measure(const In* rows, int64_t n, int repeats, double* seconds) const {
    Worker<In>(*this, kernels())
        .measure(rows, static_cast<int32_t>(std::min<int64_t>(n, kChunk)), repeats, seconds);
}

#define QWYC_INSTANTIATE(Real, In)                                                  \
    template void FullEngine<Real>::score(const In*, int64_t, float*, double*, int, \
                                          std::string_view) const;                  \
    template double FullEngine<Real>::score_one(const In*) const;                   \
    template void FullEngine<Real>::measure(const In*, int64_t, int, double*) const;
template class FullEngine<float>;
template class FullEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
