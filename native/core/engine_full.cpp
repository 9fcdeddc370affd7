#include <algorithm>
#include <numeric>

#include "core/cost_model.hpp"
#include "core/engine.hpp"
#include "core/full_worker.hpp"
#include "core/large_trees.hpp"
#include "core/parallel.hpp"

namespace qwyc {

namespace {

// Of one part. Their masks, 64 bytes each, should stay in the second-level cache.
constexpr int32_t kMaxQuestions = 4096;

constexpr int32_t kMaxDeepRows = 4096;  // where all trees are walked

}  // namespace

template <class Real>
FullEngine<Real>::FullEngine(const Forest<Real>& forest)
    : forest_(forest), questions_(forest), row_trees_(forest) {
    std::vector<uint8_t> deep(questions_.masked);
    for (uint8_t& tree : deep) tree = !tree;
    deep_ = DeepTrees<Real>(forest, deep);
    find_large();
    const Questions<Real>& questions = asked();
    const auto n = static_cast<int32_t>(forest.n_trees());
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), 0);
    // The first tree of the last part that asks.
    std::vector<int32_t> asked_by(questions.all.size(), -1);
    int32_t n_questions = 0, n_features = 0;
    double large_splits = 0;
    for (int32_t begin = 0, end = 0; begin < n; begin = end) {
        Part part{begin, begin, questions.masked[begin] != 0, {}};
        int32_t here = 0;
        for (; end < n && (questions.masked[end] != 0) == part.masked; ++end) {
            int32_t added = 0;
            if (part.masked)
                for (int32_t q : questions.of_tree(forest, end))
                    if (asked_by[q] != begin) asked_by[q] = begin, ++added;
            if (here > 0 && here + added > kMaxQuestions) break;
            here += added;
            if (part.masked && forest.leaves_of(end) > kMaxMaskedLeaves) {
                large_splits += static_cast<double>(forest.leaves_of(end));
                expected_cost_ += LargeCost::kTree - RowCost::kFullTree;
            }
        }
        part.end = end;
        if (part.masked) {
            part.trees =
                lay_out(forest, questions,
                        std::span<const int32_t>(order_.data() + begin, order_.data() + end), true);
            n_questions += part.trees.n_questions;
            n_features += static_cast<int32_t>(part.trees.features.size());
        }
        expected_cost_ += (part.masked ? RowCost::kFullTree : RowCost::kWalkedTree) * (end - begin);
        parts_.push_back(std::move(part));
    }
    expected_cost_ += RowCost::kRow + RowCost::kFeature * n_features +
                      RowCost::kQuestion * n_questions + LargeCost::kSplit * large_splits;
    const bool any =
        std::any_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.masked; });
    walk_below_ = any ? rows_to_walk(n, n_questions, n_features) : 6;
    rows_at_once_ = any ? kSlab : kMaxDeepRows;
}

template <class Real>
void FullEngine<Real>::find_large() {
    const auto is_large = [&](int32_t t) {
        const int64_t leaves = forest_.leaves_of(t);
        return leaves > kMaxMaskedLeaves && leaves <= kMaxLargeLeaves;
    };
    for (int32_t t = 0; t < forest_.n_trees(); ++t) {
        if (!is_large(t)) continue;
        with_large_ = std::make_unique<Questions<Real>>(forest_, kMaxCategoryBytes, kMaxLargeLeaves);
        if (!masks_pay(forest_, *with_large_)) with_large_.reset();
        return;
    }
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
    const int64_t chunk = std::min(std::clamp<int64_t>(share, kSlab, rows_at_once_),
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
