// A block of rows under a policy on leads, of which only labels are asked for, on one thread: the
// source's own sums are added up, as for full scores, and take the place of running sums in all
// tests. They differ by rounding only. Rows that are too near to a threshold are walked instead.
#pragma once

#include <algorithm>
#include <bit>

#include "core/lead_rows.hpp"

namespace qwyc {

template <class Real>
template <class In>
class LeadEngine<Real>::FullSumsWorker : LeadEngine<Real>::template Rows<In> {
    using Base = typename LeadEngine<Real>::template Rows<In>;
    using Base::K_, Base::engine_, Base::forest_, Base::kernels_, Base::mask_kernels_;
    using Base::row_, Base::stride_, Base::sums_;

  public:
    FullSumsWorker(const LeadEngine& engine, const Kernels& kernels, const MaskKernels& masks)
        : Base(engine, kernels, masks) {}

    void run(const RowsView<In>& rows, int32_t block, const ClassDecisionsOut& out) {
        const auto n = static_cast<int32_t>(rows.n);
        this->make_room(n, block);
        Scratch& mine = scratch();
        out_ = mine.other.of(static_cast<size_t>(stride_) * K_);
        tested_ = mine.value.of(static_cast<size_t>(kOwn) * K_);
        single_ = mine.single.of(forest_.single() ? static_cast<size_t>(stride_) * K_ : 1);
        near_ = mine.kept_row.of(std::min(n, block));
        for (int32_t begin = 0; begin < n; begin += block)
            run_block(rows, begin, std::min(block, n - begin), out);
        this->complete(rows, out);
    }

  private:
    static constexpr int64_t kOwn = kSlab + 8;  // from one class's sums to the next's

    void run_block(const RowsView<In>& rows, int32_t begin, int32_t n,
                   const ClassDecisionsOut& out) {
        this->begin_block(rows, begin, n);
        for (int32_t k = 0; k < K_; ++k)
            if (forest_.single())
                std::fill_n(single_ + k * stride_, 64 * words_of(n),
                            static_cast<float>(forest_.start(k)));
            else
                std::fill_n(sums_ + k * stride_, 64 * words_of(n), forest_.start(k));
        n_near_ = 0;
        int32_t left = n;
        bool consecutive = true;  // rows are begin, begin + 1...
        const Plan& plan = engine_.plan_for(n);
        for (size_t s = 0; s <= plan.segments.size() && left > 0; ++s) {
            const int32_t number = s < plan.segments.size() ? plan.segments[s] : plan.last;
            const int32_t before = left;
            left = run_segment(engine_.segments_[number], rows, consecutive, begin, left, out);
            consecutive = consecutive && left == before;
        }
        double* const score = scratch().score.of(K_);
        for (int32_t i = 0; i < left; ++i) {
            for (int32_t k = 0; k < K_; ++k)
                score[k] = forest_.finish(
                    k, forest_.single() ? single_[k * stride_ + i] : sums_[k * stride_ + i]);
            this->complete_row(row_[i], score, out);
        }
        for (int32_t at = 0; at < n_near_; at += kMaxWalkedRows) {
            const int32_t here = std::min(kMaxWalkedRows, n_near_ - at);
            std::copy_n(near_ + at, here, row_);
            for (int32_t k = 0; k < K_; ++k)
                std::fill_n(sums_ + k * stride_, here, forest_.base()[k]);
            this->walk_on(0, nullptr, here, rows, out);
        }
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
                uint64_t* const masks =
                    consecutive ? answer<In, Real>(mask_kernels_, part.trees,
                                                   rows.part(begin + at, begin + at + here),
                                                   nullptr, here, n - at - here)
                                : answer<In, Real>(mask_kernels_, part.trees, rows, row_ + at, here,
                                                   n - at - here);
                if (!run_part(part, masks, at, words, alive, out)) break;
            }
            left = keep(at, words, alive, left);
        }
        return left;
    }

    // Returns whether any row of the slab is left.
    bool run_part(const ClassPart& part, uint64_t* masks, int32_t at, int32_t words,
                  uint64_t* alive, const ClassDecisionsOut& out) {
        ClassAdder adder(mask_kernels_, part, K_, false, masks, words);
        for (const ClassRun& run : part.runs) {
            if (run.kind == ClassRun::Kind::kTest) {
                if (!test(run.index, at, words, alive, out)) return false;
                continue;
            }
            if (forest_.single())
                adder.add(run, single_ + at, stride_);
            else
                adder.add_full(run, sums_ + run.index * stride_ + at);
        }
        return true;
    }

    // Records the rows that certainly quit after a step. Returns whether any is left.
    bool test(int32_t step, int32_t at, int32_t words, uint64_t* alive,
              const ClassDecisionsOut& out) {
        const double error = engine_.errors_[step], drop = engine_.drop_[step];
        const double* const before = step > engine_.first_drop_ ? out_ + at : nullptr;
        if (forest_.single())
            kernels_.tested_single(single_ + at, before, stride_, K_, words, tested_, kOwn);
        else
            kernels_.tested_double(sums_ + at, before, stride_, K_, words, tested_, kOwn);
        uint64_t ahead[kSlabWords], near[kSlabWords], any = 0;
        alignas(64) double leader[kSlab], lead[kSlab];
        kernels_.leads(tested_, kOwn, K_, words, engine_.least_[step] - error, ahead);
        if (this->intersect(ahead, alive, words))
            kernels_.leaders(tested_, kOwn, K_, words, leader, lead);
        for (int32_t w = 0; w < words; ++w) {
            for (uint64_t bits = ahead[w] & alive[w]; bits != 0; bits &= bits - 1) {
                const int32_t i = 64 * w + std::countr_zero(bits);
                const auto index = static_cast<int32_t>(leader[i]);
                const double least = engine_.lead_of(step, index);
                if (lead[i] <= least - error && lead[i] > error) continue;
                alive[w] ^= bits & -bits;
                const int32_t row = row_[at + i];
                if (lead[i] <= least + error) {
                    near_[n_near_++] = row;
                    continue;
                }
                out.label[row] = index;
                if (out.steps) out.steps[row] = step + 1;
            }
            any |= alive[w];
        }
        if (drop == kInf || any == 0) return any != 0;
        kernels_.rule_out_near(tested_, kOwn, K_, words, drop, error, out_ + at, stride_, near);
        any = 0;
        for (int32_t w = 0; w < words; ++w) {
            for (uint64_t bits = near[w] & alive[w]; bits != 0; bits &= bits - 1)
                near_[n_near_++] = row_[at + 64 * w + std::countr_zero(bits)];
            alive[w] &= ~near[w];
            any |= alive[w];
        }
        return any != 0;
    }

    // Moves the rows of a slab that go on to place `left`. Returns the place after them.
    int32_t keep(int32_t at, int32_t words, const uint64_t* alive, int32_t left) {
        bool all = left == at;
        for (int32_t w = 0; w < words && all; ++w) all = alive[w] == ~uint64_t{0};
        if (all) return left + 64 * words;
        for (int32_t k = 0; k < K_; ++k) {
            double* const out = out_ + k * stride_;
            if (forest_.single()) {  // floats are copied as integers
                auto* const sums = reinterpret_cast<int32_t*>(single_ + k * stride_);
                kernels_.compact(alive, words, out + at, sums + at, out + left, sums + left);
                continue;
            }
            double* const sums = sums_ + k * stride_;
            kernels_.compact_sums(alive, words, out + at, out + left);
            kernels_.compact_sums(alive, words, sums + at, sums + left);
        }
        // The sums here are those of no class.
        return left + kernels_.compact(alive, words, spare_, row_ + at, spare_, row_ + left);
    }

    double* out_;     // (K, stride) -inf where a class is ruled out, otherwise 0
    double* tested_;  // (K, kOwn) sums of a slab with those in place
    float* single_;   // (K, stride) sums, if the source adds floats; otherwise sums_
    alignas(64) double spare_[kSlab + 64];
    int32_t* near_;  // rows of the block that are too near to a threshold
    int32_t n_near_;
};

}  // namespace qwyc
