// Kernels for rows one tree at a time: every instruction set that this machine runs, against plain
// loops. Trees on masks are in test_mask_kernels and test_quit_kernel.
#include <numeric>
#include <string>
#include <utility>

#include "core/kernels.hpp"
#include "tests/check.hpp"
#include "tests/forests.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

constexpr int32_t kWord = 64;

template <class Visit>
void each_isa(Visit visit) {
    for (std::string_view isa : available_isas()) visit(kernels(isa), std::string(isa));
}

// What kernels take for rows: the first ones, where there is no list, or those of a list.
std::vector<const int32_t*> rows_or_first(const std::vector<int32_t>& list) {
    return {nullptr, list.data()};
}

template <class In, class Real>
void check_walk(uint64_t seed, int32_t n) {
    const Trees<Real> trees =
        random_trees<Real>(seed, {.n_trees = 6, .depth = 11, .leaf_stop = 0.03});
    const Forest<Real> forest = trees.forest();
    const auto rows = random_rows<In>(seed, 400, trees.n_features);
    Random random(seed);
    std::vector<int32_t> chosen(n);
    for (int32_t& i : chosen) i = random.below(400);
    each_isa([&](const Kernels& table, const std::string& isa) {
        for (int32_t t = 0; t < trees.n_trees(); ++t)
            for (const int32_t* row : rows_or_first(chosen)) {
                std::vector<int32_t> leaf(n, -1), expected(n);
                table.template reading<In, Real>().walk(forest, forest.root(t), rows.data(),
                                                        trees.n_features, row, n, leaf.data());
                for (int32_t i = 0; i < n; ++i) {
                    const In* x = rows.data() + (row ? row[i] : i) * trees.n_features;
                    expected[i] = static_cast<int32_t>(leaf_of(trees, t, x));
                }
                CHECK_ALL_EQUAL(leaf, expected, isa);
            }
    });
}

TEST(walk) {
    for (uint64_t seed = 0; seed < 5; ++seed)
        for (int32_t n : {1, 63, 64, 65, 300}) {
            check_walk<float, float>(seed, n);
            check_walk<double, float>(seed, n);
            check_walk<float, double>(seed, n);
            check_walk<double, double>(seed, n);
        }
}

// Rows in the middle of an evaluation.
struct Running {
    Running(uint64_t seed, int32_t words)
        : sums(words * kWord), alive(words), row(words * kWord), decided(words * kWord) {
        Random random(seed);
        for (double& sum : sums) sum = random.normal();
        for (uint64_t& word : alive) word = random.next() & random.next();
        if (words > 1) alive[1] = 0;
        std::iota(row.rbegin(), row.rend(), 0);
    }
    Chunk chunk() {
        return {static_cast<int32_t>(alive.size()), sums.data(), alive.data(), row.data()};
    }
    // One step of the row at place i; what `compare` says.
    void step(int32_t i, float value, const PolicyView& policy, int32_t r) {
        uint64_t& word = alive[i / kWord];
        if (!(word >> i % kWord & 1)) return;
        sums[i] += value;
        const Outcome outcome = policy.rule(r, sums[i]);
        if (outcome == Outcome::kContinue) return;
        word ^= uint64_t{1} << i % kWord;
        decided.positive[row[i]] = TwoClasses::decision_of(outcome);
        decided.steps[row[i]] = r + 1;
        decided.score[row[i]] = sums[i];
    }
    std::vector<double> sums;
    std::vector<uint64_t> alive;
    std::vector<int32_t> row;
    Decided decided;
};

void check_running(Running& found, Running& expected, const std::string& isa) {
    CHECK_ALL_EQUAL(found.alive, expected.alive, isa + " alive");
    CHECK_ALL_EQUAL(found.decided.positive, expected.decided.positive, isa + " positive");
    CHECK_ALL_EQUAL(found.decided.steps, expected.decided.steps, isa + " steps");
    CHECK_ALL_EQUAL(found.decided.score, expected.decided.score, isa + " score");
    for (size_t i = 0; i < found.sums.size(); ++i)
        if (expected.alive[i / kWord] >> i % kWord & 1)
            CHECK(check::same(found.sums[i], expected.sums[i]));
}

TEST(advance) {
    for (uint64_t seed = 0; seed < 10; ++seed)
        for (int32_t words : {1, 2, 8}) {
            const Policy policy(seed, 5, 0.1, 1.0);
            std::vector<float> values(words * kWord);
            Random random(seed);
            for (float& value : values) value = static_cast<float>(random.normal());
            values[3] = std::numeric_limits<float>::infinity();
            each_isa([&](const Kernels& table, const std::string& isa) {
                Running found(seed, words), expected(seed, words);
                found.sums[5] = expected.sums[5] = policy.upper[2] - values[5];  // on a threshold
                for (int32_t r = 0; r < 4; ++r) {
                    table.advance(values.data(), policy.view(), r, found.chunk(),
                                  found.decided.out());
                    for (int32_t i = 0; i < words * kWord; ++i)
                        expected.step(i, values[i], policy.view(), r);
                }
                check_running(found, expected, isa);
            });
        }
}

TEST(a_sum_on_a_threshold_goes_on) {
    const std::vector<int32_t> order = {0, 1};
    const std::vector<double> lower = {-1.0, -kInf}, upper = {1.0, kInf};
    const PolicyView policy{order, {lower, upper}, {0.0}};
    CHECK(policy.rule(0, -1.0) == Outcome::kContinue && policy.rule(0, 1.0) == Outcome::kContinue);
    CHECK(policy.rule(0, std::nextafter(-1.0, -2.0)) == Outcome::kNegative);
    CHECK(policy.rule(0, std::nextafter(1.0, 2.0)) == Outcome::kPositive);
    const std::vector<float> values(kWord, 0.0f);
    each_isa([&](const Kernels& table, const std::string& isa) {
        Running found(0, 1);
        for (int32_t i = 0; i < kWord; ++i) {
            const double on = i % 4 < 2 ? lower[0] : upper[0];
            found.sums[i] = i % 2 ? std::nextafter(on, 2 * on) : on;  // or just past it
        }
        found.alive[0] = ~uint64_t{0};
        table.advance(values.data(), policy, 0, found.chunk(), found.decided.out());
        CHECK_ALL_EQUAL(found.alive, std::vector<uint64_t>{0x5555555555555555u}, isa);
        for (int32_t i = 1; i < kWord; i += 2)
            CHECK_EQUAL(+found.decided.positive[found.row[i]], i % 4 == 3 ? 1 : 0);
    });
}

// Rows may be moved to the place where they are, or before it.
// Sums of some classes, some of them equal and some ruled out, (n_classes, stride).
struct ClassSums {
    int32_t n_classes, words;
    int64_t stride;
    std::vector<double> sums;

    ClassSums(uint64_t seed, int32_t n_classes, int32_t words)
        : n_classes(n_classes), words(words), stride(words * kWord + 8), sums(n_classes * stride) {
        Random random(seed);
        for (double& sum : sums) {
            sum = random.below(8) / 4.0 - 1;
            if (random.below(6) == 0) sum = -kInf;
        }
        for (int64_t i = 0; i < stride; ++i) sums[i] = std::max(sums[i], -1.0);  // one is left
    }
    double at(int32_t k, int64_t i) const { return sums[k * stride + i]; }
};

TEST(leaders_and_sums_that_are_tested) {
    for (int32_t n_classes : {2, 3, 7, 20})
        for (int32_t words : {1, 3}) {
            const ClassSums own(n_classes + words, n_classes, words);
            const int32_t n = words * kWord;
            std::vector<double> index(n), lead(n), best_index(n), best_lead(n);
            for (int32_t i = 0; i < n; ++i) {
                double second = -kInf;
                for (int32_t k = 1; k < n_classes; ++k)
                    if (own.at(k, i) > own.at(static_cast<int32_t>(best_index[i]), i))
                        best_index[i] = k;
                for (int32_t k = 0; k < n_classes; ++k)
                    if (k != best_index[i]) second = std::max(second, own.at(k, i));
                best_lead[i] = own.at(static_cast<int32_t>(best_index[i]), i) - second;
            }
            const std::vector<float> single(own.sums.begin(), own.sums.end());
            std::vector<double> out(own.sums.size()), expected(own.sums.size());
            for (size_t i = 0; i < out.size(); ++i) out[i] = i % 3 == 0 ? -kInf : 0;
            each_isa([&](const Kernels& table, const std::string& isa) {
                table.leaders(own.sums.data(), own.stride, n_classes, words, index.data(),
                              lead.data());
                CHECK_ALL_EQUAL(index, best_index, isa);
                CHECK_ALL_EQUAL(lead, best_lead, isa);
                for (const double* more :
                     {static_cast<const double*>(nullptr), &std::as_const(out)[0]})
                    for (bool of_floats : {false, true}) {
                        std::vector<double> to(own.sums.size(), 7.0);
                        std::fill(expected.begin(), expected.end(), 7.0);
                        for (int32_t k = 0; k < n_classes; ++k)
                            for (int32_t i = 0; i < n; ++i)
                                expected[k * own.stride + i] =
                                    own.at(k, i) + (more ? more[k * own.stride + i] : 0);
                        if (of_floats)
                            table.tested_single(single.data(), more, own.stride, n_classes, words,
                                                to.data(), own.stride);
                        else
                            table.tested_double(own.sums.data(), more, own.stride, n_classes, words,
                                                to.data(), own.stride);
                        CHECK_ALL_EQUAL(to, expected, isa);
                    }
            });
        }
}

TEST(rule_out_near) {
    for (int32_t n_classes : {2, 3, 7, 20}) {
        const ClassSums own(n_classes, n_classes, 3);
        const int32_t n = own.words * kWord;
        for (double drop : {0.5, 0.6, 1.0}) {
            constexpr double kError = 0.125;
            std::vector<double> expected(own.sums.size(), 7.0);
            std::vector<uint64_t> expected_near(own.words), near(own.words);
            for (int32_t i = 0; i < n; ++i) {
                double best = -kInf;
                for (int32_t k = 0; k < n_classes; ++k) best = std::max(best, own.at(k, i));
                for (int32_t k = 0; k < n_classes; ++k) {
                    const double behind = best - own.at(k, i);
                    expected[k * own.stride + i] = behind > drop + kError ? -kInf : 0;
                    if (behind > drop - kError && !(behind > drop + kError))
                        expected_near[i / kWord] |= uint64_t{1} << i % kWord;
                }
            }
            each_isa([&](const Kernels& table, const std::string& isa) {
                std::vector<double> out(own.sums.size(), 7.0);
                table.rule_out_near(own.sums.data(), own.stride, n_classes, own.words, drop, kError,
                                    out.data(), own.stride, near.data());
                CHECK_ALL_EQUAL(out, expected, isa);
                CHECK_ALL_EQUAL(near, expected_near, isa);
            });
        }
    }
}

TEST(compact) {
    for (uint64_t seed = 0; seed < 10; ++seed)
        for (int32_t words : {1, 2, 8})
            for (int32_t before : {0, 1, 40, 64})
                each_isa([&](const Kernels& table, const std::string& isa) {
                    Running state(seed, words);
                    state.alive[0] = seed == 0 ? 0 : seed == 1 ? ~uint64_t{0} : state.alive[0];
                    std::vector<double> sums(before, -1), expected_sums(before, -1);
                    std::vector<int32_t> row(before, -1), expected_row(before, -1);
                    for (int32_t i = 0; i < words * kWord; ++i) {
                        sums.push_back(state.sums[i]);
                        row.push_back(state.row[i]);
                        if (!(state.alive[i / kWord] >> i % kWord & 1)) continue;
                        expected_sums.push_back(state.sums[i]);
                        expected_row.push_back(state.row[i]);
                    }
                    const int32_t kept = before / 2;  // entries that are there already
                    expected_sums.erase(expected_sums.begin() + kept,
                                        expected_sums.begin() + before);
                    expected_row.erase(expected_row.begin() + kept, expected_row.begin() + before);
                    const int32_t left =
                        table.compact(state.alive.data(), words, sums.data() + before,
                                      row.data() + before, sums.data() + kept, row.data() + kept);
                    CHECK_EQUAL(kept + left, static_cast<int32_t>(expected_row.size()));
                    sums.resize(kept + left);
                    row.resize(kept + left);
                    CHECK_ALL_EQUAL(sums, expected_sums, isa);
                    CHECK_ALL_EQUAL(row, expected_row, isa);
                });
}

}  // namespace
