// Full scores of K classes of some rows, on one thread.
#pragma once

#include <algorithm>
#include <span>

#include "core/class_engine.hpp"
#include "core/deep_rows.hpp"
#include "core/worker.hpp"

namespace qwyc {

template <class Real>
template <class In>
class ClassEngine<Real>::Worker {
  public:
    Worker(const ClassEngine& engine, const Kernels& kernels, const MaskKernels& masks)
        : engine_(engine),
          forest_(engine.forest_),
          mask_kernels_(masks),
          deep_(engine.forest_.trees(), engine.deep_, kernels) {}

    // n <= rows_at_once rows: those at row[0..n), or the first where there is no list. values:
    // where the first base model's values of the first row go, those of the next base model
    // `values_stride` later; or null. full: (n, K).
    void run(const RowsView<In>& rows, const int32_t* row, int32_t n, float* values,
             int64_t values_stride, double* full) {
        if (n <= engine_.walk_below_ && !values) {
            engine_.score_few(rows, row, n, full);
            return;
        }
        Scratch& mine = scratch();
        stride_ = 64 * words_of(n) + 16;  // so that the sums of a row are not in one cache set
        leaf_ = mine.leaf.of(64 * words_of(n));
        const size_t size = stride_ * forest_.n_classes();
        if (forest_.single())
            run_as(mine.single.of(size), rows, row, n, values, values_stride, full);
        else
            run_as(mine.value.of(size), rows, row, n, values, values_stride, full);
    }

    // Any number of rows, at the given indices.
    void run_some(const RowsView<In>& rows, std::span<const int32_t> row, double* full) {
        const size_t most = rows_at_once(engine_);
        for (size_t begin = 0; begin < row.size(); begin += most) {
            const size_t n = std::min(most, row.size() - begin);
            run(rows, row.data() + begin, static_cast<int32_t>(n), nullptr, 0,
                full + begin * forest_.n_classes());
        }
    }

    // Fewer where there are many classes, so that sums stay in the cache; more where all trees are
    // walked, which are then loaded less often.
    static int32_t rows_at_once(const ClassEngine& engine) {
        const int32_t K = engine.forest_.n_classes();
        const bool masked = std::any_of(engine.parts_.begin(), engine.parts_.end(),
                                        [](const ClassPart& part) { return part.masked(); });
        if (K > 128) return 64;
        return masked || K > 16 ? kSlab : 4096;
    }

  private:
    template <class Sum>
    void run_as(Sum* sums, const RowsView<In>& rows, const int32_t* row, int32_t n, float* values,
                int64_t values_stride, double* full) {
        const int32_t K = forest_.n_classes();
        for (int32_t k = 0; k < K; ++k)
            std::fill_n(sums + k * stride_, stride_, static_cast<Sum>(forest_.start(k)));
        bool encoded = false;
        for (const ClassPart& part : engine_.parts_) {
            uint64_t* masks = nullptr;
            if (part.masked()) masks = answer<In, Real>(mask_kernels_, part.trees, rows, row, n, 0);
            ClassAdder adder(mask_kernels_, part, K, forest_.has_vectors(), masks, words_of(n));
            for (const ClassRun& run : part.runs) {
                if (run.kind == ClassRun::Kind::kMasked) {
                    adder.add(run, sums, stride_);
                    continue;
                }
                const Rowwise<In> at(rows, row, n);
                if (!encoded) {
                    deep_.make_room(n);
                    deep_.encode(at, nullptr, n);
                    encoded = true;
                }
                for (int32_t i = run.begin; i < run.end; ++i) {
                    deep_.walk(part.walked[i], at, nullptr, n, leaf_);
                    add_leaves(run.index, n, sums);
                    if (values) write_values(part.walked[i], n, values, values_stride);
                }
            }
            if (values) write_masked(part, masks, n, values, values_stride);
        }
        for (int32_t k = 0; k < K; ++k)
            for (int32_t i = 0; i < n; ++i)
                full[i * int64_t{K} + k] = forest_.finish(k, sums[k * stride_ + i]);
    }

    template <class Sum>
    void add_leaves(int32_t index, int32_t n, Sum* sums) const {
        if (!forest_.has_vectors()) {
            Sum* const to = sums + index * stride_;
            for (int32_t i = 0; i < n; ++i) to[i] += static_cast<Sum>(*forest_.full_of(leaf_[i]));
            return;
        }
        const int32_t K = forest_.n_classes();
        for (int32_t i = 0; i < n; ++i) {
            const double* const added = forest_.full_of(leaf_[i]);
            for (int32_t k = 0; k < K; ++k) sums[k * stride_ + i] += static_cast<Sum>(added[k]);
        }
    }

    // What the trees of a part on masks add to running sums.
    void write_masked(const ClassPart& part, uint64_t* masks, int32_t n, float* values,
                      int64_t values_stride) {
        alignas(64) double number[kSlab];
        const MaskedTrees& trees = part.trees;
        for (int32_t t = 0; t < trees.n_trees(); ++t) {
            if (t % kTreesAtOnce == 0)
                mask_kernels_.slice(trees, t, std::min(t + kTreesAtOnce, trees.n_trees()),
                                    words_of(n), masks);
            std::fill_n(number, 64 * words_of(n), 0.0);
            mask_kernels_.add_double(trees, trees.leaf_value, t, t + 1, masks, words_of(n), number);
            for (int32_t i = 0; i < n; ++i) leaf_[i] = static_cast<int32_t>(number[i]);
            write_values(part.masked_trees[t], n, values, values_stride);
        }
    }

    // What a tree adds to running sums, of rows whose leaves are in leaf_.
    void write_values(int32_t tree, int32_t n, float* values, int64_t values_stride) const {
        const int32_t K = forest_.n_classes();
        float* const to = values + engine_.step_of_[tree] * values_stride;
        if (forest_.has_vectors())
            for (int32_t i = 0; i < n; ++i)
                std::copy_n(forest_.step_of(leaf_[i]), K, to + i * int64_t{K});
        else
            for (int32_t i = 0; i < n; ++i)
                to[i * int64_t{K} + forest_.class_of(tree)] = *forest_.step_of(leaf_[i]);
    }

    const ClassEngine& engine_;
    const ClassForest<Real>& forest_;
    const MaskKernels& mask_kernels_;
    DeepRows<In, Real> deep_;
    int64_t stride_ = 0;
    int32_t* leaf_ = nullptr;
};

}  // namespace qwyc
