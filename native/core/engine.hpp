// Evaluation of rows: full scores, and decisions that quit early.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/coded_trees.hpp"
#include "core/cost_model.hpp"
#include "core/deep_trees.hpp"
#include "core/exact_sums.hpp"
#include "core/large_trees.hpp"
#include "core/mask_kernels.hpp"
#include "core/masked_trees.hpp"
#include "core/path.hpp"
#include "core/policy.hpp"
#include "core/questions.hpp"
#include "core/row_trees.hpp"
#include "core/rows_view.hpp"

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

    // values: (T, n), tree by tree, what each tree adds to the running sum; may be null. full: (n,)
    // the source library's own score.
    template <class In>
    void score(const RowsView<In>& rows, float* values, double* full, int threads,
               std::string_view isa = "") const;

    // What every policy of a path does with rows, and full scores, (n,): as `count_path` says over
    // the values of `score`, which stay in the cache.
    template <class In>
    void count_path(const RowsView<In>& rows, const PathView& path, double* full,
                    const PathCountsOut& out, int threads, std::string_view isa = "") const;

    // One row, without any allocation.
    template <class In>
    double score_one(const In* row) const;

    // n <= kMaxWalkedRows rows, those at row[0..n) or the first ones, tree by tree. full: (n,)
    template <class In>
    void score_few(const RowsView<In>& rows, const int32_t* row, int32_t n, double* full) const;

    // Seconds that each tree takes for a row on this machine, one thread, out: (T,): the median of
    // `repeats` measurements. Questions that trees share are not counted.
    template <class In>
    void measure(const RowsView<In>& rows, int repeats, double* out) const;

    // Scores slabs of rows on one thread: full_worker.hpp.
    template <class In>
    class Worker;

    const Forest<Real>& forest() const { return forest_; }
    const Questions<Real>& questions() const { return asked().questions; }
    // Those of rows that quit: of large trees too, if they are ever on masks.
    const Questions<Real>& quit_questions() const {
        return layout().large ? *layout().large : questions();
    }
    const RowTrees& row_trees() const { return row_trees_; }

    // The cheaper way for a row that is evaluated by itself, through so many trees.
    RowWay row_way(double n_trees) const;
    const RowWay& row_way() const {
        std::call_once(way_once_, [this] { way_ = row_way(static_cast<double>(order_.size())); });
        return way_;
    }
    const DeepTrees<Real>& deep() const { return layout().deep; }

    // (T,) what trees cost on masks, by the cost model; nothing where they are walked.
    std::vector<TreeCost> tree_costs() const;

    // Nanoseconds for one row of many on one thread, by the cost model.
    double expected_cost() const { return plan_of("avx512", kSlab).cost; }

    // From how many rows on large trees are evaluated on masks; 0 where there are none, more than
    // kSlab where that never is faster.
    int32_t large_from(std::string_view isa) const {
        for (size_t i = 0; i < kMaskIsas.size(); ++i)
            if (kMaskIsas[i] == isa) return layout().large_from[i];
        return layout().large ? kSlab + 1 : 0;
    }

    // Trees that are always walked node by node: too many leaves, or a category with too many
    // values.
    int64_t n_walked() const {
        const std::vector<uint8_t>& masked = quit_questions().masked;
        return std::count(masked.begin(), masked.end(), 0);
    }

  private:
    // Trees that are evaluated one after the other: all of them on masks, or all walked.
    struct Part {
        int32_t begin, end;
        bool masked;
        MaskedTrees trees;  // where masked
    };
    struct Plan {
        std::vector<Part> parts;
        bool any_masked = false;
        Needs needs;      // of all parts
        double cost = 0;  // nanoseconds for one row of many
    };
    // What trees ask. It is made when it is first needed: one row mostly does without.
    struct Asked {
        explicit Asked(const Forest<Real>& forest) : questions(forest) {}

        Questions<Real> questions;
        CodedTrees coded;  // where there are kernels for it
    };
    const Asked& asked() const;
    // What many rows are evaluated with. It is made when it is first needed: one row does without.
    struct Layout {
        explicit Layout(const Questions<Real>& questions) : questions(questions) {}

        const Questions<Real>& questions;
        std::unique_ptr<Questions<Real>> large;  // of large trees too, if they are ever on masks
        DeepTrees<Real> deep;                    // of many leaves, or on no masks
        Plan plan;
        Plan few;  // of fewer than large_from rows
        RowsForMasks large_from{};
        int32_t walk_below = 0;  // so few rows are walked one by one
    };
    const Layout& layout() const {
        std::call_once(once_, [this] { layout_ = make_layout(); });
        return *layout_;
    }
    std::unique_ptr<const Layout> make_layout() const;
    Plan make_plan(const Questions<Real>& questions) const;
    std::vector<PathLeaves> path_leaves(const MaskKernels& masks, const PathKernels& paths) const;
    void use_large(Layout& layout) const;  // on masks, where that is faster
    const Plan& plan_of(std::string_view isa, int32_t rows) const {
        return std::min(rows, kSlab) < large_from(isa) ? layout().few : layout().plan;
    }
    // Of a worker: more where all trees are walked, which are then loaded once.
    int32_t rows_at_once(std::string_view isa) const {
        return plan_of(isa, kSlab).any_masked ? kSlab : kMaxDeepRows;
    }
    static constexpr int32_t kMaxDeepRows = 4096;

    const Forest<Real>& forest_;
    RowTrees row_trees_;
    std::vector<int32_t> order_;         // of the source
    const CodedKernels* coded_kernels_;  // or null: rows never have codes
    mutable std::once_flag once_asked_, once_, way_once_;
    mutable RowWay way_{};  // through all trees
    mutable std::unique_ptr<const Asked> asked_;
    mutable std::unique_ptr<const Layout> layout_;
};

// Decisions under one policy, a ThresholdPolicy or a FanPolicy.
template <class Real, class Policy = ThresholdPolicy>
class QuitEngine {
  public:
    using Value = Real;

    // `full` completes rows that never quit; it must outlive this. survival: (T,) the expected
    // share of rows that reach each step, or nothing. It changes the time only.
    QuitEngine(const FullEngine<Real>& full, const typename Policy::View& policy,
               std::span<const double> survival = {});

    QuitEngine(const QuitEngine&) = delete;
    QuitEngine& operator=(const QuitEngine&) = delete;

    template <class In>
    void decide(const RowsView<In>& rows, const DecisionsOut& out, int threads,
                std::string_view isa = "") const;

    // Nanoseconds for one row of many on one thread, by the cost model and the expected survival.
    double expected_cost() const { return layout().expected_cost; }

    // Whether all rows are evaluated in full.
    bool never_quits() const { return quit_end_ == 0; }

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

    // Steps after which rows that have quit are left out: all of them on masks, or all walked.
    struct Segment {
        int32_t begin, end;
        bool masked;
        int32_t walk_below;              // so few rows are walked one by one
        MaskedTrees trees;               // where masked
        bool any_large;                  // of them
        std::optional<ExactSums> exact;  // of a ThresholdPolicy, where sums are integers
    };

    // A division of the steps, for blocks of up to so many rows.
    struct Plan {
        int64_t most_rows;
        std::vector<int32_t> segments;  // in Layout::segments
    };

    // What many rows are evaluated with. It is made when it is first needed: one row does without.
    struct Layout {
        std::vector<Segment> segments;
        std::vector<Plan> plans;  // the last is for any number of rows
        double expected_cost = 0;

        const Plan& plan_for(int64_t n_rows) const {
            return *std::find_if(plans.begin(), plans.end(),
                                 [=](const Plan& plan) { return n_rows <= plan.most_rows; });
        }
    };
    const Layout& layout() const {
        std::call_once(once_, [this] { layout_ = make_layout(); });
        return *layout_;
    }
    std::unique_ptr<const Layout> make_layout() const;

    // Adds the leaves at steps [state.step, end) to a row's sum, until it does not continue.
    Outcome follow(OneRow& state, const int32_t* leaf, int32_t end) const;

    // How a row goes that is evaluated by itself.
    const RowWay& row_way() const {
        std::call_once(way_once_, [this] { way_ = full_.row_way(taken_); });
        return way_;
    }

    int32_t n_steps() const { return static_cast<int32_t>(policy_.order().size()); }

    const FullEngine<Real>& full_;
    const Forest<Real>& forest_;
    Policy policy_;
    int32_t quit_end_;             // no row quits at this step or later
    std::vector<double> reached_;  // (T,) the share of rows that reaches each step
    double taken_ = 0;             // steps before quit_end_ of a row, on average
    mutable std::once_flag once_, way_once_;
    mutable RowWay way_{};
    mutable std::unique_ptr<const Layout> layout_;
};

static_assert(!std::is_copy_constructible_v<QuitEngine<float>> &&
              !std::is_move_constructible_v<QuitEngine<float>> &&
              !std::is_copy_assignable_v<QuitEngine<float>> &&
              !std::is_move_assignable_v<QuitEngine<float>>);

}  // namespace qwyc
