// Evaluation of trees of K classes: full scores, and decisions that quit early.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/class_parts.hpp"
#include "core/coded_trees.hpp"
#include "core/deep_trees.hpp"
#include "core/leads.hpp"
#include "core/row_trees.hpp"
#include "core/rows_view.hpp"

namespace qwyc {

template <class Real, class V>
class RowLeaves;  // core/row_leaves.hpp

// Every base model on every row, and full scores. Safe to use from many threads at once.
template <class Real>
class ClassEngine {
  public:
    explicit ClassEngine(const ClassForest<Real>& forest);

    // LeadEngine keeps a reference to it.
    ClassEngine(const ClassEngine&) = delete;
    ClassEngine& operator=(const ClassEngine&) = delete;

    // values: (R, n, K), what each base model adds to running sums; may be null. full: (n, K) the
    // source library's own scores.
    template <class In>
    void score(const RowsView<In>& rows, float* values, double* full, int threads,
               std::string_view isa = "") const;

    // n <= kMaxWalkedRows rows, those at row[0..n) or the first ones, tree by tree. full: (n, K)
    template <class In>
    void score_few(const RowsView<In>& rows, const int32_t* row, int32_t n, double* full) const;

    // Full scores of a row from its leaves in the trees of `order`. full: (K,)
    void score_leaves(const int32_t* leaf, double* full) const;
    // Trees, class by class as the source adds them.
    const std::vector<int32_t>& order() const { return order_; }

    // Scores slabs of rows on one thread: class_worker.hpp.
    template <class In>
    class Worker;

    const ClassForest<Real>& forest() const { return forest_; }
    const Questions<Real>& questions() const { return questions_; }
    const RowTrees& row_trees() const { return row_trees_; }
    const DeepTrees<Real>& deep() const { return deep_; }
    const CodedTrees& coded() const { return coded_; }
    const CodedKernels* coded_kernels() const { return coded_kernels_; }
    // Nanoseconds for one tree and one row, by itself.
    double walk_cost() const;

    // Nanoseconds for one row of many on one thread, by the cost model.
    double expected_cost() const { return cost_; }

  private:
    const ClassForest<Real>& forest_;
    Questions<Real> questions_;
    RowTrees row_trees_;
    DeepTrees<Real> deep_;
    CodedTrees coded_;
    const CodedKernels* coded_kernels_ = nullptr;  // or null: a few rows are walked
    std::vector<int32_t> order_;                   // trees, class by class as the source adds them
    std::vector<int32_t> step_of_;                 // base model of each tree
    double cost_ = 0;
    std::vector<ClassPart> parts_;  // with tables of full scores
    int32_t walk_below_;            // so few rows are walked one by one
};

struct ClassDecisionsOut {
    int32_t* label;  // (N,) index of the class
    int32_t* steps;  // (N,) or null
    double* score;   // (N, K) or null: full scores where complete, otherwise running sums
};

// Decisions under one policy on leads.
template <class Real>
class LeadEngine {
  public:
    using Value = Real;

    // `full` completes rows that never quit; it must outlive this. survival: (R,) the expected
    // share of rows that reach each step, or nothing. It changes the time only.
    LeadEngine(const ClassEngine<Real>& full, const LeadPolicyView& policy,
               std::span<const double> survival = {});

    LeadEngine(const LeadEngine&) = delete;
    LeadEngine& operator=(const LeadEngine&) = delete;

    template <class In>
    void decide(const RowsView<In>& rows, const ClassDecisionsOut& out, int threads,
                std::string_view isa = "") const;

    // One row, (n_features,). score: (K,) or null. Returns the index of its class.
    template <class In>
    int32_t decide_one(const In* row, int32_t* steps, double* score) const;

    double expected_cost() const { return expected_cost_; }
    int32_t n_classes() const { return forest_.n_classes(); }

  private:
    template <class In>
    class Rows;  // core/lead_rows.hpp
    template <class In>
    class Worker;
    template <class In>
    class RulingWorker;
    template <class In>
    class FullSumsWorker;

    // Steps after which rows that have quit are left out. Where classes are ruled out, the last of
    // them is tested; those of ruling_ have no other test.
    struct Segment {
        int32_t begin, end;
        int32_t walk_below;    // so few rows are walked one by one
        int32_t number_bytes;  // of leaf numbers of a word of rows
        std::vector<ClassPart> parts;
        // In ruling_, the same trees class by class: those of class k are
        // trees[tree_begin[k]:tree_begin[k + 1]].
        std::vector<int32_t> trees, tree_begin;
    };
    // Where the leaf number of a tree is: in which segment of a plan, and there from which byte on;
    // and the leaves (absolute indices), by number.
    struct KeptLeaf {
        int32_t segment, at;
        bool large;
        const double* leaf;
    };
    // A division of the steps, for blocks of up to so many rows.
    struct Plan {
        int64_t most_rows;
        std::vector<int32_t> segments;  // in segments_
        // The steps that have no test, as one more segment, or -1: some trees are walked.
        int32_t last = -1;
        // For rows that never quit, by tree of full_.order(): where its leaf is; or empty: leaves
        // are not kept.
        std::vector<KeptLeaf> leaves;
        int64_t number_bytes = 0;  // of all segments
        double never_quit = 0;     // the share of rows that is expected to
        double reach_last = 0;     // and to reach the last segment
    };
    // Leaf numbers are kept if there are so many bytes of them at most, and so few rows are
    // expected to need them: many rows are evaluated again in less time.
    static constexpr int64_t kMostKept = 512 << 10;
    static constexpr double kMostCompleted = 20;
    static constexpr int32_t kMostKeptSegments = 24;
    // Of so few rows hardly any have the same classes left: they are evaluated together, for all
    // classes.
    static constexpr int64_t kFewToRuleOut = 1024;
    // So few rows are walked one by one, where none has codes.
    static constexpr int32_t kMostWalked = 4;
    const Plan& plan_for(int64_t n_rows) const {
        return *std::find_if(plans_.begin(), plans_.end(),
                             [=](const Plan& plan) { return n_rows <= plan.most_rows; });
    }
    // Whether a block of so many rows, of which only labels are asked for, is decided by full sums.
    bool takes_full_sums(int64_t n) const;
    Segment make_segment(int32_t begin, int32_t end) const;
    void keep_leaves(Plan& plan, double never_quit);
    void bound_errors();
    void divide(std::span<const double> survival);
    void divide_at_tests(std::span<const double> survival);

    double lead_of(int32_t step, int32_t index) const {
        return lead_[step * int64_t{forest_.n_classes()} + index];
    }
    // Whether a block of rows is turned into codes first. Late columns are read as late as possible
    // instead.
    template <class In>
    bool codes_rows(const RowsView<In>& rows, const MaskKernels& kernels) const {
        return rules_out_ && codes_.usable() && kernels.answer_coded &&
               !(rows.columns && !rows.columns->late().empty());
    }
    // Whether rows are looked at after a step.
    bool tests(int32_t step) const { return least_[step] < kInf || drop_[step] < kInf; }

    // The class to quit with after a step, or -1; classes that fall behind are then ruled out.
    int32_t outcome(int32_t step, double* sums) const {
        if (!tests(step)) return -1;
        if (only_ >= 0) {
            const int32_t other = best_other(forest_.n_classes(), only_, sums);
            return sums[other] - sums[only_] > least_[step] ? other : -1;
        }
        const TopTwo top = top_two(forest_.n_classes(), sums);
        if (top.lead() > least_[step]) {
            const int32_t index = first_with(forest_.n_classes(), sums, top.best);
            if (top.lead() > lead_of(step, index)) return index;
        }
        if (drop_[step] < kInf) rule_out(forest_.n_classes(), top.best, drop_[step], sums);
        return -1;
    }

    // Takes one row from a step on: the class that it quits with, or -1. Trees of classes that are
    // ruled out are left out. `step` becomes the number of steps that it took.
    template <class V>
    int32_t walk_row(const RowLeaves<Real, V>& leaves, int32_t& step, double* sums) const;
    template <class V>
    int32_t walk_some_classes(const RowLeaves<Real, V>& leaves, int32_t& step, double* sums) const;

    const ClassEngine<Real>& full_;
    const ClassForest<Real>& forest_;
    std::vector<int32_t> order_;  // (R,) base models
    std::vector<double> lead_;    // (R, K)
    std::vector<double> least_;   // (R,) of the classes; inf where no row quits
    std::vector<double> drop_;    // (R,) inf where no class is ruled out
    int32_t only_;                // the class of a filter, or -1
    bool rules_out_;              // so that rows are evaluated for some classes only
    int32_t quit_end_;            // no row quits at this step or later
    int32_t first_drop_;          // the first step after which classes are ruled out
    // By step, by how much leads of full sums may differ from those of running sums; or empty: full
    // sums do not take their place.
    std::vector<double> errors_;
    std::vector<int32_t> trees_;       // of steps [0, quit_end_), in their order
    std::vector<int32_t> tree_begin_;  // (quit_end_ + 1,) in trees_
    RowCodes codes_;                   // where classes are ruled out, if usable
    std::vector<Segment> segments_;
    int32_t last_ = -1;        // of segments_: the steps that have no test, if leaves are kept
    std::vector<Plan> plans_;  // the last is for any number of rows, unless classes are ruled out
    std::vector<Segment> ruling_;  // from each test to the next, where classes are ruled out
    double expected_cost_ = 0;
};

}  // namespace qwyc
