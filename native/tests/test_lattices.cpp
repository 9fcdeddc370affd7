// Lattices against plain loops: every instruction set that this machine runs, every way to hold
// rows, batches of every size and one row at a time.
#if !defined(_WIN32)
#include <sys/resource.h>
#endif

#include <functional>
#include <numeric>
#include <string>

#include "core/float_mode.hpp"
#include "core/kernels.hpp"
#include "core/lattice_engine.hpp"
#include "tests/check.hpp"
#include "tests/fan.hpp"
#include "tests/lattices.hpp"

namespace {

using namespace qwyc;
using namespace qwyc::tests;

template <class Real, class In>
void check_lattices(const Arrays<Real>& arrays, int64_t n, uint64_t seed, const std::string& what) {
    std::vector<In> rows = random_rows<In>(seed, n, arrays.n_features);
    for (size_t i = 0; i < rows.size(); i += 7) rows[i] = -1;  // a missing value of some
    const Lattices<Real> lattices(arrays.flat(), arrays.n_features, arrays.base);
    std::vector<Real> values = lattice_values(arrays, rows);
    for (Real& value : values) value = static_cast<Real>(lattices.grid().round(value));
    std::vector<double> full(n, lattices.base());
    for (int32_t t = 0; t < arrays.n_models(); ++t)
        for (int64_t i = 0; i < n; ++i) full[i] += values[t * n + i];

    std::vector<double> sorted = full;
    std::sort(sorted.begin(), sorted.end());
    const double centre = sorted[n / 2], width = (sorted[n - 1] - sorted[0]) / 4 + 1e-3;
    const Policy policy(seed, arrays.n_models(), centre, width);
    const Decided expected = decide_plainly(policy, values, lattices.base(), full);
    const FanTable fan(seed, policy, values, lattices.base(), n, width);
    const Decided expected_of_fan = decide_plainly(fan, values, lattices.base(), full);
    const LatticeEngine<Real> engine(lattices);
    const LatticeEngine<Real> quitter(lattices, policy.view());
    const LatticeEngine<Real, FanPolicy> fan_quitter(lattices, fan.view());
    for (std::string_view isa : available_isas())
        for (int threads : {1, 3}) {
            const std::string context = what + " " + std::string(isa) + " seed " +
                                        std::to_string(seed) + " rows " + std::to_string(n);
            std::vector<Real> found_values(values.size(), -1);
            std::vector<double> found(n, -1);
            engine.score(rows.data(), n, found_values.data(), found.data(), threads, isa);
            CHECK_ALL_EQUAL(found_values, values, context + " values");
            CHECK_ALL_EQUAL(found, full, context + " full");
            const auto check = [&](const auto& decider, const Decided& right, const char* rule) {
                Decided decided(n);
                decider.decide(rows.data(), n, decided.out(), threads, isa);
                CHECK((decided.positive == right.positive));
                CHECK_ALL_EQUAL(decided.steps, right.steps, context + rule + " steps");
                CHECK_ALL_EQUAL(decided.score, right.score, context + rule + " score");
            };
            check(quitter, expected, "");
            check(fan_quitter, expected_of_fan, " Fan");
        }
    Decided one(n);
    for (int64_t i = 0; i < n; ++i)
        quitter.decide_one(rows.data() + i * arrays.n_features,
                           {&one.positive[i], &one.steps[i], &one.score[i]});
    CHECK((one.positive == expected.positive));
    CHECK_ALL_EQUAL(one.steps, expected.steps, what + " steps of one row");
    CHECK_ALL_EQUAL(one.score, expected.score, what + " score of one row");
}

template <class Real>
void check_both(const Arrays<Real>& arrays, int64_t n, uint64_t seed, const std::string& what) {
    check_lattices<Real, float>(arrays, n, seed, what + " float rows");
    check_lattices<Real, double>(arrays, n, seed, what + " double rows");
}

TEST(random_lattices_in_batches_of_every_size) {
    const int64_t sizes[] = {1, 2, 3, 9, 15, 16, 17, 33, 64, 300};
    for (uint64_t seed = 0; seed < 30; ++seed) {
        check_both(random_lattices<float>(seed), sizes[seed % 10], seed, "float lattices");
        check_both(random_lattices<double>(seed), sizes[(seed + 3) % 10], seed, "double lattices");
    }
}

TEST(the_shapes_of_the_paper) {
    Random random(7);
    for (int32_t d : {8, 13})
        for (Interpolation how : {Interpolation::kHypercube, Interpolation::kSimplex}) {
            Arrays<float> made;
            made.n_features = 16;
            for (int32_t j = 0; j < 16; ++j)
                made.add_calibrator(CalibratorKind::kPiecewiseLinear, j, {-1, 0, 1}, {0, 0.75f, 1});
            for (int32_t t = 0; t < 5; ++t) {
                std::vector<int32_t> inputs;
                for (int32_t i = 0; i < d; ++i) inputs.push_back((3 * i + t) % 16);
                std::vector<float> values(size_t{1} << d);
                for (float& v : values) v = static_cast<float>(random.normal());
                made.add_model(how, inputs, std::vector<int32_t>(d, 2), values, 0.2);
            }
            check_both(made, 70, d, "the paper's");
        }
}

TEST(more_inputs_and_slots_than_fit_the_stack) {
    Random random(3);
    Arrays<float> wide;
    wide.n_features = 17;
    for (int32_t j = 0; j < 17; ++j)
        wide.add_calibrator(CalibratorKind::kPiecewiseLinear, j, {-2, 2}, {0, 1});
    std::vector<int32_t> inputs(17);
    std::iota(inputs.begin(), inputs.end(), 0);
    std::vector<float> values(1 << 17);
    for (float& v : values) v = static_cast<float>(random.normal());
    wide.add_model(Interpolation::kHypercube, inputs, std::vector<int32_t>(17, 2), values, 1);
    check_lattices<float, float>(wide, 20, 1, "17 inputs");

    Arrays<float> many;  // each calibrator is needed first and last, so all are kept
    many.n_features = 3;
    for (int32_t c = 0; c < 600; ++c)
        many.add_calibrator(CalibratorKind::kPiecewiseLinear, c % 3, {-2, 2}, {0, 1});
    for (int32_t t = 0; t < 1200; ++t)
        many.add_model(Interpolation::kLinear, {t < 600 ? t : 1199 - t}, {0}, {1, 0},
                       random.normal());
    check_lattices<float, float>(many, 40, 2, "600 slots");
}

TEST(sums_are_exact_in_any_order) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
        const Arrays<float> arrays = random_lattices<float>(seed);
        const Lattices<float> lattices(arrays.flat(), arrays.n_features, arrays.base);
        const auto rows = random_rows<float>(seed, 50, arrays.n_features);
        std::vector<float> values(50 * arrays.n_models());
        std::vector<double> full(50);
        LatticeEngine<float>(lattices).score(rows.data(), 50, values.data(), full.data(), 1);
        for (int64_t i = 0; i < 50; ++i) {
            double backwards = 0;
            for (int32_t t = arrays.n_models() - 1; t >= 0; --t) backwards += values[t * 50 + i];
            CHECK_EQUAL(backwards + lattices.base(), full[i]);
        }
    }
}

TEST(bounds_hold_and_are_reached) {
    Arrays<float> made;
    made.n_features = 2;
    for (int32_t j = 0; j < 2; ++j)
        made.add_calibrator(CalibratorKind::kPiecewiseLinear, j, {0, 1}, {0, 1});
    made.add_model(Interpolation::kHypercube, {0, 1}, {2, 2}, {0.1f, -3, 2, 0.3f}, -0.7);
    made.add_model(Interpolation::kLinear, {0, 1}, {0, 0}, {0.3f, -0.2f, 0.05f}, 1.5);
    const Lattices<float> lattices(made.flat(), 2, 0.25);
    const std::vector<float> corners = {0, 0, 0, 1, 1, 0, 1, 1};
    std::vector<float> values(8);
    std::vector<double> full(4);
    LatticeEngine<float>(lattices).score(corners.data(), 4, values.data(), full.data(), 1);
    for (int64_t t = 0; t < 2; ++t) {
        const auto [least, most] = lattices.bounds(t);
        CHECK_EQUAL(*std::min_element(&values[4 * t], &values[4 * t] + 4), least);
        CHECK_EQUAL(*std::max_element(&values[4 * t], &values[4 * t] + 4), most);
    }
}

TEST(networks_sort) {
    for (int32_t n = 1; n <= 14; ++n) {  // a network that sorts all zeros and ones sorts anything
        const auto network = sorting_network(n);
        for (uint32_t bits = 0; bits < uint32_t{1} << n; ++bits) {
            uint32_t now = bits;
            for (const auto [a, b] : network) {
                CHECK(a < b && b < n);
                if (!(now >> a & 1) && (now >> b & 1)) now ^= uint32_t{1} << a | uint32_t{1} << b;
            }
            CHECK_EQUAL(now & (now + 1), 0u);  // ones first
        }
    }
}

TEST(grids_are_fine_enough) {
    CHECK_EQUAL(Grid::of(1.0).shift, 0x1.8p1);
    CHECK_EQUAL(Grid::of(1.0).round(0x1p-51), 0x1p-51);
    CHECK_EQUAL(Grid::of(1.0).round(0x1p-53), 0.0);
    CHECK_EQUAL(Grid::of(0.0).round(0.0), 0.0);
    CHECK_EQUAL(Grid::of(1.5).shift, Grid::of(2.0).shift);
}

// A sound ensemble with one thing changed.
void check_refused(const std::function<void(Arrays<float>&)>& change, const std::string& message) {
    Arrays<float> made;
    made.n_features = 2;
    made.add_calibrator(CalibratorKind::kPiecewiseLinear, 0, {0, 1}, {0, 1});
    made.add_calibrator(CalibratorKind::kCategorical, 1, {0, 1}, {0, 1});
    made.add_model(Interpolation::kHypercube, {0, 1}, {2, 2}, {1, 2, 3, 4}, 1);
    made.add_model(Interpolation::kLinear, {1}, {0}, {1, 0}, 1);
    const Lattices<float> sound(made.flat(), made.n_features, made.base);
    CHECK_EQUAL(sound.n_models(), 2);
    change(made);
    CHECK_THROWS(Lattices<float>(made.flat(), made.n_features, made.base), message);
}

TEST(unsound_arrays_are_refused) {
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    using A = Arrays<float>;
    check_refused([](A& a) { a.calibrator_kind[0] = 2; }, "calibrator 0 is of an unknown kind");
    check_refused([](A& a) { a.calibrator_feature[1] = 2; }, "calibrator 1 has no such feature");
    check_refused([](A& a) { a.calibrator_feature[1] = -1; }, "calibrator 1 has no such feature");
    check_refused([](A& a) { a.has_missing[1] = 2; }, "calibrator 1 must have a missing value");
    check_refused([](A& a) { a.has_missing.pop_back(); }, "one entry per calibrator");
    check_refused([](A& a) { a.point[1] = 0; }, "calibrator 0 must have rising keypoints");
    check_refused([](A& a) { a.point[1] = 1e-45f, a.output[1] = 1e20f; }, "finite slopes");
    check_refused([](A& a) { a.point[0] = -3e38f, a.point[1] = 3e38f; }, "finite slopes");
    check_refused([](A& a) { a.point_begin[1] = 1; }, "calibrator 0 has too few");
    check_refused([](A& a) { a.point_begin[1] = 9; }, "point_begin must divide");
    check_refused([](A& a) { a.output[0] = kNaN; }, "must be finite");
    check_refused([](A& a) { a.vertex[0] = kNaN; }, "must be finite");
    check_refused([](A& a) { a.vertex[0] = 3e38f; }, "a value that is too large");
    check_refused([](A& a) { a.weight[0] = kInf; }, "must be finite");
    check_refused([](A& a) { a.weight[0] = 1e300; }, "too large to be summed");
    check_refused([](A& a) { a.weight.pop_back(); }, "weight must have one entry");
    check_refused([](A& a) { a.interpolation[1] = 3; }, "interpolated in an unknown way");
    check_refused([](A& a) { a.input[0] = 2; }, "names a calibrator that there is not");
    check_refused([](A& a) { a.input[0] = -1; }, "names a calibrator that there is not");
    check_refused([](A& a) { a.size[0] = 1; }, "two vertices or more");
    check_refused([](A& a) { a.size[0] = 3; }, "one value per vertex");
    check_refused([](A& a) { a.size[0] = a.size[1] = 1 << 30; }, "too many vertices");
    check_refused([](A& a) { a.input_begin[1] = 3, a.input_begin[2] = 3; }, "two vertices or more");
    check_refused([](A& a) { a.input_begin[1] = 0; },
                  "base model 0 has too few or too many inputs");
    check_refused([](A& a) { a.vertex_begin[1] = 5; }, "one value per vertex");
    check_refused([](A& a) { a.vertex_begin[0] = 1; }, "vertex_begin must divide");
    check_refused([](A& a) { a.base = kInf; }, "the base must be finite");
    check_refused([](A& a) { a.has_missing[0] = 1, a.missing_value[0] = -INFINITY; },
                  "calibrator 0 has an infinite missing value");
    check_refused([](A& a) { a.size[0] = (1 << 24) + 1; }, "too many vertices along an input");
    // 2^128 - 2^104 is a float, and 2^128, which is nearest to it on the grid, is not.
    check_refused([](A& a) { a.vertex[0] = 0x1.fffffep125f, a.weight[0] = 4, a.base = 0x1p156; },
                  "too large to be rounded to the grid");
    check_refused([](A& a) { a.n_features = -1; }, "too many features");
    check_refused([](A& a) { a.interpolation.clear(); }, "there are no base models");
}

TEST(what_is_kept_is_what_later_steps_need) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
        const Arrays<float> arrays = random_lattices<float>(seed);
        const Lattices<float> lattices(arrays.flat(), arrays.n_features, arrays.base);
        std::vector<int32_t> order(arrays.n_models());
        std::iota(order.rbegin(), order.rend(), 0);
        const LatticePlan plan(lattices, order);
        for (int32_t r = 0; r < plan.n_steps(); ++r) {
            const std::vector<int32_t> kept = plan.in_use(r + 1);
            CHECK_EQUAL(plan.steps[r].n_kept, static_cast<int32_t>(kept.size()));
            std::vector<bool> taken(plan.n_slots, false);
            for (int32_t c : kept) {
                CHECK(!taken[plan.slot[c]] && plan.last_use(c) > r);
                taken[plan.slot[c]] = true;
            }
        }
    }
}

#if !defined(_WIN32)
// Kilobytes that this process has had at the most.
int64_t most_kilobytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

TEST(a_plan_does_not_grow_with_steps_times_calibrators) {
    Arrays<float> many;  // all calibrators are kept from the first 20,000 steps to the last ones
    many.n_features = 1;
    constexpr int32_t kCalibrators = 20'000;
    for (int32_t c = 0; c < kCalibrators; ++c)
        many.add_calibrator(CalibratorKind::kPiecewiseLinear, 0, {0, 1}, {0, 1});
    for (int32_t t = 0; t < 2 * kCalibrators; ++t)
        many.add_model(Interpolation::kLinear, {t % kCalibrators}, {0}, {1, 0}, 1);
    const int64_t before = most_kilobytes();
    const Lattices<float> lattices(many.flat(), 1, 0);
    std::vector<int32_t> order(many.n_models());
    std::iota(order.begin(), order.end(), 0);
    const LatticePlan plan(lattices, order);
    CHECK_EQUAL(plan.n_slots, kCalibrators);
    CHECK(most_kilobytes() - before < 400'000);  // a list per step would take 1.6 GB
}
#endif

#if QWYC_FLOAT_MODES
TEST(the_mode_of_the_calling_thread_does_not_matter) {
    Arrays<float> made;  // the slope is denormal, 2^-130, and so is the second lattice
    made.n_features = 1;
    made.add_calibrator(CalibratorKind::kPiecewiseLinear, 0, {0, 0x1p120f}, {0, 0x1p-10f});
    made.add_model(Interpolation::kLinear, {0}, {0}, {1, 0}, 1);
    made.add_model(Interpolation::kHypercube, {0}, {2}, {0x1p-140f, 0x3p-140f}, 1);
    const std::vector<float> rows = {0x1p119f};
    const auto scores = [&](FloatMode::Bits mode) {
        const auto usual = FloatMode::get();
        FloatMode::set(usual | mode);
        const Lattices<float> lattices(made.flat(), 1, 0);
        const auto [least, most] = lattices.bounds(1);
        std::vector<double> found{least, most, lattices.total(), 0};
        LatticeEngine<float>(lattices).score(rows.data(), 1, nullptr, &found[3], 1);
        FloatMode::set(usual);
        return found;
    };
    const std::vector<double> expected = scores(0);
    CHECK(expected[3] > 0x1p-12);
    constexpr auto kDown = FloatMode::kRounding & -FloatMode::kRounding;  // the lower of two bits
    for (auto mode : {FloatMode::kNoDenormals, FloatMode::kRounding, kDown, 2 * kDown})
        CHECK_ALL_EQUAL(scores(mode), expected, "mode " + std::to_string(mode));
}
#endif

TEST(seconds_are_measured_for_lattices_and_calibrators) {
    const Arrays<float> arrays = random_lattices<float>(5);
    const Lattices<float> lattices(arrays.flat(), arrays.n_features, arrays.base);
    const auto rows = random_rows<float>(1, 100, arrays.n_features);
    std::vector<double> models(arrays.n_models(), -1),
        calibrators(arrays.calibrator_kind.size(), 0);
    LatticeEngine<float>(lattices).measure(rows.data(), 100, 3, models.data(), calibrators.data());
    for (double spent : models) CHECK(spent >= 0);
    for (int32_t c : arrays.input) CHECK(calibrators[c] >= 0);
}

}  // namespace
