// Fan's rule: its tables and its kernels. Engines that run it are in test_engine and test_lattices.
#include <string>

#include "core/kernels.hpp"
#include "core/lattice_kernels.hpp"
#include "tests/check.hpp"
#include "tests/fan.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

std::vector<double> random_sums(uint64_t seed, size_t n) {
    Random random(seed);
    std::vector<double> sums(n);
    for (double& sum : sums) sum = random.normal();
    sums[1] = kInf, sums[2] = -0.0, sums[4] = std::numeric_limits<double>::quiet_NaN();
    sums[5] = 1e300, sums[7] = 0.3, sums[8] = -0.3;
    return sums;
}

TEST(add_and_bin) {
    constexpr int32_t kWord = 64;
    for (int32_t words : {1, 2, 8})
        for (double width : {0.3, 1e-9, 1e300}) {
            std::vector<float> values(words * kWord, 0);
            Random random(words);
            for (size_t i = 9; i < values.size(); ++i)
                values[i] = static_cast<float>(random.normal());
            values[3] = std::numeric_limits<float>::infinity();
            std::vector<uint64_t> alive(words, 1);
            alive[words / 2] = words == 1 ? 1 : 0;  // such a word may be left as it is
            const std::vector<double> before = random_sums(words, values.size());
            for (std::string_view isa : available_isas()) {
                std::vector<double> sums = before, bins(values.size(), -1);
                std::vector<uint64_t> still = alive;
                const Chunk chunk{words, sums.data(), still.data(), nullptr};
                kernels(isa).add_and_bin(values.data(), width, chunk, bins.data());
                CHECK_ALL_EQUAL(still, alive, std::string(isa));
                for (size_t i = 0; i < values.size(); ++i) {
                    if (alive[i / kWord] == 0) continue;
                    CHECK(check::same(sums[i], before[i] + values[i]));
                    CHECK(check::same(bins[i], std::floor(sums[i] / width)));
                }
            }
        }
}

template <class Real>
void check_bin() {
    for (int32_t n : {9, 16, 100})
        for (std::string_view isa : available_isas()) {
            const std::vector<double> sums = random_sums(n, n + kLatticePad);
            std::vector<double> bins(n + kLatticePad, -1);
            lattice_kernels<Real>(isa).bin(sums.data(), n, 0.3, bins.data());
            for (int32_t i = 0; i < n; ++i) CHECK(check::same(bins[i], std::floor(sums[i] / 0.3)));
        }
}

TEST(bins_of_sums_of_lattices) {
    check_bin<float>();
    check_bin<double>();
}

TEST(bins_are_found_however_far_apart_they_are) {
    const std::vector<std::vector<int64_t>> bins = {{},
                                                    {-1},
                                                    {-2, -1, 0, 1},
                                                    {-4, 4},
                                                    {0, 1 << 20, 1 << 21, 3 << 20},
                                                    {-(int64_t{1} << 53), 5}};
    std::vector<int64_t> begin = {0}, all;
    std::vector<double> lower, upper;
    for (const auto& of_step : bins) {
        for (int64_t bin : of_step) {
            all.push_back(bin);
            lower.push_back(bin % 2 ? static_cast<double>(bin) + 0.5 : -kInf);
            upper.push_back(bin % 2 ? kInf : static_cast<double>(bin) + 0.25);
        }
        begin.push_back(static_cast<int64_t>(all.size()));
    }
    const FanRule rule({begin, all, lower, upper, 1.0}, bins.size());
    for (size_t r = 0; r < bins.size(); ++r) {
        CHECK_EQUAL(rule.can_quit(r), !bins[r].empty());
        for (int64_t bin : {int64_t{-5}, int64_t{-4}, int64_t{-2}, int64_t{-1}, int64_t{0},
                            int64_t{1}, int64_t{4}, int64_t{5}, int64_t{6}, int64_t{1} << 20,
                            int64_t{1} << 22, int64_t{1} << 40})
            for (double within : {0.0, 0.25, 0.5, 0.75}) {
                const double sum = static_cast<double>(bin) + within;
                Outcome expected = Outcome::kInFull;
                if (std::find(bins[r].begin(), bins[r].end(), bin) != bins[r].end()) {
                    expected = Outcome::kContinue;
                    if (bin % 2 && within < 0.5) expected = Outcome::kNegative;
                    if (bin % 2 == 0 && within > 0.25) expected = Outcome::kPositive;
                }
                CHECK(rule(r, sum) == expected);
            }
        for (double odd : {kInf, -kInf, 1e300, std::numeric_limits<double>::quiet_NaN()})
            CHECK(rule(r, odd) == Outcome::kInFull);
    }
}

TEST(steps_at_which_no_bin_quits_are_left_out_at_the_end) {
    const std::vector<int32_t> order = {0, 1, 2, 3};
    const std::vector<int64_t> begin = {0, 1, 2, 3, 3}, bin = {0, 0, 0};
    const std::vector<double> never = {-kInf, -kInf, -kInf}, upper = {kInf, 1.0, kInf};
    CHECK_EQUAL(quit_end(FanPolicy({order, {begin, bin, never, upper, 1.0}, {0.0}})), 2);
    const std::vector<double> none(3, kInf);
    CHECK_EQUAL(quit_end(FanPolicy({order, {begin, bin, never, none, 1.0}, {0.0}})), 0);
}

}  // namespace
