#include <algorithm>
#include <numeric>

#include "core/cost_model.hpp"
#include "core/engine.hpp"
#include "core/full_worker.hpp"
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
    const auto n = static_cast<int32_t>(forest.n_trees());
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), 0);
    std::vector<int32_t> asked(questions_.all.size(),
                               -1);  // the first tree of the last part that asks
    int32_t n_questions = 0, n_features = 0;
    for (int32_t begin = 0, end = 0; begin < n; begin = end) {
        Part part{begin, begin, questions_.masked[begin] != 0, {}};
        int32_t here = 0;
        for (; end < n && (questions_.masked[end] != 0) == part.masked; ++end) {
            int32_t added = 0;
            if (part.masked)
                for (int32_t q : questions_.of_tree(forest, end))
                    if (asked[q] != begin) asked[q] = begin, ++added;
            if (here > 0 && here + added > kMaxQuestions) break;
            here += added;
        }
        part.end = end;
        if (part.masked) {
            part.trees =
                lay_out(forest, questions_,
                        std::span<const int32_t>(order_.data() + begin, order_.data() + end), true);
            const Needs needs = needs_of(part.trees);
            n_questions += needs.questions, n_features += needs.features;
            expected_cost_ += full_cost(needs);
        } else {
            expected_cost_ += kDeepTree * (end - begin);
        }
        parts_.push_back(std::move(part));
    }
    const bool any =
        std::any_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.masked; });
    const double walk = WalkCost::kRow + walk_cost(row_trees_) * n / kWalksAtOnce;
    walk_below_ = any ? rows_to_walk(walk, {n_features, n_questions, n}) : 6;
    rows_at_once_ = any ? kSlab : kMaxDeepRows;
}

template <class Real>
template <class In>
void FullEngine<Real>::score_few(const RowsView<In>& rows, const int32_t* row, int32_t n,
                                 double* full) const {
    const RowWalker<Real> walk{forest_, row_trees_, row_kernels()};
    const auto n_trees = static_cast<int32_t>(order_.size());
    with_values<Real>(row_trees_, rows, row, n, [&](const auto* values) {
        FullSum sum[kMaxWalkedRows];
        std::fill_n(sum, n, forest_.start());
        int32_t leaf[kRowsWalked * kWalksAtOnce];
        for (int32_t t = 0; t < n_trees; t += kWalksAtOnce) {
            const int32_t end = std::min(t + kWalksAtOnce, n_trees);
            for (int32_t i = 0; i < n; i += kRowsWalked) {
                const int32_t here = std::min(kRowsWalked, n - i);
                walk(order_.data(), t, end, values + i, here, leaf);
                for (int32_t j = 0; j < here; ++j)
                    forest_.add(sum[i + j], leaf + j * kWalksAtOnce, end - t);
            }
        }
        for (int32_t i = 0; i < n; ++i) full[i] = forest_.finish(sum[i]);
    });
}

template <class Real>
template <class In>
double FullEngine<Real>::score_one(const In* row) const {
    const int64_t width = forest_.n_features();
    double full;
    score_few(RowsView<In>{row, 1, width, width, 1}, nullptr, 1, &full);
    return full;
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

#define QWYC_INSTANTIATE(Real, In)                                                          \
    template void FullEngine<Real>::score(const RowsView<In>&, float*, double*, int,        \
                                          std::string_view) const;                          \
    template double FullEngine<Real>::score_one(const In*) const;                           \
    template void FullEngine<Real>::score_few(const RowsView<In>&, const int32_t*, int32_t, \
                                              double*) const;                               \
    template void FullEngine<Real>::measure(const RowsView<In>&, int, double*) const;
template class FullEngine<float>;
template class FullEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
