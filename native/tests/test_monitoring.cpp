#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "core/rate_test.hpp"
#include "core/row_sampler.hpp"
#include "tests/check.hpp"

namespace {

using namespace qwyc;

// The positions that are picked where n rows come in parts of `step`.
std::vector<int64_t> positions(double rate, uint64_t seed, int64_t n, int64_t step) {
    RowSampler sampler(rate, seed);
    std::vector<int64_t> found;
    for (int64_t begin = 0; begin < n; begin += step)
        for (const int64_t i : sampler.pick(std::min(step, n - begin))) found.push_back(begin + i);
    CHECK_EQUAL(sampler.taken(), n);
    return found;
}

TEST(positions_do_not_depend_on_the_parts) {
    for (const double rate : {0.001, 0.1, 0.9, 1.0}) {
        const auto expected = positions(rate, 7, 20000, 1);
        for (const int64_t step : {3, 1000, 20000})
            CHECK(positions(rate, 7, 20000, step) == expected);
        CHECK(std::abs(static_cast<double>(expected.size()) - 20000 * rate) <=
              4 * std::sqrt(20000 * rate * (1 - rate)));
    }
    CHECK(positions(0.1, 7, 20000, 1) != positions(0.1, 8, 20000, 1));
}

TEST(a_rate_must_be_a_share) {
    for (const double rate : {0.0, -1.0, 1.5, 1e-12, std::nan("")})
        CHECK_THROWS(RowSampler(rate, 0), "rate");
}

TEST(threads_claim_every_position_once) {
    const int64_t n = 40000, parts = 8;
    RowSampler sampler(0.05, 3);
    std::vector<std::vector<int64_t>> found(parts);
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < parts; ++t)
        threads.emplace_back([&, t] {
            int64_t left = n / parts;
            std::vector<int64_t> picked;
            for (int64_t step = 1 + t; left > 0; left -= step) {
                step = std::min(step, left);
                const int64_t begin = sampler.take(step);
                if (begin < 0) continue;
                sampler.claim(begin, step, picked);
                for (const int64_t i : picked) found[t].push_back(begin + i);
            }
        });
    for (auto& thread : threads) thread.join();
    std::vector<int64_t> all;
    for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
    std::sort(all.begin(), all.end());
    CHECK(all == positions(0.05, 3, n, n));
}

const RateTestSettings kSettings{0.02, 16, 0.25, 0.5, 0.25, 0.25, 1e150};

TEST(evidence_is_one_at_the_start_and_a_fair_game_at_the_share) {
    const RateTest test(kSettings, {1.5, 10.0});
    const RateTestState start{0, 0, {{0.0, 0.0}, 1.0}, {{0.0, 0.0}, 1.0}, true};
    CHECK(std::abs(test.evidence(start) - 1) < 1e-12);
    RateTestState state = start;
    for (int row = 0; row < 100; ++row) {
        RateTestState more = state, less = state;
        const uint8_t yes = 1, no = 0;
        test.advance(more, {&yes, 1}, 1e9);
        test.advance(less, {&no, 1}, 1e9);
        const double expected = 0.02 * test.evidence(more) + 0.98 * test.evidence(less);
        CHECK(std::abs(expected / test.evidence(state) - 1) < 1e-9);
        state = row % 9 == 4 ? more : less;
    }
    CHECK_EQUAL(state.rows, 100);
    CHECK_EQUAL(state.count, 11);
}

TEST(the_first_row_that_reaches_the_evidence_is_reported) {
    const RateTest test(kSettings, {1.5, 10.0});
    RateTestState state{0, 0, {{0.0, 0.0}, 1.0}, {{0.0, 0.0}, 1.0}, true};
    const std::vector<uint8_t> differs(50, 1);
    const int64_t reached = test.advance(state, differs, 20.0);
    CHECK(reached > 1 && reached < 10);
    CHECK(test.evidence(state) >= 20.0);
    CHECK(std::isfinite(test.evidence(state)));
}

}  // namespace
