// Arrays of trees that are not sound against the validator, and what it accepts against plain
// loops, on one of the instruction sets. The bytes of an input are choices: how trees grow, and
// what is changed.
#include <cstdlib>
#include <stdexcept>

#include "tests/engines.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

constexpr int64_t kIntegers[] = {0,         1,         -1,  2,   5,         31,
                                 32,        63,        64,  255, 1 << 16,   1 << 24,
                                 (1 << 27), INT32_MAX, 127, 128, INT32_MIN, int64_t{1} << 32,
                                 INT64_MAX, INT64_MIN};
constexpr double kReals[] = {0.0, -0.0, 1e-45, 1e-35, 1.0, -1.0, 1e38, 1e300, 0.5};

template <class T>
T odd_value(Random& random) {
    if constexpr (std::is_floating_point_v<T>) {
        if (random.below(4) == 0) return std::numeric_limits<T>::quiet_NaN();
        if (random.below(4) == 0) return std::numeric_limits<T>::infinity();
        return static_cast<T>(kReals[random.below(std::size(kReals))]);
    } else {
        return static_cast<T>(kIntegers[random.below(std::size(kIntegers))]);
    }
}

// The next value up or down; integers go round at their ends.
template <class T>
void step(T& value, int by) {
    if constexpr (std::is_floating_point_v<T>)
        value += static_cast<T>(by);
    else
        value = static_cast<T>(static_cast<uint64_t>(value) + static_cast<uint64_t>(by));
}

// Overwrites, moves, removes or repeats an entry of an array.
template <class T>
void mutate(std::vector<T>& array, Random& random) {
    const auto place = [&] { return random.below(static_cast<int32_t>(array.size())); };
    const int32_t kind = random.below(8);
    if (array.empty() || kind == 0)
        array.push_back(odd_value<T>(random));
    else if (kind == 1)
        array.erase(array.begin() + place());
    else if (kind < 5)
        array[place()] = array[place()];
    else if (kind == 5)
        array[place()] = odd_value<T>(random);
    else
        step(array[place()], random.below(2) ? 1 : -1);
}

template <class Real>
void mutate(Trees<Real>& trees, Random& random) {
    switch (random.below(12)) {
        case 0:
            return mutate(trees.node_begin, random);
        case 1:
            return mutate(trees.leaf_begin, random);
        case 2:
            return mutate(trees.feature, random);
        case 3:
            return mutate(trees.threshold, random);
        case 4:
            return mutate(trees.left, random);
        case 5:
            return mutate(trees.right, random);
        case 6:
            return mutate(trees.flags, random);
        case 7:
            return mutate(trees.category_begin, random);
        case 8:
            return mutate(trees.category_words, random);
        case 9:
            return mutate(trees.leaf_value, random);
        case 10:
            return mutate(trees.leaf_other, random);
        default:
            trees.n_features += random.below(3) - 1;
    }
}

template <class Real>
void run_case(Random& random) {
    // Most forests are tiny: nearly all of the time goes into their layouts.
    const Shape shape{.n_trees = 1 + random.below(random.below(16) ? 2 : 8),
                      .depth = 1 + random.below(random.below(16) ? 3 : 9),
                      .leaf_stop = random.below(2) ? 0.3 : 0.05,
                      .n_codes = random.below(2) ? 70 : 300};
    Trees<Real> trees = random_trees<Real>(random, shape);
    for (int32_t k = random.below(5); k > 0; --k) mutate(trees, random);
    try {
        (void)trees.forest();
    } catch (const std::invalid_argument&) {
        return;
    }
    const int64_t n = 1 + random.below(random.below(16) ? 6 : 90), width = trees.n_features;
    const uint64_t seed = random.next();
    auto numbers = random_rows<float>(seed, n, width);
    const EngineProblem<Real, float> problem(std::move(trees), std::move(numbers), seed);
    const FullEngine<Real> engine(problem.forest);
    const QuitEngine<Real> quitter(engine, problem.policy.view());
    const RowsView<float> rows{problem.rows.data(), n, width, width, 1};
    const auto isas = available_isas();
    const std::string_view isa = isas[seed % isas.size()];
    check_decisions(quitter, problem.expected, rows, 1, isa, std::string(isa));
    check_scores(engine, problem, rows, 1, isa, std::string(isa));
    Decided alone(n);
    for (int64_t i = 0; i < n; ++i)
        quitter.walk_on(quitter.start_one(), &problem.rows[static_cast<size_t>(i * width)],
                        {&alone.positive[i], &alone.steps[i], &alone.score[i]});
    check_decided(alone, problem.expected, "one row");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Random random(std::span(data, size));
    random.below(2) ? run_case<float>(random) : run_case<double>(random);
    if (check::failures()) std::abort();
    return 0;
}
