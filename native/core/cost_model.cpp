#include "core/cost_model.hpp"

#include <algorithm>
#include <limits>

#include "core/mask_kernels.hpp"

namespace qwyc {

namespace {

// For each step, the last earlier step at which each of its questions was asked, or -1; each
// question of a step once. The same for its features.
template <class Real>
struct LastAsked {
    std::vector<std::vector<int32_t>> question, feature;  // by step

    LastAsked(const Forest<Real>& forest, const Questions<Real>& questions,
              std::span<const int32_t> order, int32_t last)
        : question(last), feature(last) {
        std::vector<int32_t> asked(questions.all.size(), -1), read(forest.n_features(), -1);
        for (int32_t r = 0; r < last; ++r) {
            if (!questions.masked[order[r]]) continue;
            for (int32_t q : questions.of_tree(forest, order[r])) {
                const int32_t f = questions.all[q].feature;
                if (asked[q] != r) question[r].push_back(asked[q]), asked[q] = r;
                if (read[f] != r) feature[r].push_back(read[f]), read[f] = r;
            }
        }
    }
};

}  // namespace

template <class Real>
Division cut_into_segments(const Forest<Real>& forest, const Questions<Real>& questions,
                           std::span<const int32_t> order, int32_t last,
                           std::span<const double> survival) {
    const LastAsked<Real> before(forest, questions, order, last);
    std::vector<double> best(last + 1, std::numeric_limits<double>::infinity());
    std::vector<int32_t> next(last + 1);  // where the segment that begins here ends
    best[last] = 0;
    for (int32_t a = last - 1; a >= 0; --a) {
        next[a] = a + 1;  // where no cost is finite
        const bool masked = questions.masked[order[a]];
        double cost = RowCost::kRow;
        for (int32_t b = a + 1; b <= std::min(last, a + kMaxSegmentTrees); ++b) {
            const int32_t r = b - 1;
            if ((questions.masked[order[r]] != 0) != masked) break;
            const auto is_new = [a](int32_t earlier) { return earlier < a; };
            cost += masked ? RowCost::kTree : RowCost::kWalkedTree;
            cost += RowCost::kQuestion *
                    static_cast<double>(std::count_if(before.question[r].begin(),
                                                      before.question[r].end(), is_new));
            cost += RowCost::kFeature *
                    static_cast<double>(
                        std::count_if(before.feature[r].begin(), before.feature[r].end(), is_new));
            const double spent = survival[a] * cost + best[b];
            if (spent < best[a]) best[a] = spent, next[a] = b;
        }
    }
    Division found{{}, best[0]};
    for (int32_t a = 0; a < last; a = next[a]) found.segments.push_back({a, next[a]});
    return found;
}

template Division cut_into_segments(const Forest<float>&, const Questions<float>&,
                                    std::span<const int32_t>, int32_t, std::span<const double>);
template Division cut_into_segments(const Forest<double>&, const Questions<double>&,
                                    std::span<const int32_t>, int32_t, std::span<const double>);

}  // namespace qwyc
