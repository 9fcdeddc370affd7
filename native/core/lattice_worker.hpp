// Evaluation of a block of rows through lattices, with buffers of its own.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/lattice_engine.hpp"

namespace qwyc {

template <class Real, class Policy>
template <class In>
class LatticeEngine<Real, Policy>::Worker {
  public:
    // `block`: the most rows at once.
    Worker(const LatticeEngine& engine, const LatticeKernels<Real>& kernels, const In* rows,
           int32_t block)
        : engine_(&engine),
          kernels_(&kernels),
          rows_(rows),
          // Not a power of two, with which all slots would map to the same cache sets.
          stride_((block + kLatticePad - 1) / kLatticePad * kLatticePad + kLatticePad),
          slots_(std::max(engine.plan_.n_slots, 1) * stride_),
          x_(stride_),
          value_(stride_),
          scratch_((engine.lattices_.scratch() + 1) * kLatticePad),
          sums_(stride_),
          row_(stride_),
          keep_(stride_),
          state_(stride_) {}

    // Full scores of rows [begin, begin + n); values: (T, rows) from the first of them on.
    void score(int64_t begin, int32_t n, Real* values, int64_t rows, double* full) {
        start(begin, n);
        for (int32_t r = 0; r < engine_->plan_.n_steps(); ++r) {
            evaluate(r, n);
            if (values) std::copy_n(value_.begin(), n, values + engine_->plan_.order[r] * rows);
        }
        std::copy_n(sums_.begin(), n, full);
    }

    // Decides rows [begin, begin + n). `out` is that of the first of them.
    void decide(int64_t begin, int32_t n, const DecisionsOut& out) {
        start(begin, n);
        const LatticePlan& plan = engine_->plan_;
        int32_t held = n, left = n;  // rows in the buffers; those among them that have not quit
        std::fill_n(state_.begin(), n, kTested);
        double wasted = 0;  // nanoseconds spent on rows that had quit
        for (int32_t r = 0; r < plan.n_steps() && left > 0; ++r) {
            if (left <= engine_->few_rows_) return walk_on(r, held, out);
            evaluate(r, held);
            calibrated_.insert(calibrated_.end(), plan.steps[r].calibrate.begin(),
                               plan.steps[r].calibrate.end());
            if (r >= engine_->quit_end_) continue;
            left -= quit(engine_->policy_.rule(), r, held, out);
            wasted += (held - left) * plan.steps[r].cost;
            // Rows are moved once that costs less than what was lost by not moving them.
            const double moving = kMoveRow + kMoveValue * plan.steps[r].n_kept;
            if (held > left && wasted > held * moving) {
                compact(r, held);
                held = left;
                wasted = 0;
            }
        }
        for (int32_t i = 0; i < held; ++i)
            if (state_[i] != kQuit) {
                out.positive[row_[i]] = engine_->policy_.target().decide(sums_[i]);
                out.steps[row_[i]] = plan.n_steps();
                out.score[row_[i]] = sums_[i];
            }
    }

    void measure(int32_t n, int repeats, double* models, double* calibrators) {
        const auto seconds = [&](auto work) {
            std::vector<double> taken(repeats);
            for (double& each : taken) {
                const auto begin = std::chrono::steady_clock::now();
                work();
                const std::chrono::duration<double> spent =
                    std::chrono::steady_clock::now() - begin;
                each = spent.count() / n;
            }
            std::nth_element(taken.begin(), taken.begin() + repeats / 2, taken.end());
            return taken[repeats / 2];
        };
        start(0, n);
        const LatticePlan& plan = engine_->plan_;
        for (int32_t r = 0; r < plan.n_steps(); ++r) {
            for (int32_t c : plan.steps[r].calibrate)
                calibrators[c] = seconds([&] { calibrate(c, n); });
            models[plan.order[r]] = seconds([&] { interpolate(r, n); });
        }
    }

  private:
    // Nanoseconds to move a row and one of its calibrated values.
    static constexpr double kMoveRow = 1.5, kMoveValue = 0.4;

    // The state of a row in the buffers: may quit, has quit, is evaluated in full.
    static constexpr uint8_t kTested = 0, kQuit = 1, kInFull = 2;

    void start(int64_t begin, int32_t n) {
        block_ = rows_ + begin * engine_->lattices_.n_features();
        for (int32_t i = 0; i < n; ++i) row_[i] = i;
        std::fill(sums_.begin(), sums_.end(), engine_->lattices_.base());
        calibrated_.clear();
    }

    Real* slot(int32_t at) { return slots_.data() + at * stride_; }

    void calibrate(int32_t c, int32_t n) {
        const Calibrator<Real>& of = engine_->lattices_.calibrators()[c];
        const int64_t width = engine_->lattices_.n_features();
        const In* column = block_ + of.feature;
        for (int32_t i = 0; i < n; ++i) x_[i] = static_cast<Real>(column[row_[i] * width]);
        kernels_->calibrate(of, x_.data(), n, slot(engine_->plan_.slot[c]));
    }

    void interpolate(int32_t r, int32_t n) {
        const LatticeStep& step = engine_->plan_.steps[r];
        const Real* inputs[kMaxInputs];
        for (size_t i = 0; i < step.inputs.size(); ++i) inputs[i] = slot(step.inputs[i]);
        kernels_->interpolate(engine_->lattices_.lattices()[engine_->plan_.order[r]], inputs, n,
                              scratch_.data(), value_.data());
    }

    // Step r of the first n rows: value_ holds what it added to their sums.
    void evaluate(int32_t r, int32_t n) {
        for (int32_t c : engine_->plan_.steps[r].calibrate) calibrate(c, n);
        interpolate(r, n);
        const Lattice<Real>& lattice = engine_->lattices_.lattices()[engine_->plan_.order[r]];
        kernels_->add(lattice.weight, engine_->lattices_.grid(), n, value_.data(), sums_.data());
    }

    // Writes the decisions of rows that quit at step r; returns their number. The sums of rows that
    // had quit before go on changing, but what they quit with is written already.
    int32_t quit(const ThresholdRule& rule, int32_t r, int32_t n, const DecisionsOut& out) {
        if (!kernels_->compare(sums_.data(), n, rule.lower[r], rule.upper[r], crosses_.data()))
            return 0;
        int32_t count = 0;
        for (int32_t i = 0; i < n; ++i) {
            if (!crosses_[i] || state_[i] == kQuit) continue;
            ++count;
            record(i, side_of(sums_[i], rule.upper[r]), r, out);
        }
        return count;
    }

    int32_t quit(const FanRule& rule, int32_t r, int32_t n, const DecisionsOut& out) {
        bins_.resize(stride_);
        kernels_->bin(sums_.data(), n, rule.width(), bins_.data());
        const FanRule::Step step = rule.at(r);
        int32_t count = 0;
        for (int32_t i = 0; i < n; ++i) {
            if (state_[i] != kTested) continue;
            const Outcome outcome = step(sums_[i], bins_[i]);
            if (outcome == Outcome::kContinue) continue;
            if (outcome == Outcome::kInFull) {
                state_[i] = kInFull;
                continue;
            }
            ++count;
            record(i, outcome, r, out);
        }
        return count;
    }

    // Row i quits at step r.
    void record(int32_t i, Outcome outcome, int32_t r, const DecisionsOut& out) {
        state_[i] = kQuit;
        out.positive[row_[i]] = TwoClasses::decision_of(outcome);
        out.steps[row_[i]] = r + 1;
        out.score[row_[i]] = sums_[i];
    }

    // Moves the rows that have not quit to the front, with what steps after r need of them.
    void compact(int32_t r, int32_t n) {
        const LatticePlan& plan = engine_->plan_;
        int32_t left = 0;
        for (int32_t i = 0; i < n; ++i) {
            keep_[left] = i;
            left += state_[i] != kQuit;
        }
        std::fill_n(keep_.begin() + left, std::min<int64_t>(kLatticePad, stride_ - left), 0);
        std::erase_if(calibrated_, [&](int32_t c) { return plan.last_use(c) <= r; });
        for (int32_t c : calibrated_) kernels_->move(keep_.data(), left, slot(plan.slot[c]));
        for (int32_t i = 0; i < left; ++i) {
            sums_[i] = sums_[keep_[i]];
            row_[i] = row_[keep_[i]];
            state_[i] = state_[keep_[i]];
        }
    }

    // The rows that are left, one at a time.
    void walk_on(int32_t r, int32_t n, const DecisionsOut& out) {
        for (int32_t i = 0; i < n; ++i) {
            if (state_[i] == kQuit) continue;
            const int32_t at = row_[i];
            engine_->walk_on({r, sums_[i], state_[i] == kInFull},
                             block_ + at * engine_->lattices_.n_features(),
                             {out.positive + at, out.steps + at, out.score + at}, *kernels_);
        }
    }

    const LatticeEngine* engine_;
    const LatticeKernels<Real>* kernels_;
    const In* rows_;
    const In* block_ = nullptr;  // the first row of the block
    int64_t stride_;
    std::vector<Real> slots_;  // (n_slots, stride)
    std::vector<Real> x_, value_, scratch_;
    std::vector<double> sums_;
    std::vector<int32_t> row_, keep_;  // (stride,) from the block's first row; among those held
    std::vector<int32_t> calibrated_;  // calibrators with values that may be needed again
    std::vector<uint8_t> state_;       // (stride,)
    std::vector<uint8_t> crosses_ = std::vector<uint8_t>(stride_);  // where a threshold is crossed
    std::vector<double> bins_;  // (stride,) of running sums, for FanRule
};

}  // namespace qwyc
