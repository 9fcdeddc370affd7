#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "core/judge.hpp"
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

TEST(random_numbers_are_those_of_the_standard_library) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{5489}, ~uint64_t{0}}) {
        MersenneTwister ours(seed);
        std::mt19937_64 theirs(seed);
        for (int i = 0; i < 5000; ++i) CHECK_EQUAL(ours(), theirs());
    }
}

TEST(gaps_are_logarithms_of_random_numbers) {
    for (const double rate : {1e-9, 1e-4, 0.003, 0.01, 0.3, 0.97})
        for (const uint64_t seed : {0, 1, 2}) {
            const auto n = static_cast<int64_t>(50000 / rate);
            const auto found = positions(rate, seed, n, n);
            CHECK(found.size() > 10000);
            std::mt19937_64 random(seed);
            int64_t last = -1;
            for (const int64_t position : found) {
                const double uniform = static_cast<double>((random() >> 11) + 1) * 0x1p-53;
                last += 1 + static_cast<int64_t>(std::log(uniform) / std::log1p(-rate));
                CHECK_EQUAL(position, last);
            }
        }
}

TEST(a_rate_must_be_a_share) {
    for (const double rate : {0.0, -1.0, 1.5, 1e-12, std::nan("")})
        CHECK_THROWS(RowSampler(rate, 0), "rate");
}

TEST(threads_claim_every_position_once) {
    const int64_t n = 40000, parts = 8;
    RowSampler sampler(0.05, 3);
    std::mutex lock;
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
                const std::lock_guard<std::mutex> guard(lock);
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

// Row by row, as the recursion of decision 18 is written down.
void step(const RateTestSettings& settings, const std::vector<double>& multiples, Starts& starts,
          int64_t rows, bool differs) {
    if (rows % settings.start_every == 0) {
        const double moment = static_cast<double>(rows / settings.start_every);
        const double left = starts.unspent * std::pow((moment + 1) / (moment + 2), settings.tail);
        for (double& value : starts.value) value += starts.unspent - left;
        starts.unspent = left;
    }
    for (size_t g = 0; g < multiples.size(); ++g) {
        starts.value[g] *= std::exp(-std::log1p(settings.share * (multiples[g] - 1)));
        if (differs) starts.value[g] = std::min(starts.value[g] * multiples[g], settings.largest);
    }
}

TEST(rows_in_groups_count_bit_for_bit_as_one_by_one) {
    const std::vector<double> all{1.25, 1.5, 2, 3, 5, 10, 30, 100, 1000, 10000, 100000};
    for (const size_t n_alternatives : {1, 3, 8, 9, 11})
        for (const size_t group : {1, 5, 16, 37, 1000})
            for (const bool one_part : {true, false}) {
                const std::vector<double> multiples(all.begin(), all.begin() + n_alternatives);
                const RateTest test(kSettings, multiples);
                const Starts nothing{std::vector<double>(n_alternatives, 0.0), 1.0};
                const Starts other{std::vector<double>(n_alternatives, 0.25), 0.5};
                RateTestState state{0, 0, nothing, one_part ? nothing : other, one_part};
                Starts apart = nothing, joint = other;
                std::vector<uint8_t> differs(1000);
                for (size_t i = 0; i < differs.size(); ++i) {
                    differs[i] = i % 53 == 20 || (i > 600 && i % 16 < 2);
                    step(kSettings, multiples, apart, static_cast<int64_t>(i), differs[i]);
                    step(kSettings, multiples, joint, static_cast<int64_t>(i), differs[i]);
                }
                int64_t reached = -1;
                for (size_t i = 0; i < differs.size(); i += group) {
                    const size_t n = std::min(group, differs.size() - i);
                    const int64_t at = test.advance(state, {differs.data() + i, n}, 50.0);
                    if (at >= 0 && reached < 0) reached = static_cast<int64_t>(i) + at;
                }
                CHECK(state.apart.value == apart.value);
                CHECK_EQUAL(state.apart.unspent, apart.unspent);
                if (!one_part) CHECK(state.joint.value == joint.value);
                CHECK_EQUAL(state.rows, 1000);
                CHECK_EQUAL(state.count, std::count(differs.begin(), differs.end(), 1));
                RateTestState again{0, 0, nothing, one_part ? nothing : other, one_part};
                CHECK_EQUAL(test.advance(again, differs, 50.0), reached);
            }
}

CheckedRows part_of(const std::vector<uint8_t>& decided, const std::vector<uint8_t>& full,
                    const std::vector<int32_t>& steps, int64_t begin, int64_t end) {
    const auto part = [&](const auto& all) {
        return std::span(all).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    };
    return {part(decided), part(full), part(steps)};
}

TEST(checked_rows_are_counted) {
    const int64_t n = 1000;
    std::vector<uint8_t> decided(n), full(n);
    std::vector<int32_t> steps(n);
    const std::vector<int32_t> bin{0, 0, 1, 1, 2};
    const std::vector<double> cost{0, 0.1, 0.3, 0.7, 1.1};
    int64_t by_class[2]{}, differences[2]{}, exits[3]{}, evaluated = 0;
    double total = 0.5;
    for (int64_t i = 0; i < n; ++i) {
        decided[i] = i % 7 < 3;
        full[i] = i % 5 < 2;
        steps[i] = static_cast<int32_t>(1 + i % 11 % 4);
        ++by_class[full[i]];
        if (decided[i] != full[i]) ++differences[decided[i]];
        ++exits[bin[steps[i]]];
        evaluated += steps[i];
        total += cost[steps[i]];
    }
    const StepTables tables{bin, cost};
    for (const int64_t group : {1, 33, 1000}) {
        RowCounts found{{0, 0}, {0, 0}, {0, 0, 0}, 0, 0.5};
        for (int64_t begin = 0; begin < n; begin += group)
            count_rows(part_of(decided, full, steps, begin, std::min(n, begin + group)), tables,
                       found);
        CHECK(found.by_class == std::vector<int64_t>(by_class, by_class + 2));
        CHECK(found.differences == std::vector<int64_t>(differences, differences + 2));
        CHECK(found.exits == std::vector<int64_t>(exits, exits + 3));
        CHECK_EQUAL(found.steps, evaluated);
        CHECK_EQUAL(found.cost, total);
    }

    for (const int among : {-1, 0, 1})
        for (const uint32_t kinds : {1u, 2u, 3u}) {
            LimitRows rows;
            rows.find({decided, full, steps}, {among, kinds, std::nullopt});
            std::vector<uint8_t> differs;
            std::vector<int64_t> at;
            for (int64_t i = 0; i < n; ++i) {
                if (among >= 0 && full[i] != among) continue;
                differs.push_back(decided[i] != full[i] && (kinds >> decided[i] & 1));
                if (among >= 0) at.push_back(i);
            }
            CHECK(rows.differs == differs);
            CHECK(rows.at == at);
        }
}

TEST(a_judge_says_at_which_row_a_limit_was_broken) {
    // Rows 0 to 9 are equal, row 10 is lost from class 1, row 11 is gained.
    std::vector<uint8_t> decided(12), full(12);
    const std::vector<int32_t> steps(12, 1);
    for (int i = 0; i < 10; ++i) decided[i] = full[i] = i % 2;
    full[10] = decided[11] = 1;
    const std::vector<LimitTest> limits{
        {-1, 3, std::nullopt}, {1, 1, std::nullopt}, {0, 2, std::nullopt}, {1, 2, std::nullopt}};
    for (const int64_t group : {1, 5, 12}) {
        Judge judge(limits, {{0, 0}, {0, 1}}, 20.0);
        JudgeState state{{{0, 0}, {0, 0}, {0}, 0, 0},
                         std::vector<RateTestState>(4),
                         std::vector<int64_t>(4, -1)};
        for (int64_t begin = 0; begin < 12; begin += group)
            judge.add(part_of(decided, full, steps, begin, std::min<int64_t>(12, begin + group)),
                      state);
        CHECK(state.raised == (std::vector<int64_t>{11, 11, 12, -1}));
        CHECK(state.counts.by_class == (std::vector<int64_t>{6, 6}));
        CHECK(state.counts.differences == (std::vector<int64_t>{1, 1}));
    }
}

// Rows of a slow thread are claimed after those of a fast one.
TEST(positions_before_the_rows_of_a_call_stay_for_others) {
    const auto expected = positions(0.1, 11, 3000, 3000);
    RowSampler sampler(0.1, 11);
    std::vector<int64_t> found, picked;
    const int64_t parts[] = {sampler.take(1000), sampler.take(1000), sampler.take(1000)};
    for (const int64_t begin : {parts[2], parts[0], parts[1]}) {
        sampler.claim(begin, 1000, picked);
        for (const int64_t i : picked) found.push_back(begin + i);
    }
    std::sort(found.begin(), found.end());
    CHECK(found == expected);
}

}  // namespace
