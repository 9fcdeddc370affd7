"""Saving, loading and merging monitors; damaged and hostile files."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import qwyc
from monitored import bold, of_callables, rows_for, truth


@pytest.fixture(scope="module")
def fast():
    return bold(by_class={1: 0.3})


@pytest.fixture(scope="module")
def rows(fast):
    return rows_for(fast)


@pytest.fixture
def monitor(fast, rows):
    made = qwyc.Monitor(fast, rate=0.5, confidence=0.9, seed=4)
    made.predict(rows)
    return made


# ---- merging ----------------------------------------------------------------------------------


def test_merged_counts_are_those_of_one_monitor(fast, rows):
    whole = qwyc.Monitor(fast, rate=1)
    parts = [qwyc.Monitor(fast, rate=1, seed=seed) for seed in range(3)]
    for part, some in zip(parts, np.split(rows, [1000, 3500]), strict=True):
        part.predict(some)
        whole.predict(some)
    before = repr(parts[1])
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert merged is parts[0]
    assert repr(parts[1]) == before
    assert merged.counts == whole.counts
    assert merged.interval == whole.interval
    assert merged.by_class == whole.by_class
    assert merged.exits == whole.exits
    assert merged.rows_seen == len(rows)
    merged.predict(rows[:10])
    assert merged.rows_seen == merged.rows_checked == len(rows) + 10


def test_a_merge_finds_what_no_worker_could(rows):
    """At each of twenty workers, 2 of 20 rows differ, where 4% may: too few for an alarm."""
    strict = bold(alpha=0.04)
    decided, full = truth(strict, rows)
    same, other = rows[decided == full], rows[decided != full]
    total = qwyc.Monitor(strict)
    for i in range(20):
        worker = qwyc.Monitor(strict, rate=1)
        worker.predict(np.vstack([same[18 * i : 18 * i + 18], other[2 * i : 2 * i + 2]]))
        assert not worker.alarm
        total.merge(worker)
    assert total.alarm
    assert (total.rows_checked, total.disagreements) == (400, 40)


def test_an_alarm_of_a_worker_stays(fast, rows):
    strict = bold(alpha=0.01)
    loud, quiet = (qwyc.Monitor(strict, rate=1) for _ in range(2))
    loud.predict(rows)
    assert loud.alarm
    assert quiet.merge(loud).alarm
    assert quiet.alarms == loud.alarms


def test_what_cannot_be_merged(monitor, fast, tmp_path):
    with pytest.raises(qwyc.OptionError, match="merged with itself"):
        monitor.merge(monitor)
    with pytest.raises(qwyc.OptionError, match=r"qwyc\.Monitor was expected; got str"):
        monitor.merge("other")
    with pytest.raises(qwyc.OptionError, match=r"different confidence: 0\.9 and 0\.95"):
        monitor.merge(qwyc.Monitor(fast))
    others = {
        "model": bold(by_class={1: 0.3}, seed=8),
        "policy": replace(fast, policy=fast.policy.without_quitting()),
        "budget": bold(alpha=0.06, by_class={1: 0.3}),
        "classes": replace(fast, ensemble=replace(fast.ensemble, classes=np.array(["a", "b"]))),
    }
    for what, other in others.items():
        with pytest.raises(qwyc.OptionError, match=f"a different .*{what}"):
            monitor.merge(qwyc.Monitor(other, confidence=0.9))
    monitor.save(tmp_path / "m.json")
    with pytest.raises(qwyc.OptionError, match="a different budget"):
        qwyc.Monitor.load(tmp_path / "m.json", others["budget"])


# ---- files ------------------------------------------------------------------------------------


def test_a_file_holds_everything(monitor, fast, rows, tmp_path):
    path = tmp_path / "monitor.json"
    monitor.save(path)
    alone, again = qwyc.Monitor.load(path), qwyc.Monitor.load(path, fast)
    for other in (alone, again):
        assert repr(other) == repr(monitor)
        assert other.metrics() == monitor.metrics()
        assert other.counts == monitor.counts
        assert (other.rate, other.confidence, other.alarms) == (0.5, 0.9, monitor.alarms)
        other.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_text() == path.read_text()
    checked = monitor.rows_checked
    np.testing.assert_array_equal(again.predict(rows), fast.predict(rows))
    assert again.rows_seen == 2 * len(rows)
    assert 0.4 * len(rows) < again.rows_checked - checked < 0.6 * len(rows)


def test_without_a_classifier_it_can_be_looked_at_and_merged(monitor, tmp_path):
    monitor.save(tmp_path / "monitor.json")
    one, other = (qwyc.Monitor.load(tmp_path / "monitor.json") for _ in range(2))
    assert one.merge(other).rows_checked == 2 * monitor.rows_checked
    for call in (one.predict, one.decide, lambda X: one.predict_one(X[0])):
        with pytest.raises(
            qwyc.OptionError, match=r"loaded without its classifier.*Monitor\.load\(path"
        ):
            call(np.zeros((1, 5)))


def test_monitors_of_callables_are_saved_too(tmp_path):
    fast, rows = of_callables()
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(rows)
    monitor.save(tmp_path / "m.json")
    again = qwyc.Monitor.load(tmp_path / "m.json", fast)
    again.predict(rows[:5])
    assert again.rows_checked == len(rows) + 5


def test_a_merged_monitor_is_saved_with_its_parts(monitor, tmp_path):
    monitor.save(tmp_path / "m.json")
    monitor.merge(qwyc.Monitor.load(tmp_path / "m.json"))
    monitor.save(tmp_path / "m.json")
    again = qwyc.Monitor.load(tmp_path / "m.json")
    assert again.metrics() == monitor.metrics()
    assert {test["parts"] for test in json.loads((tmp_path / "m.json").read_text())["tests"]} == {2}


def test_saving_replaces_in_one_step(monitor, tmp_path):
    path = tmp_path / "m.json"
    path.write_text("old")
    monitor.save(path)
    assert os.listdir(tmp_path) == ["m.json"]
    with pytest.raises(qwyc.ArtifactError, match="cannot write"):
        monitor.save(tmp_path)
    with pytest.raises(qwyc.ArtifactError, match="a path was expected"):
        monitor.save(None)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b"null", b"{}", b"[" * 100_000, b"1" * 5_000, b" " * 2_000_000,
     b'{"format": "qwyc monitor 2"}'],
)  # fmt: skip
def test_what_is_no_monitor(tmp_path, content):
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(qwyc.ArtifactError, match=r"m\.json"):
        qwyc.Monitor.load(path)


def test_files_that_are_not_there(tmp_path):
    for path in (tmp_path / "no.json", tmp_path):
        with pytest.raises(qwyc.ArtifactError, match="cannot read"):
            qwyc.Monitor.load(path)
    with pytest.raises(qwyc.ArtifactError, match="a path was expected"):
        qwyc.Monitor.load("")


def changed(facts, path, value):
    """The same document with one value changed."""
    document = json.loads(json.dumps(facts))
    at = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return document


def places(value, path=()):
    """Where values are in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("record", "by_class", 0), -1),
        (("record", "by_class", 0), 10**30),
        (("record", "differences", 1), 10**9),
        (("record", "exits"), []),
        (("record", "steps"), 0),
        (("record", "cost"), float("nan")),
        (("rows_seen",), 3),
        (("rate",), 0),
        (("rate",), True),
        (("confidence",), 1),
        (("seed",), -1),
        (("raised", 0), 10**12),
        (("tests", 0), None),
        (("tests",), []),
        (("tests", 0, "parts"), 0),
        (("tests", 0, "apart", "unspent"), 1.5),
        (("tests", 0, "apart", "value"), [1.0]),
        (("tests", 0, "joint", "value", 0), float("inf")),
        (("tests", 0, "joint", "value", 0), -1.0),
        (("subject", "limits"), []),
        (("subject", "limits", 0, "share"), 1),
        (("subject", "limits", 0, "share"), -0.1),
        (("subject", "limits", 1, "among"), 2),
        (("subject", "limits", 0, "differences"), [0, 0]),
        (("subject", "limits", 0, "differences"), [7]),
        (("subject", "labels"), ["a"]),
        (("subject", "labels", 0), [1]),
        (("subject", "lost"), [[0], []]),
        (("subject", "n_models"), 0),
        (("subject", "n_models"), 10**18),
        (("subject", "how"), "hearsay"),
        (("subject", "certified", "exits"), [1]),
        (("subject", "certified", "mean_models"), "1"),
    ],
)
def test_values_that_cannot_be(monitor, tmp_path, path, value):
    file = tmp_path / "m.json"
    monitor.save(file)
    file.write_text(json.dumps(changed(json.loads(file.read_text()), path, value)))
    with pytest.raises(qwyc.ArtifactError, match="not a valid monitor file"):
        qwyc.Monitor.load(file)


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers()),
    st.dictionaries(st.text(), st.integers()),
)  # fmt: skip


@pytest.fixture(scope="module")
def facts(fast, tmp_path_factory):
    file = tmp_path_factory.mktemp("sound") / "m.json"
    made = qwyc.Monitor(fast, rate=1)
    made.predict(rows_for(fast, n=50))
    made.save(file)
    return json.loads(file.read_text())


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_is_an_error_or_a_sound_monitor(facts, tmp_path, data):
    file = tmp_path / "m.json"
    path = data.draw(st.sampled_from(list(places(facts))))
    file.write_text(json.dumps(changed(facts, path, data.draw(ANYTHING))))
    try:
        found = qwyc.Monitor.load(file)
    except qwyc.ArtifactError:
        return
    low, high = found.interval
    assert 0 <= low <= high <= 1
    assert repr(found)
    assert found.metrics()
    assert isinstance(found.alarm, bool)
