// Evaluation of rows through a plan: full scores, and decisions that quit early.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/kernels.hpp"
#include "core/plan.hpp"
#include "core/policy.hpp"

namespace qwyc {

// Every base model on every row, and full scores. Rows may be float or double, whatever Real is;
// they are converted as the source library does. Safe to use from many threads at once.
template <class Real>
class FullEngine {
  public:
    explicit FullEngine(const Forest<Real>& forest);

    // QuitEngine keeps a reference to it.
    FullEngine(const FullEngine&) = delete;
    FullEngine& operator=(const FullEngine&) = delete;

    // rows: (n, n_features) C order. values: (T, n), tree by tree, what each tree adds to the
    // running sum; may be null. full: (n,) the source library's own score.
    template <class In>
    void score(const In* rows, int64_t n, float* values, double* full, int threads,
               std::string_view isa = "") const;

    // One row, without any allocation.
    template <class In>
    double score_one(const In* row) const;

    // Seconds that each tree takes for a row on this machine, one thread, out: (T,): the median of
    // `repeats` measurements.
    template <class In>
    void measure(const In* rows, int64_t n, int repeats, double* out) const;

    // Scores chunks of rows on one thread, with buffers of its own: full_worker.hpp.
    template <class In>
    class Worker;

    const Forest<Real>& forest() const { return *plan_.forest; }

    // Trees that are walked node by node: too many leaves, or a category with too many values.
    int64_t n_walked() const {
        return std::count_if(plan_.small.begin(), plan_.small.end(),
                             [](const SmallTree& tree) { return tree.n_leaves == 0; });
    }

  private:
    Plan<Real> plan_;
    std::vector<int32_t> columns_;  // all, by feature
};

// Decisions under one policy, a ThresholdPolicy or a FanPolicy.
template <class Real, class Policy = ThresholdPolicy>
class QuitEngine {
  public:
    using Value = Real;

    // `full` completes rows that never quit; it must outlive this.
    QuitEngine(const FullEngine<Real>& full, const typename Policy::View& policy);

    QuitEngine(const QuitEngine&) = delete;
    QuitEngine& operator=(const QuitEngine&) = delete;

    template <class In>
    void decide(const In* rows, int64_t n, const DecisionsOut& out, int threads,
                std::string_view isa = "") const;

    // The state of a row that is evaluated alone. No memory is allocated.
    struct OneRow {
        int32_t step;
        double sum;
    };
    OneRow start_one() const;

    // Evaluates a row up to step `most`. Returns true, and fills `out`, where the row quits. A row
    // that must be evaluated in full goes to the step from which on no row quits.
    template <class In>
    bool walk_some(OneRow& state, const In* row, int32_t most, const DecisionsOut& out) const;

    // Evaluates a row to its end.
    template <class In>
    void walk_on(OneRow state, const In* row, const DecisionsOut& out) const;

  private:
    template <class In>
    class Worker;

    // Steps that are evaluated for the same rows; after them the rows that have quit are removed.
    struct Segment {
        int32_t begin, end;
        std::vector<int32_t> encode;  // columns first needed here, by feature
        std::vector<int32_t> keep;    // columns that later segments need
    };

    std::vector<Segment> segments(std::span<const double> survival) const;

    const FullEngine<Real>& full_;
    Policy policy_;
    Plan<Real> plan_;
    int32_t quit_end_;                       // no row quits at this step or later
    std::vector<Segment> default_segments_;  // for a typical survival curve
};

static_assert(!std::is_copy_constructible_v<QuitEngine<float>> &&
              !std::is_move_constructible_v<QuitEngine<float>> &&
              !std::is_copy_assignable_v<QuitEngine<float>> &&
              !std::is_move_assignable_v<QuitEngine<float>>);

}  // namespace qwyc
