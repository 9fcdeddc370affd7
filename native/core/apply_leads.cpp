#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/leads.hpp"
#include "core/parallel.hpp"

namespace qwyc {

namespace {

// Rows that are evaluated together, step by step: as many as have running sums that fit a cache.
int64_t rows_per_block(int32_t n_classes) {
    return std::clamp<int64_t>(4096 / n_classes, 8, 512);
}

// The smallest threshold of each step, (T,); inf where no row can quit.
std::vector<double> least_thresholds(const LeadPolicyView& policy) {
    std::vector<double> least(policy.order.size(), kInf);
    for (size_t r = 0; r + 1 < least.size(); ++r) {
        const double* const of_step = policy.lead.data() + r * policy.n_classes;
        least[r] = *std::min_element(of_step, of_step + policy.n_classes);
    }
    return least;
}

// kClasses: the number of classes, or 0 where it is known at run time only.
template <int32_t kClasses, class Score>
void apply_to_classes(const LeadPolicyView& policy, const Score* values, const double* base,
                      const double* full, int64_t n, const LeadDecisionsOut& out, int threads) {
    const auto n_models = static_cast<int64_t>(policy.order.size());
    const int32_t n_classes = kClasses > 0 ? kClasses : policy.n_classes;
    const std::vector<double> least = least_thresholds(policy);
    const auto drop_of = [&](int64_t r) { return policy.drop.empty() ? kInf : policy.drop[r]; };
    int64_t last = n_models;  // no row quits from this step on
    while (last > 0 && least[last - 1] == kInf) --last;
    const int64_t block = rows_per_block(n_classes);
    parallel_for(
        n, block, threads,
        [&, undecided = std::vector<int32_t>(block), sums = std::vector<double>(block * n_classes)](
            int64_t begin, int64_t end) mutable {
            auto left = static_cast<int32_t>(end - begin);
            for (int32_t j = 0; j < left; ++j) {
                undecided[j] = j;  // counted from `begin`, ascending
                std::copy(base, base + n_classes, &sums[j * int64_t{n_classes}]);
            }
            for (int64_t r = 0; r < last && left > 0; ++r) {
                const Score* of_step = values + (policy.order[r] * n + begin) * n_classes;
                const double* threshold = policy.lead.data() + r * n_classes;
                int32_t kept = 0;
                for (int32_t u = 0; u < left; ++u) {
                    const int32_t j = undecided[u];
                    double* const sum = &sums[j * int64_t{n_classes}];
                    const Score* added = of_step + j * int64_t{n_classes};
                    for (int32_t k = 0; k < n_classes; ++k) sum[k] += added[k];
                    if (least[r] == kInf && drop_of(r) == kInf) continue;
                    undecided[kept++] = j;
                    int32_t index = -1;
                    if (policy.only >= 0) {
                        index = best_other(n_classes, policy.only, sum);
                        if (!(sum[index] - sum[policy.only] > least[r])) continue;
                    } else {
                        const TopTwo top = top_two(n_classes, sum);
                        if (top.lead() > least[r]) index = first_with(n_classes, sum, top.best);
                        if (index < 0 || !(top.lead() > threshold[index])) {
                            if (drop_of(r) < kInf) rule_out(n_classes, top.best, drop_of(r), sum);
                            continue;
                        }
                    }
                    --kept;
                    out.label[begin + j] = index;
                    out.steps[begin + j] = static_cast<int32_t>(r + 1);
                    std::copy(sum, sum + n_classes, out.score + (begin + j) * n_classes);
                }
                if (least[r] < kInf || drop_of(r) < kInf) left = kept;
            }
            for (int32_t u = 0; u < left; ++u) {
                const int64_t i = begin + undecided[u];
                const double* whole = full + i * n_classes;
                out.label[i] = std::max_element(whole, whole + n_classes) - whole;
                out.steps[i] = static_cast<int32_t>(n_models);
                std::copy(whole, whole + n_classes, out.score + i * n_classes);
            }
        });
}

}  // namespace

template <class Score>
void apply_leads(const LeadPolicyView& policy, const Score* values, const double* base,
                 const double* full, int64_t n, const LeadDecisionsOut& out, int threads) {
    const auto run = [&]<int32_t kClasses>(std::integral_constant<int32_t, kClasses>) {
        apply_to_classes<kClasses>(policy, values, base, full, n, out, threads);
    };
    switch (policy.n_classes) {
        case 2:
            return run(std::integral_constant<int32_t, 2>{});
        case 3:
            return run(std::integral_constant<int32_t, 3>{});
        case 4:
            return run(std::integral_constant<int32_t, 4>{});
        case 5:
            return run(std::integral_constant<int32_t, 5>{});
        case 6:
            return run(std::integral_constant<int32_t, 6>{});
        case 7:
            return run(std::integral_constant<int32_t, 7>{});
        case 8:
            return run(std::integral_constant<int32_t, 8>{});
        case 10:
            return run(std::integral_constant<int32_t, 10>{});
        default:
            return run(std::integral_constant<int32_t, 0>{});
    }
}

template void apply_leads(const LeadPolicyView&, const float*, const double*, const double*,
                          int64_t, const LeadDecisionsOut&, int);
template void apply_leads(const LeadPolicyView&, const double*, const double*, const double*,
                          int64_t, const LeadDecisionsOut&, int);

}  // namespace qwyc
