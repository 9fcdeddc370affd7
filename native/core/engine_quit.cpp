#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "core/engine.hpp"
#include "core/full_worker.hpp"
#include "core/parallel.hpp"
#include "core/worker.hpp"

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

template <class Real>
QuitEngine<Real>::QuitEngine(const FullEngine<Real>& full, const PolicyView& policy)
    : full_(full),
      order_(policy.order.begin(), policy.order.end()),
      lower_(policy.rule.lower.begin(), policy.rule.lower.end()),
      upper_(policy.rule.upper.begin(), policy.rule.upper.end()),
      policy_{order_, {lower_, upper_}, policy.target},
      plan_(full.forest(), order_) {
    for (int32_t r = 0; r + 1 < plan_.n_steps(); ++r)
        if (policy_.rule.can_quit(r)) quit_end_ = r + 1;
    std::vector<double> usual(order_.size());
    for (size_t r = 0; r < usual.size(); ++r) usual[r] = 1.0 / (1.0 + static_cast<double>(r) / 6);
    default_segments_ = segments(usual);
}

// The cheapest division of the steps into segments, given the share of rows that reach each step. A
// long segment evaluates rows that have quit; a short one moves rows more often.
template <class Real>
auto QuitEngine<Real>::segments(std::span<const double> survival) const -> std::vector<Segment> {
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

// A block of rows, segment by segment.
template <class Real>
template <class In>
class QuitEngine<Real>::Worker {
  public:
    Worker(const QuitEngine& engine, const Kernels& kernels, const In* rows, int32_t block,
           const DecisionsOut& out)
        : engine_(&engine),
          kernels_(&kernels),
          rows_(rows),
          // Not a power of two, with which all columns would map to the same cache sets.
          stride_(words_of(block) * 64 + 64),
          out_(out),
          codes_(engine.plan_.columns.size() * stride_),
          sums_(stride_),
          row_(stride_),
          alive_(words_of(block)),
          score_(block) {}

    void run(const std::vector<Segment>& segments, int64_t begin, int32_t n) {
        const Plan<Real>& plan = engine_->plan_;
        const Forest<Real>& forest = *plan.forest;
        const int64_t width = forest.n_features();
        const In* rows = rows_ + begin * width;
        const DecisionsOut out{out_.positive + begin, out_.steps + begin, out_.score + begin};
        std::fill(sums_.begin(), sums_.end(), forest.rules().base / forest.rules().divisor);
        for (int32_t i = 0; i < n; ++i) row_[i] = i;
        int32_t left = n;
        for (const Segment& segment : segments) {
            if (left <= kMaxScalarRows) {
                for (int32_t i = 0; i < left; ++i)
                    walk_on(segment.begin, row_[i], sums_[i], rows + row_[i] * width, out);
                return;
            }
            const int32_t words = words_of(left);
            std::fill_n(alive_.begin(), words, ~uint64_t{0});
            if (left % 64 != 0) alive_[words - 1] = (uint64_t{1} << left % 64) - 1;
            kernels_->template reading<In, Real>().encode(
                plan, segment.encode, rows, width, segment.begin == 0 ? nullptr : row_.data(), left,
                codes_.data(), stride_);
            for (int32_t w = 0; w < words; w += kChunk / 64)
                run_chunk(segment, w, words, rows, out);
            left = kernels_->compact(alive_.data(), words, codes_.data(), stride_, segment.keep,
                                     sums_.data(), row_.data());
        }
        complete(left, rows, out);
    }

  private:
    void run_chunk(const Segment& segment, int32_t w, int32_t words, const In* rows,
                   const DecisionsOut& out) {
        const Plan<Real>& plan = engine_->plan_;
        const Chunk chunk{{codes_.data() + w * 64, stride_, std::min(kChunk / 64, words - w)},
                          sums_.data() + w * 64,
                          alive_.data() + w,
                          row_.data() + w * 64};
        for (int32_t step = segment.begin; step < segment.end;) {
            if (plan.small[step].n_leaves == 0) {
                walk_step(step, chunk, rows);
                kernels_->advance(values_, engine_->policy_, step, chunk, out);
                ++step;
                continue;
            }
            int32_t end = step + 1;
            while (end < segment.end && plan.small[end].n_leaves > 0) ++end;
            kernels_->quit(plan, engine_->policy_, step, end, chunk, out);
            step = end;
        }
    }

    // The values of a deep tree for the rows of a chunk that are alive.
    void walk_step(int32_t step, const Chunk& chunk, const In* rows) {
        const Forest<Real>& forest = *engine_->plan_.forest;
        int32_t n = 0;
        for (int32_t w = 0; w < chunk.words; ++w)
            for (uint64_t bits = chunk.alive[w]; bits != 0; bits &= bits - 1) {
                at_[n] = 64 * w + std::countr_zero(bits);
                walked_[n] = chunk.row[at_[n]];
                ++n;
            }
        kernels_->template reading<In, Real>().walk(forest, forest.root(engine_->order_[step]),
                                                    rows, forest.n_features(), walked_, n, leaf_);
        for (int32_t i = 0; i < n; ++i) values_[at_[i]] = forest.step_value(leaf_[i]);
    }

    void walk_on(int32_t step, int32_t row, double sum, const In* x, const DecisionsOut& out) {
        const DecisionsOut here{out.positive + row, out.steps + row, out.score + row};
        engine_->walk_on({step, sum}, x, here);
    }

    // Rows that never quit: their full scores decide.
    void complete(int32_t left, const In* rows, const DecisionsOut& out) {
        if (left == 0) return;
        if (!full_) full_.emplace(engine_->full_, *kernels_);
        full_->run_some(rows, std::span<const int32_t>(row_.data(), left), score_.data());
        for (int32_t i = 0; i < left; ++i) {
            out.score[row_[i]] = score_[i];
            out.positive[row_[i]] = engine_->policy_.target.decide(score_[i]);
            out.steps[row_[i]] = engine_->plan_.n_steps();
        }
    }

    const QuitEngine* engine_;
    const Kernels* kernels_;
    const In* rows_;
    int64_t stride_;
    DecisionsOut out_;
    std::vector<uint8_t> codes_;   // (columns, stride)
    std::vector<double> sums_;     // (stride,)
    std::vector<int32_t> row_;     // (stride,) from the block's first row
    std::vector<uint64_t> alive_;  // bit per row
    std::vector<double> score_;    // (block,) full scores of the rows that never quit
    std::optional<typename FullEngine<Real>::template Worker<In>> full_;  // once a row needs it
    alignas(64) float values_[kChunk] = {};
    int32_t at_[kChunk] = {}, walked_[kChunk] = {}, leaf_[kChunk] = {};  // of a deep tree's step
};

template <class Real>
template <class In>
bool QuitEngine<Real>::walk_some(OneRow& state, const In* row, int32_t most,
                                 const DecisionsOut& out) const {
    const Forest<Real>& forest = *plan_.forest;
    const int32_t stop = std::min(quit_end_, most);
    int32_t leaf[kWalksAtOnce];
    while (state.step < stop) {
        const int32_t begin = state.step, end = std::min(begin + kWalksAtOnce, stop);
        walk_trees(forest, order_.data(), begin, end, row, leaf);
        for (; state.step < end; ++state.step) {
            const int32_t r = state.step;
            state.sum += forest.step_value(leaf[r - begin]);
            const Outcome outcome = policy_.rule(r, state.sum);
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

template <class Real>
template <class In>
void QuitEngine<Real>::walk_on(OneRow state, const In* row, const DecisionsOut& out) const {
    if (walk_some(state, row, quit_end_, out)) return;
    *out.score = full_.score_one(row);
    *out.positive = policy_.target.decide(*out.score);
    *out.steps = plan_.n_steps();
}

template <class Real>
auto QuitEngine<Real>::start_one() const -> OneRow {
    const Rules& rules = plan_.forest->rules();
    return {0, rules.base / rules.divisor};
}

template <class Real>
template <class In>
void QuitEngine<Real>::decide(const In* rows, int64_t n, const DecisionsOut& out, int threads,
                              std::string_view isa) const {
    const Kernels& chosen = kernels(isa);
    if (quit_end_ == 0) {  // never quits: full scores decide
        full_.score(rows, n, nullptr, out.score, threads, isa);
        for (int64_t i = 0; i < n; ++i) out.positive[i] = policy_.target.decide(out.score[i]);
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
    template void QuitEngine<Real>::walk_on(OneRow, const In*, const DecisionsOut&) const;
template class QuitEngine<float>;
template class QuitEngine<double>;
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
