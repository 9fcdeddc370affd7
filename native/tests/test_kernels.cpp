// Every kernel of every instruction set that this machine runs, against plain loops.
#include <numeric>
#include <string>

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

// The code of a value as plan.hpp documents columns, as the byte that kernels compare.
template <class Real>
uint8_t code_of(const Plan<Real>& plan, const Column& column, Real x) {
    const bool zero = column.zero_is_missing && std::abs(x) <= static_cast<Real>(1e-35f);
    if (std::isnan(x) || zero)
        return static_cast<uint8_t>((column.categorical ? kMissingClass : column.missing) - 128);
    if (column.categorical) {
        const double whole = std::trunc(x);
        const bool truncates = plan.forest->rules().truncates;
        uint8_t code = kNoClass;
        if (whole >= 0 && whole < column.classes_count && (x >= 0 || truncates))
            code = plan.categories.class_of[column.classes_begin + static_cast<int64_t>(whole)];
        return static_cast<uint8_t>(code - 128);
    }
    int32_t code = column.lowest;
    for (int32_t k = column.first; k < column.first + column.count; ++k)
        code += plan.cuts[column.feature].cut[k] <= x;
    return static_cast<uint8_t>(code - 128);
}

template <class Real>
Plan<Real> plan_of(const Forest<Real>& forest) {
    std::vector<int32_t> order(forest.n_trees());
    std::iota(order.begin(), order.end(), 0);
    return Plan<Real>(forest, order);
}

std::vector<int32_t> columns_by_feature(const SmallTrees& trees) {
    std::vector<int32_t> columns(trees.columns.size());
    std::iota(columns.begin(), columns.end(), 0);
    std::stable_sort(columns.begin(), columns.end(), [&](int32_t a, int32_t b) {
        return trees.columns[a].feature < trees.columns[b].feature;
    });
    return columns;
}

template <class In, class Real>
void check_encode(uint64_t seed, int64_t n_features, int32_t n) {
    Trees<Real> trees;
    trees.n_features = n_features;
    Random random(seed);
    trees.rules = random_rules(random, 30);
    for (int32_t t = 0; t < 30; ++t) {
        grow(trees, random, {}, 5);
        trees.end_tree();
    }
    const Forest<Real> forest = trees.forest();
    const Plan<Real> plan = plan_of(forest);
    const auto rows = random_rows<In>(seed, 2 * n, n_features);
    std::vector<int32_t> chosen(n);  // rows in an order of their own
    for (int32_t& i : chosen) i = random.below(2 * n);
    const int64_t stride = (n + kWord - 1) / kWord * kWord;
    each_isa([&](const Kernels& table, const std::string& isa) {
        for (const int32_t* row : rows_or_first(chosen)) {
            std::vector<uint8_t> codes(plan.columns.size() * stride, 99);
            table.template reading<In, Real>().encode(plan, columns_by_feature(plan), rows.data(),
                                                      n_features, row, n, codes.data(), stride);
            for (size_t c = 0; c < plan.columns.size(); ++c)
                for (int32_t i = 0; i < n; ++i) {
                    const int64_t at = (row ? row[i] : i) * n_features + plan.columns[c].feature;
                    const auto x = static_cast<Real>(rows[at]);
                    if (codes[c * stride + i] != code_of(plan, plan.columns[c], x))
                        return check::fail(
                            __FILE__, __LINE__,
                            isa + ": column " + std::to_string(c) + " of " + std::to_string(x));
                }
        }
    });
}

TEST(encode) {
    for (uint64_t seed = 0; seed < 6; ++seed)
        for (const auto& [n_features, n] :
             {std::pair(5, 200), std::pair(90, 70), std::pair(3, 600)}) {
            check_encode<float, float>(seed, n_features, n);
            check_encode<double, float>(seed, n_features, n);
            check_encode<float, double>(seed, n_features, n);
            check_encode<double, double>(seed, n_features, n);
        }
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

// The leaf number that a row's codes lead to, split by split, as SmallTree and Split document it.
uint8_t number_of(const SmallTrees& trees, const SmallTree& tree, const uint8_t* codes,
                  int64_t stride, int32_t i) {
    int32_t number = 0;
    for (int32_t s = tree.split_begin; s < tree.split_end; ++s) {
        const Split& split = trees.splits[s];
        const uint8_t byte = codes[split.column * stride + i];
        bool right = static_cast<int8_t>(byte) > split.rank;
        if (split.set >= 0) {
            const int32_t code = byte ^ 128;
            right = trees.sets[32 * split.set + code / 8] >> code % 8 & 1;
        }
        if (right && (tree.oblivious || number == split.first)) number += split.left;
    }
    return static_cast<uint8_t>(number);
}

// Small trees of many shapes, and any bytes for codes.
struct Coded {
    explicit Coded(uint64_t seed, int32_t words)
        : forest(shaped(seed).forest()),
          plan(plan_of(forest)),
          stride(words * kWord + kWord),
          codes(plan.columns.size() * stride) {
        Random random(seed);
        for (uint8_t& code : codes) code = static_cast<uint8_t>(random.below(256));
    }
    static Trees<float> shaped(uint64_t seed) {
        Trees<float> trees = random_trees<float>(seed, {.n_trees = 10, .depth = 7});
        Random random(seed);
        for (int32_t depth : {2, 4, 8}) {  // oblivious ones
            const auto place = [&](auto&& self, int32_t level) -> int32_t {
                if (level == depth) return trees.add_leaf(random.normal(), 0.5);
                const int32_t node = trees.add_node(level % 5, 0.1f * float(level), 0);
                const int32_t left = self(self, level + 1);
                trees.set_children(node, left, self(self, level + 1));
                return node;
            };
            place(place, 0);
            trees.end_tree();
        }
        return trees;
    }
    Forest<float> forest;
    Plan<float> plan;
    int64_t stride;
    std::vector<uint8_t> codes;
};

TEST(leaves) {
    for (uint64_t seed = 0; seed < 6; ++seed)
        for (int32_t words : {1, 2, 3, 5, 8}) {
            const Coded coded(seed, words);
            each_isa([&](const Kernels& table, const std::string& isa) {
                for (const SmallTree& tree : coded.plan.small) {
                    std::vector<uint8_t> found(words * kWord, 255), expected(words * kWord);
                    table.leaves(coded.plan, tree, {coded.codes.data(), coded.stride, words},
                                 found.data());
                    for (int32_t i = 0; i < words * kWord; ++i)
                        expected[i] =
                            number_of(coded.plan, tree, coded.codes.data(), coded.stride, i);
                    CHECK_ALL_EQUAL(found, expected, isa);
                }
            });
        }
}

TEST(look_up_and_add) {
    Random random(3);
    for (int32_t n_leaves : {1, 2, 16, 31, 32, 33, 64, 65, 255, 256})
        for (int32_t words : {1, 3}) {
            const int32_t n = words * kWord;
            std::vector<float> single(n_leaves + 64);  // kernels load whole registers
            std::vector<double> wide(n_leaves);
            for (int32_t i = 0; i < n_leaves; ++i) {
                single[i] = static_cast<float>(random.normal());
                wide[i] = random.normal();
            }
            std::vector<uint8_t> number(n);
            std::vector<float> before(n), looked_up(n), added(n);
            std::vector<double> before_wide(n), added_wide(n);
            for (int32_t i = 0; i < n; ++i) {
                number[i] = static_cast<uint8_t>(random.below(n_leaves));
                before[i] = static_cast<float>(random.normal());
                before_wide[i] = random.normal();
                looked_up[i] = single[number[i]];
                added[i] = before[i] + single[number[i]];
                added_wide[i] = before_wide[i] + wide[number[i]];
            }
            each_isa([&](const Kernels& table, const std::string& isa) {
                std::vector<float> out(n), sums = before;
                std::vector<double> wide_sums = before_wide;
                table.look_up(single.data(), n_leaves, number.data(), words, out.data());
                table.add_single(single.data(), n_leaves, number.data(), words, sums.data());
                table.add_double(wide.data(), number.data(), words, wide_sums.data());
                CHECK_ALL_EQUAL(out, looked_up, isa);
                CHECK_ALL_EQUAL(sums, added, isa);
                CHECK_ALL_EQUAL(wide_sums, added_wide, isa);
            });
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
    Chunk chunk(const uint8_t* codes, int64_t stride) {
        return {{codes, stride, static_cast<int32_t>(alive.size())},
                sums.data(),
                alive.data(),
                row.data()};
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
                    table.advance(values.data(), policy.view(), r, found.chunk(nullptr, 0),
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
        table.advance(values.data(), policy, 0, found.chunk(nullptr, 0), found.decided.out());
        CHECK_ALL_EQUAL(found.alive, std::vector<uint64_t>{0x5555555555555555u}, isa);
        for (int32_t i = 1; i < kWord; i += 2)
            CHECK_EQUAL(+found.decided.positive[found.row[i]], i % 4 == 3 ? 1 : 0);
    });
}

TEST(quit) {
    for (uint64_t seed = 0; seed < 6; ++seed)
        for (int32_t words : {1, 3, 8}) {
            const Coded coded(seed, words);
            const Policy policy(seed, coded.plan.n_steps(), 0.1, 2.0);
            each_isa([&](const Kernels& table, const std::string& isa) {
                Running found(seed, words), expected(seed, words);
                table.quit(coded.plan, policy.view(), 1, coded.plan.n_steps(),
                           found.chunk(coded.codes.data(), coded.stride), found.decided.out());
                for (int32_t r = 1; r < coded.plan.n_steps(); ++r)
                    for (int32_t i = 0; i < words * kWord; ++i) {
                        const SmallTree& tree = coded.plan.small[r];
                        const uint8_t number =
                            number_of(coded.plan, tree, coded.codes.data(), coded.stride, i);
                        expected.step(i, coded.plan.step_value[tree.leaf_begin + number],
                                      policy.view(), r);
                    }
                check_running(found, expected, isa);
            });
        }
}

TEST(compact) {
    for (uint64_t seed = 0; seed < 10; ++seed)
        for (int32_t words : {1, 2, 9}) {
            const Coded coded(seed, words);
            const std::vector<int32_t> columns = {0, 2, 1};
            each_isa([&](const Kernels& table, const std::string& isa) {
                Running state(seed, words + 1);  // kernels may write up to a word past the end
                state.alive.resize(words);
                state.alive[0] = seed == 0 ? 0 : seed == 1 ? ~uint64_t{0} : state.alive[0];
                std::vector<uint8_t> codes = coded.codes;
                std::vector<double> sums;
                std::vector<int32_t> row;
                std::vector<uint8_t> kept[3];
                for (int32_t i = 0; i < words * kWord; ++i)
                    if (state.alive[i / kWord] >> i % kWord & 1) {
                        sums.push_back(state.sums[i]);
                        row.push_back(state.row[i]);
                        for (int32_t c : columns) kept[c].push_back(codes[c * coded.stride + i]);
                    }
                const int32_t left =
                    table.compact(state.alive.data(), words, codes.data(), coded.stride, columns,
                                  state.sums.data(), state.row.data());
                CHECK_EQUAL(left, static_cast<int32_t>(row.size()));
                state.sums.resize(left);
                state.row.resize(left);
                CHECK_ALL_EQUAL(state.sums, sums, isa);
                CHECK_ALL_EQUAL(state.row, row, isa);
                for (int32_t c : columns) {
                    const auto first = codes.begin() + c * coded.stride;
                    CHECK_ALL_EQUAL(std::vector<uint8_t>(first, first + left), kept[c], isa);
                }
            });
        }
}

}  // namespace
