#include <algorithm>
#include <memory>
#include <mutex>
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
    : forest_(forest),
      row_trees_(forest),
      order_(forest.n_trees()),
      coded_kernels_(coded_kernels()) {
    std::iota(order_.begin(), order_.end(), 0);
    for (int32_t t : order_)
        if (forest.leaves_of(t) > kMaxMaskedLeaves) coded_kernels_ = nullptr;
}

template <class Real>
auto FullEngine<Real>::asked() const -> const Asked& {
    std::call_once(once_asked_, [this] {
        auto asked = std::make_unique<Asked>(forest_);
        if (coded_kernels_) asked->coded = lay_out_coded<Real>(forest_, asked->questions, order_);
        asked_ = std::move(asked);
    });
    return *asked_;
}

template <class Real>
RowWay FullEngine<Real>::row_way(double n_trees) const {
    const auto cost = [=](const RowWay& way) {
        return way.row + way.trees * n_trees / kWalksAtOnce;
    };
    const RowWay walked{nullptr, WalkCost::kRow, walk_cost(row_trees_, row_kernels())};
    if (!coded_kernels_) return walked;
    const CodedCost& is = coded_kernels_->cost;
    const RowWay least{nullptr, WalkCost::kRow, is.small_tree * kWalksAtOnce};
    if (cost(least) >= cost(walked)) return walked;
    const CodedTrees& trees = asked().coded;
    const RowWay coded{&trees, WalkCost::kRow + is.encoding(trees), is.tree(trees) * kWalksAtOnce};
    return trees.usable() && cost(coded) < cost(walked) ? coded : walked;
}

template <class Real>
auto FullEngine<Real>::make_layout() const -> std::unique_ptr<const Layout> {
    auto layout = std::make_unique<Layout>(questions());
    std::vector<uint8_t> deep(layout->questions.masked);
    for (uint8_t& tree : deep) tree = !tree;
    layout->deep = DeepTrees<Real>(forest_, deep);
    const auto n = static_cast<int32_t>(order_.size());
    layout->plan = make_plan(layout->questions);
    use_large(*layout);
    const RowWay& way = row_way();
    const double walk = way.row + way.trees * n / kWalksAtOnce;
    layout->walk_below = layout->plan.any_masked ? rows_to_walk(walk, layout->plan.needs) : 6;
    return layout;
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
            plan.cost += !part.masked ? kDeepLevel * forest_.depth_of(end)
                         : forest_.leaves_of(end) > kMaxMaskedLeaves
                             ? large_tree_cost(forest_, questions, end)
                             : RowCost::kFullTree;
        }
        part.end = end;
        if (part.masked) {
            part.trees =
                lay_out(forest_, questions,
                        std::span<const int32_t>(order_.data() + begin, order_.data() + end), true);
            const Needs needs = needs_of(part.trees);
            plan.cost += needs.planes / kSlab;
            plan.needs += needs;
            plan.any_masked = true;
            plan.cost += RowCost::kRow + RowCost::kFeature * needs.features +
                         answers_cost(part.trees) +
                         far_line_cost(forest_.n_features()) * lines_of(part.trees.features);
        }
        plan.parts.push_back(std::move(part));
    }
    return plan;
}

template <class Real>
std::vector<TreeCost> FullEngine<Real>::tree_costs() const {
    std::vector<TreeCost> cost(order_.size());
    for (const Part& part : layout().plan.parts)
        for (int32_t t = 0; t < part.trees.n_trees(); ++t)
            cost[part.begin + t] = tree_cost(part.trees.trees[t]);
    return cost;
}

template <class Real>
void FullEngine<Real>::use_large(Layout& layout) const {
    const int32_t tables = forest_.rules().summation == Summation::kShares ? 2 : 1;
    QuestionsOfLarge<Real> large = questions_of_large(forest_, layout.questions, tables);
    const RowsForMasks& from = large.from;
    if (!large.questions || *std::min_element(from.begin(), from.end()) > kSlab) return;
    layout.large = std::move(large.questions);
    layout.large_from = from;
    layout.few = std::exchange(layout.plan, make_plan(*layout.large));
}

template <class Real>
template <class In>
void FullEngine<Real>::score_few(const RowsView<In>& rows, const int32_t* row, int32_t n,
                                 double* full) const {
    const auto n_trees = static_cast<int32_t>(order_.size());
    const RowWay& way = row_way();
    with_walk(forest_, row_trees_, way, rows, row, n, [&](const auto* values, const auto& walk) {
        FullSum sum[kMaxWalkedRows];
        std::fill_n(sum, n, forest_.start());
        if constexpr (std::is_same_v<std::decay_t<decltype(walk)>, CodeWalker>) {
            constexpr int32_t kAtOnce = 8 * kWalksAtOnce;
            int32_t leaf[kAtOnce];
            for (int32_t i = 0; i < n; ++i) {
                for (int32_t t = 0; t < n_trees; t += kAtOnce) {
                    const int32_t here = std::min(kAtOnce, n_trees - t);
                    walk.kernels.leaves(walk.trees, values[i], &order_[t], here, leaf);
                    forest_.add(sum[i], leaf, here);
                }
                full[i] = forest_.finish(sum[i]);
            }
            return;
        }
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
    rows.need_all();
    const int64_t share = rows.n / std::max(threads, 1) / kSlab * kSlab;  // rows per thread
    const int64_t chunk = std::min(std::clamp<int64_t>(share, kSlab, rows_at_once(masks.isa)),
                                   max_rows_in_int32(rows.row_stride));
    parallel_for(rows.n, chunk, threads, [&, values, full](int64_t begin, int64_t end) {
        Worker<In> worker(*this, chosen, masks);
        worker.run(rows.part(begin, end), nullptr, static_cast<int32_t>(end - begin),
                   values ? values + begin : nullptr, rows.n, full + begin);
    });
}

// The trees' tables, where all trees are on masks, none is large, and the kernels take leaf
// numbers; otherwise nothing.
template <class Real>
std::vector<PathLeaves> FullEngine<Real>::path_leaves(const MaskKernels& masks,
                                                      const PathKernels& paths) const {
    std::vector<PathLeaves> leaves;
    if (!masks.numbers || !paths.advance_leaves) return leaves;
    for (const Part& part : layout().plan.parts)
        for (int32_t t = 0; t < part.trees.n_trees(); ++t) {
            if (part.trees.is_large(t)) return {};
            const MaskedTree& tree = part.trees.trees[t];
            leaves.push_back(
                {nullptr, part.trees.step_value.data() + tree.table_begin, tree.bits > 5});
        }
    if (leaves.size() != order_.size()) leaves.clear();
    return leaves;
}

template <class Real>
template <class In>
void FullEngine<Real>::count_path(const RowsView<In>& rows, const PathView& path, double* full,
                                  const PathCountsOut& out, int threads,
                                  std::string_view isa) const {
    static_assert(kPathRows == kSlab);
    const Kernels& chosen = kernels(isa);
    const MaskKernels& masks = mask_kernels(isa);
    const PathTables tables(path);
    const std::vector<PathLeaves> leaves = path_leaves(masks, path_kernels(isa));
    const int64_t block = leaves.empty() ? std::min<int64_t>(rows_at_once(masks.isa),
                                                             max_rows_in_int32(rows.row_stride))
                                         : kSlab;
    const int64_t stride = block + 16;  // no power of two: columns share cache lines otherwise
    const int64_t share = rows.n / std::max(threads, 1) / kSlab * kSlab;  // rows per thread
    const double base = forest_.rules().base / forest_.rules().divisor;
    std::mutex adding;
    rows.need_all();
    parallel_for(
        rows.n, std::clamp<int64_t>(share, kSlab, kPathChunk), threads,
        [&](int64_t first, int64_t last) {
            Worker<In> worker(*this, chosen, masks);
            PathCounter counter(tables, path_kernels(isa), out.wrong);
            for (int64_t begin = first; begin < last; begin += block) {
                const int64_t end = std::min(last, begin + block);
                const auto n = static_cast<int32_t>(end - begin);
                if (!leaves.empty()) {
                    uint8_t* const number = scratch().numbers.of(leaves.size() * kSlab);
                    worker.run_numbers(rows.part(begin, end), n, number, full + begin);
                    counter.add(PathCounter::Leaves{number, leaves}, base, full + begin, begin, n);
                    continue;
                }
                float* const values = scratch().tree_values.of(stride * order_.size());
                worker.run(rows.part(begin, end), nullptr, n, values, stride, full + begin);
                for (int64_t i = begin; i < end; i += kSlab)
                    counter.add(PathCounter::Scores<float>{values + (i - begin), stride}, base,
                                full + i, i,
                                static_cast<int32_t>(std::min<int64_t>(kSlab, end - i)));
            }
            const std::lock_guard lock(adding);
            counter.add_to(out);
        });
}

template <class Real>
template <class In>
void FullEngine<Real>::measure(const RowsView<In>& rows, int repeats, double* seconds) const {
    Worker<In>(*this, kernels(), mask_kernels())
        .measure(rows, static_cast<int32_t>(std::min<int64_t>(rows.n, kSlab)), repeats, seconds);
}

#define QWYC_INSTANTIATE(Real, In)                                                                 \
    template void FullEngine<Real>::score(const RowsView<In>&, float*, double*, int,               \
                                          std::string_view) const;                                 \
    template void FullEngine<Real>::count_path(const RowsView<In>&, const PathView&, double*,      \
                                               const PathCountsOut&, int, std::string_view) const; \
    template double FullEngine<Real>::score_one(const In*) const;                                  \
    template void FullEngine<Real>::score_few(const RowsView<In>&, const int32_t*, int32_t,        \
                                              double*) const;                                      \
    template void FullEngine<Real>::measure(const RowsView<In>&, int, double*) const;
template class FullEngine<float>;
template class FullEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
