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
    using Base::in_full_, Base::n_in_full_, Base::leaf_, Base::row_, Base::stride_, Base::sums_,
        Base::walked_;
    using Base::K_, Base::deep_, Base::engine_, Base::forest_, Base::kernels_, Base::mask_kernels_;

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
        const Plan& plan = engine_.plan_for(n);
        const int64_t bytes = plan.number_bytes * words_of(n);
        keeps_ =
            !plan.leaves.empty() && bytes <= kMostKept && n * plan.never_quit <= kMostCompleted;
        n_kept_ = 0;
        if (keeps_) {
            numbers_ = scratch().numbers.of(bytes);
            kept_row_ = scratch().kept_row.of(n * (plan.segments.size() + 1));
        }
        for (int32_t number : plan.segments) {
            const Segment& segment = engine_.segments_[number];
            if (left == 0) return;
            if (left <= segment.walk_below)
                return walk_on_and_complete(plan, segment, left, rows, out);
            const int32_t before = left;
            left = run_segment(segment, rows, consecutive, begin, left, out);
            consecutive = consecutive && left == before;
        }
        if (!keeps_ || left == 0) return this->leave(left);
        run_segment(engine_.segments_[plan.last], rows, consecutive, begin, left, out);
        for (int32_t i = 0; i < left; ++i) complete_kept(plan, row_[i], nullptr, out);
    }

    // Of rows that are walked to their end and never quit, leaves of earlier segments may be known.
    void walk_on_and_complete(const Plan& plan, const Segment& segment, int32_t left,
                              const RowsView<In>& rows, const ClassDecisionsOut& out) {
        const int32_t first = n_in_full_;
        this->walk_on(segment.begin, nullptr, left, rows, out);
        const int32_t n = n_in_full_ - first;
        if (n_kept_ == 0 || n == 0) return;
        n_in_full_ = first;
        int32_t* const rest = scratch().trees.of(2 * plan.leaves.size() + kWalksAtOnce);
        int32_t* last = rest;
        for (size_t t = 0; t < plan.leaves.size(); ++t)
            if (plan.leaves[t].segment >= n_kept_) *last++ = engine_.full_.order()[t];
        with_values<Real>(
            engine_.full_.row_trees(), rows, in_full_ + first, n, [&]<class V>(V* const* values) {
                for (int32_t i = 0; i < n; ++i) {
                    const RowLeaves<Real, std::remove_const_t<V>> leaves(engine_.full_, values[i]);
                    leaves(rest, static_cast<int32_t>(last - rest), last);
                    complete_kept(plan, in_full_[first + i], last, out);
                }
            });
    }

    // Leaf numbers of the rows of a segment that were alive at its begin.
    struct Kept {
        const int32_t* row;     // ascending
        int32_t at;             // of the last row that was completed
        uint8_t* numbers;       // of word after word
        int64_t word;           // bytes
        const uint8_t* of_row;  // of the row that is completed
    };

    // Keeps what the rows of row_ reach in a segment.
    void keep_numbers(const Segment& segment, int32_t n) {
        kept_[n_kept_++] = {kept_row_, 0, numbers_, segment.number_bytes, nullptr};
        kept_row_ = std::copy_n(row_, n, kept_row_);
        numbers_ += words_of(n) * int64_t{segment.number_bytes};
    }

    // Completes a row that never quit. Rows come in ascending order. rest: its leaves in trees of
    // which none are kept.
    void complete_kept(const Plan& plan, int32_t row, const int32_t* rest,
                       const ClassDecisionsOut& out) {
        for (int32_t s = 0; s < n_kept_; ++s) {
            Kept& kept = kept_[s];
            while (kept.row[kept.at] != row) ++kept.at;
            const int32_t at = kept.at;
            kept.of_row = kept.numbers + at / 64 * kept.word + mask_kernels_.place[at % 64];
        }
        const auto n_trees = static_cast<int32_t>(plan.leaves.size());
        int32_t* const leaf = scratch().leaf.of(n_trees);
        for (int32_t t = 0; t < n_trees; ++t) {
            const KeptLeaf& kept = plan.leaves[t];
            if (kept.segment >= n_kept_) {
                leaf[t] = *rest++;
                continue;
            }
            const uint8_t* const number = kept_[kept.segment].of_row + kept.at;
            leaf[t] =
                static_cast<int32_t>(kept.leaf[number[0] | (kept.large ? number[64] << 8 : 0)]);
        }
        double* const score = scratch().score.of(K_);
        engine_.full_.score_leaves(leaf, score);
        this->complete_row(row, score, out);
    }

    // Returns how many rows go on, in row_ and sums_.
    int32_t run_segment(const Segment& segment, const RowsView<In>& rows, bool consecutive,
                        int32_t begin, int32_t n, const ClassDecisionsOut& out) {
        this->prepare(segment, rows, n);
        if (keeps_) keep_numbers(segment, n);
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
        LeafNumbers numbers;
        if (keeps_) {
            const Kept& kept = kept_[n_kept_ - 1];
            numbers = {kept.numbers + at / 64 * kept.word + part.number_begin, kept.word};
        }
        ClassAdder adder(mask_kernels_, part, K_, forest_.has_vectors(), masks, words, numbers);
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
        alignas(64) double leader[kSlab], lead[kSlab];
        if (only < 0 && this->intersect(ahead, alive, words))
            kernels_.leaders(sums_ + at, stride_, K_, words, leader, lead);
        for (int32_t w = 0; w < words; ++w) {
            for (uint64_t bits = ahead[w] & alive[w]; bits != 0; bits &= bits - 1) {
                const int32_t here = 64 * w + std::countr_zero(bits), i = at + here;
                const double* const sums = sums_ + i;
                const int32_t index = only < 0 ? static_cast<int32_t>(leader[here])
                                               : best_other(K_, only, sums, stride_);
                if (only < 0 && engine_.lead_of(step, index) > engine_.least_[step] &&
                    !(lead[here] > engine_.lead_of(step, index)))
                    continue;
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

    bool keeps_;  // leaf numbers
    int32_t n_kept_;
    Kept kept_[kMostKeptSegments];
    uint8_t* numbers_;  // where those of the next segment go, and its rows
    int32_t* kept_row_;
    int32_t at_[kSlab];  // places of the rows that walk a deep tree
};

}  // namespace qwyc
