// Algorithms 1 and 2 of the paper on the lead of many classes: the order of the base models, and
// one threshold per step for all classes. The counterpart for two classes is algorithms.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/leads.hpp"
#include "fit/search.hpp"

namespace qwyc {

struct LeadSearchProblem {
    int64_t n_models, n_rows;
    int32_t n_classes;
    std::span<const double> base;     // (K,)
    std::span<const int32_t> winner;  // (N,) full decisions
    CostsView costs;                  // c_t, given what is chosen already
    int64_t budget;                   // rows that may be decided differently: floor(alpha N)
};

struct LeadSearchResult {
    std::vector<int32_t> order;  // (T,)
    std::vector<double> lead;    // (T,) inf where nothing quits
};

// values: (T, N, K) by base model. An empty `order` means Algorithm 1 chooses it; otherwise the
// given permutation is kept and only the thresholds are fitted (Algorithm 2 at every step).
template <class Score>
LeadSearchResult search_leads(const LeadSearchProblem& problem, const Score* values,
                              std::span<const int32_t> order, int threads,
                              const Progress& progress);

}  // namespace qwyc
