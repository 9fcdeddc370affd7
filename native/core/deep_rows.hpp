// Rows that are encoded for deep trees, and the leaves that they reach.
#pragma once

#include <algorithm>

#include "core/deep_trees.hpp"
#include "core/kernels.hpp"
#include "core/worker.hpp"

namespace qwyc {

// Uses the thread's scratch: one such object at a time.
template <class In, class Real>
class DeepRows {
  public:
    DeepRows(const Forest<Real>& forest, const DeepTrees<Real>& trees, const Kernels& kernels)
        : forest_(forest), trees_(trees), kernels_(kernels) {}

    // Room for so many rows. Places are numbered from 0.
    void make_room(int32_t places) {
        Scratch& mine = scratch();
        codes_ = reinterpret_cast<CodeOf<Real>*>(
            mine.codes.of(static_cast<size_t>(places) * trees_.width() * sizeof(CodeOf<Real>)));
        offset_ = mine.offset.of(places);
    }

    // Rows row[0..n), or the first ones without a list, take places slot[0..n), or 0 to n - 1.
    void encode(const Rowwise<In>& rows, const int32_t* slot, int32_t n) {
        if (!trees_.empty())
            kernels_.template reading<In, Real>().encode_deep(trees_.columns, rows.rows, rows.width,
                                                              rows.row, slot, n, codes_);
    }

    // The leaves (absolute indices) that n rows reach in a tree: rows in places at[0..n), or 0 to
    // n - 1. `rows` are the same rows, for trees that have no such layout.
    void walk(int32_t tree, const Rowwise<In>& rows, const int32_t* at, int32_t n, int32_t* leaf) {
        const int32_t root = trees_.root[tree], width = trees_.width();
        if (root < 0) {
            kernels_.template reading<In, Real>().walk(forest_, forest_.root(tree), rows.rows,
                                                       rows.width, rows.row, n, leaf);
            return;
        }
        for (int32_t i = 0; i < n; ++i) offset_[i] = (at ? at[i] : i) * width;
        kernels_.template walk_deep<Real>()(trees_.lines[root].node, codes_, offset_, n, leaf);
    }

  private:
    const Forest<Real>& forest_;
    const DeepTrees<Real>& trees_;
    const Kernels& kernels_;
    CodeOf<Real>* codes_ = nullptr;  // (places, width)
    int32_t* offset_ = nullptr;      // where the codes of each walk's row are
};

}  // namespace qwyc
