"""The rows that a monitor picks: copied from any memory, kept until they are checked, counted exactly."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import qwyc
from layouts import KINDS, LAYOUTS
from monitored import bold, rows_for, truth
from qwyc import _native
from qwyc.model.native import NativeRunner
from qwyc.monitor import checks
from qwyc.monitor.running import Running
from qwyc.monitor.state import Record, State
from qwyc.policy.counts import sum_over_rows

CHECKED_AT_ONCE = 2048


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """So that fewer rows complete a group."""
    monkeypatch.setattr(checks, "CHECKED_AT_ONCE", CHECKED_AT_ONCE)


@pytest.fixture(scope="module")
def fast():
    return bold()


@pytest.fixture(scope="module")
def rows(fast):
    return rows_for(fast)


def unchecked(fast, rate, seed=0):
    """A monitor that evaluates nothing in full."""
    monitor = qwyc.Monitor(fast, rate=rate, seed=seed)
    monitor._checks._check_waiting = lambda threads: None
    return monitor


# ---- copies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 3, 700])
def test_rows_are_copied_from_any_memory(fast, rows, layout, dtype, n):
    some = rows[:n].astype(dtype)
    made = LAYOUTS[layout][0](some)
    monitor = unchecked(fast, 1)
    np.testing.assert_array_equal(monitor.predict(made), fast.predict(some))
    kept = monitor._checks.waiting()
    decided, steps, _ = fast.runner.decide(fast.ensemble.rows(some))
    assert kept.rows.dtype == fast.ensemble.schema.dtype
    np.testing.assert_array_equal(kept.rows, some.astype(kept.rows.dtype))
    np.testing.assert_array_equal(kept.decided, decided)
    np.testing.assert_array_equal(kept.steps, steps)
    assert monitor.rows_seen == n


@pytest.mark.parametrize("layout", ["C", "Fortran", "part of wider rows"])
def test_picked_rows_are_those_that_a_sampler_picks(fast, layout):
    rows = np.zeros((5_000, fast.ensemble.schema.n_features), dtype=np.float32)
    rows[:] = np.arange(rows.size).reshape(rows.shape)
    monitor = unchecked(fast, 0.03, seed=4)
    for part in np.split(LAYOUTS[layout][0](rows), [1, 4, 9, 3000]):
        monitor.predict(part)
    alone = unchecked(fast, 0.03, seed=4)
    at = alone._checks._picked.pick(len(rows))
    assert 90 < len(at) < 220
    np.testing.assert_array_equal(monitor._checks.waiting().rows, rows[at])


def test_a_model_of_doubles_keeps_doubles():
    picked = _native.PickedRows(1.0, 0, 5, 10, True)
    rows = np.random.default_rng(0).normal(size=(3, 5))
    assert not picked.keep(rows, np.zeros(3, np.uint8), np.ones(3, np.int32))
    kept, decided, steps = picked.drain()
    np.testing.assert_array_equal(kept, rows)
    assert kept.dtype == np.float64
    assert decided.tolist() == [0, 0, 0]
    assert steps.tolist() == [1, 1, 1]


def test_rows_that_were_taken_out_stay_as_they_are(fast, rows):
    monitor = unchecked(fast, 1)
    taken = []
    for i in range(6):
        monitor.predict(rows[100 * i : 100 * (i + 1)])
        taken.append(monitor._checks.waiting())
        if i % 2:
            del taken[0]  # its memory is used again
    for i, kept in zip((3, 4, 5), taken, strict=True):
        np.testing.assert_array_equal(kept.rows, rows[100 * i : 100 * (i + 1)])
    assert monitor._checks.waiting() is None


def test_wrong_shapes_are_refused():
    picked = _native.PickedRows(1.0, 0, 4, 10, False)
    for shape, n in (((3, 5), 3), ((3, 4), 2)):
        with pytest.raises(ValueError, match="one column per feature"):
            picked.keep(np.zeros(shape), np.zeros(n, np.uint8), np.zeros(n, np.int32))


# ---- when they are checked --------------------------------------------------------------------


def test_a_large_call_waits_for_more_rows(fast, rows):
    many = np.tile(rows, (10, 1))  # more rows than four groups
    monitor = qwyc.Monitor(fast, rate=0.1)
    monitor.predict(many, threads=2)
    assert sum(monitor._state.record.by_class) == 0
    monitor.predict(rows[:1000])
    before = sum(monitor._state.record.by_class)
    assert before > CHECKED_AT_ONCE  # enough for a small call
    assert before % 512 == 0  # which is what the native core evaluates together
    for _ in range(3):
        monitor.predict(many, threads=2)
    assert sum(monitor._state.record.by_class) > before + 3 * CHECKED_AT_ONCE
    assert monitor.rows_checked == pytest.approx(0.1 * monitor.rows_seen, rel=0.05)


@pytest.mark.parametrize("layout", ["C", "Fortran"])
def test_one_thread_looks_at_a_large_call_in_parts(fast, rows, layout):
    rows = np.tile(rows, (13, 1))[:50_001]
    many = LAYOUTS[layout][0](rows)
    one, two = (qwyc.Monitor(fast, rate=0.2, seed=9) for _ in range(2))
    ours, theirs = one.decide(many, threads=1), two.decide(many, threads=2)
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(ours.label, fast.predict(rows))
    assert one.rows_seen == two.rows_seen == 50_001
    assert one.metrics() == two.metrics()
    assert one.counts == two.counts


def test_everything_that_looks_sees_the_rows_that_wait(fast, rows, tmp_path):
    decided, full = truth(fast, rows[:1000])
    differ = int(np.sum(decided != full))

    def monitor():
        made = qwyc.Monitor(fast, rate=1)
        made.predict(rows[:1000])
        assert sum(made._state.record.by_class) == 0  # they wait
        return made

    monitor().save(tmp_path / "monitor.json")
    assert qwyc.Monitor.load(tmp_path / "monitor.json").disagreements == differ
    assert qwyc.Monitor(fast).merge(monitor()).disagreements == differ
    merged = monitor().merge(qwyc.Monitor(fast))
    assert sum(merged._state.record.by_class) == 1000
    assert f"{differ} of 1,000" in repr(monitor())
    assert "qwyc_checked_rows_total" in monitor().metrics()
    assert monitor().interval == merged.interval


@pytest.mark.parametrize("n", [1, 4, 1000])
def test_an_error_of_the_check_reaches_the_caller(fast, rows, n):
    monitor = qwyc.Monitor(fast, rate=1)

    def fails(threads):
        raise RuntimeError("no check today")

    own, monitor._checks._check_waiting = monitor._checks._check_waiting, fails
    monitor.predict(rows[: CHECKED_AT_ONCE - 1])
    with pytest.raises(RuntimeError, match="no check today"):
        monitor.predict(rows[:n])
    monitor._checks._check_waiting = own
    np.testing.assert_array_equal(monitor.predict(rows[:n]), fast.predict(rows[:n]))
    assert monitor.rows_checked == monitor.rows_seen == CHECKED_AT_ONCE - 1 + 2 * n


class NoRoom:
    """In place of the native full evaluation."""

    def __init__(self, monitor):
        self.monitor, self.rows, self.left = monitor, 0, 0

    def check(self, threads, all_rows):
        waiting = self.monitor._checks.waiting()
        self.rows = self.left = 0 if waiting is None else len(waiting.steps)
        if self.rows:
            raise MemoryError("no room")


def test_a_failure_of_the_full_evaluation_is_counted(fast, rows):
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(rows[:1000])
    assert monitor.rows_checked == 1000
    own, monitor._checker = monitor._checker, NoRoom(monitor)
    with pytest.warns(qwyc.QwycWarning, match=r"could not evaluate 2,500 rows .*no room"):
        labels = monitor.predict(rows[:2500])
    np.testing.assert_array_equal(labels, fast.predict(rows[:2500]))
    monitor._checker = own
    assert (monitor.rows_failed, monitor.rows_checked) == (2500, 1000)
    monitor.predict(rows[:10])
    assert (monitor.rows_failed, monitor.rows_checked) == (2500, 1010)


def test_it_is_collected_after_batches(fast, rows):
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(rows)
    monitor.decide(rows.tolist())
    gone = weakref.ref(monitor)
    del monitor
    gc.collect()
    assert gone() is None


def test_the_classifier_itself_is_not_watched(fast, rows):
    monitor = qwyc.Monitor(fast, rate=1)
    fast.predict(rows)
    fast.decide(rows)
    fast.predict_one(rows[0])
    assert monitor.rows_seen == 0
    monitor.classifier.predict(rows)
    assert monitor.rows_seen == 0


def test_threads_that_check_while_others_decide(fast, rows):
    monitor = qwyc.Monitor(fast, rate=1)
    parts = [rows[i : i + 500] for i in range(0, 4000, 500)] * 4

    def work(part):
        labels = monitor.predict(part, threads=1)
        return labels.tolist(), monitor.rows_checked

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(work, parts))
    assert [labels for labels, _ in found] == [fast.predict(part).tolist() for part in parts]
    decided, full = truth(fast, rows)
    assert monitor.rows_checked == monitor.rows_seen == 16_000
    assert monitor.disagreements == 4 * np.sum(decided != full)


# ---- base models in Python that take a matrix ---------------------------------------------------


class InPython:
    """A runner that the native core knows nothing about."""

    def __init__(self, runner):
        self.runner = runner

    def decide(self, rows, *, threads=None):
        decided, steps, score = self.runner.decide(rows, threads=threads)
        return decided.astype(np.intp), steps, score

    def one_row(self, labels, fallback, schema):
        return None


def test_rows_that_python_decides_wait_too(fast, rows):
    made = replace(fast)
    made.__dict__["runner"] = InPython(fast.runner)
    monitor, native = (qwyc.Monitor(each, rate=0.3, seed=2) for each in (made, fast))
    for part in np.split(rows, [1, 10, 2000]):
        np.testing.assert_array_equal(monitor.predict(part), native.predict(part))
    assert isinstance(fast.runner, NativeRunner)
    assert sum(monitor._state.record.by_class) == 0
    assert monitor.counts == native.counts
    assert monitor.predict_one(rows[0]) == native.predict_one(rows[0])
    assert monitor.metrics() == native.metrics()


def test_a_failure_in_python_is_counted(fast, rows, monkeypatch):
    made = replace(fast)
    made.__dict__["runner"] = InPython(fast.runner)
    monitor = qwyc.Monitor(made, rate=1)

    def fails(self, rows, *, threads=None):
        raise MemoryError("no room")

    monkeypatch.setattr(type(fast.ensemble.base_models), "score_full", fails)
    with pytest.warns(qwyc.QwycWarning, match=r"could not evaluate 2,500 rows .*no room"):
        monitor.predict(rows[:2500])
    monkeypatch.undo()
    assert (monitor.rows_failed, monitor.rows_checked) == (2500, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_every_native_model_is_checked_as_in_python(kind, seed):
    fast, rows = KINDS[kind](seed)
    in_python = replace(fast)
    in_python.__dict__["runner"] = InPython(fast.runner)
    native, python = (qwyc.Monitor(each, rate=0.8) for each in (fast, in_python))
    assert native._checker is not None
    assert python._checker is None
    for part in np.array_split(rows, 3):
        np.testing.assert_array_equal(native.predict(part), python.predict(part))
    assert native.counts == python.counts
    assert native.counts.rows > 0
    assert native.metrics() == python.metrics()


# ---- counts -----------------------------------------------------------------------------------


def with_costs(fast, costs):
    return replace(fast, policy=replace(fast.policy, costs=costs), cost_kind="given")


def test_counts_do_not_depend_on_the_batches(fast, rows):
    """Not in the last bit, although costs are added up."""
    odd = with_costs(fast, np.random.default_rng(0).lognormal(size=12))
    found = []
    for step in (1, 7, 1000, 4000):
        monitor = qwyc.Monitor(odd, rate=0.7, seed=1)
        for i in range(0, len(rows), step):
            monitor.predict(rows[i : i + step])
            if step == 7:
                assert monitor.rows_checked <= monitor.rows_seen  # which ends a group
        found.append(monitor.counts)
    assert found[1:] == found[:1] * 3
    assert found[0].mean_cost != round(found[0].mean_cost)


def test_counts_are_those_of_numpy(fast, rows):
    odd = with_costs(fast, np.arange(1.0, 13.0) / 7)
    decided, full = truth(odd, rows)
    steps = odd.decide(rows).steps
    expected = sum_over_rows(odd.policy, decided, full, steps).counts()[0]
    monitor = qwyc.Monitor(odd, rate=1)
    monitor.predict(rows)
    found = monitor.counts
    assert found.mean_cost == pytest.approx(expected.mean_cost, rel=1e-13)
    assert replace(found, mean_cost=expected.mean_cost) == expected


@pytest.mark.parametrize(
    ("alpha", "by_class"),
    [(0.05, None), ({"negative": 0.02, "positive": 0.2}, None), (0.1, {0: 0.05, 1: 0.07})],
)
def test_a_limit_gets_its_rows_in_their_order(alpha, by_class, rows):
    fast = bold(alpha=alpha, by_class=by_class)
    decided, full = truth(fast, rows)
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(rows)
    monitor.counts  # noqa: B018  (the rows that wait)
    judge, state = monitor._judge, monitor._state
    for limit, test, known, at in zip(
        judge.subject.limits, judge.tests, state.tests, state.raised, strict=True
    ):
        of_it = np.ones(len(rows), bool) if limit.among is None else full == limit.among
        differs = (decided != full) & np.isin(decided, limit.differences)
        expected, reached = test.after(test.start, differs[of_it], judge.needed)
        assert (known.rows, known.count) == (expected.rows, expected.count)
        np.testing.assert_array_equal(known.apart.value, expected.apart.value)
        assert at == (None if reached is None else np.flatnonzero(of_it)[reached - 1] + 1)


def running(fast):
    monitor = qwyc.Monitor(fast)
    return Running(monitor._judge, State.empty(monitor._judge.subject), fast.policy)


def test_counting_checks_what_it_is_given(fast):
    judge = running(fast)
    good = np.zeros(3, np.uint8), np.zeros(3, np.uint8), np.ones(3, np.int32)
    judge.add(*good)
    assert judge.get().record == Record((3, 0), (0, 0), (3, 0, 0, 0, 0, 0), 3, 3.0)
    two = np.array([0, 2, 1], np.uint8)
    for wrong, message in [
        ((two, *good[1:]), "two classes"),
        ((good[0], two, good[2]), "two classes"),
        ((good[0][:2], *good[1:]), "decided twice"),
        ((*good[:2], good[2][:2]), "have steps"),
        ((*good[:2], np.array([1, 13, 1], np.int32)), "not so many steps"),
        ((*good[:2], np.array([1, -1, 1], np.int32)), "not so many steps"),
    ]:
        with pytest.raises(ValueError, match=message):
            judge.add(*wrong)
    assert sum(judge.get().record.by_class) == 3


def test_a_state_of_another_judge_is_refused(fast):
    judge, state = running(fast), State.empty(qwyc.Monitor(fast)._judge.subject)
    record = state.record
    for wrong, message in [
        (replace(state, record=replace(record, exits=record.exits[1:])), "of another judge"),
        (replace(state, raised=(None, None)), "of another judge"),
        (replace(state, tests=(None,)), "a different kind of test"),
    ]:
        with pytest.raises(ValueError, match=message):
            judge.set(wrong)
    starts = replace(state.tests[0].apart, value=np.zeros(2))
    with pytest.raises(ValueError, match="one value per alternative"):
        judge.set(replace(state, tests=(replace(state.tests[0], apart=starts),)))
    with pytest.raises(ValueError, match="a bin and a cost"):
        _native.RunningJudge([], [0, 0, 1], [0.0, 1.0], 20.0)
    with pytest.raises(ValueError, match="not set"):
        _native.RunningJudge([(-1, 3, None)], [0, 0], [0.0, 1.0], 20.0).add(
            np.zeros(1, np.uint8), np.zeros(1, np.uint8), np.ones(1, np.int32)
        )


def test_a_state_goes_on_where_it_was(fast, rows):
    """Set and read between any two rows, also after a merge."""
    decided, full = truth(fast, rows)
    steps = fast.decide(rows).steps
    judge = qwyc.Monitor(fast)._judge
    whole, parts = running(fast), running(fast)
    for each in (whole, parts):
        each.add(decided[:500], full[:500], steps[:500])
        each.set(judge.merged(each.get(), each.get()))
    assert whole.get().tests[0].parts == 2
    whole.add(decided, full, steps)
    for i in range(0, len(rows), 37):
        part = slice(i, i + 37)
        parts.add(decided[part].astype(np.uint8), full[part], steps[part])
        parts.set(parts.get())
    one, other = whole.get(), parts.get()
    assert (one.record, one.raised) == (other.record, other.raised)
    assert sum(one.record.by_class) == len(rows) + 1000
    for kind in ("apart", "joint"):
        a, b = getattr(one.tests[0], kind), getattr(other.tests[0], kind)
        np.testing.assert_array_equal(a.value, b.value)
        assert a.unspent == b.unspent
    assert one.tests[0].apart.value.tolist() != one.tests[0].joint.value.tolist()
