// Full scores of up to kChunk rows, tree by tree, and the buffers for them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "core/engine.hpp"
#include "core/worker.hpp"

namespace qwyc {

template <class Real>
template <class In>
class FullEngine<Real>::Worker {
  public:
    Worker(const FullEngine& engine, const Kernels& kernels)
        : engine_(engine),
          plan_(engine.plan_),
          columns_(engine.columns_),
          kernels_(kernels),
          codes_(engine.plan_.columns.size() * kChunk) {}

    // n <= kChunk rows: those at row[0..n), or the first where there is no list. values: where the
    // first tree's values go, those of the next tree `values_stride` later; or null. full: (n,).
    void run(const In* rows, const int32_t* row, int32_t n, float* values, int64_t values_stride,
             double* full) {
        if (n <= kMaxScalarRows && !values)
            for (int32_t i = 0; i < n; ++i)
                full[i] = engine_.score_one(rows + (row ? row[i] : i) * width());
        else
            run_chunk(rows, row, n, values, values_stride, full);
    }

    // Any number of rows, at the given indices.
    void run_some(const In* rows, std::span<const int32_t> row, double* full) {
        for (size_t begin = 0; begin < row.size(); begin += kChunk) {
            const size_t n = std::min<size_t>(kChunk, row.size() - begin);
            run(rows, row.data() + begin, static_cast<int32_t>(n), nullptr, 0, full + begin);
        }
    }

    // Median seconds that each tree takes for one of n <= kChunk rows, out: (T,).
    void measure(const In* rows, int32_t n, int repeats, double* out) {
        using Clock = std::chrono::steady_clock;
        constexpr int kTimes = 16;  // reading the clock takes nearly as long as a tree
        start(rows, nullptr, n);
        std::vector<double> seconds(repeats);
        for (int32_t t = 0; t < plan_.n_steps(); ++t) {
            for (double& spent : seconds) {
                const auto begin = Clock::now();
                for (int k = 0; k < kTimes; ++k) add_tree(t, rows, nullptr, n, nullptr);
                spent = std::chrono::duration<double>(Clock::now() - begin).count();
            }
            std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
            out[t] = seconds[repeats / 2] / (kTimes * n);
        }
    }

  private:
    void run_chunk(const In* rows, const int32_t* row, int32_t n, float* values,
                   int64_t values_stride, double* full) {
        start(rows, row, n);
        for (int32_t t = 0; t < plan_.n_steps(); ++t)
            add_tree(t, rows, row, n, values ? values + t * values_stride : nullptr);
        for (int32_t i = 0; i < n; ++i)
            full[i] = plan_.forest->finish({single_[i], value_[i], other_[i]});
    }

    void start(const In* rows, const int32_t* row, int32_t n) {
        kernels_.template reading<In, Real>().encode(plan_, columns_, rows, width(), row, n,
                                                     codes_.data(), kChunk);
        const FullSum nothing = plan_.forest->start();
        std::fill_n(single_, kChunk, nothing.single);
        std::fill_n(value_, kChunk, nothing.value);
        std::fill_n(other_, kChunk, nothing.other);
    }

    void add_tree(int32_t t, const In* rows, const int32_t* row, int32_t n, float* values) {
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
    std::vector<uint8_t> codes_;  // (columns, kChunk)
    alignas(64) uint8_t number_[kChunk] = {};
    alignas(64) float single_[kChunk] = {}, step_[kChunk] = {};
    alignas(64) double value_[kChunk] = {}, other_[kChunk] = {};
    int32_t leaf_[kChunk] = {};
};

}  // namespace qwyc
