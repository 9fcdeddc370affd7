#include "core/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qwyc {

namespace {

double cost_of(const MaskCost::Of& part, const Needs& needs) {
    return part.rows + part.feature * needs.features + part.question * needs.questions +
           part.tree * needs.trees;
}

}  // namespace

double walk_cost(const RowTrees& trees, const RowKernels& kernels) {
    if (!trees.usable) return WalkCost::kAny;
    // Large trees have more levels, and are not in a near cache.
    const double entries = static_cast<double>(trees.leaf.size()) /
                           static_cast<double>(std::max<size_t>(trees.begin.size(), 1));
    if (!kernels.side_by_side && entries <= WalkCost::kNearEntries &&
        trees.n_features <= kNearFeatures)
        return WalkCost::kLevel * trees.mean_levels;
    if (!trees.oblivious.empty()) return WalkCost::kOblivious;
    if (!trees.flat.empty()) return trees.n_features <= 32 ? WalkCost::kFlat : WalkCost::kWideFlat;
    const double larger = std::pow(std::max(entries / WalkCost::kNearEntries, 1.0), 0.75);
    return larger * (trees.n_features <= 64 ? WalkCost::kNarrow : WalkCost::kPlain);
}

double planes_cost(const MaskedTree& tree) {
    switch (tree.form) {
        case Form::kOblivious:
            return 0;
        case Form::kComplete:
            return MaskCost::kSplit * ((1 << tree.bits) - 1);
        case Form::kReach:
            return MaskCost::kReachSplit * (tree.end - tree.begin);
        case Form::kLarge:
            break;
    }
    return 0;
}

Needs& Needs::operator+=(const Needs& other) {
    features += other.features, questions += other.questions, trees += other.trees;
    planes += other.planes, large += other.large, late += other.late, far += other.far;
    return *this;
}

TreeCost tree_cost(const MaskedTree& tree) {
    TreeCost cost{planes_cost(tree), {}};
    if (tree.n_leaves > kMaxMaskedLeaves)
        cost.large = large_cost(tree.n_leaves, tree.form == Form::kOblivious);
    return cost;
}

Needs needs_of(const MaskedTrees& trees) {
    Needs needs{static_cast<int32_t>(trees.features.size()), trees.n_questions, trees.n_trees()};
    for (const MaskedTree& tree : trees.trees) {
        const TreeCost cost = tree_cost(tree);
        needs.planes += cost.planes;
        needs.large += cost.large;
    }
    return needs;
}

int32_t lines_of(std::span<const int32_t> features) {
    int32_t lines = 0;
    for (size_t i = 0; i < features.size(); ++i)
        lines += i == 0 || features[i] / kLineFeatures != features[i - 1] / kLineFeatures;
    return lines;
}

Times Times::of(double n_rows) {
    const double words = std::floor(n_rows / 64), rest = n_rows - 64 * words;
    const double few = rest > 0 && rest <= kFew ? 1 : 0;
    const double last = n_rows - kSlab * std::floor(n_rows / kSlab);
    const double ones = last > 0 && last <= 64 ? 1 : 0;
    return {std::ceil(n_rows / kSlab), words + (rest > kFew ? 1 : 0), few, ones};
}

double mask_cost(const Times& times, const Needs& needs) {
    return times.slabs * (cost_of(MaskCost::kSlab, needs) + needs.planes) +
           times.words * (cost_of(MaskCost::kWord, needs) -
                          (MaskCost::kWord.tree - MaskCost::kFew.tree) * needs.late) +
           times.few * cost_of(MaskCost::kFew, needs) +
           (times.slabs - times.ones) * needs.large.slab + times.ones * needs.large.one_word +
           (times.words + times.few) * needs.large.word +
           (64 * times.words + kFew * times.few) * needs.far;
}

RowsAtStep::RowsAtStep(double n, double share) : mean_(n * share), walks_(n <= kMostToWalk) {
    constexpr double kMany = 24;
    if (share > 0.999) {
        add(std::round(n), 1);
    } else if (mean_ < kMany) {  // binomial
        double p = std::pow(1 - share, n);
        for (double k = 0; k <= n && k < 3 * kMany; ++k) {
            add(k, p);
            p *= (n - k) / (k + 1) * share / (1 - share);
        }
    } else {  // nearly normal
        const double deviation = std::sqrt(mean_ * (1 - share));
        double total = 0;
        for (double z = -2.25; z < 2.5; z += 0.5) total += std::exp(-z * z / 2);
        for (double z = -2.25; z < 2.5; z += 0.5)
            add(std::clamp(std::round(mean_ + z * deviation), 1.0, n),
                std::exp(-z * z / 2) / total);
    }
}

void RowsAtStep::add(double n_rows, double probability) {
    const Times here = Times::of(n_rows);
    times_.slabs += probability * here.slabs;
    times_.words += probability * here.words;
    times_.few += probability * here.few;
    times_.ones += probability * here.ones;
    for (int32_t k = kMaxWalkedRows; k >= n_rows && n_rows > 0; --k)
        up_to_[k].share += probability, up_to_[k].rows += probability * n_rows;
}

double RowsAtStep::cost(const Needs& needs, double one_row) const {
    const double most = mask_cost(kFew, needs) / one_row;
    const auto walked = static_cast<int32_t>(
        std::min<double>(most > kFew ? mask_cost(64, needs) / one_row : most, kMaxWalkedRows));
    Times rest = times_;
    rest.slabs -= up_to_[walked].share;
    rest.ones -= up_to_[walked].share;
    rest.few -= up_to_[std::min(walked, kFew)].share;
    rest.words -= up_to_[std::max(walked, kFew)].share - up_to_[kFew].share;
    return one_row * up_to_[walked].rows + mask_cost(rest, needs);
}

int32_t rows_to_walk(double one_row, const Needs& needs) {
    int32_t most = 0;
    while (most < kMaxWalkedRows && (most + 1) * one_row < mask_cost(most + 1, needs)) ++most;
    return most;
}

template <class Real>
Divider<Real>::Divider(const Forest<Real>& forest, const Questions<Real>& questions,
                       std::span<const int32_t> order, int32_t last,
                       std::span<const double> survival, std::span<const TreeCost> costs,
                       double walk, double walked_row)
    : last_(last),
      walk_(walk),
      walked_row_(walked_row),
      far_line_(far_line_cost(forest.n_features())),
      masked_(last),
      costs_(last),
      deep_(last),
      survival_(last + 1),
      fresh_(static_cast<size_t>(last) * kMaxSegmentTrees) {
    double reached = 1;
    // The last step that asked each question, and that read each feature.
    std::vector<int32_t> asked(questions.all.size(), -1), read(forest.n_features(), -1);
    std::vector<int32_t> fetched(forest.n_features() / kLineFeatures + 1, -1);
    for (int32_t r = 0; r < last; ++r) {
        if (survival[r] < reached) reached = std::max(survival[r], 0.0);
        survival_[r] = reached;
        masked_[r] = questions.masked[order[r]];
        costs_[r] = costs[order[r]];
        if (!masked_[r] || forest.leaves_of(order[r]) > kMaxMaskedLeaves)
            deep_[r] = kDeepLevel * forest.depth_of(order[r]);
        if (!masked_[r]) continue;
        New* const here = &fresh_[static_cast<size_t>(r) * kMaxSegmentTrees];
        New total;
        // First how many were last needed so many steps back, then the rest.
        const auto note = [&](std::vector<int32_t>& needed, int32_t what, uint16_t New::* count) {
            if (needed[what] == r) return;
            if (needed[what] >= 0 && r - needed[what] < kMaxSegmentTrees)
                ++(here[r - needed[what]].*count);
            needed[what] = r;
            ++(total.*count);
        };
        for (int32_t q : questions.of_tree(forest, order[r])) {
            note(asked, q, &New::questions);
            note(read, questions.all[q].feature, &New::features);
            note(fetched, questions.all[q].feature / kLineFeatures, &New::lines);
        }
        for (int32_t back = 0; back < kMaxSegmentTrees; ++back) {
            total.features -= here[back].features, total.questions -= here[back].questions;
            total.lines -= here[back].lines;
            here[back] = total;
        }
    }
}

template <class Real>
auto Divider<Real>::fresh(int32_t r, int32_t back) const -> const New& {
    return fresh_[static_cast<size_t>(r) * kMaxSegmentTrees + back];
}

template <class Real>
double Divider<Real>::walk_cost(int32_t begin, int32_t end) const {
    double cost = walked_row_;
    for (int32_t r = begin; r < end; r += kWalksAtOnce) {
        const double share = survival_[begin] > 0 ? survival_[r] / survival_[begin] : 0;
        cost += share * walk_ * std::min(end - r, kWalksAtOnce) / kWalksAtOnce;
    }
    return cost;
}

template <class Real>
template <class Use>
void Divider<Real>::each_masked(int32_t a, const RowsAtStep& rows, const Use& use) const {
    Needs needs;
    for (int32_t b = a + 1; b <= std::min(last_, a + kMaxSegmentTrees); ++b) {
        const int32_t r = b - 1;
        if (!masked(r)) return;
        ++needs.trees;
        constexpr double kFewOnAverage = 0.75 * kFew;
        if (deep_[r] == 0 &&
            std::min(rows.mean(), 64.0) * survival_[r] < kFewOnAverage * survival_[a])
            ++needs.late;
        needs.planes += costs_[r].planes;
        needs.large += costs_[r].large;
        needs.features += fresh(r, r - a).features;
        needs.questions += fresh(r, r - a).questions;
        needs.far += far_line_ * fresh(r, r - a).lines;
        if (needs.questions > kMaxQuestions && b > a + 1) return;
        use(b, rows.few() ? rows.cost(needs, walk_cost(a, b)) : rows.cost(needs));
    }
}

template <class Real>
template <class Use>
void Divider<Real>::each_walked(int32_t a, const RowsAtStep& rows, const Use& use) const {
    double deep = 0;
    for (int32_t b = a + 1; b <= std::min(last_, a + kMaxSegmentTrees); ++b) {
        if (deep_[b - 1] == 0) return;
        deep += deep_[b - 1];
        const double cost = rows.mean() * deep + rows.slabs() * kDeepSlab * (b - a);
        use(b, rows.few() ? std::min(cost, rows.mean() * walk_cost(a, b)) : cost);
    }
}

template <class Real>
Division Divider<Real>::divide(double n) const {
    std::vector<double> best(last_ + 1, std::numeric_limits<double>::infinity());
    std::vector<Steps> first(last_ + 1);  // of the segments from each step on
    best[last_] = 0;
    for (int32_t a = last_ - 1; a >= 0; --a) {
        const RowsAtStep rows(n, survival_[a]);
        for (const bool masked : {false, true}) {
            const auto consider = [&](int32_t b, double cost) {
                if (cost + best[b] < best[a]) best[a] = cost + best[b], first[a] = {a, b, masked};
            };
            if (masked)
                each_masked(a, rows, consider);
            else
                each_walked(a, rows, consider);
        }
    }
    Division found{{}, best[0]};
    for (int32_t a = 0; a < last_; a = first[a].end) found.segments.push_back(first[a]);
    return found;
}

template class Divider<float>;
template class Divider<double>;

}  // namespace qwyc
