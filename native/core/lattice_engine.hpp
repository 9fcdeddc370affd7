// Evaluation of lattices: full scores, and decisions that quit early.
#pragma once

#include <concepts>
#include <string_view>
#include <vector>

#include "core/lattice_kernels.hpp"
#include "core/lattice_plan.hpp"
#include "core/policy.hpp"

namespace qwyc {

// Lattices in one order, under a ThresholdPolicy or a FanPolicy. Sums are exact, so the running sum
// after the last step is the full score in any order. Rows may be float or double, whatever Real
// is; they are converted to Real. Safe to use from many threads at once.
template <class Real, class Policy = ThresholdPolicy>
class LatticeEngine {
  public:
    using Value = Real;

    // In the base models' own order, never quitting; `lattices` must outlive this.
    explicit LatticeEngine(const Lattices<Real>& lattices)
        requires std::same_as<Policy, ThresholdPolicy>;
    LatticeEngine(const Lattices<Real>& lattices, const typename Policy::View& policy);

    LatticeEngine(const LatticeEngine&) = delete;
    LatticeEngine& operator=(const LatticeEngine&) = delete;

    // rows: (n, n_features) C order. values: (T, n), what each base model adds to the running sum;
    // may be null. full: (n,). No row quits.
    template <class In>
    void score(const In* rows, int64_t n, Real* values, double* full, int threads,
               std::string_view isa = "") const;

    template <class In>
    void decide(const In* rows, int64_t n, const DecisionsOut& out, int threads,
                std::string_view isa = "") const;

    // The state of a row that is evaluated alone.
    struct OneRow {
        int32_t step;
        double sum;
        bool in_full = false;  // it does not quit
    };

    // Evaluates one row to its end. From step 0 no memory is allocated, except for lattices of more
    // than 16 inputs or more than 512 slots.
    template <class In>
    void walk_on(const OneRow& state, const In* row, const DecisionsOut& out,
                 const LatticeKernels<Real>& kernels) const;
    template <class In>
    void decide_one(const In* row, const DecisionsOut& out) const;

    // Whether one row takes less time than releasing Python's lock would save.
    bool is_short() const { return short_; }

    // Seconds that each base model, (T,), and each calibrator, (C,), takes for a row on this
    // machine, one thread: the median of `repeats` measurements.
    template <class In>
    void measure(const In* rows, int64_t n, int repeats, double* models, double* calibrators) const;

  private:
    template <class In>
    class Worker;

    template <class In>
    Real calibrate_one(const LatticeKernels<Real>& kernels, int32_t calibrator,
                       const In* row) const {
        const Calibrator<Real>& of = lattices_.calibrators()[calibrator];
        return kernels.calibrate_one(of, static_cast<Real>(row[of.feature]));
    }
    template <class In>
    void walk(OneRow state, const In* row, const DecisionsOut& out,
              const LatticeKernels<Real>& kernels, Real* slots, Real* scratch) const;
    int64_t rows_at_once(int64_t n, int threads) const;

    const Lattices<Real>& lattices_;
    Policy policy_;
    LatticePlan plan_;
    int32_t quit_end_;      // no row quits at this step or later
    int32_t few_rows_ = 2;  // up to so many rows, one at a time is faster
    bool short_ = false;
};

extern template class LatticeEngine<float>;
extern template class LatticeEngine<double>;

}  // namespace qwyc
