// What a monitor needs for Python: rows picked at random, and tests after every row.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <vector>

#include "core/judge.hpp"
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

// A state of a test as Python keeps it: rows, count, the parts apart and joint, whether there is
// one part.
using TestTuple =
    std::tuple<int64_t, int64_t, std::vector<double>, double, std::vector<double>, double, bool>;

RateTestState state_of(const RateTest& test, TestTuple known) {
    auto& [rows, count, apart, apart_unspent, joint, joint_unspent, one_part] = known;
    require(apart.size() == test.n_alternatives() && joint.size() == test.n_alternatives(),
            "there must be one value per alternative");
    return {rows,
            count,
            {std::move(apart), apart_unspent},
            {std::move(joint), joint_unspent},
            one_part};
}

TestTuple tuple_of(const RateTestState& state) {
    const Starts& joint = state.one_part ? state.apart : state.joint;
    return {state.rows,  state.count,   state.apart.value, state.apart.unspent,
            joint.value, joint.unspent, state.one_part};
}

// Whether all numbers are in [0, end).
template <class T>
bool are_below(std::span<const T> numbers, T end) {
    T least = 0, most = 0;  // without a branch in the loop, which is on the way of every check
    for (const T x : numbers) {
        least = std::min(least, x);
        most = std::max(most, x);
    }
    return least >= 0 && most < end;
}

// A judge and the state that it changes. Callers have a lock of their own.
class RunningJudge {
  public:
    using Limit = std::tuple<int, uint32_t, const RateTest*>;  // among, kinds, test or none
    using State = std::tuple<std::vector<int64_t>, std::vector<int64_t>, std::vector<int64_t>,
                             int64_t, double, std::vector<std::optional<TestTuple>>,
                             std::vector<std::optional<int64_t>>>;

    RunningJudge(const std::vector<Limit>& limits, std::vector<int32_t> bin,
                 std::vector<double> cost, double needed)
        : n_bins_(bin.empty() ? 0 : 1 + *std::max_element(bin.begin(), bin.end())),
          judge_(tests_of(limits), {std::move(bin), std::move(cost)}, needed) {
        const StepTables& tables = judge_.tables();
        require(n_bins_ > 0 && tables.bin.size() == tables.cost.size() &&
                    are_below(std::span<const int32_t>(tables.bin), n_bins_),
                "every number of steps must have a bin and a cost");
    }

    State get() const {
        const auto& [by_class, differences, exits, steps, cost] = state_.counts;
        State found{by_class, differences, exits, steps, cost, {}, {}};
        for (size_t i = 0; i < state_.tests.size(); ++i) {
            const bool has_test = judge_.limits()[i].test.has_value();
            const int64_t raised = state_.raised[i];
            std::get<5>(found).push_back(has_test ? std::optional(tuple_of(state_.tests[i]))
                                                  : std::nullopt);
            std::get<6>(found).push_back(raised < 0 ? std::nullopt : std::optional(raised));
        }
        return found;
    }

    void set(State given) {
        auto& [by_class, differences, exits, steps, cost, tests, raised] = given;
        const auto& limits = judge_.limits();
        require(by_class.size() == 2 && differences.size() == 2 &&
                    exits.size() == static_cast<size_t>(n_bins_) && tests.size() == limits.size() &&
                    raised.size() == limits.size(),
                "the state is of another judge");
        JudgeState state{
            {std::move(by_class), std::move(differences), std::move(exits), steps, cost}, {}, {}};
        for (size_t i = 0; i < limits.size(); ++i) {
            require(tests[i].has_value() == limits[i].test.has_value(),
                    "a limit has another kind of test");
            state.tests.push_back(tests[i] ? state_of(*limits[i].test, std::move(*tests[i]))
                                           : RateTestState{});
            state.raised.push_back(raised[i].value_or(-1));
        }
        state_ = std::move(state);
    }

    void add(const Vector<uint8_t>& decided, const Vector<uint8_t>& full,
             const Vector<int32_t>& steps) {
        require(decided.shape(0) == full.shape(0) && steps.shape(0) == full.shape(0),
                "every row must be decided twice, and have steps");
        require(are_below<uint8_t>(span(decided), 2) && are_below<uint8_t>(span(full), 2),
                "there are two classes");
        require(are_below(span(steps), static_cast<int32_t>(judge_.tables().bin.size())),
                "there are not so many steps");
        require(state_.tests.size() == judge_.limits().size(), "the state is not set");
        judge_.add({span(decided), span(full), span(steps)}, state_);
    }

  private:
    static std::vector<LimitTest> tests_of(const std::vector<Limit>& limits) {
        std::vector<LimitTest> tests;
        for (const auto& [among, kinds, test] : limits)
            tests.push_back({among, kinds, test ? std::optional(*test) : std::nullopt});
        return tests;
    }

    int32_t n_bins_;
    Judge judge_;
    JudgeState state_;
};

std::tuple<TestTuple, int64_t> advance(const RateTest& test, TestTuple known,
                                       const Vector<uint8_t>& differs, double needed) {
    RateTestState state = state_of(test, std::move(known));
    const int64_t reached = test.advance(state, span(differs), needed);
    return {tuple_of(state), reached};
}

double evidence(const RateTest& test, TestTuple known) {
    return test.evidence(state_of(test, std::move(known)));
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
            "advance", &advance, "state"_a, "differs"_a, "needed"_a,
            "The state after more rows, and after how many of them the evidence first was at least "
            "`needed`, or -1.")
        .def("evidence", &evidence, "state"_a, "The evidence against the share.");
    nb::class_<RunningJudge>(m, "RunningJudge", "Counts checked rows and tests limits with them.")
        .def(nb::init<const std::vector<RunningJudge::Limit>&, std::vector<int32_t>,
                      std::vector<double>, double>(),
             "limits"_a, "bin"_a, "cost"_a, "needed"_a)
        .def("get", &RunningJudge::get, "The state.")
        .def("set", &RunningJudge::set, "state"_a, "Go on from a state.")
        .def("add", &RunningJudge::add, "decided"_a, "full"_a, "steps"_a,
             "Count rows, (N,) each, one by one in their order.");
}

}  // namespace qwyc
