// The leaves that one row reaches, for models of many classes.
#pragma once

#include <algorithm>

#include "core/class_engine.hpp"
#include "core/worker.hpp"

namespace qwyc {

// V: the type of the row's numbers, (n_features,).
template <class Real, class V>
class RowLeaves {
  public:
    RowLeaves(const ClassEngine<Real>& engine, const V* row)
        : coded_(engine.coded()),
          kernels_(engine.coded_kernels()),
          row_(row),
          walk_{engine.forest().trees(), engine.row_trees(), row_kernels()} {
        if (kernels_) kernels_->template encode<V, TileValue<V, Real>>()(coded_, row, line_);
    }

    // leaf[i]: the leaf of tree[i], for n trees. Up to kWalksAtOnce numbers more are written.
    void operator()(const int32_t* tree, int32_t n, int32_t* leaf) const {
        if (kernels_) return kernels_->leaves(coded_, line_, tree, n, leaf);
        for (int32_t t = 0; t < n; t += kWalksAtOnce)
            walk_(tree, t, std::min(t + kWalksAtOnce, n), &row_, 1, leaf + t);
    }

  private:
    const CodedTrees& coded_;
    const CodedKernels* kernels_;  // or null: trees are walked
    const V* row_;
    RowWalker<Real> walk_;
    alignas(64) uint8_t line_[CodedTrees::kLine];
};

}  // namespace qwyc
