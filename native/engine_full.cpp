#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "engine.hpp"
#include "parallel.hpp"
#include "worker.hpp"

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

// Up to kChunk rows, tree by tree.
template <class Real>
template <class In>
class FullEngine<Real>::Worker {
  public:
    Worker(const FullEngine& engine, const Kernels& kernels, const In* rows)
        : engine_(engine),
          plan_(engine.plan_),
          columns_(engine.columns_),
          kernels_(kernels),
          rows_(rows),
          codes_(engine.plan_.columns.size() * kChunk) {}

    // Rows row[0..n), or n rows from `begin` where there is no list. values: where the first tree's
    // values go, those of the next tree `values_stride` later; or null. full: (n,).
    void run(const int32_t* row, int64_t begin, int32_t n, float* values, int64_t values_stride,
             double* full) {
        if (n <= kFew && !values)
            for (int32_t i = 0; i < n; ++i)
                full[i] = engine_.score_one(rows_ + (row ? row[i] : begin + i) * width());
        else
            run_chunk(row, begin, n, values, values_stride, full);
    }

    // Median seconds that each tree takes for one of the first n <= kChunk rows, out: (T,).
    void measure(int32_t n, int repeats, double* out) {
        using Clock = std::chrono::steady_clock;
        constexpr int kTimes = 16;  // a tree takes not much longer than looking at the clock
        start(nullptr, 0, n);
        std::vector<double> seconds(repeats);
        for (int32_t t = 0; t < plan_.n_steps(); ++t) {
            for (double& spent : seconds) {
                const auto begin = Clock::now();
                for (int k = 0; k < kTimes; ++k) add_tree(t, nullptr, rows_, n, nullptr);
                spent = std::chrono::duration<double>(Clock::now() - begin).count();
            }
            std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
            out[t] = seconds[repeats / 2] / (kTimes * n);
        }
    }

  private:
    void run_chunk(const int32_t* row, int64_t begin, int32_t n, float* values,
                   int64_t values_stride, double* full) {
        start(row, begin, n);
        const In* first = row ? rows_ : rows_ + begin * width();
        for (int32_t t = 0; t < plan_.n_steps(); ++t)
            add_tree(t, row, first, n, values ? values + t * values_stride : nullptr);
        for (int32_t i = 0; i < n; ++i)
            full[i] = plan_.forest->finish({single_[i], value_[i], other_[i]});
    }

    void start(const int32_t* row, int64_t begin, int32_t n) {
        const In* first = row ? rows_ : rows_ + begin * width();
        kernels_.template reading<In, Real>().encode(plan_, columns_, first, width(), row, n,
                                                     codes_.data(), kChunk);
        const FullSum nothing = plan_.forest->start();
        std::fill_n(single_, kChunk, nothing.single);
        std::fill_n(value_, kChunk, nothing.value);
        std::fill_n(other_, kChunk, nothing.other);
    }

    void add_tree(int32_t t, const int32_t* row, const In* rows, int32_t n, float* values) {
        const Forest<Real>& forest = *plan_.forest;
        const SmallTree& tree = plan_.small[t];
        if (tree.n_leaves == 0) {
            kernels_.template reading<In, Real>().walk(forest, forest.root(t), rows, width(), row,
                                                       n, leaf_);
            for (int32_t i = 0; i < n; ++i) {
                FullSum sum{single_[i], value_[i], other_[i]};
                forest.add(sum, leaf_[i]);
                single_[i] = sum.single, value_[i] = sum.value, other_[i] = sum.other;
                if (values) values[i] = forest.step_value(leaf_[i]);
            }
            return;
        }
        const int32_t words = words_of(n);
        kernels_.leaves(plan_, tree, {codes_.data(), kChunk, words}, number_);
        const float* step = plan_.step_value.data() + tree.leaf_begin;
        switch (forest.rules().summation) {
            case Summation::kFloat32:  // what a step adds is the leaf's value itself
            case Summation::kFloat32Late:
                kernels_.add_single(step, tree.n_leaves, number_, words, single_);
                break;
            case Summation::kShares:
                kernels_.add_double(plan_.leaf_other.data() + tree.leaf_begin, number_, words,
                                    other_);
                [[fallthrough]];
            case Summation::kFloat64:
            case Summation::kFloat64Late:
                kernels_.add_double(plan_.leaf_value.data() + tree.leaf_begin, number_, words,
                                    value_);
        }
        if (values) {
            kernels_.look_up(step, tree.n_leaves, number_, words, step_);
            std::memcpy(values, step_, n * sizeof(float));
        }
    }

    int64_t width() const { return plan_.forest->n_features(); }

    const FullEngine& engine_;
    const Plan<Real>& plan_;
    const std::vector<int32_t>& columns_;
    const Kernels& kernels_;
    const In* rows_;
    std::vector<uint8_t> codes_;  // (columns, kChunk)
    alignas(64) uint8_t number_[kChunk] = {};
    alignas(64) float single_[kChunk] = {}, step_[kChunk] = {};
    alignas(64) double value_[kChunk] = {}, other_[kChunk] = {};
    int32_t leaf_[kChunk] = {};
};

template <class Real>
template <class In>
double FullEngine<Real>::score_one(const In* row) const {
    const Forest<Real>& forest = *plan_.forest;
    FullSum sum = forest.start();
    int32_t leaf[kWalks];
    for (int32_t t = 0; t < plan_.n_steps(); t += kWalks) {
        const int32_t end = std::min(t + kWalks, plan_.n_steps());
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
    if (n <= kFew && !values) {
        const PlainFloats plain;
        for (int64_t i = 0; i < n; ++i) full[i] = score_one(rows + i * forest().n_features());
        return;
    }
    Worker<In> worker(*this, chosen, rows);
    const int64_t chunk = std::min<int64_t>(kChunk, most_rows(forest().n_features()));
    parallel_for(n, chunk, threads, [=](int64_t begin, int64_t end) mutable {
        worker.run(nullptr, begin, static_cast<int32_t>(end - begin),
                   values ? values + begin : nullptr, n, full + begin);
    });
}

template <class Real>
template <class In>
void FullEngine<Real>::measure(const In* rows, int64_t n, int repeats, double* seconds) const {
    Worker<In>(*this, kernels(), rows)
        .measure(static_cast<int32_t>(std::min<int64_t>(n, kChunk)), repeats, seconds);
}

template <class Real>
template <class In>
void FullEngine<Real>::score_some(const In* rows, std::span<const int32_t> row, double* full,
                                  const Kernels& kernels) const {
    Worker<In> worker(*this, kernels, rows);
    for (size_t begin = 0; begin < row.size(); begin += kChunk) {
        const size_t n = std::min<size_t>(kChunk, row.size() - begin);
        worker.run(row.data() + begin, 0, static_cast<int32_t>(n), nullptr, 0, full + begin);
    }
}

#define QWYC_INSTANTIATE(Real, In)                                                           \
    template void FullEngine<Real>::score(const In*, int64_t, float*, double*, int,          \
                                          std::string_view) const;                           \
    template void FullEngine<Real>::score_some(const In*, std::span<const int32_t>, double*, \
                                               const Kernels&) const;                        \
    template double FullEngine<Real>::score_one(const In*) const;                            \
    template void FullEngine<Real>::measure(const In*, int64_t, int, double*) const;
template class FullEngine<float>;
template class FullEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
