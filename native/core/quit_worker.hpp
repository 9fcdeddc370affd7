// A block of rows, segment by segment, on one thread.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "core/deep_rows.hpp"
#include "core/engine.hpp"
#include "core/full_worker.hpp"
#include "core/kept_columns.hpp"
#include "core/worker.hpp"

namespace qwyc {

template <class Real, class Policy>
template <class In>
class QuitEngine<Real, Policy>::Worker {
  public:
    Worker(const QuitEngine& engine, const Kernels& kernels, const MaskKernels& masks)
        : engine_(engine),
          forest_(engine.forest_),
          kernels_(kernels),
          mask_kernels_(masks),
          deep_(engine.forest_, engine.full_.deep(), kernels),
          kept_(masks, std::is_same_v<TileValue<In, Real>, float>) {}

    // Rows in blocks of `block`. Those that never quit are completed together.
    void run(const RowsView<In>& rows, int32_t block, const DecisionsOut& out) {
        const auto n = static_cast<int32_t>(rows.n);
        Scratch& mine = scratch();
        row_ = mine.row.of(std::min(n, block) + kPadding);
        sums_ = mine.sums.of(std::min(n, block) + kPadding);
        alive_ = mine.alive.of(kSlabWords);
        in_full_ = mine.in_full.of(n);
        n_in_full_ = 0;
        for (int32_t begin = 0; begin < n; begin += block)
            run_block(rows, begin, std::min(block, n - begin), out);
        complete(rows, out);
    }

  private:
    // Kernels read and write whole words, and a little past the rows that go on.
    static constexpr int32_t kPadding = 128;

    void run_block(const RowsView<In>& rows, int32_t begin, int32_t n, const DecisionsOut& out) {
        int32_t left = n;
        encoded_ = false;
        first_ = begin;
        if (rows.columns) written_.assign(rows.width, 0);
        kept_.begin_block(rows, n);
        bool listed = false;  // rows are in row_ and sums_; otherwise they are begin, begin + 1...
        const auto& layout = engine_.layout();
        const std::vector<int32_t>& numbers = layout.plan_for(n).segments;
        for (size_t i = 0; i < numbers.size(); ++i) {
            const Segment& segment = layout.segments[numbers[i]];
            if (left == 0) break;
            if (left <= segment.walk_below) {
                list(listed, begin, left);
                rows.need_all(row_, left);
                walk_on(segment.begin, left, rows, out);
                return;
            }
            next_ = i + 1 < numbers.size() ? &layout.segments[numbers[i + 1]] : nullptr;
            left = run_segment(engine_.policy_, segment, rows, listed, begin, left, out);
            listed = true;
        }
        list(listed, begin, left);
        std::copy(row_, row_ + left, in_full_ + n_in_full_);
        n_in_full_ += left;
    }

    void list(bool listed, int32_t begin, int32_t n) {
        if (listed) return;
        for (int32_t i = 0; i < n; ++i) row_[i] = begin + i, sums_[i] = base();
    }

    double base() const { return forest_.rules().base / forest_.rules().divisor; }

    // Returns how many rows go on, in row_ and sums_.
    int32_t run_segment(const ThresholdPolicy& policy, const Segment& segment,
                        const RowsView<In>& rows, bool listed, int32_t begin, int32_t n,
                        const DecisionsOut& out) {
        if (!segment.masked || segment.any_large) {
            kept_.forget();
            list(listed, begin, n);
            return run_chunks(segment, rows, n, [&](int32_t step, const Chunk& chunk) {
                kernels_.advance(values_, policy.view(), step, chunk, out);
                return true;
            });
        }
        int32_t left = 0;
        need(segment.trees, listed ? rows : rows.part(begin, begin + n), listed ? row_ : nullptr,
             n);
        const bool is_kept = listed && kept_.takes(n);
        RowsView<float> kept{};
        if (is_kept) kept = kept_.keep(segment.trees.features, row_, n);
        std::span<const int32_t> next;
        if (!listed && n > kSlab && kept_.takes(n)) next = features_of_next(rows);
        for (int32_t at = 0; at < n; at += kSlab) {
            const int32_t here = std::min(kSlab, n - at), more = n - at - here;
            const uint64_t* masks;
            if (is_kept) {
                masks = sliced(segment.trees, kept.part(at, at + here), nullptr, here, more);
            } else if (listed) {
                masks = sliced(segment.trees, rows, row_ + at, here, more);
            } else {
                if (segment.trees.dense && at % kReadAhead == 0)
                    read_ahead(rows.part(begin + at, begin + at + std::min(kReadAhead, n - at)));
                masks = sliced(segment.trees, rows.part(begin + at, begin + at + here), nullptr,
                               here, more);
            }
            const QuitSlab slab{here, listed ? row_ + at : nullptr, begin + at,
                                listed ? sums_ + at : nullptr, base()};
            const int32_t before = left;
            left += mask_kernels_.quit(segment.trees, segment.exact ? &*segment.exact : nullptr,
                                       policy.view(), segment.begin, masks, slab, out,
                                       {row_ + left, sums_ + left, kept_.alive(at)});
            if (!next.empty()) kept_.keep_slab(next, begin + at, at, here, row_, before, left);
        }
        return left;
    }

    int32_t run_segment(const FanPolicy& policy, const Segment& segment, const RowsView<In>& rows,
                        bool listed, int32_t begin, int32_t n, const DecisionsOut& out) {
        list(listed, begin, n);
        return run_chunks(segment, rows, n, [&](int32_t step, const Chunk& chunk) {
            alignas(64) double bins[kSlab];  // of words in which a row is alive
            kernels_.add_and_bin(values_, policy.rule().width(), chunk, bins);
            return test(policy.rule().at(step), step, chunk, bins, out);
        });
    }

    // Has late columns written that the trees of a segment look at and no segment before it did.
    void need(const MaskedTrees& trees, const RowsView<In>& rows, const int32_t* row, int32_t n) {
        if (!rows.columns || rows.columns->late().empty()) return;
        needed_.clear();
        for (int32_t feature : trees.features)
            if (!written_[feature]) written_[feature] = 1, needed_.push_back(feature);
        rows.columns->write(needed_, rows.first, row, n);
    }

    // The columns that trees of the next segment look at, but not those that are written then.
    std::span<const int32_t> features_of_next(const RowsView<In>& rows) {
        if (!next_ || !next_->masked || next_->any_large) return {};
        if (!rows.columns || rows.columns->late().empty()) return next_->trees.features;
        const std::span<const int32_t> late = rows.columns->late();
        ready_.clear();
        for (int32_t feature : next_->trees.features)
            if (written_[feature] || !std::binary_search(late.begin(), late.end(), feature))
                ready_.push_back(feature);
        return ready_;
    }

    template <class Value>
    const uint64_t* sliced(const MaskedTrees& trees, const RowsView<Value>& rows,
                           const int32_t* row, int32_t n, int32_t more) {
        uint64_t* const masks = answer<Value, Real>(mask_kernels_, trees, rows, row, n, more);
        mask_kernels_.slice(trees, 0, trees.n_trees(), words_of(n), masks);
        return masks;
    }

    // One load per cache line, in order: processors then fetch ahead what tiles read in jumps. Few
    // rows are likely in a cache already.
    static constexpr int32_t kReadAhead = 2048;
    static constexpr int64_t kCached = 1 << 16;  // values
    static void read_ahead(const RowsView<In>& rows) {
        if (rows.column_stride != 1 || rows.row_stride > 2 * rows.width) return;
        if (rows.n < kReadAhead && rows.n * rows.width <= kCached) return;
        const auto* const begin = reinterpret_cast<const volatile char*>(rows.data);
        const auto* const end =
            reinterpret_cast<const volatile char*>(rows.row(rows.n - 1) + rows.width);
        for (const volatile char* at = begin; at < end; at += 64) static_cast<void>(*at);
    }

    // The steps of a segment for rows [0, n) of row_, kSlab at a time: the values of each step are
    // in values_ when `advance` is called, which says whether any row is left.
    template <class Advance>
    int32_t run_chunks(const Segment& segment, const RowsView<In>& rows, int32_t n,
                       const Advance& advance) {
        if (segment.masked)
            need(segment.trees, rows, row_, n);
        else if (!encoded_)
            encode(rows, n);
        int32_t left = 0;
        for (int32_t at = 0; at < n; at += kSlab) {
            const int32_t here = std::min(kSlab, n - at), words = words_of(here);
            std::fill_n(alive_, words, ~uint64_t{0});
            if (here % 64 != 0) alive_[words - 1] = (uint64_t{1} << here % 64) - 1;
            const Chunk chunk{words, sums_ + at, alive_, row_ + at};
            const uint64_t* masks = nullptr;
            if (segment.masked) masks = sliced(segment.trees, rows, row_ + at, here, n - at - here);
            for (int32_t step = segment.begin; step < segment.end; ++step) {
                if (segment.masked)
                    mask_kernels_.values(segment.trees, step - segment.begin, masks, words, alive_,
                                         values_);
                else
                    walk_step(step, chunk, rows);
                if (!advance(step, chunk)) break;
            }
            left +=
                kernels_.compact(alive_, words, sums_ + at, row_ + at, sums_ + left, row_ + left);
        }
        return left;
    }

    // Records the rows that quit at a step, and those that are to be evaluated in full; neither is
    // alive any longer. Returns whether any row is.
    bool test(const FanRule::Step& rule, int32_t step, const Chunk& chunk, const double* bins,
              const DecisionsOut& out) {
        uint64_t any = 0;
        for (int32_t w = 0; w < chunk.words; ++w) {
            uint64_t alive = chunk.alive[w];
            for (uint64_t bits = alive; bits != 0; bits &= bits - 1) {
                const int32_t i = 64 * w + std::countr_zero(bits);
                const Outcome outcome = rule(chunk.sums[i], bins[i]);
                if (settled(outcome, chunk.row[i], {step + 1, chunk.sums[i]}, out))
                    alive ^= bits & -bits;
            }
            chunk.alive[w] = alive;
            any |= alive;
        }
        return any != 0;
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

    // The values of a deep tree for the rows of a chunk that are alive.
    void walk_step(int32_t step, const Chunk& chunk, const RowsView<In>& rows) {
        int32_t n = 0;
        for (int32_t w = 0; w < chunk.words; ++w)
            for (uint64_t bits = chunk.alive[w]; bits != 0; bits &= bits - 1) {
                at_[n] = 64 * w + std::countr_zero(bits);
                walked_[n] = chunk.row[at_[n]];
                ++n;
            }
        for (int32_t i = 0; i < n; ++i) place_[i] = walked_[i] - first_;
        deep_.walk(engine_.policy_.order()[step], Rowwise<In>(rows, walked_, n), place_, n, leaf_);
        for (int32_t i = 0; i < n; ++i) values_[at_[i]] = forest_.step_value(leaf_[i]);
    }

    // The n <= kMaxWalkedRows rows of row_ from a step on to their end, some trees at a time.
    void walk_on(int32_t step, int32_t n, const RowsView<In>& rows, const DecisionsOut& out) {
        const auto walk_with = [&](auto* values, const auto& walk) {
            int32_t leaf[kRowsWalked * kWalksAtOnce];
            int32_t left = n;
            for (int32_t end; step < engine_.quit_end_ && left > 0; step = end) {
                end = std::min(step + kWalksAtOnce, engine_.quit_end_);
                int32_t kept = 0;
                for (int32_t i = 0; i < left; i += kRowsWalked) {
                    const int32_t here = std::min(kRowsWalked, left - i);
                    walk(engine_.policy_.order().data(), step, end, values + i, here, leaf);
                    for (int32_t k = 0; k < here; ++k) {
                        OneRow state{step, sums_[i + k]};
                        const Outcome outcome = engine_.follow(state, leaf + k * kWalksAtOnce, end);
                        if (!settled(outcome, row_[i + k], state, out)) {
                            row_[kept] = row_[i + k];
                            sums_[kept] = state.sum;
                            values[kept++] = values[i + k];
                        }
                    }
                }
                left = kept;
            }
            for (int32_t i = 0; i < left; ++i) in_full_[n_in_full_++] = row_[i];
        };
        with_walk(forest_, engine_.full_.row_trees(), engine_.row_way(), rows, row_, n, walk_with);
    }

    // Whether a row need not go on: it has quit, and its decision is written, or it is to be
    // evaluated in full.
    bool settled(Outcome outcome, int32_t row, const OneRow& state, const DecisionsOut& out) {
        if (outcome == Outcome::kContinue) return false;
        if (outcome == Outcome::kInFull) {
            in_full_[n_in_full_++] = row;
        } else {
            out.positive[row] = TwoClasses::decision_of(outcome);
            out.steps[row] = state.step;
            out.score[row] = state.sum;
        }
        return true;
    }

    // Rows that never quit: their full scores decide.
    void complete(const RowsView<In>& rows, const DecisionsOut& out) {
        if (n_in_full_ == 0) return;
        rows.need_all(in_full_, n_in_full_);
        double* const score = scratch().score.of(n_in_full_);
        typename FullEngine<Real>::template Worker<In> full(engine_.full_, kernels_, mask_kernels_);
        full.run_some(rows, std::span<const int32_t>(in_full_, n_in_full_), score);
        for (int32_t i = 0; i < n_in_full_; ++i) {
            const int32_t row = in_full_[i];
            out.score[row] = score[i];
            out.positive[row] = engine_.policy_.target().decide(score[i]);
            out.steps[row] = engine_.n_steps();
        }
    }

    const QuitEngine& engine_;
    const Forest<Real>& forest_;
    const Kernels& kernels_;
    const MaskKernels& mask_kernels_;
    int32_t* row_;      // rows of the block that go on, and
    double* sums_;      // their running sums
    uint64_t* alive_;   // (kSlabWords,) bit per row
    int32_t* in_full_;  // rows that did not quit
    int32_t n_in_full_;
    alignas(64) float values_[kSlab];
    DeepRows<In, Real> deep_;
    std::vector<uint8_t> written_;  // by feature: whether its late column is, for rows that go on
    std::vector<int32_t> needed_, ready_;
    KeptColumns<In> kept_;
    const Segment* next_;  // the segment after this one, or null
    bool encoded_;         // rows of this block have codes for deep trees
    int32_t first_;        // of the block
    int32_t at_[kSlab], walked_[kSlab], place_[kSlab], leaf_[kSlab];  // of a deep tree's step
};

}  // namespace qwyc
