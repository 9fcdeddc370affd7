// A block of rows under a policy on leads, segment by segment, on one thread: all classes are
// evaluated for all rows that go on.
#pragma once

#include <algorithm>
#include <bit>

#include "core/lead_rows.hpp"

namespace qwyc {

template <class Real>
template <class In>
class LeadEngine<Real>::Worker : LeadEngine<Real>::template Rows<In> {
    using Base = typename LeadEngine<Real>::template Rows<In>;
    using Base::K_, Base::deep_, Base::engine_, Base::forest_, Base::kernels_, Base::mask_kernels_;
    using Base::leaf_, Base::row_, Base::stride_, Base::sums_, Base::walked_;

  public:
    Worker(const LeadEngine& engine, const Kernels& kernels, const MaskKernels& masks)
        : Base(engine, kernels, masks) {}

    // Rows in blocks of `block`. Those that never quit are completed together.
    void run(const RowsView<In>& rows, int32_t block, const ClassDecisionsOut& out) {
        const auto n = static_cast<int32_t>(rows.n);
        this->make_room(n, block);
        for (int32_t begin = 0; begin < n; begin += block)
            run_block(rows, begin, std::min(block, n - begin), out);
        this->complete(rows, out);
    }

  private:
    void run_block(const RowsView<In>& rows, int32_t begin, int32_t n,
                   const ClassDecisionsOut& out) {
        this->begin_block(rows, begin, n);
        int32_t left = n;
        bool consecutive = true;  // rows are begin, begin + 1...
        for (int32_t number : engine_.plan_for(n).segments) {
            const Segment& segment = engine_.segments_[number];
            if (left == 0) return;
            if (left <= segment.walk_below)
                return this->walk_on(segment.begin, nullptr, left, rows, out);
            const int32_t before = left;
            left = run_segment(segment, rows, consecutive, begin, left, out);
            consecutive = consecutive && left == before;
        }
        this->leave(left);
    }

    // Returns how many rows go on, in row_ and sums_.
    int32_t run_segment(const Segment& segment, const RowsView<In>& rows, bool consecutive,
                        int32_t begin, int32_t n, const ClassDecisionsOut& out) {
        this->prepare(segment, rows, n);
        int32_t left = 0;
        for (int32_t at = 0; at < n; at += kSlab) {
            const int32_t here = std::min(kSlab, n - at), words = words_of(here);
            alignas(64) uint64_t alive[kSlabWords];
            std::fill_n(alive, words, ~uint64_t{0});
            if (here % 64 != 0) alive[words - 1] = (uint64_t{1} << here % 64) - 1;
            for (const ClassPart& part : segment.parts) {
                uint64_t* masks = nullptr;
                if (part.masked())
                    masks = consecutive ? answer<In, Real>(mask_kernels_, part.trees,
                                                           rows.part(begin + at, begin + at + here),
                                                           nullptr, here, n - at - here)
                                        : answer<In, Real>(mask_kernels_, part.trees, rows,
                                                           row_ + at, here, n - at - here);
                if (!run_part(part, masks, rows, at, words, alive, out)) break;
            }
            left = keep(at, words, alive, left);
        }
        return left;
    }

    // Returns whether any row of the slab is left.
    bool run_part(const ClassPart& part, uint64_t* masks, const RowsView<In>& rows, int32_t at,
                  int32_t words, uint64_t* alive, const ClassDecisionsOut& out) {
        ClassAdder adder(mask_kernels_, part, K_, forest_.has_vectors(), masks, words);
        for (const ClassRun& run : part.runs) {
            switch (run.kind) {
                case ClassRun::Kind::kMasked:
                    adder.add(run, sums_ + at, stride_);
                    break;
                case ClassRun::Kind::kWalked:
                    for (int32_t i = run.begin; i < run.end; ++i)
                        walk_tree(part.walked[i], run.index, rows, at, words, alive);
                    break;
                case ClassRun::Kind::kTest:
                    if (!test(run.index, at, words, alive, out)) return false;
            }
        }
        return true;
    }

    // Records the rows that quit after a step. Returns whether any is left.
    bool test(int32_t step, int32_t at, int32_t words, uint64_t* alive,
              const ClassDecisionsOut& out) {
        uint64_t ahead[kSlabWords], any = 0;
        const double drop = engine_.drop_[step];
        const int32_t only = engine_.only_;
        if (only >= 0)
            kernels_.behind(sums_ + at, stride_, K_, only, words, engine_.least_[step], ahead);
        else
            kernels_.leads(sums_ + at, stride_, K_, words, engine_.least_[step], ahead);
        for (int32_t w = 0; w < words; ++w) {
            for (uint64_t bits = ahead[w] & alive[w]; bits != 0; bits &= bits - 1) {
                const int32_t i = at + 64 * w + std::countr_zero(bits);
                const double* const sums = sums_ + i;
                const int32_t index = best_other(K_, only, sums, stride_);
                if (only < 0 && engine_.lead_of(step, index) > engine_.least_[step]) {
                    double second = -kInf;
                    for (int32_t k = 0; k < K_; ++k)
                        if (k != index) second = std::max(second, sums[k * stride_]);
                    if (!(sums[index * stride_] - second > engine_.lead_of(step, index))) continue;
                }
                alive[w] ^= bits & -bits;
                const int64_t row = row_[i];
                out.label[row] = index;
                if (out.steps) out.steps[row] = step + 1;
                if (out.score)
                    for (int32_t k = 0; k < K_; ++k) out.score[row * K_ + k] = sums[k * stride_];
            }
            any |= alive[w];
        }
        if (drop < kInf) kernels_.rule_out(sums_ + at, stride_, K_, words, drop);
        return any != 0;
    }

    // Moves the rows of a slab that go on to place `left`. Returns the place after them.
    int32_t keep(int32_t at, int32_t words, const uint64_t* alive, int32_t left) {
        bool all = left == at;
        for (int32_t w = 0; w < words && all; ++w) all = alive[w] == ~uint64_t{0};
        if (all) return left + 64 * words;
        for (int32_t k = 1; k < K_; ++k)
            kernels_.compact_sums(alive, words, sums_ + k * stride_ + at,
                                  sums_ + k * stride_ + left);
        return left +
               kernels_.compact(alive, words, sums_ + at, row_ + at, sums_ + left, row_ + left);
    }

    // Adds a deep tree to the sums of the rows of a slab that are alive.
    void walk_tree(int32_t tree, int32_t index, const RowsView<In>& rows, int32_t at, int32_t words,
                   const uint64_t* alive) {
        int32_t n = 0;
        for (int32_t w = 0; w < words; ++w)
            for (uint64_t bits = alive[w]; bits != 0; bits &= bits - 1) {
                at_[n] = at + 64 * w + std::countr_zero(bits);
                walked_[n] = row_[at_[n]];
                ++n;
            }
        this->walk_deep(tree, rows, n);
        const int32_t channels = forest_.channels();
        for (int32_t i = 0; i < n; ++i) {
            const float* const added = forest_.step_of(leaf_[i]);
            double* const to = sums_ + index * stride_ + at_[i];
            for (int32_t c = 0; c < channels; ++c) to[c * stride_] += added[c];
        }
    }

    int32_t at_[kSlab];  // places of the rows that walk a deep tree
};

}  // namespace qwyc
