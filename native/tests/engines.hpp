// What tests of engines share: a problem with its oracle, and comparisons of decisions.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.hpp"
#include "core/kernels.hpp"
#include "tests/check.hpp"
#include "tests/fan.hpp"
#include "tests/forests.hpp"
#include "tests/laid_rows.hpp"

namespace qwyc::tests {

// The first found.size() decisions are those expected.
inline void check_decided(const Decided& found, const Decided& expected,
                          const std::string& context) {
    const auto check = [&](const auto& a, const auto& b, const char* what) {
        using T = typename std::decay_t<decltype(a)>::value_type;
        check::all_equal(std::span<const T>(a), std::span<const T>(b).first(a.size()),
                         context + what, __FILE__, __LINE__);
    };
    check(found.positive, expected.positive, " positive");
    check(found.steps, expected.steps, " steps");
    check(found.score, expected.score, " score");
}

// A threshold in the middle of the full scores, and the width of their spread.
inline std::pair<double, double> spread_of(std::vector<double> full) {
    std::erase_if(full, [](double x) { return !std::isfinite(x); });
    if (full.empty()) return {0, 1};
    std::sort(full.begin(), full.end());
    const double width = full[full.size() * 3 / 4] - full[full.size() / 4];
    return {full[full.size() / 2], width > 0 ? width : 1};
}

// Trees and rows with policies, and what plain loops say of them.
template <class Real, class In>
struct EngineProblem {
    Trees<Real> trees;
    int64_t n;
    std::vector<In> rows;
    std::vector<float> values;
    std::vector<double> full;
    double centre, width, base;
    Policy policy;
    FanTable fan;
    Decided expected, expected_of_fan;
    Forest<Real> forest;

    EngineProblem(Trees<Real> some, std::vector<In> all_rows, uint64_t seed)
        : trees(std::move(some)),
          n(static_cast<int64_t>(all_rows.size()) / trees.n_features),
          rows(std::move(all_rows)),
          values(step_values(trees, rows)),
          full(full_scores(trees, rows)),
          centre(spread_of(full).first),
          width(spread_of(full).second),
          base(trees.rules.base / trees.rules.divisor),
          policy(seed, trees.n_trees(), centre, width),
          fan(seed, policy, values, base, n, width),
          expected(decide_plainly(policy, values, base, full)),
          expected_of_fan(decide_plainly(fan, values, base, full)),
          forest(trees.forest()) {}
};

// Full scores of the first rows of a problem, with the values of every tree and without.
template <class Real, class In>
void check_scores(const FullEngine<Real>& engine, const EngineProblem<Real, In>& problem,
                  const RowsView<In>& view, int threads, std::string_view isa,
                  const std::string& context) {
    const int64_t n = view.n;
    const std::span<const double> expected = std::span(problem.full).first(n);
    std::vector<float> values(problem.trees.n_trees() * n, -1);
    std::vector<double> found(n, -1);
    engine.score(view, values.data(), found.data(), threads, isa);
    check::all_equal(std::span<const double>(found), expected, context + " full", __FILE__,
                     __LINE__);
    for (int32_t t = 0; t < problem.trees.n_trees(); ++t)
        check::all_equal(std::span<const float>(values).subspan(t * n, n),
                         std::span(problem.values).subspan(t * problem.n, n),
                         context + " values of tree " + std::to_string(t), __FILE__, __LINE__);
    found.assign(n, -1);
    engine.score(view, nullptr, found.data(), threads, isa);
    check::all_equal(std::span<const double>(found), expected, context + " full alone", __FILE__,
                     __LINE__);
}

template <class Engine, class In>
void check_decisions(const Engine& engine, const Decided& expected, const RowsView<In>& view,
                     int threads, std::string_view isa, const std::string& context) {
    Decided found(view.n);
    engine.decide(view, found.out(), threads, isa);
    check_decided(found, expected, context);
}

}  // namespace qwyc::tests
