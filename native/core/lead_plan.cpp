// How the steps of a policy on leads are divided.
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/class_engine.hpp"
#include "core/cost_model.hpp"

namespace qwyc {

namespace {

constexpr int32_t kMostTogether = 2048;      // trees of a segment, unless it is one step
constexpr double kTree = 0.6, kTest = 0.25;  // of the cost of a tree whose sums are tested at once
constexpr double kCompact = 0.5;             // the same, per class

// Of K classes at a step, typically: most rows are soon between two.
double classes_left(int32_t step, double K) {
    constexpr double kClassesLeft = 1.5, kStepsToRuleOut = 8;
    return step == 0 ? K : std::min(K, kClassesLeft + K / (1.0 + step / kStepsToRuleOut));
}

// The same where tests are few: of rows that are walked.
double classes_left_at(int32_t step, double K) {
    constexpr double kStepsToRuleOut = 6;
    return 2 + (K - 2) / (1 + std::pow(step / kStepsToRuleOut, 1.5));
}

// Where rows are put in order by their classes, nanoseconds for one row of many.
struct RulingCost {
    // Of a segment: to test the sums; and, unless it is the first, to put the row in order, and for
    // the sum of each class.
    static constexpr double kTest = 3, kSort = 2.2, kSum = 1.2;
    static constexpr double kTree = 0.12;  // of a class that is left
    // To quit, and for each class that is left then.
    static constexpr double kQuit = 7.4, kQuitClass = 2.2;
    // The share of questions that other classes ask, too; how much longer it takes to read rows
    // that do not follow each other.
    static constexpr double kSharedQuestions = 0.35, kReadAgain = 2;
    // From codes: of a segment, and of a question. To make them: of a column of few cuts, by cut,
    // and of one of more.
    static constexpr double kCodes = 2, kCodedQuestion = 0.005;
    static constexpr int32_t kFewCuts = 12;
    static constexpr double kFewCut = 0.07, kColumn = 0.75, kCut = 0.008;
};

// So few rows are walked one by one from the first step on.
constexpr int32_t kWalkedAtFirst = 12;

// To make the planes of a small tree. bytes: its values are looked up as bytes.
template <class Real>
double planes_of(const Forest<Real>& forest, int32_t tree, bool bytes) {
    const int64_t leaves = forest.leaves_of(tree);
    const int32_t depth = forest.depth_of(tree);
    int32_t most = bytes && leaves > kFewLeaves ? kMaxPlanes : 5;
    while (int64_t{1} << most < leaves) ++most;
    return depth <= most ? MaskCost::kSplit * ((1 << depth) - 1)
                         : MaskCost::kReachSplit * static_cast<double>(leaves - 1);
}

// To turn a row into codes.
double encoding_cost(const RowCodes& codes) {
    double cost = RowCost::kRow + RowCost::kFeature * codes.questions.features.size();
    for (const CodeColumn& column : codes.columns) {
        const double cuts = column.end - column.begin;
        cost += cuts <= RulingCost::kFewCuts ? RulingCost::kFewCut * cuts
                                             : RulingCost::kColumn + RulingCost::kCut * cuts;
    }
    return cost;
}

// Full sums take the place of running sums for up to so many trees.
constexpr size_t kMostForFullSums = 2048;
constexpr double kLargest = 1e30;  // of thresholds, inf among them

// Leaves are kept if at least this share of rows never quits.
constexpr double kLeastCompleted = 0.01;

struct BatchSize {
    double typical;
    int64_t most;
};
constexpr BatchSize kBatchSizes[] = {
    {64, 128}, {512, 2048}, {1 << 20, std::numeric_limits<int64_t>::max()}};

}  // namespace

// The source's sums and running sums are rounded differently at each addition, and steps are
// floats.
template <class Real>
void LeadEngine<Real>::bound_errors() {
    const bool same_order = std::is_sorted(order_.begin(), order_.end());
    if (!same_order || only_ >= 0 || forest_.has_vectors() || !forest_.sums_as_steps()) return;
    if (trees_.size() > kMostForFullSums) return;
    constexpr double kRounding = 0x1p-23;  // twice that of a float, for what is rounded here
    constexpr double kTiniest = std::numeric_limits<float>::denorm_min();  // steps of tiny leaves
    std::vector<double> most, error;                                       // by class: of a sum
    for (int32_t k = 0; k < forest_.n_classes(); ++k) {
        most.push_back(std::abs(forest_.base()[k]));
        error.push_back(kRounding * most[k]);
    }
    const Forest<Real>& trees = forest_.trees();
    std::vector<double> errors;
    for (int32_t r = 0; r < quit_end_; ++r) {
        for (int32_t i = tree_begin_[r]; i < tree_begin_[r + 1]; ++i) {
            const int32_t tree = trees_[i], k = forest_.class_of(tree);
            const auto first = static_cast<int32_t>(trees.nodes_of(tree).first + tree);
            double largest = 0;
            for (int32_t leaf = first; leaf < first + trees.leaves_of(tree); ++leaf)
                largest = std::max(largest, std::abs(double{*forest_.step_of(leaf)}));
            most[k] += largest;
            error[k] += kRounding * most[k] + kTiniest;
        }
        errors.push_back(2 * *std::max_element(error.begin(), error.end()));
        // Few rows may be near to a threshold.
        constexpr double kFewNear = 0.02;
        if (!(errors[r] <= kFewNear * std::min({least_[r], drop_[r], kLargest}))) return;
    }
    errors_ = std::move(errors);
}

// The cheapest division for each size of batches. A long segment evaluates rows that have quit; a
// short one reads rows more often, and asks again what was asked before.
template <class Real>
void LeadEngine<Real>::divide(std::span<const double> survival) {
    const Questions<Real>& questions = full_.questions();
    const Forest<Real>& trees = forest_.trees();
    const double channels = forest_.channels(), K = forest_.n_classes();
    const double walk = full_.walk_cost();
    std::map<std::pair<int32_t, int32_t>, int32_t> laid_out;  // where a segment is in segments_
    // What segment [a, b) needs, for all a and some b: the same for all sizes.
    struct Choice {
        Needs needs;
        double walked;
        int32_t end;
    };
    std::vector<std::vector<Choice>> choices(quit_end_);
    std::vector<int32_t> asked(questions.all.size(), -1), read(trees.n_features(), -1);
    for (int32_t a = 0; a < quit_end_; ++a) {
        Choice choice{};
        double n_trees = 0;
        for (int32_t b = a; b < quit_end_; ++b) {
            const bool most = b > a && tree_begin_[b + 1] - tree_begin_[a] > kMostTogether;
            if (most && !choices[a].empty()) break;
            for (int32_t i = tree_begin_[b]; i < tree_begin_[b + 1]; ++i) {
                const int32_t tree = trees_[i];
                if (!questions.masked[tree]) {
                    ++choice.walked;
                    continue;
                }
                n_trees += kTree * channels;
                const int64_t leaves = trees.leaves_of(tree);
                if (leaves > kMaxMaskedLeaves) {
                    LargeCost large = large_cost(leaves, false);
                    large.word *= channels;
                    choice.needs.large += large;
                } else {
                    choice.needs.planes += planes_of(trees, tree, !forest_.has_vectors());
                }
                for (int32_t q : questions.of_tree(trees, tree)) {
                    if (asked[q] != a) asked[q] = a, ++choice.needs.questions;
                    const int32_t feature = questions.all[q].feature;
                    if (read[feature] != a) read[feature] = a, ++choice.needs.features;
                }
            }
            if (tests(b)) n_trees += kTest * K;
            choice.needs.trees = static_cast<int32_t>(n_trees + kCompact * K);
            choice.end = b + 1;
            // Rows are walked on from a test, where classes are ruled out.
            if (!rules_out_ || tests(b)) choices[a].push_back(choice);
        }
    }
    // Nanoseconds of one row that walks from step a to b, unless it quits before.
    std::vector<double> trees_walked(1, 0.0);  // of one row that begins at step 0
    double left = 1;                           // of the classes
    for (int32_t r = 0; r < quit_end_; ++r) {
        trees_walked.push_back(trees_walked[r] +
                               survival[r] * left * (tree_begin_[r + 1] - tree_begin_[r]));
        if (drop_[r] < kInf) left = classes_left_at(r + 1, K) / K;
    }
    const auto walked = [&](int32_t a, int32_t b) {
        return WalkCost::kRow +
               walk * (trees_walked[b] - trees_walked[a]) / std::max(survival[a], 1e-9);
    };
    for (const BatchSize& size : kBatchSizes) {
        if (rules_out_ && size.typical > kFewToRuleOut) break;
        std::vector<double> best(quit_end_ + 1, kInf);
        std::vector<const Choice*> next(quit_end_ + 1);
        best[quit_end_] = 0;
        for (int32_t a = quit_end_ - 1; a >= 0; --a) {
            const RowsAtStep rows(size.typical, survival[a]);
            for (const Choice& choice : choices[a]) {
                const double masks = rows.few() ? rows.cost(choice.needs, walked(a, choice.end))
                                                : rows.cost(choice.needs);
                const double cost =
                    masks + rows.mean() * kDeepTree * choice.walked + best[choice.end];
                if (cost < best[a]) best[a] = cost, next[a] = &choice;
            }
        }
        Plan plan{size.most, {}, -1, {}, 0, 0, 0};
        for (int32_t a = 0; a < quit_end_; a = next[a]->end) {
            const int32_t b = next[a]->end;
            const auto [at, is_new] =
                laid_out.try_emplace({a, b}, static_cast<int32_t>(segments_.size()));
            if (is_new) {
                segments_.push_back(make_segment(a, b));
                const Needs& needs = next[a]->needs;
                segments_.back().walk_below =
                    needs.questions > 0 ? rows_to_walk(walked(a, b), needs) : 6;
            }
            plan.segments.push_back(at->second);
        }
        if (quit_end_ > 0) plan.reach_last = survival[segments_[plan.segments.back()].begin];
        keep_leaves(plan, survival[quit_end_]);
        plans_.push_back(std::move(plan));
        expected_cost_ = best[0] / size.typical;  // in the end, of one row of many
    }
    if (rules_out_) plans_.back().most_rows = std::numeric_limits<int64_t>::max();
}

// A segment from each test to the next.
template <class Real>
void LeadEngine<Real>::divide_at_tests(std::span<const double> survival) {
    const double K = forest_.n_classes();
    std::vector<int32_t> masked;
    for (int32_t tree : trees_)
        if (full_.questions().masked[tree]) masked.push_back(tree);
    if (!masked.empty()) codes_ = make_codes(forest_.trees(), full_.questions(), masked);
    double cost = 0;                                     // without what differs:
    double coded = encoding_cost(codes_), compared = 0;  // to answer questions
    for (int32_t begin = 0, end; begin < quit_end_; begin = end) {
        for (end = begin + 1; !tests(end - 1);) ++end;
        Segment segment = make_segment(begin, end);
        segment.tree_begin.push_back(0);
        for (int32_t k = 0; k < forest_.n_classes(); ++k) {
            for (int32_t i = tree_begin_[begin]; i < tree_begin_[end]; ++i)
                if (forest_.class_of(trees_[i]) == k) segment.trees.push_back(trees_[i]);
            segment.tree_begin.push_back(static_cast<int32_t>(segment.trees.size()));
        }
        // Rows of the first segment have the same classes, and are evaluated together.
        segment.walk_below = !full_.coded_kernels() ? kMostWalked
                             : begin == 0           ? kWalkedAtFirst
                                                    : kMaxWalkedRows;
        const double classes = classes_left(begin, K);
        const double share = survival[begin];
        cost += share * RulingCost::kTest;
        if (begin > 0) cost += share * (RulingCost::kSort + RulingCost::kSum * classes);
        for (const ClassPart& part : segment.parts) {
            cost += share * kDeepTree * static_cast<double>(part.walked.size()) * classes / K;
            if (!part.masked()) continue;
            const Needs needs = needs_of(part.trees);
            cost +=
                share *
                (RulingCost::kTree * needs.trees + needs.planes / kSlab + needs.large.of_a_row()) *
                classes / K;
            const double asked =
                needs.questions * std::min(1.0, RulingCost::kSharedQuestions + classes / K);
            const double again = begin == 0 ? 1 : RulingCost::kReadAgain;
            coded += share * (RulingCost::kCodes + RulingCost::kCodedQuestion * asked);
            compared += share * (RowCost::kRow + RowCost::kQuestion * asked +
                                 again * RowCost::kFeature * needs.features);
        }
        cost += (share - survival[end]) * (RulingCost::kQuit + RulingCost::kQuitClass * classes);
        ruling_.push_back(std::move(segment));
    }
    if (!(coded < compared)) codes_ = {};
    if (codes_.usable())
        for (Segment& segment : ruling_)
            for (ClassPart& part : segment.parts)
                if (part.masked()) part.coded = codes_.of(part.trees);
    expected_cost_ = cost + (codes_.usable() ? coded : compared);
}

template <class Real>
typename LeadEngine<Real>::Segment LeadEngine<Real>::make_segment(int32_t begin,
                                                                  int32_t end) const {
    ClassPartMaker<Real> maker(
        forest_, full_.questions(),
        errors_.empty() || forest_.single() ? ClassTables::kSteps : ClassTables::kStepsAndFull);
    for (int32_t r = begin, untested = begin; r < end; ++r) {
        if (!tests(r) && r + 1 < end) continue;
        maker.add_steps(std::span<const int32_t>(order_).subspan(untested, r + 1 - untested));
        if (tests(r)) maker.test(r);
        untested = r + 1;
    }
    Segment segment{begin, end, 0, 0, maker.make(), {}, {}};
    for (ClassPart& part : segment.parts) {
        part.number_begin = segment.number_bytes;
        segment.number_bytes += part.trees.number_bytes;
    }
    return segment;
}

// Where rows that never quit are not rare, the leaves that they have reached are kept: to find them
// again takes several times as long.
template <class Real>
void LeadEngine<Real>::keep_leaves(Plan& plan, double never_quit) {
    const bool keeps =
        never_quit >= kLeastCompleted && plan.segments.size() < size_t{kMostKeptSegments};
    if (plan.segments.empty() || (!keeps && errors_.empty())) return;
    std::vector<KeptLeaf> of_tree(forest_.trees().n_trees());
    size_t n = 0;
    const auto add = [&](const Segment& segment, size_t number) {
        for (const ClassPart& part : segment.parts)
            for (int32_t t = 0; t < part.trees.n_trees(); ++t, ++n)
                of_tree[part.masked_trees[t]] = {
                    static_cast<int32_t>(number),
                    part.number_begin + part.trees.trees[t].number_begin, part.trees.is_large(t),
                    &part.trees.leaf_value.whole[part.trees.trees[t].table_begin]};
        plan.number_bytes += segment.number_bytes;
    };
    for (size_t s = 0; s < plan.segments.size(); ++s) add(segments_[plan.segments[s]], s);
    if (last_ < 0) {
        last_ = static_cast<int32_t>(segments_.size());
        segments_.push_back(make_segment(quit_end_, static_cast<int32_t>(order_.size())));
    }
    add(segments_[last_], plan.segments.size());
    if (n != of_tree.size()) return;  // some are walked
    plan.last = last_;
    plan.never_quit = never_quit;
    if (!keeps) return;
    for (int32_t tree : full_.order()) plan.leaves.push_back(of_tree[tree]);
}

#define QWYC_INSTANTIATE(Real)                                       \
    template void LeadEngine<Real>::bound_errors();                  \
    template void LeadEngine<Real>::divide(std::span<const double>); \
    template void LeadEngine<Real>::divide_at_tests(std::span<const double>);
QWYC_INSTANTIATE(float)
QWYC_INSTANTIATE(double)

}  // namespace qwyc
