#include "quit.hpp"

#include "parallel.hpp"

namespace qwyc {

namespace {

// Rows that are looked at together: base model by base model, dropping the rows that quit. 128
// keeps a tree and the rows' running sums in the first cache.
constexpr int32_t kBlock = 128;

// Runs rows [begin, end). step_value(r, row) is what the base model at step r adds to a row;
// full_score(row) is asked for only once every base model has been evaluated on it. The last step
// has no thresholds: the full score decides there.
template <class StepValue, class FullScore>
void decide_block(const PolicyView& policy, double base, int64_t begin, int64_t end,
                  StepValue step_value, FullScore full_score, const DecisionsOut& out) {
    const int32_t n_models = static_cast<int32_t>(policy.order.size());
    int32_t undecided[kBlock];  // counted from `begin`, ascending
    double sum[kBlock];         // running sums, by the same count
    int32_t n_undecided = static_cast<int32_t>(end - begin);
    for (int32_t j = 0; j < n_undecided; ++j) undecided[j] = j, sum[j] = base;

    for (int32_t r = 0; r < n_models && n_undecided > 0; ++r) {
        const double lower = policy.lower[r], upper = policy.upper[r];
        const bool last = r + 1 == n_models;
        int32_t kept = 0;
        for (int32_t k = 0; k < n_undecided; ++k) {
            const int32_t j = undecided[k];
            const double s = sum[j] += step_value(r, begin + j);
            const bool quits = !last && (s < lower || s > upper);
            undecided[kept] = j;
            kept += !quits;
            if (quits) {
                out.positive[begin + j] = s > upper;
                out.steps[begin + j] = r + 1;
                out.score[begin + j] = s;
            }
        }
        n_undecided = kept;
    }
    for (int32_t k = 0; k < n_undecided; ++k) {
        const int64_t i = begin + undecided[k];
        out.score[i] = full_score(i);
        out.positive[i] = out.score[i] >= policy.threshold;
        out.steps[i] = n_models;
    }
}

}  // namespace

template <class Real>
void decide(const Forest<Real>& forest, const PolicyView& policy, const Real* rows, int64_t n,
            const DecisionsOut& out, int threads) {
    const int64_t width = forest.n_features(), n_trees = forest.n_trees();
    const double base = forest.rules().base / forest.rules().divisor;
    std::vector<int32_t> step_of(n_trees);  // (T,) the inverse of the order
    for (int32_t r = 0; r < n_trees; ++r) step_of[policy.order[r]] = r;
    std::vector<int32_t> leaves(n_trees * kBlock);  // by step, then row: what a full score needs
    parallel_for(n, kBlock, threads,
                 [=, &forest, &policy, &step_of](int64_t begin, int64_t end) mutable {
                     const auto step_value = [&](int32_t r, int64_t i) {
                         const int32_t leaf = forest.leaf(policy.order[r], rows + i * width);
                         leaves[r * kBlock + (i - begin)] = leaf;
                         return forest.step_value(leaf);
                     };
                     const auto full_score = [&](int64_t i) {
                         FullSum sum = forest.start();
                         for (int64_t t = 0; t < n_trees; ++t)
                             forest.add(sum, leaves[step_of[t] * kBlock + (i - begin)]);
                         return forest.finish(sum);
                     };
                     decide_block(policy, base, begin, end, step_value, full_score, out);
                 });
}

template <class Score>
void apply(const PolicyView& policy, const Score* values, double base, const double* full,
           int64_t n, const DecisionsOut& out, int threads) {
    parallel_for(n, kBlock, threads, [=, &policy](int64_t begin, int64_t end) {
        decide_block(
            policy, base, begin, end,
            [&](int32_t r, int64_t i) { return values[policy.order[r] * n + i]; },
            [&](int64_t i) { return full[i]; }, out);
    });
}

template void decide(const Forest<float>&, const PolicyView&, const float*, int64_t,
                     const DecisionsOut&, int);
template void decide(const Forest<double>&, const PolicyView&, const double*, int64_t,
                     const DecisionsOut&, int);
template void apply(const PolicyView&, const float*, double, const double*, int64_t,
                    const DecisionsOut&, int);
template void apply(const PolicyView&, const double*, double, const double*, int64_t,
                    const DecisionsOut&, int);

}  // namespace qwyc
