#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/cost_model.hpp"
#include "core/parallel.hpp"
#include "core/quit_worker.hpp"

namespace qwyc {

namespace {

constexpr int64_t kBlockBytes = 1 << 20;  // of rows: a block fits the second-level cache
constexpr int64_t kMostBytes = 1 << 21;   // and fills it where rows are wide, to have many of them
constexpr int64_t kMaxBlockRows = 16384;
constexpr int64_t kRowsAtOnce = 65536;  // that one thread takes

// Steps are divided for each of these. A batch of few rows costs about as much as one of 16 or 64,
// so that long segments pay there.
struct BatchSize {
    double typical;
    int64_t most;
};
constexpr BatchSize kBatchSizes[] = {
    {16, 20},
    {32, 40},
    {64, 64},
    {96, 96},
    {128, 128},
    {176, 192},
    {256, 288},
    {384, 448},
    {512, 640},
    {1024, 1536},
    {1 << 20, std::numeric_limits<int64_t>::max()},
};

}  // namespace

template <class Real, class Policy>
QuitEngine<Real, Policy>::QuitEngine(const FullEngine<Real>& full,
                                     const typename Policy::View& policy,
                                     std::span<const double> survival)
    : full_(full),
      forest_(full.forest()),
      policy_(policy),
      quit_end_(quit_end(policy_)),
      reached_(n_steps()) {
    for (size_t r = 0; r < reached_.size(); ++r)  // a typical curve, where none is known
        reached_[r] = survival.empty() ? 1.0 / (1.0 + static_cast<double>(r) / 6) : survival[r];
    for (int32_t r = 0; r < quit_end_; ++r) taken_ += std::clamp(reached_[r], 0.0, 1.0);
}

template <class Real, class Policy>
auto QuitEngine<Real, Policy>::make_layout() const -> std::unique_ptr<const Layout> {
    auto layout = std::make_unique<Layout>();
    auto& segments = layout->segments;
    const Questions<Real>& questions = full_.quit_questions();
    const std::vector<TreeCost> costs = full_.tree_costs();
    const RowWay way = row_way();
    const Divider<Real> divider(forest_, questions, policy_.order(), quit_end_, reached_, costs,
                                way.trees, way.row);
    std::optional<ExactUnits> units;
    if (mask_kernels().takes_exact) units.emplace(forest_, policy_.order());
    std::map<Steps, int32_t> laid_out;  // where a segment is
    const auto segment_of = [&](const Steps& steps) {
        const auto [at, is_new] =
            laid_out.try_emplace(steps, static_cast<int32_t>(segments.size()));
        if (is_new) {
            const auto trees = policy_.order().subspan(steps.begin, steps.end - steps.begin);
            Segment segment{steps.begin, steps.end, steps.masked, 6, {}, false, {}};
            if (segment.masked) {
                segment.trees = lay_out(forest_, questions, trees, false);
                for (int32_t t = 0; t < segment.trees.n_trees(); ++t)
                    segment.any_large |= segment.trees.is_large(t);
                segment.walk_below = rows_to_walk(divider.walk_cost(steps.begin, steps.end),
                                                  needs_of(segment.trees));
                if constexpr (std::is_same_v<Policy, ThresholdPolicy>)
                    if (units && !segment.any_large)
                        segment.exact = units->sums(segment.trees, policy_.rule(), steps.begin);
            }
            segments.push_back(std::move(segment));
        }
        return at->second;
    };
    for (const BatchSize& size : kBatchSizes) {
        const Division division = divider.divide(size.typical);
        Plan plan{size.most, {}};
        for (const Steps& steps : division.segments) plan.segments.push_back(segment_of(steps));
        layout->plans.push_back(std::move(plan));
        layout->expected_cost = division.cost / size.typical;  // in the end, of one row of many
    }
    // Rows that never quit are then evaluated in full.
    const bool all_quit = reached_.empty() || quit_end_ >= n_steps();
    if (!all_quit) layout->expected_cost += reached_[quit_end_] * full_.expected_cost();
    return layout;
}

template <class Real, class Policy>
Outcome QuitEngine<Real, Policy>::follow(OneRow& state, const int32_t* leaf, int32_t end) const {
    while (state.step < end) {
        state.sum += forest_.step_value(*leaf++);
        const Outcome outcome = policy_.rule()(state.step++, state.sum);
        if (outcome != Outcome::kContinue) return outcome;
    }
    return Outcome::kContinue;
}

template <class Real, class Policy>
template <class In>
bool QuitEngine<Real, Policy>::walk_some(OneRow& state, const In* row, int32_t most,
                                         const DecisionsOut& out) const {
    const int32_t stop = std::min(quit_end_, most);
    const int64_t width = forest_.n_features();
    const RowsView<In> rows{row, 1, width, width, 1};
    const int32_t at_once = row_way().coded ? kWalksAtOnce : full_.row_trees().at_once;
    const auto walk_with = [&](const auto* values, const auto& walk) {
        int32_t leaf[kWalksAtOnce];
        while (state.step < stop) {
            const int32_t end = std::min(state.step + at_once, stop);
            walk(policy_.order().data(), state.step, end, values, 1, leaf);
            const Outcome outcome = follow(state, leaf, end);
            if (outcome == Outcome::kContinue) continue;
            if (outcome == Outcome::kInFull) {
                state.step = quit_end_;
                return false;
            }
            *out.positive = TwoClasses::decision_of(outcome);
            *out.steps = state.step;
            *out.score = state.sum;
            return true;
        }
        return false;
    };
    return with_walk(forest_, full_.row_trees(), row_way(), rows, nullptr, 1, walk_with);
}

template <class Real, class Policy>
template <class In>
void QuitEngine<Real, Policy>::walk_on(OneRow state, const In* row, const DecisionsOut& out) const {
    if (walk_some(state, row, quit_end_, out)) return;
    *out.score = full_.score_one(row);
    *out.positive = policy_.target().decide(*out.score);
    *out.steps = n_steps();
}

template <class Real, class Policy>
auto QuitEngine<Real, Policy>::start_one() const -> OneRow {
    const Rules& rules = forest_.rules();
    return {0, rules.base / rules.divisor};
}

template <class Real, class Policy>
template <class In>
void QuitEngine<Real, Policy>::decide(const RowsView<In>& rows, const DecisionsOut& out,
                                      int threads, std::string_view isa) const {
    const Kernels& chosen = kernels(isa);
    const MaskKernels& masks = mask_kernels(isa);
    if (quit_end_ == 0) {  // never quits: full scores decide
        full_.score(rows, nullptr, out.score, threads, isa);
        for (int64_t i = 0; i < rows.n; ++i)
            out.positive[i] = policy_.target().decide(out.score[i]);
        std::fill_n(out.steps, rows.n, n_steps());
        return;
    }
    const int64_t width = std::max<int64_t>(rows.width, 1);
    const int64_t row_bytes = width * static_cast<int64_t>(sizeof(In));
    const int64_t least = std::clamp<int64_t>(kMostBytes / row_bytes / kSlab, 1, 4) * kSlab;
    const int64_t fits = kBlockBytes / row_bytes / kSlab * kSlab;
    const int64_t block = std::clamp<int64_t>(fits, least, kMaxBlockRows);
    const int64_t share = (rows.n / std::max(threads, 1) / kSlab + 1) * kSlab;  // rows per thread
    const int64_t at_once = std::min({share, kRowsAtOnce, max_rows_in_int32(rows.row_stride)});
    parallel_for(rows.n, at_once, threads, [&](int64_t begin, int64_t end) {
        Worker<In> worker(*this, chosen, masks);
        worker.run(rows.part(begin, end), static_cast<int32_t>(block),
                   {out.positive + begin, out.steps + begin, out.score + begin});
    });
}

#define QWYC_INSTANTIATE(Real, In)                                                              \
    template void QuitEngine<Real>::decide(const RowsView<In>&, const DecisionsOut&, int,       \
                                           std::string_view) const;                             \
    template bool QuitEngine<Real>::walk_some(OneRow&, const In*, int32_t, const DecisionsOut&) \
        const;                                                                                  \
    template void QuitEngine<Real>::walk_on(OneRow, const In*, const DecisionsOut&) const;      \
    template void QuitEngine<Real, FanPolicy>::decide(const RowsView<In>&, const DecisionsOut&, \
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
