// Full scores of up to rows_at_once rows, on one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "core/deep_rows.hpp"
#include "core/engine.hpp"
#include "core/worker.hpp"

namespace qwyc {

template <class Real>
template <class In>
class FullEngine<Real>::Worker {
  public:
    Worker(const FullEngine& engine, const Kernels& kernels, const MaskKernels& masks)
        : engine_(engine),
          forest_(engine.forest_),
          kernels_(kernels),
          mask_kernels_(masks),
          deep_(engine.forest_, engine.deep(), kernels) {}

    // n <= rows_at_once rows: those at row[0..n), or the first where there is no list. values:
    // where the first tree's values go, those of the next tree `values_stride` later; or null.
    // full: (n,).
    void run(const RowsView<In>& rows, const int32_t* row, int32_t n, float* values,
             int64_t values_stride, double* full) {
        if (n <= engine_.layout().walk_below && !values) {
            engine_.score_few(rows, row, n, full);
            return;
        }
        start(n);
        const Plan& plan = engine_.plan_of(mask_kernels_.isa, n);
        for (const Part& part : plan.parts) {
            float* const to = values ? values + part.begin * values_stride : nullptr;
            if (part.masked)
                add_masked(part.trees, rows, row, n, to, values_stride);
            else
                add_walked(part, rows, row, n, to, values_stride);
        }
        for (int32_t i = 0; i < n; ++i)
            full[i] = forest_.finish({single_[i], value_[i], other_[i]});
    }

    // n <= kSlab rows, whose trees are all on masks and none of them large. number: (T, kSlab)
    // leaf numbers, as the kernel `numbers` writes them. full: (n,).
    void run_numbers(const RowsView<In>& rows, int32_t n, uint8_t* number, double* full) {
        start(n);
        const int32_t words = words_of(n);
        const Summation summation = forest_.rules().summation;
        const bool single =  // as in `add`
            summation == Summation::kFloat32 || summation == Summation::kFloat32Late;
        for (const Part& part : engine_.plan_of(mask_kernels_.isa, n).parts) {
            uint64_t* const masks = answers(part.trees, rows, nullptr, n);
            for (int32_t t = 0; t < part.trees.n_trees(); t += kTreesAtOnce) {
                const int32_t end = std::min(t + kTreesAtOnce, part.trees.n_trees());
                mask_kernels_.slice(part.trees, t, end, words, masks);
                if (!single) add(part.trees, t, end, masks, words);
                mask_kernels_.numbers(part.trees, single ? part.trees.step_value.data() : nullptr,
                                      t, end, masks, words,
                                      number + int64_t{part.begin + t} * kSlab, single_);
            }
        }
        for (int32_t i = 0; i < n; ++i)
            full[i] = forest_.finish({single_[i], value_[i], other_[i]});
    }

    // Any number of rows, at the given indices.
    void run_some(const RowsView<In>& rows, std::span<const int32_t> row, double* full) {
        const size_t most = engine_.rows_at_once(mask_kernels_.isa);
        for (size_t begin = 0; begin < row.size(); begin += most) {
            const size_t n = std::min(most, row.size() - begin);
            run(rows, row.data() + begin, static_cast<int32_t>(n), nullptr, 0, full + begin);
        }
    }

    // Median seconds that each tree takes for one of n <= kSlab rows, out: (T,).
    void measure(const RowsView<In>& rows, int32_t n, int repeats, double* out) {
        start(n);
        for (const Part& part : engine_.plan_of(mask_kernels_.isa, kSlab).parts) {
            if (part.masked) {
                uint64_t* const masks = answers(part.trees, rows, nullptr, n);
                for (int32_t t = 0; t < part.trees.n_trees(); ++t)
                    out[part.begin + t] = median_seconds(n, repeats, [&] {
                        mask_kernels_.slice(part.trees, t, t + 1, words_of(n), masks);
                        add(part.trees, t, t + 1, masks, words_of(n));
                    });
            } else {
                const Rowwise<In> at(rows, nullptr, n);
                deep_.make_room(n);
                deep_.encode(at, nullptr, n);
                for (int32_t t = part.begin; t < part.end; ++t)
                    out[t] =
                        median_seconds(n, repeats, [&] { add_walked_tree(t, at, n, nullptr); });
            }
        }
    }

  private:
    void start(int32_t n) {
        const int32_t padded = 64 * words_of(n);
        Scratch& mine = scratch();
        single_ = mine.single.of(padded);
        value_ = mine.value.of(padded);
        other_ = mine.other.of(padded);
        leaf_ = mine.leaf.of(padded);
        const FullSum nothing = forest_.start();
        std::fill_n(single_, padded, nothing.single);
        std::fill_n(value_, padded, nothing.value);
        std::fill_n(other_, padded, nothing.other);
    }

    template <class Work>
    static double median_seconds(int32_t n, int repeats, const Work& work) {
        using Clock = std::chrono::steady_clock;
        constexpr int kTimes = 16;  // reading the clock takes nearly as long as a tree
        std::vector<double> seconds(repeats);
        for (double& spent : seconds) {
            const auto begin = Clock::now();
            for (int k = 0; k < kTimes; ++k) work();
            spent = std::chrono::duration<double>(Clock::now() - begin).count();
        }
        std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
        return seconds[repeats / 2] / (kTimes * n);
    }

    uint64_t* answers(const MaskedTrees& trees, const RowsView<In>& rows, const int32_t* row,
                      int32_t n) {
        return answer<In, Real>(mask_kernels_, trees, rows, row, n, 0);
    }

    void add_masked(const MaskedTrees& trees, const RowsView<In>& rows, const int32_t* row,
                    int32_t n, float* values, int64_t values_stride) {
        const int32_t words = words_of(n);
        uint64_t* const masks = answers(trees, rows, row, n);
        for (int32_t t = 0; t < trees.n_trees(); t += kTreesAtOnce) {
            const int32_t end = std::min(t + kTreesAtOnce, trees.n_trees());
            mask_kernels_.slice(trees, t, end, words, masks);
            add(trees, t, end, masks, words);
            for (int32_t k = t; k < end && values; ++k) {
                mask_kernels_.values(trees, k, masks, words, nullptr, step_);
                std::memcpy(values + k * values_stride, step_, n * sizeof(float));
            }
        }
    }

    void add(const MaskedTrees& trees, int32_t begin, int32_t end, const uint64_t* masks,
             int32_t words) {
        switch (forest_.rules().summation) {
            case Summation::kFloat32:  // what a step adds is the leaf's value itself
            case Summation::kFloat32Late:
                mask_kernels_.add_single(trees, trees.step_value.data(), begin, end, masks, words,
                                         single_);
                break;
            case Summation::kShares:
                mask_kernels_.add_double(trees, trees.leaf_other, begin, end, masks, words, other_);
                [[fallthrough]];
            case Summation::kFloat64:
            case Summation::kFloat64Late:
                mask_kernels_.add_double(trees, trees.leaf_value, begin, end, masks, words, value_);
        }
    }

    void add_walked(const Part& part, const RowsView<In>& rows, const int32_t* row, int32_t n,
                    float* values, int64_t values_stride) {
        const Rowwise<In> at(rows, row, n);
        deep_.make_room(n);
        deep_.encode(at, nullptr, n);
        for (int32_t t = part.begin; t < part.end; ++t)
            add_walked_tree(t, at, n, values ? values + (t - part.begin) * values_stride : nullptr);
    }

    void add_walked_tree(int32_t t, const Rowwise<In>& at, int32_t n, float* values) {
        deep_.walk(t, at, nullptr, n, leaf_);
        switch (forest_.rules().summation) {  // as Forest::add
            case Summation::kFloat32:
            case Summation::kFloat32Late:
                for (int32_t i = 0; i < n; ++i)
                    single_[i] += static_cast<float>(forest_.leaf_value(leaf_[i]));
                break;
            case Summation::kShares:
                for (int32_t i = 0; i < n; ++i) {
                    value_[i] += forest_.leaf_value(leaf_[i]);
                    other_[i] += forest_.leaf_other(leaf_[i]);
                }
                break;
            case Summation::kFloat64:
            case Summation::kFloat64Late:
                for (int32_t i = 0; i < n; ++i) value_[i] += forest_.leaf_value(leaf_[i]);
        }
        if (values)
            for (int32_t i = 0; i < n; ++i) values[i] = forest_.step_value(leaf_[i]);
    }

    const FullEngine& engine_;
    const Forest<Real>& forest_;
    const Kernels& kernels_;
    const MaskKernels& mask_kernels_;
    DeepRows<In, Real> deep_;
    float* single_ = nullptr;  // sums, of whole words; in the thread's scratch
    double *value_ = nullptr, *other_ = nullptr;
    int32_t* leaf_ = nullptr;
    alignas(64) float step_[kSlab];
};

}  // namespace qwyc
