#include "core/class_engine.hpp"

#include <numeric>

#include "core/class_worker.hpp"
#include "core/cost_model.hpp"
#include "core/large_trees.hpp"
#include "core/parallel.hpp"

namespace qwyc {

template <class Real>
ClassEngine<Real>::ClassEngine(const ClassForest<Real>& forest)
    : forest_(forest), questions_(forest.trees()), row_trees_(forest.trees()) {
    std::vector<uint8_t> deep(questions_.masked);
    for (uint8_t& tree : deep) tree = !tree;
    deep_ = DeepTrees<Real>(forest.trees(), deep);
    const auto n_trees = static_cast<int32_t>(forest.trees().n_trees());
    order_.resize(n_trees);
    std::iota(order_.begin(), order_.end(), 0);
    step_of_.resize(n_trees);
    for (int32_t r = 0; r < forest.n_steps(); ++r)
        for (int32_t t = forest.step_begin(r); t < forest.step_end(r); ++t) step_of_[t] = r;
    std::vector<int32_t> steps(forest.n_steps());
    std::iota(steps.begin(), steps.end(), 0);
    ClassPartMaker<Real> maker(
        forest, questions_, forest.single() ? ClassTables::kFullSingle : ClassTables::kFullDouble);
    maker.add_steps(steps);
    parts_ = maker.make();
    Needs needs;
    for (const ClassPart& part : parts_) {
        cost_ += kDeepTree * static_cast<double>(part.walked.size());
        if (!part.masked()) continue;
        const Needs here = needs_of(part.trees);
        cost_ += here.planes / kSlab + RowCost::kRow + RowCost::kFeature * here.features +
                 answers_cost(part.trees) + RowCost::kFullTree * here.trees * forest.channels();
        needs.features += here.features, needs.questions += here.questions;
        needs.trees += here.trees * forest.channels(), needs.planes += here.planes;
    }
    const double walk = WalkCost::kRow + walk_cost(row_trees_) * n_trees / kWalksAtOnce;
    walk_below_ = needs.trees > 0 ? rows_to_walk(walk, needs) : 6;
}

template <class Real>
template <class In>
void ClassEngine<Real>::score_few(const RowsView<In>& rows, const int32_t* row, int32_t n,
                                  double* full) const {
    const RowWalker<Real> walk{forest_.trees(), row_trees_, row_kernels()};
    const auto n_trees = static_cast<int32_t>(order_.size());
    const int32_t K = forest_.n_classes(), channels = forest_.channels();
    for (int32_t i = 0; i < n; ++i)
        for (int32_t k = 0; k < K; ++k) {
            const double start = forest_.start(k);
            full[i * int64_t{K} + k] = forest_.single() ? static_cast<float>(start) : start;
        }
    with_values<Real>(row_trees_, rows, row, n, [&](const auto* values) {
        int32_t leaf[kRowsWalked * kWalksAtOnce];
        for (int32_t t = 0; t < n_trees; t += kWalksAtOnce) {
            const int32_t end = std::min(t + kWalksAtOnce, n_trees);
            for (int32_t i = 0; i < n; i += kRowsWalked) {
                const int32_t here = std::min(kRowsWalked, n - i);
                walk(order_.data(), t, end, values + i, here, leaf);
                for (int32_t j = 0; j < here; ++j)
                    for (int32_t s = t; s < end; ++s) {
                        const double* added = forest_.full_of(leaf[j * kWalksAtOnce + s - t]);
                        double* to = full + (i + j) * int64_t{K} + forest_.class_of(s);
                        if (forest_.single())
                            for (int32_t c = 0; c < channels; ++c)
                                to[c] = static_cast<float>(to[c]) + static_cast<float>(added[c]);
                        else
                            for (int32_t c = 0; c < channels; ++c) to[c] += added[c];
                    }
            }
        }
    });
    for (int32_t i = 0; i < n; ++i)
        for (int32_t k = 0; k < K; ++k) {
            double& score = full[i * int64_t{K} + k];
            score = forest_.finish(k, score);
        }
}

template <class Real>
template <class In>
void ClassEngine<Real>::score(const RowsView<In>& rows, float* values, double* full, int threads,
                              std::string_view isa) const {
    const Kernels& chosen = kernels(isa);
    const MaskKernels& masks = mask_kernels(isa);
    rows.need_all();
    const int32_t K = forest_.n_classes();
    const int64_t most =
        values ? std::min(Worker<In>::rows_at_once(*this), kSlab) : Worker<In>::rows_at_once(*this);
    const int64_t share = rows.n / std::max(threads, 1) / 64 * 64;  // rows per thread
    const int64_t chunk =
        std::min(std::clamp<int64_t>(share, 64, most), max_rows_in_int32(rows.row_stride));
    if (values) std::fill_n(values, rows.n * K * int64_t{forest_.n_steps()}, 0.0f);
    parallel_for(rows.n, chunk, threads, [&, values, full](int64_t begin, int64_t end) {
        Worker<In> worker(*this, chosen, masks);
        worker.run(rows.part(begin, end), nullptr, static_cast<int32_t>(end - begin),
                   values ? values + begin * K : nullptr, rows.n * K, full + begin * K);
    });
}

#define QWYC_INSTANTIATE(Real, In)                                                           \
    template void ClassEngine<Real>::score(const RowsView<In>&, float*, double*, int,        \
                                           std::string_view) const;                          \
    template void ClassEngine<Real>::score_few(const RowsView<In>&, const int32_t*, int32_t, \
                                               double*) const;
template class ClassEngine<float>;
template class ClassEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
