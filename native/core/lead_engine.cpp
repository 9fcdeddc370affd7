#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/class_engine.hpp"
#include "core/cost_model.hpp"
#include "core/full_sums_worker.hpp"
#include "core/lead_worker.hpp"
#include "core/parallel.hpp"
#include "core/row_leaves.hpp"
#include "core/ruling_worker.hpp"

namespace qwyc {

namespace {

constexpr int64_t kBlockBytes = 1 << 20;  // of rows, and of running sums
constexpr int64_t kCodedBytes = 8 << 20;  // of codes and running sums
constexpr int64_t kMaxBlockRows = 16384;
constexpr int64_t kRowsAtOnce = 65536;       // that one thread takes
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

// Of so few rows hardly any have the same classes left: they are evaluated together, for all
// classes.
constexpr int64_t kFewToRuleOut = 1024;
// But of still fewer, most are soon walked one by one, for the classes that are left.
constexpr int64_t kWalkedSoon = 24;

// So few rows are walked one by one, where none has codes.
constexpr int32_t kMostWalked = 4;

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

// Full sums take the place of running sums for up to so many trees and rows. Of up to so few rows,
// only if these are not expected to be walked soon.
constexpr size_t kMostForFullSums = 2048;
constexpr int64_t kMostRowsForFullSums = 4096, kFewForFullSums = 64;
constexpr double kLargest = 1e30;  // of thresholds, inf among them

// Leaves are kept if at least this share of rows never quits.
constexpr double kLeastCompleted = 0.003;

struct BatchSize {
    double typical;
    int64_t most;
};
constexpr BatchSize kBatchSizes[] = {
    {64, 128}, {512, 4096}, {1 << 20, std::numeric_limits<int64_t>::max()}};

}  // namespace

template <class Real>
LeadEngine<Real>::LeadEngine(const ClassEngine<Real>& full, const LeadPolicyView& policy,
                             std::span<const double> survival)
    : full_(full),
      forest_(full.forest()),
      order_(policy.order.begin(), policy.order.end()),
      lead_(policy.lead.begin(), policy.lead.end()),
      only_(policy.only) {
    const auto n_steps = static_cast<int32_t>(order_.size());
    const int32_t K = forest_.n_classes();
    for (int32_t r = 0; r < n_steps; ++r) {
        const double* const of_step = lead_.data() + r * int64_t{K};
        least_.push_back(r + 1 < n_steps ? *std::min_element(of_step, of_step + K) : kInf);
    }
    quit_end_ = n_steps;
    while (quit_end_ > 0 && least_[quit_end_ - 1] == kInf) --quit_end_;
    drop_.assign(n_steps, kInf);
    if (!policy.drop.empty()) std::copy_n(policy.drop.begin(), quit_end_, drop_.begin());
    rules_out_ = !forest_.has_vectors() &&
                 std::any_of(drop_.begin(), drop_.end(), [](double drop) { return drop < kInf; });
    tree_begin_.push_back(0);
    for (int32_t r = 0; r < quit_end_; ++r) {
        for (int32_t t = forest_.step_begin(order_[r]); t < forest_.step_end(order_[r]); ++t)
            trees_.push_back(t);
        tree_begin_.push_back(static_cast<int32_t>(trees_.size()));
    }
    std::vector<double> reached(n_steps + 1);
    for (int32_t r = 0; r < n_steps; ++r) {  // a typical curve, where none is known
        reached[r] = survival.empty() ? 1.0 / (1.0 + static_cast<double>(r) / 6) : survival[r];
        if (r > 0) reached[r] = std::min(reached[r], reached[r - 1]);
    }
    first_drop_ = static_cast<int32_t>(
        std::find_if(drop_.begin(), drop_.end(), [](double drop) { return drop < kInf; }) -
        drop_.begin());
    bound_errors();
    divide(reached);
    if (rules_out_) divide_at_tests(reached);
    if (quit_end_ < n_steps) expected_cost_ += reached[quit_end_] * full.expected_cost();
}

// The source's sums and running sums are rounded differently at each addition, and steps are floats.
template <class Real>
void LeadEngine<Real>::bound_errors() {
    const bool same_order = std::is_sorted(order_.begin(), order_.end());
    if (!same_order || only_ >= 0 || forest_.has_vectors() || !forest_.sums_as_steps()) return;
    if (trees_.size() > kMostForFullSums) return;
    constexpr double kRounding = 0x1p-23;  // twice that of a float, for what is rounded here
    std::vector<double> most, error;       // by class: of a sum
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
            error[k] += kRounding * most[k];
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
        Plan plan{size.most, {}, -1, {}, 0};
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
        keep_leaves(plan, survival[quit_end_]);
        plans_.push_back(std::move(plan));
        expected_cost_ = best[0] / size.typical;  // in the end, of one row of many
    }
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
    if (never_quit < kLeastCompleted || plan.segments.size() >= kMostKeptSegments) return;
    for (int32_t tree : full_.order()) plan.leaves.push_back(of_tree[tree]);
}

template <class Real>
template <class V>
int32_t LeadEngine<Real>::walk_row(const RowLeaves<Real, V>& leaves, int32_t& step,
                                   double* sums) const {
    if (rules_out_) return walk_some_classes(leaves, step, sums);
    constexpr int32_t kAtOnce = 8 * kWalksAtOnce;
    const int32_t channels = forest_.channels();
    int32_t leaf[kAtOnce];
    while (step < quit_end_) {
        const int32_t begin = tree_begin_[step];
        while (!tests(step)) ++step;  // the last of them is tested
        const int32_t end = tree_begin_[++step];
        for (int32_t at = begin; at < end; at += kAtOnce) {
            const int32_t n = std::min(kAtOnce, end - at);
            leaves(&trees_[at], n, leaf);
            for (int32_t i = 0; i < n; ++i) {
                const float* const added = forest_.step_of(leaf[i]);
                double* const to = sums + forest_.class_of(trees_[at + i]);
                for (int32_t c = 0; c < channels; ++c) to[c] += added[c];
            }
        }
        const int32_t index = outcome(step - 1, sums);
        if (index >= 0) return index;
    }
    return -1;
}

template <class Real>
template <class V>
int32_t LeadEngine<Real>::walk_some_classes(const RowLeaves<Real, V>& leaves, int32_t& step,
                                            double* sums) const {
    const int32_t K = forest_.n_classes();
    for (const Segment& segment : ruling_) {
        if (segment.begin < step) continue;
        int32_t* const tree = scratch().trees.of(segment.trees.size());
        int32_t* const leaf = scratch().leaf.of(segment.trees.size() + kWalksAtOnce);
        const auto n_trees = [&](int32_t k) {
            return sums[k] > -kInf ? segment.tree_begin[k + 1] - segment.tree_begin[k] : 0;
        };
        int32_t n = 0;
        for (int32_t k = 0; k < K; ++k) {
            std::copy_n(segment.trees.begin() + segment.tree_begin[k], n_trees(k), tree + n);
            n += n_trees(k);
        }
        leaves(tree, n, leaf);
        const int32_t* at = leaf;
        for (int32_t k = 0; k < K; ++k) {
            const int32_t* const end = at + n_trees(k);
            double sum = sums[k];
            for (; at < end; ++at) sum += *forest_.step_of(*at);
            sums[k] = sum;
        }
        step = segment.end;
        const int32_t index = outcome(step - 1, sums);
        if (index >= 0) return index;
    }
    return -1;
}

template <class Real>
template <class In>
int32_t LeadEngine<Real>::decide_one(const In* row, int32_t* steps, double* score) const {
    const int64_t width = forest_.n_features();
    const RowsView<In> rows{row, 1, width, width, 1};
    const int32_t K = forest_.n_classes();
    double* const sums = scratch().sums.of(K);
    std::copy_n(forest_.base(), K, sums);
    int32_t step = 0, index;
    if (full_.coded_kernels())
        index = walk_row(RowLeaves<Real, In>(full_, row), step, sums);
    else
        index = with_values<Real>(
            full_.row_trees(), rows, nullptr, 1, [&]<class V>(const V* const* values) {
                return walk_row(RowLeaves<Real, V>(full_, values[0]), step, sums);
            });
    if (index < 0) {
        full_.score_few(rows, nullptr, 1, sums);
        index = forest_.ties().decide(sums, K);
        step = static_cast<int32_t>(order_.size());
    }
    if (steps) *steps = step;
    if (score) std::copy_n(sums, K, score);
    return index;
}

template <class Real>
bool LeadEngine<Real>::takes_full_sums(int64_t n) const {
    if (errors_.empty() || n > kMostRowsForFullSums) return false;
    const Plan& plan = plan_for(n);
    if (plan.last < 0) return false;
    if (n > kFewForFullSums) return true;
    constexpr double kFewer = 1.1;  // trees are walked than is expected
    return plan.segments.size() == 1 && n > kFewer * segments_[plan.segments[0]].walk_below;
}

template <class Real>
template <class In>
void LeadEngine<Real>::decide(const RowsView<In>& rows, const ClassDecisionsOut& out, int threads,
                              std::string_view isa) const {
    const Kernels& chosen = kernels(isa);
    const MaskKernels& masks = mask_kernels(isa);
    const int64_t K = forest_.n_classes();
    const int64_t width = std::max<int64_t>(rows.width, 1);
    const int64_t bytes = std::max<int64_t>(width * static_cast<int64_t>(sizeof(In)), 8 * K);
    // Of more rows, more have the same classes left, so that slabs are full.
    const int64_t block_bytes = rules_out_ ? 4 * kBlockBytes : kBlockBytes;
    const int64_t block =
        codes_rows(rows, masks)
            ? std::clamp<int64_t>(kCodedBytes / (kCodeBytes + 8 * K) / kSlab * kSlab, kSlab,
                                  kRowsAtOnce)
            : std::clamp<int64_t>(block_bytes / bytes / kSlab * kSlab, kSlab, kMaxBlockRows);
    const int64_t share = (rows.n / std::max(threads, 1) / kSlab + 1) * kSlab;  // rows per thread
    const int64_t at_once = std::min({share, kRowsAtOnce, max_rows_in_int32(rows.row_stride)});
    const int64_t few = full_.coded_kernels() ? kWalkedSoon : kMostWalked;
    parallel_for(rows.n, at_once, threads, [&](int64_t begin, int64_t end) {
        const ClassDecisionsOut here{out.label + begin, out.steps ? out.steps + begin : nullptr,
                                     out.score ? out.score + begin * K : nullptr};
        const auto some = rows.part(begin, end);
        const int64_t n = end - begin;
        if (out.score == nullptr && takes_full_sums(n))
            FullSumsWorker<In>(*this, chosen, masks).run(some, static_cast<int32_t>(block), here);
        else if (rules_out_ && (n > kFewToRuleOut || n <= few))
            RulingWorker<In>(*this, chosen, masks).run(some, static_cast<int32_t>(block), here);
        else
            Worker<In>(*this, chosen, masks).run(some, static_cast<int32_t>(block), here);
    });
}

#define QWYC_INSTANTIATE(Real, In)                                                             \
    template void LeadEngine<Real>::decide(const RowsView<In>&, const ClassDecisionsOut&, int, \
                                           std::string_view) const;                            \
    template int32_t LeadEngine<Real>::decide_one(const In*, int32_t*, double*) const;
template class LeadEngine<float>;
template class LeadEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
