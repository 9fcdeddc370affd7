// What a monitor needs for Python: rows picked at random, and tests after every row.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <vector>

#include "core/checked_rows.hpp"
#include "core/rate_test.hpp"
#include "core/row_sampler.hpp"
#include "python/engines.hpp"
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

template <class In>
bool keep(PickedRows& picked, const Rows<In>& rows, const Vector<uint8_t>& decided,
          const Vector<int32_t>& steps) {
    picked.check(rows, decided, steps);
    return picked.add_picked(view(rows), decided.data(), steps.data());
}

// The same engine, with somebody who is told about its rows.
AnyQuitter watched(const AnyQuitter& quitter, nb::object picked, nb::object on_full) {
    AnyQuitter copy = quitter;
    copy.watcher = std::make_shared<PickingWatcher>(std::move(picked), std::move(on_full));
    return copy;
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

// Whether all numbers are in [0, end).
template <class T>
bool are_below(const Vector<T>& numbers, T end) {
    T least = 0, most = 0;  // without a branch in the loop, which is on the way of every check
    for (const T x : span(numbers)) {
        least = std::min(least, x);
        most = std::max(most, x);
    }
    return least >= 0 && most < end;
}

CheckedRows checked(const Vector<uint8_t>& decided, const Vector<uint8_t>& full) {
    require(decided.shape(0) == full.shape(0), "every row must be decided twice");
    require(are_below<uint8_t>(decided, 2) && are_below<uint8_t>(full, 2), "there are two classes");
    return {span(decided), span(full)};
}

using Counts =
    std::tuple<std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>, int64_t, double>;

Counts count(const Vector<uint8_t>& decided, const Vector<uint8_t>& full,
             const Vector<int32_t>& steps, const Vector<int32_t>& bin, const Vector<double>& cost,
             double cost_before, int32_t n_bins) {
    require(steps.shape(0) == full.shape(0) && bin.shape(0) == cost.shape(0),
            "every row must have steps, and every number of steps a bin and a cost");
    require(n_bins > 0 && are_below(bin, n_bins), "there are not so many bins");
    require(bin.shape(0) > 0 && are_below(steps, static_cast<int32_t>(bin.shape(0))),
            "there are not so many steps");
    RowCounts found = count_rows(checked(decided, full), span(steps), span(bin), span(cost),
                                 cost_before, static_cast<size_t>(n_bins));
    return {std::move(found.by_class), std::move(found.differences), std::move(found.exits),
            found.steps, found.cost};
}

std::tuple<OutVector<uint8_t>, std::optional<OutVector<int64_t>>> rows_of_limit(
    const Vector<uint8_t>& decided, const Vector<uint8_t>& full, int among, uint32_t kinds) {
    const LimitRows found = limit_rows(checked(decided, full), among, kinds);
    if (among < 0) return {to_numpy(found.differs), std::nullopt};
    return {to_numpy(found.differs), to_numpy(found.at)};
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
        .def(nb::init<double, uint64_t, int64_t, int64_t, bool>(), "rate"_a, "seed"_a,
             "n_features"_a, "most"_a, "wide"_a)
        .def("keep", &keep<float>, "rows"_a, "decided"_a, "steps"_a,
             "Keep rows that were picked already. True when `most` wait.")
        .def("keep", &keep<double>, "rows"_a, "decided"_a, "steps"_a)
        .def(
            "pick", [](PickedRows& rows, int64_t n) { return pick(rows.sampler, n); }, "n"_a,
            "Count n more rows. Returns those of them that are picked, ascending; None: none is.")
        .def("drain", &PickedRows::drain, "The waiting rows, their decisions and steps.")
        .def_prop_ro(
            "taken", [](const PickedRows& rows) { return rows.sampler.taken(); },
            "How many rows were counted.");
    m.def("watched", &watched, "quitter"_a, "picked"_a, "on_full"_a,
          "A quitter whose rows are counted, and copied where they are picked. When enough of them "
          "wait, `on_full(threads)` is called.");
    m.def("count_rows", &count, "decided"_a, "full"_a, "steps"_a, "bin"_a, "cost"_a,
          "cost_before"_a, "n_bins"_a,
          "Rows by full decision, by difference and by bin, base models in all, and their cost "
          "together with what was before.");
    m.def("rows_of_limit", &rows_of_limit, "decided"_a, "full"_a, "among"_a, "kinds"_a,
          "Which of the rows that a limit counts differ, and where these rows are: None where it "
          "counts all.");
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
