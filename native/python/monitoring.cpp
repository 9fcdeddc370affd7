// What a monitor needs for Python: rows picked at random, and tests after every row.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <vector>

#include "core/rate_test.hpp"
#include "core/row_sampler.hpp"
#include "python/picked_rows.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

std::optional<OutVector<int64_t>> pick(RowSampler& sampler, int64_t n) {
    require(n >= 0, "the number of rows must not be negative");
    const std::vector<int64_t> picked = sampler.pick(n);
    if (picked.empty()) return std::nullopt;
    return to_numpy(picked);
}

RateTestState state_of(const RateTest& test, int64_t rows, int64_t count,
                       const Vector<double>& apart, double apart_unspent,
                       const Vector<double>& joint, double joint_unspent, bool one_part) {
    require(apart.shape(0) == test.n_alternatives() && joint.shape(0) == test.n_alternatives(),
            "there must be one value per alternative");
    const auto values = [](const Vector<double>& array) {
        return std::vector<double>(array.data(), array.data() + array.shape(0));
    };
    return {rows, count, {values(apart), apart_unspent}, {values(joint), joint_unspent}, one_part};
}

using Advanced = std::tuple<OutVector<double>, double, OutVector<double>, double, int64_t>;

Advanced advance(const RateTest& test, int64_t rows, int64_t count, const Vector<double>& apart,
                 double apart_unspent, const Vector<double>& joint, double joint_unspent,
                 bool one_part, const Vector<uint8_t>& differs, double needed) {
    RateTestState state =
        state_of(test, rows, count, apart, apart_unspent, joint, joint_unspent, one_part);
    const int64_t reached = test.advance(state, span(differs), needed);
    if (one_part) state.joint = state.apart;
    return {to_numpy(state.apart.value), state.apart.unspent, to_numpy(state.joint.value),
            state.joint.unspent, reached};
}

double evidence(const RateTest& test, int64_t rows, int64_t count, const Vector<double>& apart,
                double apart_unspent, const Vector<double>& joint, double joint_unspent,
                bool one_part) {
    return test.evidence(
        state_of(test, rows, count, apart, apart_unspent, joint, joint_unspent, one_part));
}

}  // namespace

void bind_monitoring(nb::module_& m) {
    nb::class_<PickedRows>(m, "PickedRows", "Copies of rows that were picked at random.")
        .def(nb::init<double, uint64_t, int64_t, int64_t>(), "rate"_a, "seed"_a, "n_features"_a,
             "most"_a)
        .def(
            "take",
            [](PickedRows& rows, int64_t n) {
                require(n >= 0, "the number of rows must not be negative");
                return rows.sampler.take(n);
            },
            "n"_a,
            "Count n more rows. Returns how many came before them if some may be picked, else -1.")
        .def("add", &PickedRows::add<float>, "begin"_a, "rows"_a, "decided"_a, "steps"_a,
             "Keep those of the rows taken after the first `begin` that are picked. True when "
             "`most` "
             "wait.")
        .def("add", &PickedRows::add<double>, "begin"_a, "rows"_a, "decided"_a, "steps"_a)
        .def("keep", &PickedRows::keep_all<float>, "rows"_a, "decided"_a, "steps"_a,
             "Keep rows that were picked already. True when `most` wait.")
        .def("keep", &PickedRows::keep_all<double>, "rows"_a, "decided"_a, "steps"_a)
        .def(
            "pick", [](PickedRows& rows, int64_t n) { return pick(rows.sampler, n); }, "n"_a,
            "Count n more rows. Returns those of them that are picked, ascending; None: none is.")
        .def("drain", &PickedRows::drain, "The waiting rows, their decisions and steps.")
        .def_prop_ro(
            "taken", [](const PickedRows& rows) { return rows.sampler.taken(); },
            "How many rows were counted.");
    nb::class_<RateTest>(m, "RateTest", "Whether rows differ more often than allowed.")
        .def(
            "__init__",
            [](RateTest* self, double share, std::vector<double> multiples, int64_t start_every,
               double tail, double from_first_row, double apart, double joint, double largest) {
                require(start_every > 0, "start_every must be positive");
                const RateTestSettings settings{share, start_every, tail,   from_first_row,
                                                apart, joint,       largest};
                new (self) RateTest(settings, std::move(multiples));
            },
            "share"_a, "multiples"_a, "start_every"_a, "tail"_a, "from_first_row"_a, "apart"_a,
            "joint"_a, "largest"_a)
        .def(
            "advance", &advance, "rows"_a, "count"_a, "apart"_a, "apart_unspent"_a, "joint"_a,
            "joint_unspent"_a, "one_part"_a, "differs"_a, "needed"_a,
            "The state after more rows, and after how many of them the evidence first was at least "
            "`needed`, or -1.")
        .def("evidence", &evidence, "rows"_a, "count"_a, "apart"_a, "apart_unspent"_a, "joint"_a,
             "joint_unspent"_a, "one_part"_a, "The evidence against the share.");
}

}  // namespace qwyc
