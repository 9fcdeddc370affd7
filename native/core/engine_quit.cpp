#include <algorithm>
#include <limits>

#include "core/parallel.hpp"
#include "core/quit_worker.hpp"

namespace qwyc {

namespace {

constexpr int64_t kBlockBytes = 1 << 18;  // of codes: a block fits the second-level cache
constexpr int32_t kMaxBlockRows = 16384;
constexpr int32_t kProfileRows = 2048;  // rows from which the survival curve is measured
constexpr int32_t kMaxSegmentSteps = 128;

// Costs for one row, in nanoseconds, measured on a 2023 Xeon with AVX-512. Only their ratios
// matter, and only for speed.
constexpr double kSplitCost = 0.012, kTreeCost = 0.5, kWalkCost = 12.0;
constexpr double kEncodeCost = 1.0, kMoveColumnCost = 0.06, kMoveCost = 1.0;

}  // namespace

template <class Real, class Policy>
QuitEngine<Real, Policy>::QuitEngine(const FullEngine<Real>& full,
                                     const typename Policy::View& policy)
    : full_(full),
      policy_(policy),
      plan_(full.forest(), policy_.order()),
      quit_end_(quit_end(policy_)) {
    std::vector<double> usual(plan_.n_steps());
    for (size_t r = 0; r < usual.size(); ++r) usual[r] = 1.0 / (1.0 + static_cast<double>(r) / 6);
    default_segments_ = segments(usual);
}

// The cheapest division of the steps into segments, given the share of rows that reach each step. A
// long segment evaluates rows that have quit; a short one moves rows more often.
template <class Real, class Policy>
auto QuitEngine<Real, Policy>::segments(std::span<const double> survival) const
    -> std::vector<Segment> {
    const int32_t last = quit_end_;
    std::vector<double> tree_cost(last + 1, 0.0), encode_cost(last + 1, 0.0);  // prefix sums
    std::vector<double> live(last + 1, 0.0);  // columns in use both before and from a step on
    for (int32_t r = 0; r < last; ++r) {
        const SmallTree& tree = plan_.small[r];
        tree_cost[r + 1] =
            tree_cost[r] + (tree.n_leaves == 0
                                ? kWalkCost
                                : kTreeCost + kSplitCost * (tree.split_end - tree.split_begin));
    }
    for (const Column& column : plan_.columns) {
        if (column.first_use >= last) continue;
        encode_cost[column.first_use + 1] += kEncodeCost;
        for (int32_t r = column.first_use + 1; r <= std::min(column.last_use, last); ++r)
            live[r] += 1;
    }
    for (int32_t r = 0; r < last; ++r) encode_cost[r + 1] += encode_cost[r];

    std::vector<double> best(last + 1, std::numeric_limits<double>::infinity());
    std::vector<int32_t> next(last + 1, last);  // where the segment that begins here ends
    best[last] = 0;
    for (int32_t a = last - 1; a >= 0; --a)
        for (int32_t b = a + 1; b <= std::min(last, a + kMaxSegmentSteps); ++b) {
            const double move = a == 0 ? 0 : kMoveCost + kMoveColumnCost * live[a];
            const double spent = survival[a] * (move + tree_cost[b] - tree_cost[a] +
                                                encode_cost[b] - encode_cost[a]);
            if (spent + best[b] < best[a]) best[a] = spent + best[b], next[a] = b;
        }

    std::vector<Segment> found;
    for (int32_t a = 0; a < last; a = next[a]) {
        Segment segment{a, next[a], {}, {}};
        for (int32_t c = 0; c < static_cast<int32_t>(plan_.columns.size()); ++c) {
            const Column& column = plan_.columns[c];
            if (column.first_use >= segment.begin && column.first_use < segment.end)
                segment.encode.push_back(c);
            if (column.first_use < segment.end && column.last_use >= segment.end)
                segment.keep.push_back(c);
        }
        sort_by_feature(plan_, segment.encode);
        found.push_back(std::move(segment));
    }
    return found;
}

template <class Real, class Policy>
template <class In>
bool QuitEngine<Real, Policy>::walk_some(OneRow& state, const In* row, int32_t most,
                                         const DecisionsOut& out) const {
    const Forest<Real>& forest = *plan_.forest;
    const int32_t stop = std::min(quit_end_, most);
    int32_t leaf[kWalksAtOnce];
    while (state.step < stop) {
        const int32_t begin = state.step, end = std::min(begin + kWalksAtOnce, stop);
        walk_trees(forest, plan_.order.data(), begin, end, row, leaf);
        for (; state.step < end; ++state.step) {
            const int32_t r = state.step;
            state.sum += forest.step_value(leaf[r - begin]);
            const Outcome outcome = policy_.rule()(r, state.sum);
            if (outcome == Outcome::kInFull) {
                state.step = quit_end_;
                return false;
            }
            if (outcome != Outcome::kContinue) {
                *out.positive = TwoClasses::decision_of(outcome);
                *out.steps = r + 1;
                *out.score = state.sum;
                return true;
            }
        }
    }
    return false;
}

template <class Real, class Policy>
template <class In>
void QuitEngine<Real, Policy>::walk_on(OneRow state, const In* row, const DecisionsOut& out) const {
    if (walk_some(state, row, quit_end_, out)) return;
    *out.score = full_.score_one(row);
    *out.positive = policy_.target().decide(*out.score);
    *out.steps = plan_.n_steps();
}

template <class Real, class Policy>
auto QuitEngine<Real, Policy>::start_one() const -> OneRow {
    const Rules& rules = plan_.forest->rules();
    return {0, rules.base / rules.divisor};
}

template <class Real, class Policy>
template <class In>
void QuitEngine<Real, Policy>::decide(const In* rows, int64_t n, const DecisionsOut& out,
                                      int threads, std::string_view isa) const {
    const Kernels& chosen = kernels(isa);
    if (quit_end_ == 0) {  // never quits: full scores decide
        full_.score(rows, n, nullptr, out.score, threads, isa);
        for (int64_t i = 0; i < n; ++i) out.positive[i] = policy_.target().decide(out.score[i]);
        std::fill_n(out.steps, n, plan_.n_steps());
        return;
    }
    if (n <= kMaxScalarRows) {
        const PlainFloats plain;
        const int64_t width = plan_.forest->n_features();
        for (int64_t i = 0; i < n; ++i)
            walk_on(start_one(), rows + i * width,
                    {out.positive + i, out.steps + i, out.score + i});
        return;
    }
    const auto n_columns = static_cast<int64_t>(plan_.columns.size());
    const int64_t fits = kBlockBytes / std::max<int64_t>(n_columns, 1) / kChunk * kChunk;
    const int64_t share = (n / std::max(threads, 1) / kChunk + 1) * kChunk;  // rows per thread
    const int64_t block = std::min({n, share, max_rows_in_int32(plan_.forest->n_features()),
                                    std::clamp<int64_t>(fits, kChunk, kMaxBlockRows)});
    Worker<In> worker(*this, chosen, rows, static_cast<int32_t>(block), out);
    // The first rows show how many rows reach each step; the segments for the others follow that.
    const int64_t profiled = n >= 4 * kProfileRows ? std::min<int64_t>(block, kProfileRows) : 0;
    std::vector<Segment> fitted;
    if (profiled > 0) {
        const PlainFloats plain;
        worker.run(default_segments_, 0, static_cast<int32_t>(profiled));
        std::vector<double> survival(plan_.n_steps() + 1, 0.0);
        for (int64_t i = 0; i < profiled; ++i) survival[out.steps[i] - 1] += 1;
        for (int32_t r = plan_.n_steps() - 1; r >= 0; --r) survival[r] += survival[r + 1];
        for (double& reached : survival) reached /= static_cast<double>(profiled);
        fitted = segments(std::span<const double>(survival.data(), plan_.n_steps()));
    }
    const std::vector<Segment>& plan = profiled > 0 ? fitted : default_segments_;
    parallel_for(n - profiled, block, threads, [=, &plan](int64_t begin, int64_t end) mutable {
        worker.run(plan, profiled + begin, static_cast<int32_t>(end - begin));
    });
}

#define QWYC_INSTANTIATE(Real, In)                                                              \
    template void QuitEngine<Real>::decide(const In*, int64_t, const DecisionsOut&, int,        \
                                           std::string_view) const;                             \
    template bool QuitEngine<Real>::walk_some(OneRow&, const In*, int32_t, const DecisionsOut&) \
        const;                                                                                  \
    template void QuitEngine<Real>::walk_on(OneRow, const In*, const DecisionsOut&) const;      \
    template void QuitEngine<Real, FanPolicy>::decide(const In*, int64_t, const DecisionsOut&,  \
                                                      int, std::string_view) const;
template class QuitEngine<float>;
template class QuitEngine<double>;
template class QuitEngine<float, FanPolicy>;
template class QuitEngine<double, FanPolicy>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
