// Greedy searches for an order, such as Algorithm 1: each step takes the base model with the
// smallest evaluation time ratio J.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "core/rule.hpp"

namespace qwyc {

// What base models cost. A part that several of them need is paid for by the first that needs it.
struct CostsView {
    std::span<const double> own;    // (T,) without shared parts
    std::span<const double> parts;  // (P,); where it is empty, so may the next two be
    // Base model t needs the parts need[need_begin[t]] to need[need_begin[t + 1] - 1].
    std::span<const int64_t> need_begin;  // (T + 1,)
    std::span<const int32_t> need;
};

// Called after every step with the number of steps done; what it throws ends the fit.
using Progress = std::function<void(int64_t)>;

// What each base model would add to the cost of those that are chosen already.
class MarginalCosts {
  public:
    explicit MarginalCosts(const CostsView& costs)
        : costs_(costs),
          unpaid_(costs.parts.begin(), costs.parts.end()),
          now_(costs.own.begin(), costs.own.end()) {
        if (!unpaid_.empty()) update();
    }

    double operator[](int32_t t) const { return now_[t]; }

    // Base model t comes next: others no longer pay for the parts that it needs.
    void choose(int32_t t) {
        if (unpaid_.empty()) return;
        bool changed = false;
        for (int64_t i = costs_.need_begin[t]; i < costs_.need_begin[t + 1]; ++i) {
            double& unpaid = unpaid_[costs_.need[i]];
            changed |= unpaid > 0;
            unpaid = 0;
        }
        if (changed) update();
    }

  private:
    // Parts are added up first, in their order, as Costs in Python does it.
    void update() {
        for (size_t t = 0; t < now_.size(); ++t) {
            double parts = 0;
            for (int64_t i = costs_.need_begin[t]; i < costs_.need_begin[t + 1]; ++i)
                parts += unpaid_[costs_.need[i]];
            now_[t] = costs_.own[t] + parts;
        }
    }

    CostsView costs_;
    std::vector<double> unpaid_;  // (P,) 0 where a chosen base model needs the part
    std::vector<double> now_;     // (T,)
};

// The undecided rows, and the scores of the base models not yet used.
template <class Score>
class Undecided {
  public:
    // values: (T, N) by base model. `rows`: all N rows, in the order in which they are kept.
    Undecided(std::vector<int32_t> rows, int64_t n_models, double base, const Score* values)
        : values_(values),
          stride_(static_cast<int64_t>(rows.size())),
          row_(std::move(rows)),
          sums_(row_.size(), base) {
        column_.resize(n_models);
        for (int64_t t = 0; t < n_models; ++t) column_[t] = t;
    }

    Undecided(const Undecided&) = delete;  // values_ may point into own_
    Undecided& operator=(const Undecided&) = delete;

    int64_t size() const { return static_cast<int64_t>(row_.size()); }

    // Their running sums, (size(),).
    const std::vector<double>& sums() const { return sums_; }

    // Calls visit(j, sum) for each row with its running sum after base model t is added.
    template <class Visit>
    void visit_sums(int32_t t, Visit visit) const {
        const Score* const column = values_ + column_[t] * stride_;
        const int32_t* const row = row_.data();
        const double* const sums = sums_.data();
        for (size_t j = 0, n = row_.size(); j < n; ++j) visit(j, sums[j] + column[row[j]]);
    }

    // These sums, (size(),).
    void sums_with(int32_t t, std::vector<double>& out) const {
        out.resize(row_.size());
        visit_sums(t, [to = out.data()](size_t j, double sum) { to[j] = sum; });
    }

    // Takes the new running sums and keeps only the rows j for which stays(j) is true. It is called
    // once for each row, in their order.
    template <class Stays>
    void advance(const std::vector<double>& sums, Stays stays) {
        int64_t kept = 0;
        for (int64_t j = 0; j < size(); ++j) {
            if (!stays(j)) continue;
            row_[kept] = row_[j];
            sums_[kept++] = sums[j];
        }
        row_.resize(kept);
        sums_.resize(kept);
    }

    // Copies the remaining rows to consecutive memory once half of the rows have quit.
    void compact(const std::vector<int32_t>& unused) {
        if (size() * 2 > stride_) return;
        std::vector<Score> copy(unused.size() * row_.size());
        for (size_t c = 0; c < unused.size(); ++c) {
            const Score* column = values_ + column_[unused[c]] * stride_;
            for (size_t j = 0; j < row_.size(); ++j) copy[c * row_.size() + j] = column[row_[j]];
        }
        for (size_t c = 0; c < unused.size(); ++c) column_[unused[c]] = static_cast<int64_t>(c);
        for (size_t j = 0; j < row_.size(); ++j) row_[j] = static_cast<int32_t>(j);
        own_ = std::move(copy);
        values_ = own_.data();
        stride_ = size();
    }

  private:
    const Score* values_;     // by base model, `stride_` rows each
    std::vector<Score> own_;  // where values_ points once rows have been compacted
    int64_t stride_;
    std::vector<int64_t> column_;  // (T,) where each base model's scores are in values_
    std::vector<int32_t> row_;     // undecided rows, as indices into a column
    std::vector<double> sums_;
};

// The candidate with the smallest J = c_k |C| / quits, for |C| undecided rows of which count(k)
// quit; the first of them on ties and where nothing quits at all. Each thread has its own copy of
// `count`, so scratch space belongs there.
template <class Count>
int32_t best_candidate(const std::vector<int32_t>& candidates, const MarginalCosts& costs,
                       int64_t n_undecided, int threads, Count count) {
    std::vector<double> ratio(candidates.size(), kInf);
    const auto n = static_cast<double>(n_undecided);
    parallel_for(candidates.size(), 1, threads,
                 [=, &candidates, &costs, &ratio](int64_t c, int64_t) mutable {
                     const int64_t quits = count(candidates[c]);
                     if (quits > 0)
                         ratio[c] = costs[candidates[c]] * n / static_cast<double>(quits);
                 });
    return candidates[std::min_element(ratio.begin(), ratio.end()) - ratio.begin()];
}

}  // namespace qwyc
