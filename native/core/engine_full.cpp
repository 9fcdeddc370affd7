#include <algorithm>
#include <numeric>
#include <utility>

#include "core/cost_model.hpp"
#include "core/engine.hpp"
#include "core/full_worker.hpp"
#include "core/large_trees.hpp"
#include "core/parallel.hpp"

namespace qwyc {

template <class Real>
FullEngine<Real>::FullEngine(const Forest<Real>& forest)
    : forest_(forest), questions_(forest), row_trees_(forest) {
    std::vector<uint8_t> deep(questions_.masked);
    for (uint8_t& tree : deep) tree = !tree;
    deep_ = DeepTrees<Real>(forest, deep);
    const auto n = static_cast<int32_t>(forest.n_trees());
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), 0);
    plan_ = make_plan(questions_);
    walk_below_ = plan_.any_masked ? rows_to_walk(n, plan_.n_questions, plan_.n_features) : 6;
    use_large();
}

template <class Real>
typename FullEngine<Real>::Plan FullEngine<Real>::make_plan(
    const Questions<Real>& questions) const {
    const auto n = static_cast<int32_t>(order_.size());
    Plan plan;
    // The first tree of the last part that asks.
    std::vector<int32_t> asked(questions.all.size(), -1);
    for (int32_t begin = 0, end = 0; begin < n; begin = end) {
        Part part{begin, begin, questions.masked[begin] != 0, {}};
        int32_t here = 0;
        for (; end < n && (questions.masked[end] != 0) == part.masked; ++end) {
            int32_t added = 0;
            if (part.masked)
                for (int32_t q : questions.of_tree(forest_, end))
                    if (asked[q] != begin) asked[q] = begin, ++added;
            if (here > 0 && here + added > kMaxQuestions) break;
            here += added;
            plan.cost += !part.masked ? RowCost::kWalkedTree
                         : forest_.leaves_of(end) > kMaxMaskedLeaves
                             ? large_tree_cost(forest_, questions, end)
                             : RowCost::kFullTree;
        }
        part.end = end;
        if (part.masked) {
            part.trees =
                lay_out(forest_, questions,
                        std::span<const int32_t>(order_.data() + begin, order_.data() + end), true);
            plan.any_masked = true;
            plan.cost += answers_cost(part.trees);
            plan.n_questions += part.trees.n_questions;
            plan.n_features += static_cast<int32_t>(part.trees.features.size());
        }
        plan.parts.push_back(std::move(part));
    }
    plan.cost +=
        RowCost::kRow + RowCost::kFeature * plan.n_features + RowCost::kQuestion * plan.n_questions;
    return plan;
}

template <class Real>
void FullEngine<Real>::use_large() {
    const auto is_large = [](int64_t leaves) {
        return leaves > kMaxMaskedLeaves && leaves <= kMaxLargeLeaves;
    };
    bool any = false;
    for (int32_t t : order_) any = any || is_large(forest_.leaves_of(t));
    if (!any) return;
    large_ = std::make_unique<Questions<Real>>(forest_, kMaxCategoryBytes, kMaxLargeLeaves);
    // Categories that large trees tell apart may be too many for masks, of small trees too.
    const auto lost = [&](int32_t t) { return questions_.masked[t] && !large_->masked[t]; };
    const RowsForMasks from = rows_for_masks(forest_, *large_);
    if (*std::min_element(from.begin(), from.end()) > kSlab ||
        std::any_of(order_.begin(), order_.end(), lost)) {
        large_.reset();
        return;
    }
    large_from_ = from;
    few_ = std::exchange(plan_, make_plan(*large_));
}

template <class Real>
template <class In>
double FullEngine<Real>::score_one(const In* row) const {
    const RowWalker<Real> walk{forest_, row_trees_, row_kernels()};
    const auto n = static_cast<int32_t>(order_.size());
    return with_values<Real>(row_trees_, row, forest_.n_features(), [&](const auto* values) {
        FullSum sum = forest_.start();
        int32_t leaf[kWalksAtOnce];
        for (int32_t t = 0; t < n; t += kWalksAtOnce) {
            const int32_t end = std::min(t + kWalksAtOnce, n);
            walk(order_.data(), t, end, values, leaf);
            for (int32_t k = 0; k < end - t; ++k) forest_.add(sum, leaf[k]);
        }
        return forest_.finish(sum);
    });
}

template <class Real>
template <class In>
void FullEngine<Real>::score(const RowsView<In>& rows, float* values, double* full, int threads,
                             std::string_view isa) const {
    const Kernels& chosen = kernels(isa);
    const MaskKernels& masks = mask_kernels(isa);
    const int64_t share = rows.n / std::max(threads, 1) / kSlab * kSlab;  // rows per thread
    const int64_t chunk = std::min(std::clamp<int64_t>(share, kSlab, rows_at_once(masks.isa)),
                                   max_rows_in_int32(rows.row_stride));
    parallel_for(rows.n, chunk, threads, [&, values, full](int64_t begin, int64_t end) {
        Worker<In> worker(*this, chosen, masks);
        worker.run(rows.part(begin, end), nullptr, static_cast<int32_t>(end - begin),
                   values ? values + begin : nullptr, rows.n, full + begin);
    });
}

template <class Real>
template <class In>
void FullEngine<Real>::measure(const RowsView<In>& rows, int repeats, double* seconds) const {
    Worker<In>(*this, kernels(), mask_kernels())
        .measure(rows, static_cast<int32_t>(std::min<int64_t>(rows.n, kSlab)), repeats, seconds);
}

#define QWYC_INSTANTIATE(Real, In)                                                   \
    template void FullEngine<Real>::score(const RowsView<In>&, float*, double*, int, \
                                          std::string_view) const;                   \
    template double FullEngine<Real>::score_one(const In*) const;                    \
    template void FullEngine<Real>::measure(const RowsView<In>&, int, double*) const;
template class FullEngine<float>;
template class FullEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
