#include "core/lattice_engine.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "core/lattice_worker.hpp"
#include "core/parallel.hpp"

namespace qwyc {

namespace {

constexpr int64_t kSlotBytes = 1 << 18;  // of calibrated values: they fit the second-level cache
constexpr int64_t kLeastRows = 256, kMostRows = 1024;
constexpr double kShortNanoseconds = 1000;  // in a batch; alone a row takes some ten times as long
constexpr double kLargeNanoseconds = 20;    // of a base model
constexpr int32_t kStackSlots = 512;
constexpr int32_t kStackScratch = 8192 + kLatticePad;  // blocks of a lattice of 16 inputs

std::vector<int32_t> natural_order(int64_t n) {
    std::vector<int32_t> all(n);
    std::iota(all.begin(), all.end(), 0);
    return all;
}

// Clang 14 compiles the constructor below for policies that it does not take, too.
template <class Policy>
Policy natural_policy(int64_t n_models) {
    if constexpr (std::same_as<Policy, ThresholdPolicy>)
        return Policy(natural_order(n_models));
    else
        throw std::logic_error("this policy has no natural order");
}

}  // namespace

template <class Real, class Policy>
LatticeEngine<Real, Policy>::LatticeEngine(const Lattices<Real>& lattices)
    requires std::same_as<Policy, ThresholdPolicy>
    : lattices_(lattices),
      policy_(natural_policy<Policy>(lattices.n_models())),
      plan_(lattices, policy_.order()),
      quit_end_(0) {}

template <class Real, class Policy>
LatticeEngine<Real, Policy>::LatticeEngine(const Lattices<Real>& lattices,
                                           const typename Policy::View& policy)
    : lattices_(lattices),
      policy_(policy),
      plan_(lattices, policy_.order()),
      quit_end_(quit_end(policy_)) {
    double all = 0;
    for (const LatticeStep& step : plan_.steps) all += step.cost;
    short_ = all < kShortNanoseconds;
    // A register of rows costs the same however few of its rows are left. One row fills registers
    // with its own vertices if the lattice has many.
    few_rows_ = all > kLargeNanoseconds * static_cast<double>(plan_.n_steps()) ? 8 : 2;
}

// Rows of a block: as many as fit the cache, and a share for each thread.
template <class Real, class Policy>
int64_t LatticeEngine<Real, Policy>::rows_at_once(int64_t n, int threads) const {
    const int64_t each = static_cast<int64_t>(sizeof(Real)) * std::max(plan_.n_slots, 1);
    const int64_t share = n / std::max(threads, 1) + 1;
    const int64_t rows = std::min(std::clamp(kSlotBytes / each, kLeastRows, kMostRows), share);
    return (rows + kLatticePad - 1) / kLatticePad * kLatticePad;
}

template <class Real, class Policy>
template <class In>
void LatticeEngine<Real, Policy>::score(const In* rows, int64_t n, Real* values, double* full,
                                        int threads, std::string_view isa) const {
    const int64_t block = rows_at_once(n, threads);
    Worker<In> worker(*this, lattice_kernels<Real>(isa), rows, static_cast<int32_t>(block));
    parallel_for(n, block, threads, [=](int64_t begin, int64_t end) mutable {
        worker.score(begin, static_cast<int32_t>(end - begin), values ? values + begin : nullptr, n,
                     full + begin);
    });
}

template <class Real, class Policy>
template <class In>
void LatticeEngine<Real, Policy>::decide(const In* rows, int64_t n, const DecisionsOut& out,
                                         int threads, std::string_view isa) const {
    const LatticeKernels<Real>& kernels = lattice_kernels<Real>(isa);
    if (n <= few_rows_) {
        const PlainFloats plain;
        for (int64_t i = 0; i < n; ++i)
            walk_on({0, lattices_.base()}, rows + i * lattices_.n_features(),
                    {out.positive + i, out.steps + i, out.score + i}, kernels);
        return;
    }
    const int64_t block = rows_at_once(n, threads);
    Worker<In> worker(*this, kernels, rows, static_cast<int32_t>(block));
    parallel_for(n, block, threads, [=](int64_t begin, int64_t end) mutable {
        worker.decide(begin, static_cast<int32_t>(end - begin),
                      {out.positive + begin, out.steps + begin, out.score + begin});
    });
}

template <class Real, class Policy>
template <class In>
void LatticeEngine<Real, Policy>::walk_on(const OneRow& state, const In* row,
                                          const DecisionsOut& out,
                                          const LatticeKernels<Real>& kernels) const {
    if (plan_.n_slots <= kStackSlots && lattices_.scratch() + kLatticePad <= kStackScratch) {
        Real slots[kStackSlots], scratch[kStackScratch];  // not initialised
        walk(state, row, out, kernels, slots, scratch);
    } else {
        std::vector<Real> slots(plan_.n_slots), scratch(lattices_.scratch() + kLatticePad);
        walk(state, row, out, kernels, slots.data(), scratch.data());
    }
}

template <class Real, class Policy>
template <class In>
void LatticeEngine<Real, Policy>::walk(OneRow state, const In* row, const DecisionsOut& out,
                                       const LatticeKernels<Real>& kernels, Real* slots,
                                       Real* scratch) const {
    for (int32_t c : state.step == 0 ? std::vector<int32_t>() : plan_.in_use(state.step))
        slots[plan_.slot[c]] = calibrate_one(kernels, c, row);
    Real inputs[kMaxInputs];
    double sum = state.sum;
    int32_t tested_end = state.in_full ? 0 : quit_end_;
    for (int32_t r = state.step; r < plan_.n_steps(); ++r) {
        const LatticeStep& step = plan_.steps[r];
        const Lattice<Real>& lattice = lattices_.lattices()[plan_.order[r]];
        for (int32_t c : step.calibrate) slots[plan_.slot[c]] = calibrate_one(kernels, c, row);
        for (int32_t i = 0; i < lattice.n_inputs; ++i) inputs[i] = slots[step.inputs[i]];
        sum += lattices_.step(lattice, kernels.interpolate_one(lattice, inputs, scratch));
        if (r >= tested_end) continue;
        const Outcome outcome = policy_.rule()(r, sum);
        if (outcome == Outcome::kInFull) tested_end = 0;
        if (outcome == Outcome::kInFull || outcome == Outcome::kContinue) continue;
        *out.positive = TwoClasses::decision_of(outcome);
        *out.steps = r + 1;
        *out.score = sum;
        return;
    }
    *out.positive = policy_.target().decide(sum);
    *out.steps = plan_.n_steps();
    *out.score = sum;
}

template <class Real, class Policy>
template <class In>
void LatticeEngine<Real, Policy>::decide_one(const In* row, const DecisionsOut& out) const {
    walk_on({0, lattices_.base()}, row, out, lattice_kernels<Real>());
}

template <class Real, class Policy>
template <class In>
void LatticeEngine<Real, Policy>::measure(const In* rows, int64_t n, int repeats, double* models,
                                          double* calibrators) const {
    const auto block = static_cast<int32_t>(std::min<int64_t>(n, kLeastRows));
    Worker<In>(*this, lattice_kernels<Real>(), rows, block)
        .measure(block, repeats, models, calibrators);
}

#define QWYC_INSTANTIATE(Real, In)                                                                \
    template void LatticeEngine<Real>::score(const In*, int64_t, Real*, double*, int,             \
                                             std::string_view) const;                             \
    template void LatticeEngine<Real>::decide(const In*, int64_t, const DecisionsOut&, int,       \
                                              std::string_view) const;                            \
    template void LatticeEngine<Real>::decide_one(const In*, const DecisionsOut&) const;          \
    template void LatticeEngine<Real>::measure(const In*, int64_t, int, double*, double*) const;  \
    template void LatticeEngine<Real, FanPolicy>::decide(const In*, int64_t, const DecisionsOut&, \
                                                         int, std::string_view) const;
template class LatticeEngine<float>;
template class LatticeEngine<double>;
// Not the whole class: Clang before 16 would instantiate a constructor that is for the other
// policy.
template LatticeEngine<float, FanPolicy>::LatticeEngine(const Lattices<float>&, const FanView&);
template LatticeEngine<double, FanPolicy>::LatticeEngine(const Lattices<double>&, const FanView&);
QWYC_INSTANTIATE(float, float)
QWYC_INSTANTIATE(float, double)
QWYC_INSTANTIATE(double, float)
QWYC_INSTANTIATE(double, double)

}  // namespace qwyc
