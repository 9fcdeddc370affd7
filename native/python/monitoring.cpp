// What a monitor needs for Python: rows picked at random, and tests after every row.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <vector>

#include "core/row_sampler.hpp"
#include "python/engines.hpp"
#include "python/picked_rows.hpp"
#include "python/running_judge.hpp"

using namespace nanobind::literals;

namespace qwyc {
namespace {

std::optional<OutVector<int64_t>> pick(PickedRows& rows, int64_t n) {
    require(n >= 0, "the number of rows must not be negative");
    const std::vector<int64_t> picked = rows.pick(n);
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

// Evaluates waiting rows in full, compares the decisions and judges, in one call: after a large
// batch the caches are cold, and each step through Python would cost as much as many rows.
class Checker {
  public:
    Checker(const AnyQuitter& quitter, nb::object picked, nb::object judge, double threshold)
        : quitter_(quitter),
          picked_(nb::cast<PickedRows*>(picked)),
          judge_(nb::cast<RunningJudge*>(judge)),
          picked_owner_(std::move(picked)),
          judge_owner_(std::move(judge)),
          target_{threshold} {
        quitter_.watcher = nullptr;  // full evaluation is not watched
    }

    // All waiting rows, or as many of them as fill slabs. The caller has a lock of its own.
    void check(int threads, bool all) {
        const nb::gil_scoped_release release;
        picked_->use_waiting(all ? 1 : kSlab, [&](const auto& waiting) {
            const size_t n = rows_ = left_ = waiting.steps.size();
            // One thread takes some rows at a time, so that what it writes stays in the caches.
            const size_t most = threads > 1 ? n : kAtOnce;
            for (size_t begin = 0; begin < n; begin += most) {
                const size_t some = std::min(n - begin, most);
                check_some(waiting, begin, some, threads);
                left_ -= some;
            }
        });
    }

    size_t rows() const { return rows_; }
    size_t left() const { return left_; }

  private:
    template <class Real>
    void check_some(const WaitingRows<Real>& waiting, size_t begin, size_t n, int threads) {
        score_.resize(n);
        full_.resize(n);
        const auto first = static_cast<int64_t>(begin) * quitter_.n_features;
        quitter_.score_full(waiting.rows.data() + first, static_cast<int64_t>(n), score_.data(),
                            threads);
        for (size_t i = 0; i < n; ++i) full_[i] = target_.decide(score_[i]);
        judge_->add(
            {{waiting.decided.data() + begin, n}, full_, {waiting.steps.data() + begin, n}});
    }

    static constexpr size_t kAtOnce = 1024;

    AnyQuitter quitter_;
    PickedRows* picked_;  // kept alive by the owners
    RunningJudge* judge_;
    nb::object picked_owner_, judge_owner_;
    TwoClasses target_;
    size_t rows_ = 0, left_ = 0;  // of the last check, and those of them that were not judged
    std::vector<double> score_;   // (n,) of the last check; kept for their memory
    std::vector<uint8_t> full_;
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
        .def("pick", &pick, "n"_a,
             "Count n more rows. Returns those of them that are picked, ascending; None: none is.")
        .def("drain", &PickedRows::drain, "The waiting rows, their decisions and steps.")
        .def_prop_ro("taken", &PickedRows::taken, "How many rows were counted.");
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
        .def(
            "add",
            [](RunningJudge& judge, const Vector<uint8_t>& decided, const Vector<uint8_t>& full,
               const Vector<int32_t>& steps) {
                judge.add({span(decided), span(full), span(steps)});
            },
            "decided"_a, "full"_a, "steps"_a, "Count rows, (N,) each, one by one in their order.");
    nb::class_<Checker>(m, "Checker", "Checks the rows that wait.")
        .def(nb::init<const AnyQuitter&, nb::object, nb::object, double>(), "quitter"_a, "picked"_a,
             "judge"_a, "threshold"_a)
        .def("check", &Checker::check, "threads"_a, "all"_a,
             "Evaluate waiting rows in full and judge them: all, or as many as are evaluated "
             "together without a remainder. They wait no longer, also where that fails.")
        .def_prop_ro("rows", &Checker::rows, "Rows of the last check.")
        .def_prop_ro("left", &Checker::left,
                     "Those of them that it did not judge, since it failed.");
}

}  // namespace qwyc
