// What both workers of a policy on leads share: rows of a block, their running sums, and how rows
// end that are few, or that never quit.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/class_worker.hpp"
#include "core/row_leaves.hpp"

namespace qwyc {

template <class Real>
template <class In>
class LeadEngine<Real>::Rows {
  protected:
    Rows(const LeadEngine& engine, const Kernels& kernels, const MaskKernels& masks)
        : engine_(engine),
          forest_(engine.forest_),
          K_(engine.forest_.n_classes()),
          kernels_(kernels),
          mask_kernels_(masks),
          deep_(engine.forest_.trees(), engine.full_.deep(), kernels) {}

    // Kernels read and write whole words, and a little past the rows that go on. The sums of a row
    // are not all in one set of a cache.
    static constexpr int32_t kPadding = 128 + 16;

    static bool intersect(const uint64_t* a, const uint64_t* b, int32_t words) {
        uint64_t both = 0;
        for (int32_t w = 0; w < words; ++w) both |= a[w] & b[w];
        return both != 0;
    }

    void make_room(int32_t n, int32_t block) {
        Scratch& mine = scratch();
        stride_ = (std::min(n, block) + 63) / 64 * 64 + kPadding;
        row_ = mine.row.of(stride_);
        sums_ = mine.sums.of(static_cast<size_t>(stride_) * K_);
        in_full_ = mine.in_full.of(n);
        n_in_full_ = 0;
    }

    // The first n rows of a block are those from `begin` on.
    void begin_block(const RowsView<In>& rows, int32_t begin, int32_t n) {
        for (int32_t i = 0; i < n; ++i) row_[i] = begin + i;
        for (int32_t k = 0; k < K_; ++k) std::fill_n(sums_ + k * stride_, n, forest_.base()[k]);
        encoded_ = false;
        first_ = begin;
        if (rows.columns) written_.assign(rows.width, 0);
    }

    // Makes what the trees of a segment look at ready, for the n rows of row_.
    void prepare(const Segment& segment, const RowsView<In>& rows, int32_t n) {
        for (const ClassPart& part : segment.parts) {
            if (part.masked()) need(part.trees, rows, n);
            if (!part.walked.empty() && !encoded_) encode(rows, n);
        }
    }

    // The leaves that n <= kSlab rows, those at walked_, reach in a deep tree: leaf_.
    void walk_deep(int32_t tree, const RowsView<In>& rows, int32_t n) {
        for (int32_t i = 0; i < n; ++i) place_[i] = walked_[i] - first_;
        deep_.walk(tree, Rowwise<In>(rows, walked_, n), place_, n, leaf_);
    }

    // n <= kMaxWalkedRows rows, those of row_, from a step on to their end, one by one. `at`: the
    // place of each row's sums, or null: 0, 1...
    void walk_on(int32_t first_step, const int32_t* at, int32_t n, const RowsView<In>& rows,
                 const ClassDecisionsOut& out) {
        double* const own = scratch().value.of(K_);
        rows.need_all(row_, n);
        with_values<Real>(engine_.full_.row_trees(), rows, row_, n, [&]<class V>(V* const* values) {
            using Leaves = RowLeaves<Real, std::remove_const_t<V>>;
            for (int32_t i = 0; i < n; ++i) {
                int32_t step = first_step;
                const double* const sums = sums_ + (at ? at[i] : i);
                for (int32_t k = 0; k < K_; ++k) own[k] = sums[k * stride_];
                const int32_t index = engine_.walk_row(Leaves(engine_.full_, values[i]), step, own);
                const int64_t row = row_[i];
                if (index < 0) {
                    in_full_[n_in_full_++] = row_[i];
                    continue;
                }
                out.label[row] = index;
                if (out.steps) out.steps[row] = step;
                if (out.score) std::copy_n(own, K_, out.score + row * K_);
            }
        });
    }

    // Rows that never quit, which are completed together.
    void leave(int32_t n) {
        std::copy(row_, row_ + n, in_full_ + n_in_full_);
        n_in_full_ += n;
    }
    void complete(const RowsView<In>& rows, const ClassDecisionsOut& out) {
        if (n_in_full_ == 0) return;
        rows.need_all(in_full_, n_in_full_);
        constexpr int32_t kAtOnce = 4096;
        typename ClassEngine<Real>::template Worker<In> full(engine_.full_, kernels_,
                                                             mask_kernels_);
        for (int32_t begin = 0; begin < n_in_full_; begin += kAtOnce) {
            const int32_t n = std::min(kAtOnce, n_in_full_ - begin);
            double* const score = scratch().score.of(static_cast<size_t>(n) * K_);
            full.run_some(rows, std::span<const int32_t>(in_full_ + begin, n), score);
            for (int32_t i = 0; i < n; ++i)
                complete_row(in_full_[begin + i], score + i * int64_t{K_}, out);
        }
    }
    // score: (K,) full
    void complete_row(int64_t row, const double* score, const ClassDecisionsOut& out) const {
        out.label[row] = forest_.ties().decide(score, K_);
        if (out.steps) out.steps[row] = static_cast<int32_t>(engine_.order_.size());
        if (out.score) std::copy_n(score, K_, out.score + row * K_);
    }

    const LeadEngine& engine_;
    const ClassForest<Real>& forest_;
    const int32_t K_;
    const Kernels& kernels_;
    const MaskKernels& mask_kernels_;
    int32_t* row_;  // rows of the block that go on
    double* sums_;  // running sums, (K, stride)
    int64_t stride_;
    int32_t* in_full_;  // rows that did not quit
    int32_t n_in_full_;
    DeepRows<In, Real> deep_;
    int32_t walked_[kSlab], place_[kSlab], leaf_[kSlab];  // of a deep tree

  private:
    // Has late columns written that the trees of a segment look at and no segment before it did.
    void need(const MaskedTrees& trees, const RowsView<In>& rows, int32_t n) {
        if (!rows.columns || rows.columns->late().empty()) return;
        needed_.clear();
        for (int32_t feature : trees.features)
            if (!written_[feature]) written_[feature] = 1, needed_.push_back(feature);
        rows.columns->write(needed_, rows.first, row_, n);
    }

    // The rows of row_, for the deep trees of this segment and all later ones. A row's place is its
    // number within the block.
    void encode(const RowsView<In>& rows, int32_t n) {
        int32_t places = 0;
        rows.need_all(row_, n);
        for (int32_t i = 0; i < n; ++i) places = std::max(places, row_[i] - first_ + 1);
        deep_.make_room(places);
        for (int32_t at = 0; at < n; at += kSlab) {
            const int32_t here = std::min(kSlab, n - at);
            for (int32_t i = 0; i < here; ++i) place_[i] = row_[at + i] - first_;
            deep_.encode(Rowwise<In>(rows, row_ + at, here), place_, here);
        }
        encoded_ = true;
    }

    std::vector<uint8_t> written_;  // by feature: whether its late column is, for rows that go on
    std::vector<int32_t> needed_;
    bool encoded_;   // rows of this block have codes for deep trees
    int32_t first_;  // of the block
};

}  // namespace qwyc
