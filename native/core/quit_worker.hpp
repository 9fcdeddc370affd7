// A block of rows, segment by segment, with buffers of its own.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "core/engine.hpp"
#include "core/full_worker.hpp"
#include "core/worker.hpp"

namespace qwyc {

template <class Real, class Policy>
template <class In>
class QuitEngine<Real, Policy>::Worker {
  public:
    Worker(const QuitEngine& engine, const Kernels& kernels, const In* rows, int32_t block,
           const DecisionsOut& out)
        : engine_(&engine),
          kernels_(&kernels),
          rows_(rows),
          // Not a power of two, with which all columns would map to the same cache sets.
          stride_(words_of(block) * 64 + 64),
          out_(out),
          codes_(engine.plan_.columns.size() * stride_),
          sums_(stride_),
          row_(stride_),
          alive_(words_of(block)),
          score_(block) {}

    void run(const std::vector<Segment>& segments, int64_t begin, int32_t n) {
        const Plan<Real>& plan = engine_->plan_;
        const Forest<Real>& forest = *plan.forest;
        const int64_t width = forest.n_features();
        const In* rows = rows_ + begin * width;
        const DecisionsOut out{out_.positive + begin, out_.steps + begin, out_.score + begin};
        std::fill(sums_.begin(), sums_.end(), forest.rules().base / forest.rules().divisor);
        for (int32_t i = 0; i < n; ++i) row_[i] = i;
        in_full_.clear();
        int32_t left = n;
        for (const Segment& segment : segments) {
            if (left <= kMaxScalarRows) {
                for (int32_t i = 0; i < left; ++i)
                    walk_on(segment.begin, row_[i], sums_[i], rows + row_[i] * width, out);
                left = 0;
                break;
            }
            const int32_t words = words_of(left);
            std::fill_n(alive_.begin(), words, ~uint64_t{0});
            if (left % 64 != 0) alive_[words - 1] = (uint64_t{1} << left % 64) - 1;
            kernels_->template reading<In, Real>().encode(
                plan, segment.encode, rows, width, segment.begin == 0 ? nullptr : row_.data(), left,
                codes_.data(), stride_);
            for (int32_t w = 0; w < words; w += kChunk / 64)
                run_chunk(segment, w, words, rows, out);
            left = kernels_->compact(alive_.data(), words, codes_.data(), stride_, segment.keep,
                                     sums_.data(), row_.data());
        }
        std::copy(in_full_.begin(), in_full_.end(), row_.begin() + left);
        complete(left + static_cast<int32_t>(in_full_.size()), rows, out);
    }

  private:
    void run_chunk(const Segment& segment, int32_t w, int32_t words, const In* rows,
                   const DecisionsOut& out) {
        const Chunk chunk{{codes_.data() + w * 64, stride_, std::min(kChunk / 64, words - w)},
                          sums_.data() + w * 64,
                          alive_.data() + w,
                          row_.data() + w * 64};
        run_steps(engine_->policy_, segment, chunk, rows, out);
    }

    // Steps of a segment for the rows of a chunk.
    void run_steps(const ThresholdPolicy& policy, const Segment& segment, const Chunk& chunk,
                   const In* rows, const DecisionsOut& out) {
        const Plan<Real>& plan = engine_->plan_;
        for (int32_t step = segment.begin; step < segment.end;) {
            if (plan.small[step].n_leaves == 0) {
                walk_step(step, chunk, rows);
                kernels_->advance(values_, policy.view(), step, chunk, out);
                ++step;
                continue;
            }
            int32_t end = step + 1;
            while (end < segment.end && plan.small[end].n_leaves > 0) ++end;
            kernels_->quit(plan, policy.view(), step, end, chunk, out);
            step = end;
        }
    }

    void run_steps(const FanPolicy& policy, const Segment& segment, const Chunk& chunk,
                   const In* rows, const DecisionsOut& out) {
        const Plan<Real>& plan = engine_->plan_;
        alignas(64) uint8_t number[kChunk];
        alignas(64) double bins[kChunk];  // of words in which a row is alive
        bool any = true;
        for (int32_t step = segment.begin; step < segment.end && any; ++step) {
            const SmallTree& tree = plan.small[step];
            if (tree.n_leaves == 0) {
                walk_step(step, chunk, rows);
            } else {
                kernels_->leaves(plan, tree, chunk, number);
                kernels_->look_up(plan.step_value.data() + tree.leaf_begin, tree.n_leaves, number,
                                  chunk.words, values_);
            }
            kernels_->add_and_bin(values_, policy.rule().width(), chunk, bins);
            any = test(policy.rule().at(step), step, chunk, bins, out);
        }
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
                if (outcome == Outcome::kContinue) continue;
                alive ^= bits & -bits;
                const int32_t row = chunk.row[i];
                if (outcome == Outcome::kInFull) {
                    in_full_.push_back(row);
                    continue;
                }
                out.positive[row] = TwoClasses::decision_of(outcome);
                out.steps[row] = step + 1;
                out.score[row] = chunk.sums[i];
            }
            chunk.alive[w] = alive;
            any |= alive;
        }
        return any != 0;
    }

    // The values of a deep tree for the rows of a chunk that are alive.
    void walk_step(int32_t step, const Chunk& chunk, const In* rows) {
        const Forest<Real>& forest = *engine_->plan_.forest;
        int32_t n = 0;
        for (int32_t w = 0; w < chunk.words; ++w)
            for (uint64_t bits = chunk.alive[w]; bits != 0; bits &= bits - 1) {
                at_[n] = 64 * w + std::countr_zero(bits);
                walked_[n] = chunk.row[at_[n]];
                ++n;
            }
        kernels_->template reading<In, Real>().walk(forest, forest.root(engine_->plan_.order[step]),
                                                    rows, forest.n_features(), walked_, n, leaf_);
        for (int32_t i = 0; i < n; ++i) values_[at_[i]] = forest.step_value(leaf_[i]);
    }

    void walk_on(int32_t step, int32_t row, double sum, const In* x, const DecisionsOut& out) {
        const DecisionsOut here{out.positive + row, out.steps + row, out.score + row};
        engine_->walk_on({step, sum}, x, here);
    }

    // Rows that never quit, the first `left` of row_: their full scores decide.
    void complete(int32_t left, const In* rows, const DecisionsOut& out) {
        if (left == 0) return;
        if (!full_) full_.emplace(engine_->full_, *kernels_);
        full_->run_some(rows, std::span<const int32_t>(row_.data(), left), score_.data());
        for (int32_t i = 0; i < left; ++i) {
            out.score[row_[i]] = score_[i];
            out.positive[row_[i]] = engine_->policy_.target().decide(score_[i]);
            out.steps[row_[i]] = engine_->plan_.n_steps();
        }
    }

    const QuitEngine* engine_;
    const Kernels* kernels_;
    const In* rows_;
    int64_t stride_;
    DecisionsOut out_;
    std::vector<uint8_t> codes_;    // (columns, stride)
    std::vector<double> sums_;      // (stride,)
    std::vector<int32_t> row_;      // (stride,) from the block's first row
    std::vector<uint64_t> alive_;   // bit per row
    std::vector<double> score_;     // (block,) full scores of the rows that never quit
    std::vector<int32_t> in_full_;  // rows whose bin is unknown, from the block's first row
    std::optional<typename FullEngine<Real>::template Worker<In>> full_;  // once a row needs it
    alignas(64) float values_[kChunk] = {};
    int32_t at_[kChunk] = {}, walked_[kChunk] = {}, leaf_[kChunk] = {};  // of a deep tree's step
};

}  // namespace qwyc
