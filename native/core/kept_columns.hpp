// The values of the rows of a block that go on, column by column and without gaps. In a table that
// lies column by column, rows that go on lie ever farther apart, and in the end each of their
// values is in a cache line of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/mask_kernels.hpp"
#include "core/rows_view.hpp"
#include "core/scratch.hpp"

namespace qwyc {

// Values of type In, as floats. They are in the thread's scratch: one such object at a time.
template <class In>
class KeptColumns {
  public:
    // as_floats: whether trees compare values of type In as floats. Nothing is kept otherwise.
    KeptColumns(const MaskKernels& kernels, bool as_floats)
        : kernels_(kernels), may_keep_(as_floats && kernels.keep<In>()) {}

    // A block of n rows, whose values are not kept yet.
    void begin_block(const RowsView<In>& rows, int32_t n) {
        forget();
        n_ = may_keep_ && rows.row_stride == 1 && n > kLeast ? n : 0;
        if (n_ == 0) return;
        rows_ = rows;
        stride_ = (n + kPadding - 1) / kPadding * kPadding + kPadding;
        alive_ = scratch().kept_alive.of((n + 63) / 64);
    }

    // Whether `keep` is to be called for n rows.
    bool takes(int32_t n) const { return n_ > 0 && n > kLeast; }

    // Where a segment says which of its rows from place `at` on go on; or null.
    uint64_t* alive(int32_t at) { return n_ > 0 ? alive_ + at / 64 : nullptr; }

    // Keeps values for the next segment while a slab is in a cache. The slab is the n rows from
    // place `at` of the block on, which are those of the table from `first` on. `before` rows of
    // slabs before it go on, and those at row[before..left) of this one.
    void keep_slab(std::span<const int32_t> features, int64_t first, int32_t at, int32_t n,
                   const int32_t* row, int32_t before, int32_t left) {
        if (at == 0) begin(features);
        if ((left - before) * kSparse < n) {
            for (int32_t f : features) pick(f, row + before, left - before, before);
            return;
        }
        apart_.clear();
        for (int32_t f : features)
            apart_.push_back({rows_.column(f) + first, values_of(f) + before});
        kernels_.keep<In>()(apart_, alive(at), n);
    }

    // The values that the trees of a segment look at, of the n rows that go on, those at row[0..n).
    // These are rows that went on after the last call of keep_slab, or of keep by what alive()
    // says.
    RowsView<float> keep(std::span<const int32_t> features, const int32_t* row, int32_t n) {
        if (has_.empty()) begin({});
        kept_.clear();
        for (int32_t f : features)
            if (has_[f])
                kept_.push_back({values_of(f), values_of(f)});
            else
                pick(f, row, n, 0);
        if (n_before_ > 0 && !kept_.empty()) kernels_.keep<float>()(kept_, alive_, n_before_);
        name(features);
        n_before_ = n;
        return {values_, n, rows_.width, 1, stride_};
    }

    // To be called where rows quit in a segment for which nothing was kept.
    void forget() {
        has_.clear();
        features_ = {};
    }

  private:
    // Up to kLeast rows are read where they are. Where fewer than one in kSparse rows goes on, they
    // are picked one by one. The kernel writes up to kPadding values more than there are.
    static constexpr int32_t kLeast = 64, kSparse = 8, kPadding = 16;

    void begin(std::span<const int32_t> features) {
        has_.assign(rows_.width, 0);
        n_before_ = 0;
        values_ =
            reinterpret_cast<float*>(scratch().kept.of(stride_ * rows_.width * sizeof(float)));
        name(features);
    }
    void name(std::span<const int32_t> features) {
        for (int32_t f : features_) has_[f] = 0;
        features_ = features;
        for (int32_t f : features_) has_[f] = 1;
    }

    float* values_of(int32_t feature) const { return values_ + feature * stride_; }
    void pick(int32_t feature, const int32_t* row, int32_t n, int32_t at) const {
        const In* const from = rows_.column(feature);
        float* const to = values_of(feature) + at;
        for (int32_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[row[i]]);
    }

    const MaskKernels& kernels_;
    const bool may_keep_;
    RowsView<In> rows_{};
    int32_t n_ = 0;         // rows of the block; 0: nothing is kept
    int32_t n_before_ = 0;  // rows whose values are there, of which alive() says which go on
    int64_t stride_ = 0;    // from a column to the next
    float* values_ = nullptr;
    uint64_t* alive_ = nullptr;
    std::span<const int32_t> features_;  // whose values are there
    std::vector<uint8_t> has_;           // by feature: whether they are; empty: none
    std::vector<KeptColumn<In>> apart_;
    std::vector<KeptColumn<float>> kept_;
};

}  // namespace qwyc
