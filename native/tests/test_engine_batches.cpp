// Engines on batches of any size, with any survival curve, deep trees between small ones, many
// features, and calls from many threads at once.
#include <thread>

#include "core/float_mode.hpp"
#include "core/worker.hpp"
#include "tests/engines.hpp"
#include "tests/masks.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

// Trees of a few leaves, of many, and with any split.
template <class Real>
Trees<Real> mixed_trees(uint64_t seed, int64_t n_features, bool deep, int32_t n_trees = 24) {
    Random random(seed);
    Trees<Real> trees;
    trees.n_features = n_features;
    trees.rules = random_rules(random, n_trees);
    for (int32_t t = 0; t < n_trees; ++t) {
        if (deep && t % 5 == 2)
            grow(trees, random, {.leaf_stop = 0.02}, 9);
        else
            grow_leaves(trees, random, {}, 1 + random.below(t % 2 ? 12 : kMaxMaskedLeaves));
        trees.end_tree();
    }
    return trees;
}

std::vector<int64_t> batch_sizes() {
    std::vector<int64_t> sizes;
#if defined(__SANITIZE_THREAD__)
    // Races do not depend on the exact size, and all memory accesses are followed there.
    sizes = {0, 1, 5, 17, 63, 64, 65, 80, 513, 1500};
#else
    for (int64_t n = 0; n <= 80; ++n) sizes.push_back(n);
    sizes.insert(sizes.end(), {511, 512, 513, 514, 1500, 20000});
#endif
    return sizes;
}

template <class Real, class In>
void check_batches(uint64_t seed, bool deep) {
    const Trees<Real> trees = mixed_trees<Real>(seed, 6, deep);
    const EngineProblem<Real, In> problem(trees, hostile_rows<In>(trees, seed, 20000), seed);
    const FullEngine<Real> engine(problem.forest);
    CHECK_EQUAL(engine.n_walked() > 0, deep);
    const QuitEngine<Real> quitter(engine, problem.policy.view());
    const QuitEngine<Real, FanPolicy> fan_quitter(engine, problem.fan.view());
    for (int64_t n : batch_sizes())
        for (const Layout& layout : layouts(n, trees.n_features)) {
            const LaidRows<In> laid(problem.rows, n, trees.n_features, layout);
            for (std::string_view isa : available_isas())
                for (int threads : {1, 2, 5}) {
                    if (threads > 1 && n > 2 && n < 500) continue;  // one thread has all rows
                    const std::string context = std::string(isa) + " " + layout.name + " " +
                                                std::to_string(n) + " rows, threads " +
                                                std::to_string(threads);
                    if (threads == 1 || n <= 1500)
                        check_scores(engine, problem, laid.view(), threads, isa, context);
                    check_decisions(quitter, problem.expected, laid.view(), threads, isa, context);
                    check_decisions(fan_quitter, problem.expected_of_fan, laid.view(), threads, isa,
                                    context + " Fan");
                }
        }
}

TEST(batches_of_any_size) {
    check_batches<float, float>(1, false);
    check_batches<float, double>(2, false);
    check_batches<double, float>(3, false);
    check_batches<double, double>(4, false);
}

// By codes where kernels have them and it costs less.
TEST(rows_of_small_batches_go_the_cheaper_way) {
    const bool has_codes = coded_kernels() != nullptr;
    const auto by_codes = [](const Trees<float>& trees, double n_trees) {
        const Forest<float> forest = trees.forest();
        return FullEngine<float>(forest).row_way(n_trees).coded != nullptr;
    };
    CHECK_EQUAL(by_codes(mixed_trees<float>(1, 6, false), 24), has_codes);  // categories
    CHECK(!by_codes(mixed_trees<float>(1, 6, true), 500));                  // deep trees
    for (const int64_t n_features : {6, 60, 300}) {
        Trees<float> flat, deeper;
        flat.n_features = deeper.n_features = n_features;
        Random random(n_features);
        for (int32_t t = 0; t < 300; ++t) {
            grow(flat, random, {.leaf_stop = 0, .special = false}, 4);
            flat.end_tree();
            add_chain(deeper, random, {.special = false}, 8);
        }
        const bool fits = n_features <= CodedTrees::kCodes;
        CHECK(!by_codes(flat, 4));  // its comparisons are side by side
        CHECK_EQUAL(by_codes(flat, 300), has_codes && fits);
        CHECK_EQUAL(by_codes(deeper, 300), has_codes && fits);
        for (const Trees<float>* trees : {&flat, &deeper}) {
            const EngineProblem<float, double> problem(*trees, hostile_rows<double>(*trees, 1, 12),
                                                       1);
            const FullEngine<float> engine(problem.forest);
            const QuitEngine<float> quitter(engine, problem.policy.view());
            for (int64_t n = 1; n <= 12; ++n)
                for (const Layout& layout : layouts(n, n_features)) {
                    const LaidRows<double> laid(problem.rows, n, n_features, layout);
                    check_scores(engine, problem, laid.view(), 1, "", layout.name);
                    check_decisions(quitter, problem.expected, laid.view(), 1, "", layout.name);
                }
        }
    }
}

TEST(batches_of_any_size_with_deep_trees) {
    check_batches<float, float>(5, true);
    check_batches<double, double>(6, true);
}

TEST(decisions_do_not_depend_on_the_survival_curve) {
    for (bool deep : {false, true}) {
        const Trees<float> trees = mixed_trees<float>(7, 9, deep, 150);
        const int64_t n = 1700;
        const EngineProblem<float, float> problem(trees, hostile_rows<float>(trees, 7, n), 7);
        const FullEngine<float> engine(problem.forest);
        const size_t n_steps = trees.n_trees();
        std::vector<std::vector<double>> curves = {{},
                                                   std::vector<double>(n_steps, 1.0),
                                                   std::vector<double>(n_steps, 0.0),
                                                   std::vector<double>(n_steps, 1e-300),
                                                   std::vector<double>(n_steps, 1e300)};
        std::vector<double> falls, rises, random_curve, drops;
        Random random(7);
        for (size_t r = 0; r < n_steps; ++r) {
            falls.push_back(std::pow(0.8, static_cast<double>(r)));
            rises.push_back(1 - falls.back());
            random_curve.push_back(random.uniform());
            drops.push_back(r < 3 ? 1.0 : 0.0);
        }
        curves.insert(curves.end(), {falls, rises, random_curve, drops});
        for (size_t k = 0; k < curves.size(); ++k) {
            const QuitEngine<float> quitter(engine, problem.policy.view(), curves[k]);
            const QuitEngine<float, FanPolicy> fan_quitter(engine, problem.fan.view(), curves[k]);
            for (std::string_view isa : available_isas())
                for (int64_t rows : {int64_t{30}, int64_t{200}, n}) {
                    const auto view = in_c_order(problem.rows, rows, trees.n_features);
                    const std::string context = std::string(isa) + " curve " + std::to_string(k) +
                                                " rows " + std::to_string(rows);
                    check_decisions(quitter, problem.expected, view, 2, isa, context);
                    check_decisions(fan_quitter, problem.expected_of_fan, view, 2, isa,
                                    context + " Fan");
                }
        }
    }
}

// Policies under which all rows quit at once, none does, or only late steps let any quit.
TEST(policies_at_the_extremes) {
    const Trees<double> trees = mixed_trees<double>(8, 5, true, 140);
    const EngineProblem<double, double> problem(trees, hostile_rows<double>(trees, 8, 1100), 8);
    const FullEngine<double> engine(problem.forest);
    for (int32_t quits_at : {-1, 0, 1, 70, 138, 139})
        for (int side : {-1, 0, 1}) {
            Policy policy = problem.policy;
            policy.lower.assign(trees.n_trees(), -kInf);
            policy.upper.assign(trees.n_trees(), kInf);
            if (quits_at >= 0) {
                if (side <= 0) policy.lower[quits_at] = side ? 1e9 : problem.centre;
                if (side >= 0) policy.upper[quits_at] = side ? -1e9 : problem.centre;
                if (side < 0) policy.upper[quits_at] = kInf;
            }
            const Decided expected =
                decide_plainly(policy, problem.values, problem.base, problem.full);
            const QuitEngine<double> quitter(engine, policy.view());
            for (std::string_view isa : available_isas())
                for (int64_t rows : {5, 64, 1100})
                    check_decisions(quitter, expected,
                                    in_c_order(problem.rows, rows, trees.n_features), 2, isa,
                                    std::string(isa) + " quits at " + std::to_string(quits_at) +
                                        " side " + std::to_string(side));
        }
}

template <class Real, class In>
void check_wide(int64_t n_features) {
    const Trees<Real> trees = mixed_trees<Real>(9, n_features, true, 60);
    const int64_t n = 1300;
    const EngineProblem<Real, In> problem(trees, random_rows<In>(9, n, n_features), 9);
    const FullEngine<Real> engine(problem.forest);
    const QuitEngine<Real> quitter(engine, problem.policy.view());
    for (const Layout& layout : layouts(n, n_features)) {
        const LaidRows<In> laid(problem.rows, n, n_features, layout);
        for (std::string_view isa : available_isas()) {
            const std::string context = std::string(isa) + " " + layout.name;
            check_scores(engine, problem, laid.view(), 2, isa, context);
            check_decisions(quitter, problem.expected, laid.view(), 2, isa, context);
        }
    }
}

TEST(many_features) {
    check_wide<float, float>(2000);
    check_wide<double, double>(700);
}

// Threads keep their scratch space from call to call; engines that need more or less of it take
// turns.
TEST(calls_from_many_threads_at_once) {
    const Trees<float> narrow_trees = mixed_trees<float>(10, 3, true, 30);
    const Trees<double> wide_trees = mixed_trees<double>(11, 150, false, 50);
    const EngineProblem<float, float> narrow(narrow_trees,
                                             hostile_rows<float>(narrow_trees, 1, 3000), 1);
    const EngineProblem<double, double> wide(wide_trees, hostile_rows<double>(wide_trees, 2, 700),
                                             2);
    const FullEngine<float> narrow_engine(narrow.forest);
    const FullEngine<double> wide_engine(wide.forest);
    const QuitEngine<float> narrow_quitter(narrow_engine, narrow.policy.view());
    const QuitEngine<double> wide_quitter(wide_engine, wide.policy.view());
    const QuitEngine<double, FanPolicy> fan_quitter(wide_engine, wide.fan.view());
    const LaidRows<double> columns(wide.rows, 700, 150, layouts(700, 150)[2]);
    std::vector<std::jthread> threads;
    for (int k = 0; k < 6; ++k)
        threads.emplace_back([&, k] {
            for (int round = 0; round < 8; ++round) {
                const std::string context = "thread " + std::to_string(k);
                const int64_t rows = 1 + (round * 997 + k * 131) % 3000;
                const auto some = in_c_order(narrow.rows, rows, 3);
                const int own = 1 + (k + round) % 3;
                check_decisions(narrow_quitter, narrow.expected, some, own, "",
                                context + " narrow");
                check_decisions(wide_quitter, wide.expected, columns.view(), own, "",
                                context + " wide");
                check_scores(narrow_engine, narrow, some, own, "", context + " narrow");
                check_decisions(fan_quitter, wide.expected_of_fan, columns.view(), own, "",
                                context + " Fan");
            }
        });
}

TEST(rows_too_far_apart_for_32_bits_are_taken_one_by_one) {
    CHECK_EQUAL(max_rows_in_int32(1), std::numeric_limits<int32_t>::max());
    CHECK_EQUAL(max_rows_in_int32(0), std::numeric_limits<int32_t>::max());
    CHECK_EQUAL(max_rows_in_int32(1 << 20), 2047);
    CHECK_EQUAL(max_rows_in_int32(-(1 << 20)), 2047);
    for (int64_t stride : {int64_t{1} << 31, -(int64_t{1} << 40)}) {
        CHECK_EQUAL(max_rows_in_int32(stride), 1);
        const Trees<float> trees = mixed_trees<float>(12, 6, true);
        const EngineProblem<float, float> problem(trees, hostile_rows<float>(trees, 12, 1), 12);
        const FullEngine<float> engine(problem.forest);
        const RowsView<float> one{problem.rows.data(), 1, 6, stride, 1};
        check_scores(engine, problem, one, 2, "", "far apart");
        check_decisions(QuitEngine<float>(engine, problem.policy.view()), problem.expected, one, 2,
                        "", "far apart");
    }
}

#if QWYC_FLOAT_MODES
TEST(engines_are_the_same_whatever_the_callers_float_mode) {
    Trees<double> trees;
    for (double at : {1e-40, -1e-40, 2e-45, 1e-300, 0.1})
        for (uint8_t flags : {0, +kDefaultLeft})
            trees.add_stump(1, at, flags, at < 0 ? 0.5 : -0.25, flags ? 1 : 0.75);
    const EngineProblem<double, float> problem(trees, hostile_rows<float>(trees, 3, 400), 3);
    const auto before = FloatMode::get();
    FloatMode::set(before | FloatMode::kNoDenormals);
    const FullEngine<double> engine(problem.forest);
    const QuitEngine<double> quitter(engine, problem.policy.view());
    const auto view = in_c_order(problem.rows, 400, trees.n_features);
    std::vector<double> full(400);
    Decided found(400);
    engine.score(view, nullptr, full.data(), 2);
    quitter.decide(view, found.out(), 2);
    FloatMode::set(before);
    CHECK_ALL_EQUAL(full, problem.full, "full");
    check_decided(found, problem.expected, "decided");
}
#endif

TEST(scratch_space_is_aligned_and_kept) {
    Buffer<double> buffer;
    CHECK_EQUAL(buffer.bytes(), 0u);
    double* const first = buffer.of(100);
    first[99] = 3;
    CHECK_EQUAL(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    CHECK(buffer.of(10) == first && buffer.of(100) == first);
    CHECK_EQUAL(buffer.bytes(), 800u);
    CHECK_EQUAL(reinterpret_cast<uintptr_t>(buffer.of(1001)) % 64, 0u);
    buffer.release();
    CHECK_EQUAL(buffer.bytes(), 0u);
    Scratch* other = nullptr;
    std::thread([&] { other = &scratch(); }).join();
    CHECK(other != &scratch() && &scratch() == &scratch());
}

}  // namespace
