#include "core/cost_model.hpp"

#include <algorithm>
#include <limits>

#include "core/mask_kernels.hpp"
#include "core/worker.hpp"

namespace qwyc {

namespace {

double cost_of(const MaskCost::Of& part, const Needs& needs) {
    return part.rows + part.feature * needs.features + part.question * needs.questions +
           part.tree * needs.trees;
}

}  // namespace

double planes_cost(const MaskedTree& tree) {
    switch (tree.form) {
        case Form::kOblivious:
            return 0;
        case Form::kComplete:
            return MaskCost::kSplit * ((1 << tree.bits) - 1);
        default:
            return MaskCost::kReachSplit * (tree.end - tree.begin);
    }
}

Needs needs_of(const MaskedTrees& trees) {
    Needs needs{static_cast<int32_t>(trees.features.size()), trees.n_questions, trees.n_trees()};
    for (const MaskedTree& tree : trees.trees) needs.planes += planes_cost(tree);
    return needs;
}

double mask_cost(double n, const Needs& needs) {
    const double slab = cost_of(MaskCost::kSlab, needs) + needs.planes;
    const double few = slab + cost_of(MaskCost::kFew, needs);
    // About n rows are expected: there may be more than kFew, and the last word is not full.
    const double more = std::clamp((n - 0.75 * kFew) / (0.5 * kFew), 0.0, 1.0);
    if (more == 0) return few;
    const double one_word = slab + cost_of(MaskCost::kWord, needs);
    if (n <= 64) return few + more * (one_word - few);
    const double words = n / 64 + 0.25, slabs = std::max(1.0, n / kSlab);
    return slabs * slab + words * cost_of(MaskCost::kWord, needs);
}

int32_t rows_to_walk(double one_row, const Needs& needs) {
    int32_t most = 0;
    while (most < kMaxWalkedRows && (most + 1) * one_row < mask_cost(most + 1, needs)) ++most;
    return most;
}

template <class Real>
Divider<Real>::Divider(const Forest<Real>& forest, const Questions<Real>& questions,
                       std::span<const int32_t> order, int32_t last,
                       std::span<const double> survival, std::span<const double> planes,
                       double walk)
    : last_(last),
      walk_(walk),
      masked_(last),
      planes_(last),
      survival_(last + 1),
      fresh_(static_cast<size_t>(last) * kMaxSegmentTrees) {
    double reached = 1;
    // The last step that asked each question, and that read each feature.
    std::vector<int32_t> asked(questions.all.size(), -1), read(forest.n_features(), -1);
    for (int32_t r = 0; r < last; ++r) {
        if (survival[r] < reached) reached = std::max(survival[r], 0.0);
        survival_[r] = reached;
        masked_[r] = questions.masked[order[r]];
        planes_[r] = planes[order[r]];
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
        }
        for (int32_t back = 0; back < kMaxSegmentTrees; ++back) {
            total.features -= here[back].features, total.questions -= here[back].questions;
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
    double cost = WalkCost::kRow;
    for (int32_t r = begin; r < end; r += kWalksAtOnce) {
        const double share = survival_[begin] > 0 ? survival_[r] / survival_[begin] : 0;
        cost += share * walk_ * std::min(end - r, kWalksAtOnce) / kWalksAtOnce;
    }
    return cost;
}

template <class Real>
Division Divider<Real>::divide(double n) const {
    std::vector<double> best(last_ + 1, std::numeric_limits<double>::infinity());
    std::vector<int32_t> next(last_ + 1);  // where the segment that begins here ends
    best[last_] = 0;
    for (int32_t a = last_ - 1; a >= 0; --a) {
        const double rows = n * survival_[a];
        Needs needs;
        for (int32_t b = a + 1; b <= std::min(last_, a + kMaxSegmentTrees); ++b) {
            const int32_t r = b - 1;
            if (masked(r) != masked(a)) break;
            ++needs.trees;
            needs.planes += planes_[r];
            needs.features += fresh(r, r - a).features;
            needs.questions += fresh(r, r - a).questions;
            double cost = masked(a) ? mask_cost(rows, needs) : rows * kDeepTree * needs.trees;
            if (rows <= kMaxWalkedRows) cost = std::min(cost, rows * walk_cost(a, b));
            if (cost + best[b] < best[a]) best[a] = cost + best[b], next[a] = b;
        }
    }
    Division found{{}, best[0]};
    for (int32_t a = 0; a < last_; a = next[a]) found.segments.push_back({a, next[a]});
    return found;
}

template class Divider<float>;
template class Divider<double>;

}  // namespace qwyc
