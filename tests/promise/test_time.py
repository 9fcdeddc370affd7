"""order_by: the split in time, windows, what they require, what certificates say, files and the API."""

import datetime
import json
import subprocess

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import xgboost

import qwyc
from commands import command_line
from forests import random_ensemble, random_rows
from qwyc.classifier import from_certified
from qwyc.files import container
from qwyc.files.classifier_file import from_bytes, to_bytes
from qwyc.promise.binomial import tail
from qwyc.promise.budget import budget_of
from qwyc.promise.ordered import order_of, split_by_order
from qwyc.promise.windows import Window, moved

MODELS = [lambda X, t=t: X[:, t] for t in range(8)]


def world(rng, n, T=8):
    return rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, T))


def test_the_earlier_half_is_fitted_on_and_the_later_half_certifies_in_windows():
    rng = np.random.default_rng(0)
    when = rng.permutation(60_000)
    split = split_by_order(order_of(when, 60_000), budget_of(0.01), 0.95, when % 2 == 0)
    assert len(split.fit) == 20_000  # the latest of the earlier half
    assert (when[split.fit].min(), when[split.fit].max()) == (10_000, 29_999)
    assert when[split.held_out].min() == 30_000
    assert len(split.held_out) == 30_000
    assert len(split.first) == 8
    assert (split.first[0], split.last[-1]) == ("30000", "59999")
    assert [when[split.held_out[split.window == w]].max() + 1 for w in range(7)] == [
        int(first) for first in split.first[1:]
    ]
    assert len(split.latest) == 3750
    small = split_by_order(order_of(when[:2000], 2000), budget_of(0.01), 0.95, when[:2000] < 0)
    assert len(small.first) == 1  # too few rows for more
    assert len(small.latest) == 1000


def test_rows_of_equal_value_stay_together():
    rng = np.random.default_rng(1)
    when = rng.integers(0, 37, 20_000)
    split = split_by_order(order_of(when, 20_000), budget_of(0.01), 0.95, when < 0)
    assert not set(when[split.fit]) & set(when[split.held_out])
    windows = [set(when[split.held_out[split.window == w]]) for w in range(len(split.first))]
    assert len(windows) > 3
    assert sum(map(len, windows)) == len(set.union(*windows))
    with pytest.raises(qwyc.InfeasibleError, match="1 different values"):
        split_by_order(order_of(np.zeros(20_000), 20_000), budget_of(0.01), 0.95, when < 0)


@pytest.mark.parametrize(
    "values",
    [
        [3.5, 1, 2, 2],
        np.array([3, 1, 2, 2]),
        ["d", "a", "b", "b"],
        pd.Series(pd.to_datetime(["2024-05-03", "2024-05-01", "2024-05-02", "2024-05-02"])),
        polars.Series([datetime.date(2024, 5, d) for d in (3, 1, 2, 2)]),
        pyarrow.chunked_array([[9, 1], [5, 5]]),
        [datetime.date(2024, 5, d) for d in (3, 1, 2, 2)],
    ],
    ids=lambda values: type(values).__module__,
)
def test_anything_that_can_be_sorted_is_an_order(values):
    assert order_of(values, 4).rank.tolist() == [2, 0, 1, 1]


def test_dates_are_printed_short():
    days = np.datetime64("2024-05-01T00:00:00.000000000") + np.arange(3) * np.timedelta64(1, "D")
    assert order_of(days, 3).text(2) == "2024-05-03"
    assert len(order_of(["x" * 500], 1).text(0)) == 40


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([1.0, np.nan], qwyc.InputError, "row 1 has none"),
        ([None, "a"], qwyc.InputError, "row 0 has none"),
        (np.array(["2024", "NaT"], dtype="datetime64[D]"), qwyc.InputError, "row 1 has none"),
        ([1, 2, 3], qwyc.OptionError, "2 values, one per row"),
        ([[1], [2]], qwyc.OptionError, "2 values, one per row"),
        ([1j, 2], qwyc.OptionError, "no order"),
        (np.array([1, "a"], dtype=object), qwyc.OptionError, "can be compared"),
        (7, qwyc.OptionError, "got 7"),
    ],
)
def test_other_orders_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        order_of(values, 2)


def moving(rng, n, by):
    """Rows whose decisions get harder for base models that come first, by the end of the sample."""
    X = world(rng, n)
    drift = np.linspace(0, 1, n) ** 2
    X[:, :4] += by * drift[:, None] * rng.normal(size=(n, 4))
    return X


def test_a_policy_must_pass_in_the_latest_window_and_be_within_alpha_in_all():
    rng = np.random.default_rng(5)
    X = moving(rng, 30_000, 2.0)
    with pytest.warns(qwyc.QwycWarning):
        # The path is made from early rows, so that disagreement rises.
        fast = qwyc.optimize(MODELS, X, alpha=0.05, order_by=np.arange(30_000), progress=False)
    seen = fast.certificate
    assert len(seen.windows) == 8
    assert sum(window.rows for window in seen.windows) == 15_000
    latest = seen.windows[-1]
    assert (latest.by_class, latest.differences) == (seen.counts.by_class, seen.counts.differences)
    assert tail(latest.disagreements, latest.rows, 0.05) <= 0.05
    assert all(window.share <= 0.05 for window in seen.windows)
    evidence, k = fast.choices.evidence, fast.choices.path.index_of(fast.policy)
    bolder = evidence.windows[k + 1]
    assert (
        tail(bolder[-1].disagreements, bolder[-1].rows, 0.05) > 0.05
        or max(window.share for window in bolder) > 0.05
    )
    assert "like those of the latest window, 28125 to 29999" in str(seen)
    assert str(fast).count(" rows  ") == 8
    facts = seen.as_dict()["windows"]
    assert facts[0]["first"] == "15000"
    low, high = facts[0]["interval"]
    assert low <= facts[0]["differences"][0] / facts[0]["rows"] <= high
    # Earlier windows count as well: a budget that one of them exceeds is refused for that policy.
    worst = max(window.share for window in seen.windows)
    assert not evidence.windows.within(budget_of(worst * 0.99), k)


def test_a_share_that_moved_is_warned_of():
    def windows(*counts):
        return tuple(Window(str(i), str(i), (500, 500), (n, 0)) for i, n in enumerate(counts))

    assert moved(windows(2, 3, 5, 30))
    assert moved(windows(40, 3, 5, 3))
    assert not moved(windows(2, 3, 5, 4))
    assert not moved(windows(0, 0))
    assert not moved(windows(80))
    rng = np.random.default_rng(0)
    false = sum(moved(windows(*rng.binomial(1000, 0.01, 6))) for _ in range(400))
    assert false <= 10  # 1% allowed


def test_without_drift_the_choice_is_as_good_as_the_latest_window_allows(recwarn):
    X = world(np.random.default_rng(9), 20_000)
    fast = qwyc.optimize(MODELS, X, alpha=0.05, order_by=np.arange(20_000), progress=False)
    assert fast.certificate.observed > 0.02
    assert not [w for w in recwarn if "moved over time" in str(w.message)]
    other = fast.at(alpha=0.1).certificate
    assert len(other.windows) == len(fast.certificate.windows)
    assert other.mean_models < fast.certificate.mean_models
    later = qwyc.recertify(fast, world(np.random.default_rng(10), 4000))
    assert later.certificate.windows == ()  # other rows, without an order


def test_classes_have_windows_of_enough_rows():
    X = world(np.random.default_rng(2), 30_000)
    fast = qwyc.optimize(
        MODELS, X, by_class={1: 0.05}, order_by=np.arange(30_000), threshold=9.0, progress=False
    )
    assert len(fast.certificate.windows) >= 2
    for window in fast.certificate.windows:
        assert window.by_class[1] > 200
        assert window.differences[0] <= 0.05 * window.by_class[1]


@pytest.mark.parametrize("library", [pd.DataFrame, polars.DataFrame, pyarrow.table])
@pytest.mark.parametrize("named", [True, False])
def test_a_column_of_the_table_gives_the_order(library, named):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 3)).astype(np.float32)
    label = (X[:, 0] + X[:, 1] > 0).astype(int)
    columns = {name: X[:, i] for i, name in enumerate("abc")}
    model = xgboost.XGBClassifier(n_estimators=12, max_depth=2)
    model.fit(pd.DataFrame(columns)[:1000] if named else X[:1000], label[:1000])
    when = rng.permutation(3000)
    table = library({"when": when, **{name: column[1000:] for name, column in columns.items()}})
    options = {"alpha": 0.05, "evaluation": "quit", "progress": False}
    by_name = qwyc.optimize(model, table, order_by="when", **options)
    by_value = qwyc.optimize(model, X[1000:], order_by=when, **options)
    assert by_name.certificate == by_value.certificate
    assert by_name.certificate.windows[-1].last == "2999"
    if named:  # a feature gives the order as well, and stays one
        by_feature = qwyc.optimize(model, table, order_by="a", **options)
        assert by_feature.certificate.rows > 0
    with pytest.raises(qwyc.OptionError, match="'then' is not a column of X"):
        qwyc.optimize(model, table, order_by="then", **options)
    with pytest.raises(qwyc.OptionError, match="without column names"):
        qwyc.optimize(model, X, order_by="when", **options)


def test_what_does_not_go_together_is_refused():
    X = world(np.random.default_rng(0), 3000)
    for options in ({"groups": np.arange(3000)}, {"max_rows": 100}, {"method": "joint"}):
        with pytest.raises(qwyc.OptionError, match="order_by can only be used with method='auto'"):
            qwyc.optimize(MODELS, X, alpha=0.05, order_by=np.arange(3000), **options)


# ---- files and the command line ------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    ensemble = random_ensemble(3, n_trees=30)
    rows = random_rows(3, ensemble, n=6000)
    return qwyc.optimize(
        ensemble, rows, alpha=0.05, order_by=np.arange(6000), evaluation="quit", progress=False
    )


def test_files_keep_windows(made):
    again = from_certified(from_bytes(to_bytes(made)))
    assert again.certificate == made.certificate
    assert len(again.certificate.windows) > 3
    assert again.at(alpha=0.1).certificate == made.at(alpha=0.1).certificate
    assert to_bytes(again) == to_bytes(made)


HOSTILE = {
    "classes": lambda body, t: t.update({"path.window_classes": t["path.window_classes"] + 1}),
    "negative": lambda body, t: t.update({"path.window_classes": -t["path.window_classes"]}),
    "differences": lambda body, t: t.update(
        {"path.window_differences": t["path.window_differences"] + 1}
    ),
    "huge": lambda body, t: t.update(
        {"path.window_differences": np.full_like(t["path.window_differences"], 2**62)}
    ),
    "fewer": lambda body, t: t.update(
        {"path.window_differences": t["path.window_differences"][:, 1:]}
    ),
    "no tensors": lambda body, t: t.pop("path.window_classes"),
    "no ends": lambda body, t: body["evidence"].pop("windows"),
    "ends": lambda body, t: body["evidence"]["windows"].update(first=["a"]),
    "no text": lambda body, t: body["evidence"]["windows"].update(first=[1, 2, 3, 4, 5, 6, 7, 8]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_windows_are_refused(made, name):
    found = container.unpack(to_bytes(made), (2,))
    HOSTILE[name](found.body, found.tensors)
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(container.pack(found))


def test_the_command_line_sorts_by_a_column(tmp_path, toy):
    X, y = toy
    xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, y).save_model(tmp_path / "m.json")
    new = np.random.default_rng(1).normal(size=(2400, 6)).astype(np.float32)
    rows = pd.DataFrame(new, columns=[f"f{i}" for i in range(6)])
    rows["day"] = 8 + np.arange(2400) // 10  # 9 comes before 10
    rows.sample(frac=1, random_state=0).to_csv(tmp_path / "rows.csv", index=False)

    def run(*arguments):
        command = command_line("optimize", "m.json", "rows.csv", "--alpha", "0.1", *arguments)
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    done = run("--order-by", "day", "--json")
    assert done.returncode == 0, done.stderr
    windows = json.loads(done.stdout)["certificate"]["windows"]
    assert windows[0]["first"] == "128.0"
    assert windows[-1]["last"] == "247.0"
    table = subprocess.run(
        command_line("inspect", "m.qwyc"), capture_output=True, text=True, cwd=tmp_path
    ).stdout
    assert "128.0 to " in table
    assert "leave out one of them" in run("--order-by", "day", "--groups", "day").stderr
    assert "which --order-by names" in run("--order-by", "days").stderr
