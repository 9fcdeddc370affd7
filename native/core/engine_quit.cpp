#include <algorithm>

#include "core/cost_model.hpp"
#include "core/parallel.hpp"
#include "core/quit_worker.hpp"

namespace qwyc {

namespace {

constexpr int64_t kBlockBytes = 1 << 20;  // of rows: a block fits the second-level cache
constexpr int64_t kMaxBlockRows = 16384;
constexpr int64_t kRowsAtOnce = 65536;  // that one thread takes

}  // namespace

template <class Real, class Policy>
QuitEngine<Real, Policy>::QuitEngine(const FullEngine<Real>& full,
                                     const typename Policy::View& policy,
                                     std::span<const double> survival)
    : full_(full), forest_(full.forest()), policy_(policy), quit_end_(quit_end(policy_)) {
    std::vector<double> reached(n_steps());
    for (size_t r = 0; r < reached.size(); ++r)  // a typical curve, where none is known
        reached[r] = survival.empty() ? 1.0 / (1.0 + static_cast<double>(r) / 6) : survival[r];
    const Questions<Real>& questions = full.questions();
    const Division division =
        cut_into_segments(forest_, questions, policy_.order(), quit_end_, reached);
    // Rows that never quit are then evaluated in full.
    const bool all_quit = reached.empty() || quit_end_ >= n_steps();
    expected_cost_ = division.cost + (all_quit ? 0 : reached[quit_end_]) * full.expected_cost();
    for (const Steps& steps : division.segments) {
        const auto trees = policy_.order().subspan(steps.begin, steps.end - steps.begin);
        Segment segment{steps.begin, steps.end, questions.masked[trees[0]] != 0, 6, {}};
        if (segment.masked) {
            segment.trees = lay_out(forest_, questions, trees, false);
            segment.walk_below = rows_to_walk(steps.end - steps.begin, segment.trees.n_questions,
                                              static_cast<int32_t>(segment.trees.features.size()));
        }
        segments_.push_back(std::move(segment));
    }
}

template <class Real, class Policy>
template <class In>
bool QuitEngine<Real, Policy>::walk_some(OneRow& state, const In* row, int32_t most,
                                         const DecisionsOut& out) const {
    const int32_t stop = std::min(quit_end_, most);
    const RowTrees& trees = full_.row_trees();
    const RowWalker<Real> walk{forest_, trees, row_kernels()};
    return with_values<Real>(trees, row, forest_.n_features(), [&](const auto* values) {
        int32_t leaf[kWalksAtOnce];
        while (state.step < stop) {
            const int32_t begin = state.step, end = std::min(begin + kWalksAtOnce, stop);
            walk(policy_.order().data(), begin, end, values, leaf);
            for (; state.step < end; ++state.step) {
                const int32_t r = state.step;
                state.sum += forest_.step_value(leaf[r - begin]);
                const Outcome outcome = policy_.rule()(r, state.sum);
                if (outcome == Outcome::kContinue) continue;
                if (outcome == Outcome::kInFull) {
                    state.step = quit_end_;
                    return false;
                }
                *out.positive = TwoClasses::decision_of(outcome);
                *out.steps = r + 1;
                *out.score = state.sum;
                return true;
            }
        }
        return false;
    });
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
    const int64_t fits = kBlockBytes / (width * static_cast<int64_t>(sizeof(In))) / kSlab * kSlab;
    const int64_t block = std::clamp<int64_t>(fits, 4 * kSlab, kMaxBlockRows);
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
