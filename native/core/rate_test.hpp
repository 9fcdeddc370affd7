// A test that may be looked at after every row: do rows differ more often than allowed?
// docs/decisions/0018-monitor.md has the mathematics, src/qwyc/promise/sequential.py the constants.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace qwyc {

// Likelihood ratios of changes that began at different moments, added up with their prior weights.
struct Starts {
    std::vector<double> value;  // (G,) of changes that may have begun, by alternative
    double unspent;             // prior weight of changes that begin later
};

struct RateTestState {
    int64_t rows, count;  // so far; count of them differ
    Starts apart, joint;  // the average and the product of the parts
    bool one_part;        // then the two are the same
};

struct RateTestSettings {
    double share;                         // that may differ
    int64_t start_every;                  // rows between two moments at which a change may begin
    double tail;                          // (j + 1)**-tail is unspent before moment j
    double from_first_row, apart, joint;  // prior weights of the parts of the evidence
    double largest;                       // values stop growing here
};

class RateTest {
  public:
    RateTest(const RateTestSettings& settings, std::vector<double> multiples)
        : settings_(settings), multiple_(std::move(multiples)) {
        for (const double multiple : multiple_) {
            log_multiple_.push_back(std::log(multiple));
            growth_.push_back(std::log1p(settings.share * (multiple - 1)));
            shrink_.push_back(std::exp(-growth_.back()));
        }
    }

    size_t n_alternatives() const { return multiple_.size(); }

    // Counts rows one by one. Returns after how many of them the evidence first was at least
    // `needed`, or -1. Evidence grows with rows that differ only, so it is looked at after these.
    int64_t advance(RateTestState& state, std::span<const uint8_t> differs, double needed) const {
        const auto n = static_cast<int64_t>(differs.size());
        int64_t reached = -1, moment = state.rows / settings_.start_every;
        int64_t since = state.rows % settings_.start_every;  // rows since that moment
        for (int64_t i = 0; i < n;) {
            if (since == 0) {
                begin(state.apart, moment);
                if (!state.one_part) begin(state.joint, moment);
            }
            // Rows up to the next one that differs, or to the next moment.
            const int64_t most = std::min(n, i + settings_.start_every - since);
            int64_t end = i;
            while (end < most && !differs[end]) ++end;
            const bool is_different = end < most;
            const int64_t rows = end - i + is_different;
            pass(state.apart, rows, is_different);
            if (!state.one_part) pass(state.joint, rows, is_different);
            i += rows;
            since += rows;
            if (since == settings_.start_every) {
                since = 0;
                ++moment;
            }
            state.rows += rows;
            if (!is_different) continue;
            ++state.count;
            if (reached < 0 && evidence(state) >= needed) reached = i;
        }
        return reached;
    }

    double evidence(const RateTestState& state) const {
        const Starts& joint = state.one_part ? state.apart : state.joint;
        double total = 0;
        for (size_t g = 0; g < multiple_.size(); ++g) {
            const double log = static_cast<double>(state.count) * log_multiple_[g] -
                               static_cast<double>(state.rows) * growth_[g];
            total += settings_.from_first_row * std::min(std::exp(log), settings_.largest) +
                     settings_.apart * state.apart.value[g] + settings_.joint * joint.value[g];
        }
        return total / static_cast<double>(multiple_.size()) +
               settings_.apart * state.apart.unspent + settings_.joint * joint.unspent;
    }

  private:
    // A moment at which a change may begin.
    void begin(Starts& starts, int64_t moment) const {
        const auto j = static_cast<double>(moment);
        const double left = starts.unspent * std::pow((j + 1) / (j + 2), settings_.tail);
        for (double& value : starts.value) value += starts.unspent - left;
        starts.unspent = left;
    }

    // Rows, of which the last one differs or none does. Each value is multiplied row by row, so the
    // result does not depend on how rows are grouped; kTogether values are in registers meanwhile.
    void pass(Starts& starts, int64_t rows, bool last_differs) const {
        const size_t n = multiple_.size();
        size_t g = 0;
        for (; g + kTogether <= n; g += kTogether) shrink<kTogether>(starts, g, rows);
        for (; g < n; ++g) shrink<1>(starts, g, rows);
        if (!last_differs) return;
        for (g = 0; g < n; ++g)
            starts.value[g] = std::min(starts.value[g] * multiple_[g], settings_.largest);
    }

    template <size_t N>
    void shrink(Starts& starts, size_t g, int64_t rows) const {
        double value[N], factor[N];
        std::copy_n(starts.value.begin() + g, N, value);
        std::copy_n(shrink_.begin() + g, N, factor);
        for (; rows > 0; --rows)
            for (size_t k = 0; k < N; ++k) value[k] *= factor[k];
        std::copy_n(value, N, starts.value.begin() + g);
    }

    static constexpr size_t kTogether = 8;

    RateTestSettings settings_;
    std::vector<double> multiple_;  // (G,) odds of the alternatives, relative to the share's
    std::vector<double> log_multiple_, growth_, shrink_;
};

}  // namespace qwyc
