#include "fit/lead_search.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "fit/between.hpp"

namespace qwyc {

namespace {

// The undecided rows and their running sums, and what they would be with one more base model.
template <class Score>
class UndecidedLeads {
  public:
    UndecidedLeads(const LeadSearchProblem& problem, const Score* values)
        : problem_(problem), values_(values), row_(problem.n_rows) {
        std::iota(row_.begin(), row_.end(), 0);
        for (int64_t i = 0; i < problem.n_rows; ++i)
            sums_.insert(sums_.end(), problem.base.begin(), problem.base.end());
    }

    int64_t size() const { return static_cast<int64_t>(row_.size()); }

    // What a search holds for one candidate.
    struct Leads {
        std::vector<Leader> of_row;  // (size(),)
        std::vector<double> wrong;   // leads of the rows whose leader is not their full decision
        std::vector<double> sums;    // (K,)
    };

    void leads_with(int32_t t, Leads& out) const {
        const auto width = static_cast<int64_t>(problem_.n_classes);
        out.of_row.resize(row_.size());
        out.wrong.clear();
        out.sums.resize(width);
        const Score* const of_model = values_ + t * problem_.n_rows * width;
        for (size_t j = 0; j < row_.size(); ++j) {
            const Score* const added = of_model + row_[j] * width;
            const double* const before = &sums_[j * width];
            for (int64_t k = 0; k < width; ++k) out.sums[k] = before[k] + added[k];
            out.of_row[j] = leader_of(problem_.n_classes, out.sums.data());
            if (out.of_row[j].index != problem_.winner[row_[j]])
                out.wrong.push_back(out.of_row[j].lead);
        }
    }

    // Adds base model t, removes the rows with a lead above the threshold, and returns how many of
    // them are decided differently.
    int64_t advance(int32_t t, const Leads& leads, double threshold) {
        const auto width = static_cast<int64_t>(problem_.n_classes);
        int64_t kept = 0, differing = 0;
        for (int64_t j = 0; j < size(); ++j) {
            const auto [index, lead] = leads.of_row[j];
            if (lead > threshold) {
                differing += index != problem_.winner[row_[j]];
                continue;
            }
            const Score* const added = values_ + (t * problem_.n_rows + row_[j]) * width;
            for (int64_t k = 0; k < width; ++k)
                sums_[kept * width + k] = sums_[j * width + k] + added[k];
            row_[kept++] = row_[j];
        }
        row_.resize(kept);
        sums_.resize(kept * width);
        return differing;
    }

  private:
    const LeadSearchProblem& problem_;
    const Score* values_;
    std::vector<int32_t> row_;
    std::vector<double> sums_;  // (size(), K)
};

// Algorithm 2: the smallest observed lead such that at most `budget` of the rows with larger leads
// are decided differently; 0 where all of them may quit. `wrong` is reordered.
double optimize_threshold(std::vector<double>& wrong, int64_t budget) {
    if (static_cast<int64_t>(wrong.size()) <= budget) return 0.0;
    std::nth_element(wrong.begin(), wrong.begin() + budget, wrong.end(), std::greater<>());
    return wrong[budget];
}

// A threshold that separates the same rows as the cut does, away from every lead seen.
double place_threshold(double cut, bool all, const std::vector<Leader>& leads) {
    double above = kInf;
    for (const Leader& leader : leads)
        if (leader.lead > cut) above = std::min(above, leader.lead);
    return above == kInf ? kInf : all ? 0.0 : between(cut, above, cut);
}

}  // namespace

template <class Score>
LeadSearchResult search_leads(const LeadSearchProblem& problem, const Score* values,
                              std::span<const int32_t> order, int threads,
                              const Progress& progress) {
    using Leads = typename UndecidedLeads<Score>::Leads;
    const int64_t n_models = problem.n_models;
    LeadSearchResult result{{}, std::vector<double>(n_models, kInf)};
    std::vector<int32_t> unused(order.begin(), order.end());
    const bool choose_order = unused.empty();
    for (int32_t t = 0; choose_order && t < n_models; ++t) unused.push_back(t);

    UndecidedLeads<Score> undecided(problem, values);
    MarginalCosts costs(problem.costs);
    int64_t budget = problem.budget;
    Leads leads;
    // The last step has no threshold: the full scores decide there.
    for (int64_t r = 0; r + 1 < n_models && undecided.size() > 0; ++r) {
        // The rows that quit by Algorithm 2 once base model t is added.
        const auto count = [=, &undecided, leads = Leads()](int32_t t) mutable {
            undecided.leads_with(t, leads);
            const double cut = optimize_threshold(leads.wrong, budget);
            return static_cast<int64_t>(
                std::count_if(leads.of_row.begin(), leads.of_row.end(),
                              [=](const Leader& leader) { return leader.lead > cut; }));
        };
        const int32_t chosen = choose_order
                                   ? best_candidate(unused, costs, undecided.size(), threads, count)
                                   : unused[0];
        costs.choose(chosen);
        undecided.leads_with(chosen, leads);
        const bool all = static_cast<int64_t>(leads.wrong.size()) <= budget;
        const double cut = optimize_threshold(leads.wrong, budget);
        result.lead[r] = place_threshold(cut, all, leads.of_row);
        budget -= undecided.advance(chosen, leads, result.lead[r]);
        result.order.push_back(chosen);
        unused.erase(std::find(unused.begin(), unused.end(), chosen));
        progress(r + 1);
    }
    result.order.insert(result.order.end(), unused.begin(), unused.end());
    progress(n_models);
    return result;
}

template LeadSearchResult search_leads(const LeadSearchProblem&, const float*,
                                       std::span<const int32_t>, int, const Progress&);
template LeadSearchResult search_leads(const LeadSearchProblem&, const double*,
                                       std::span<const int32_t>, int, const Progress&);

}  // namespace qwyc
