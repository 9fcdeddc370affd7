#include "core/class_engine.hpp"

#include <numeric>

#include "core/class_worker.hpp"
#include "core/cost_model.hpp"
#include "core/large_trees.hpp"
#include "core/parallel.hpp"
#include "core/row_leaves.hpp"

namespace qwyc {

// Nanoseconds for a level of a tree that is walked, where trees are of many levels.
constexpr double kWalkedLevel = 1.25;

// Those of large trees too, where these are faster on masks.
template <class Real>
static Questions<Real> questions_of(const ClassForest<Real>& forest) {
    Questions<Real> small(forest.trees());
    QuestionsOfLarge<Real> large = questions_of_large(forest.trees(), small, forest.channels());
    const RowsForMasks& from = large.from;
    const bool pays = large.questions && std::max(from[0], from[1]) <= kSlab;
    return pays ? std::move(*large.questions) : std::move(small);
}

template <class Real>
ClassEngine<Real>::ClassEngine(const ClassForest<Real>& forest)
    : forest_(forest), questions_(questions_of(forest)), row_trees_(forest.trees()) {
    std::vector<uint8_t> deep(questions_.masked);
    for (uint8_t& tree : deep) tree = !tree;
    deep_ = DeepTrees<Real>(forest.trees(), deep);
    const auto n_trees = static_cast<int32_t>(forest.trees().n_trees());
    order_.resize(n_trees);
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int32_t a, int32_t b) { return forest.class_of(a) < forest.class_of(b); });
    step_of_.resize(n_trees);
    for (int32_t r = 0; r < forest.n_steps(); ++r)
        for (int32_t t = forest.step_begin(r); t < forest.step_end(r); ++t) step_of_[t] = r;
    coded_kernels_ = qwyc::coded_kernels();
    if (coded_kernels_) {
        coded_ = lay_out_coded<Real>(forest.trees(), questions_, order_);
        if (!coded_.usable()) coded_kernels_ = nullptr;
    }
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
        Needs here = needs_of(part.trees);
        here.trees *= forest.channels(), here.large.word *= forest.channels();
        cost_ += here.planes / kSlab + here.large.of_a_row() + RowCost::kRow +
                 RowCost::kFeature * here.features + answers_cost(part.trees) +
                 RowCost::kFullTree * here.trees;
        needs += here;
    }
    const double walk = WalkCost::kRow + walk_cost() * n_trees;
    walk_below_ = needs.trees > 0 ? rows_to_walk(walk, needs) : 6;
}

template <class Real>
double ClassEngine<Real>::walk_cost() const {
    if (coded_kernels_) return coded_kernels_->cost.tree(coded_);
    const Forest<Real>& trees = forest_.trees();
    double levels = 0;
    for (int32_t t = 0; t < trees.n_trees(); ++t) levels += trees.depth_of(t);
    levels /= static_cast<double>(trees.n_trees());
    return std::max(qwyc::walk_cost(row_trees_, row_kernels()) / kWalksAtOnce,
                    kWalkedLevel * levels);
}

// What the source's own sums of one row begin with, (K,).
template <class Real>
static void begin_scores(const ClassForest<Real>& forest, double* sums) {
    for (int32_t k = 0; k < forest.n_classes(); ++k) {
        const double start = forest.start(k);
        sums[k] = forest.single() ? static_cast<float>(start) : start;
    }
}

// Adds the leaves of trees that have a score each. The sum of a class stays in a register while its
// trees follow each other.
template <class Sum, class Real>
static void add_scores(const ClassForest<Real>& forest, const int32_t* tree, const int32_t* leaf,
                       int32_t n, double* sums) {
    for (int32_t i = 0; i < n;) {
        const int32_t k = forest.class_of(tree[i]);
        auto sum = static_cast<Sum>(sums[k]);
        for (; i < n && forest.class_of(tree[i]) == k; ++i)
            sum += static_cast<Sum>(*forest.full_of(leaf[i]));
        sums[k] = sum;
    }
}

// Adds leaf[i] of tree[i] to the source's own sums of one row, (K,).
template <class Real>
static void add_leaves(const ClassForest<Real>& forest, const int32_t* tree, const int32_t* leaf,
                       int32_t n, double* sums) {
    if (!forest.has_vectors()) {
        forest.single() ? add_scores<float>(forest, tree, leaf, n, sums)
                        : add_scores<double>(forest, tree, leaf, n, sums);
        return;
    }
    for (int32_t i = 0; i < n; ++i) {
        const double* const added = forest.full_of(leaf[i]);
        for (int32_t k = 0; k < forest.n_classes(); ++k)
            sums[k] = forest.single() ? static_cast<float>(sums[k]) + static_cast<float>(added[k])
                                      : sums[k] + added[k];
    }
}

template <class Real>
void ClassEngine<Real>::score_leaves(const int32_t* leaf, double* full) const {
    begin_scores(forest_, full);
    add_leaves(forest_, order_.data(), leaf, static_cast<int32_t>(order_.size()), full);
    for (int32_t k = 0; k < forest_.n_classes(); ++k) full[k] = forest_.finish(k, full[k]);
}

template <class Real>
template <class In>
void ClassEngine<Real>::score_few(const RowsView<In>& rows, const int32_t* row, int32_t n,
                                  double* full) const {
    const auto n_trees = static_cast<int32_t>(order_.size());
    const int32_t K = forest_.n_classes();
    for (int32_t i = 0; i < n; ++i) begin_scores(forest_, full + i * int64_t{K});
    with_values<Real>(row_trees_, rows, row, n, [&]<class V>(V* const* values) {
        if (coded_kernels_) {
            constexpr int32_t kAtOnce = 8 * kWalksAtOnce;
            int32_t leaf[kAtOnce];
            for (int32_t i = 0; i < n; ++i) {
                const RowLeaves<Real, std::remove_const_t<V>> leaves(*this, values[i]);
                for (int32_t t = 0; t < n_trees; t += kAtOnce) {
                    const int32_t here = std::min(kAtOnce, n_trees - t);
                    leaves(&order_[t], here, leaf);
                    add_leaves(forest_, &order_[t], leaf, here, full + i * int64_t{K});
                }
            }
            return;
        }
        const RowWalker<Real> walk{forest_.trees(), row_trees_, row_kernels()};
        int32_t leaf[kRowsWalked * kWalksAtOnce];
        for (int32_t t = 0; t < n_trees; t += kWalksAtOnce) {
            const int32_t end = std::min(t + kWalksAtOnce, n_trees);
            for (int32_t i = 0; i < n; i += kRowsWalked) {
                const int32_t here = std::min(kRowsWalked, n - i);
                walk(order_.data(), t, end, values + i, here, leaf);
                for (int32_t j = 0; j < here; ++j)
                    add_leaves(forest_, &order_[t], leaf + j * kWalksAtOnce, end - t,
                               full + (i + j) * int64_t{K});
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
