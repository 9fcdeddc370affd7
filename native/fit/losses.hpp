// What is lost where a row quits: how likely its early answer differs from the full one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/rule.hpp"
#include "core/target.hpp"
#include "fit/score_forecast.hpp"

namespace qwyc {

// Two classes. Rows quit negative at the low end and positive at the high end; the chance is that
// of a negative full decision.
struct ClassLoss {
    TwoClasses target;

    double chance(const ScoreForecast& forecast, double sum, size_t next_bin) const {
        return forecast.probability_negative(sum, next_bin, target);
    }
    // The same by the row's own full score.
    bool happens(const ScoreForecast&, double, size_t, double full) const {
        return target.is_negative(full);
    }
    bool differs(const ScoreForecast&, Outcome outcome, double, double full) const {
        return TwoClasses::decision_of(outcome) != target.decide(full);
    }
    static double of_negative(double chance) { return 1 - chance; }
    static double of_positive(double chance) { return chance; }
};

// An output within a tolerance. A row that quits at either end answers with the output of the score
// that the forecast expects; the chance is that the full score's output is further off than the
// tolerance. Outputs rise with scores, so that a full score is close enough between two bounds,
// which depend on the expected score alone. They are tabulated.
struct ToleranceLoss {
    double start, width;  // the expected score of the first entry; from one to the next
    std::span<const double> low, high;  // (entries,) 2 or more; bounds of the full score

    struct Bounds {
        double low, high;
    };
    Bounds bounds(double expected) const {
        const auto last = static_cast<double>(low.size() - 1);
        const double at = std::clamp((expected - start) / width, 0.0, last);
        const auto cell = std::min(static_cast<size_t>(at), low.size() - 2);
        const double share = at - static_cast<double>(cell);
        return {low[cell] + share * (low[cell + 1] - low[cell]),
                high[cell] + share * (high[cell + 1] - high[cell])};
    }
    double chance(const ScoreForecast& forecast, double sum, size_t next_bin) const {
        const auto [from, to] = bounds(forecast.expected(sum, next_bin));
        return forecast.probability_outside(sum, next_bin, from, to);
    }
    bool happens(const ScoreForecast& forecast, double sum, size_t next_bin, double full) const {
        const auto [from, to] = bounds(forecast.expected(sum, next_bin));
        return full < from || full > to;
    }
    bool differs(const ScoreForecast& forecast, Outcome, double sum, double full) const {
        return happens(forecast, sum, forecast.bin_above(sum), full);
    }
    static double of_negative(double chance) { return chance; }
    static double of_positive(double chance) { return chance; }
};

}  // namespace qwyc
