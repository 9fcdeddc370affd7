"""decide_lazily: the decisions of decide, with features that are fetched when they are needed."""

from dataclasses import replace

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import qwyc
from forests import random_ensemble, random_rows
from lattices import lattice_rows, random_lattices
from qwyc.classifier import Classifier
from qwyc.model import lazy
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate
from trained import make_data, make_frame

FAST = {"alpha": 0.05, "evaluation": "quit", "progress": False}
DEAR = {"colour": 3, "size": 2.0, "a": 1, "count": 1}


class Fetching:
    """`fetch` over whole rows, which keeps what it was asked for."""

    def __init__(self, rows, names=None):
        self.rows, self.names, self.asked = rows, names, []

    def __call__(self, columns, rows):
        assert rows.dtype == np.int64
        assert (np.diff(rows) > 0).all()
        self.asked.append((list(columns), rows.copy()))
        if isinstance(self.rows, np.ndarray):
            at = columns if self.names is None else [self.names.index(c) for c in columns]
            return self.rows[np.ix_(rows, at)]
        return self.rows.iloc[rows][columns]

    def was_fetched(self, n_features, names=None):
        """(N, n_features) how often each value was fetched."""
        count = np.zeros((len(self.rows), n_features), dtype=int)
        for columns, rows in self.asked:
            at = columns if names is None else [names.index(c) for c in columns]
            count[np.ix_(rows, at)] += 1
        return count


def same(lazily, whole):
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(lazily, name), getattr(whole, name))


def policy_for(ensemble, rows, seed):
    """A policy along a random order that lets some rows quit at most steps."""
    rng = np.random.default_rng(seed)
    scores = ensemble.scores(rows)
    order = rng.permutation(ensemble.n_models)
    running = scores.base + np.cumsum(scores.values[:, order].astype(np.float64), axis=1)
    lower, upper = np.quantile(running, [0.12, 0.88], axis=0)
    lower[-1], upper[-1] = -np.inf, np.inf
    policy = qwyc.Policy(order, lower, upper, ensemble.threshold, np.ones(len(order)))
    certificate = observed_certificate("in-sample", budget_of(0.5), policy, scores)
    return Classifier(ensemble, policy, certificate)


# ---- equal to decide --------------------------------------------------------------------------


@pytest.mark.parametrize("fill", [0.0, np.nan, 1e30, -7.0])
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["trees", "lattices"]),
    round_cost=st.sampled_from([None, 0, 0.3, 2.0, 1e9]),
    other=st.sampled_from([np.float32, np.float64]),
)
def test_random_ensembles(fill, seed, kind, round_cost, other):
    """Whatever stands for features that were not fetched, and whatever those are."""
    make, rows_of = (
        (random_ensemble, random_rows) if kind == "trees" else (random_lattices, lattice_rows)
    )
    ensemble = make(seed)
    rows = rows_of(seed + 1, ensemble).astype(other)
    fast = policy_for(ensemble, rows, seed)
    whole, fetch, n = fast.decide(rows), Fetching(rows), len(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy, "NOT_FETCHED", fill)
        found = fast.decide_lazily(fetch, n, round_cost=round_cost)
    same(found, whole)
    count = fetch.was_fetched(rows.shape[1])
    assert count.max(initial=0) <= 1
    np.testing.assert_array_equal(found.fetched, count.sum(axis=1))
    assert found.rounds == len(fetch.asked)
    poisoned = np.where(count == 1, rows, rng_like(rows, seed)).astype(rows.dtype)
    again = fast.decide_lazily(Fetching(poisoned), n, round_cost=round_cost)
    same(again, whole)


def rng_like(rows, seed):
    return np.random.default_rng(seed + 2).normal(size=rows.shape) * 50


def test_no_more_is_fetched_than_rows_need_where_rounds_are_free():
    ensemble = random_ensemble(5, n_trees=30, n_features=8, depth=2)
    rows = random_rows(6, ensemble, n=2000)
    fast = policy_for(ensemble, rows, 5)
    found = fast.decide_lazily(Fetching(rows), 2000, round_cost=0)
    trees, needed = ensemble.base_models.trees, np.zeros(2000, dtype=int)
    for i, steps in enumerate(found.steps):
        seen = set()
        for t in fast.policy.order[:steps]:
            seen |= set(trees.feature[trees.node_begin[t] : trees.node_begin[t + 1]].tolist())
        needed[i] = len(seen)
    np.testing.assert_array_equal(found.fetched, needed)
    assert found.mean_fetched == pytest.approx(fast.certificate.mean_features)
    assert found.mean_fetched == needed.mean()
    assert 2 < found.rounds <= 8
    one = fast.decide_lazily(Fetching(rows), 2000, round_cost=1e9)
    assert one.rounds == 1
    assert one.mean_fetched == len(np.unique(trees.feature)) > found.mean_fetched


@pytest.fixture(scope="module")
def frames():
    frame, y = make_frame(rows=4000)
    return frame.rename(columns={"the colour": "colour"}), y


def test_tables_with_categories(frames, tmp_path):
    """Of text, integers and booleans, under the names that the model has."""
    frame, y = frames
    text = frame.assign(
        colour=frame["colour"].astype(object).fillna("none"),
        constant=frame["constant"].astype(object),
        size=frame["size"].astype(int),
    )
    cats = {"cat_features": ["colour", "constant"], "max_ctr_complexity": 1}
    quiet = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    for model, rows in (
        (xgboost.XGBClassifier(max_depth=1, enable_categorical=True, n_jobs=1), frame),
        (lightgbm.LGBMClassifier(num_leaves=2, n_jobs=1, verbose=-1), frame),
        (catboost.CatBoostClassifier(iterations=40, depth=1, **cats, **quiet), text),
    ):
        model.fit(rows[:1000], y[:1000])
        new = rows[3000:].reset_index(drop=True)
        fast = qwyc.optimize(model, rows[1000:3000], **FAST, feature_costs=DEAR)
        fast.save(tmp_path / "f.qwyc")
        for classifier in (fast, qwyc.load(tmp_path / "f.qwyc")):
            fetch = Fetching(new)
            found = classifier.decide_lazily(fetch, len(new), round_cost=0)
            same(found, classifier.decide(new))
            assert found.rounds > 1
            assert found.mean_fetched < fast.feature_use.used.sum()


def test_tables_of_any_library_and_lists():
    X, y = make_data(rows=4000, missing=0)
    names = list("abcdef")
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=2, n_jobs=1)
    model.fit(pd.DataFrame(X[:1000], columns=names), y[:1000])
    fast = qwyc.optimize(model, pd.DataFrame(X[1000:3000], columns=names), **FAST)
    new = pd.DataFrame(X[3000:], columns=names)
    whole = fast.decide(new)
    polars, arrow = pl.from_pandas(new), pl.from_pandas(new).to_arrow()
    for fetch in (
        Fetching(new),
        Fetching(X[3000:], names),
        lambda columns, rows: polars[rows.tolist()].select(columns),
        lambda columns, rows: polars[rows.tolist()].select(columns[::-1]),  # found by name
        lambda columns, rows: arrow.take(rows).select(columns),
        lambda columns, rows: new.iloc[rows][columns].to_numpy().tolist(),
    ):
        same(fast.decide_lazily(fetch, len(new), round_cost=0.5), whole)


@pytest.mark.parametrize(
    "make", [lambda: RandomForestClassifier(20, max_depth=4, random_state=0),
             lambda: GradientBoostingClassifier(n_estimators=20, random_state=0)]
)  # fmt: skip
def test_scikit_learn(make):
    X, y = make_data(rows=4000, missing=0)
    fast = qwyc.optimize(make().fit(X[:1000], y[:1000]), X[1000:3000], **FAST)
    same(fast.decide_lazily(Fetching(X[3000:]), 1000), fast.decide(X[3000:]))


def test_other_operating_points_and_classifiers_that_never_quit(named):
    fast, new = named
    for other in (fast.at(alpha=0.2), fast.full(), qwyc.recertify(fast, new, alpha=0.1)):
        found = other.decide_lazily(Fetching(new), len(new))
        same(found, other.decide(new))
    never = fast.full().decide_lazily(Fetching(new), len(new))
    assert never.rounds == 1
    assert never.complete.all()
    assert (never.fetched == fast.feature_use.used.sum()).all()


def test_no_rows_and_one_row(named):
    fast, new = named
    empty = fast.decide_lazily(Fetching(new), 0)
    assert (len(empty.label), empty.rounds, empty.mean_fetched) == (0, 0, 0.0)
    assert empty.label.dtype == fast.decide(new).label.dtype
    for i in range(20):
        one = new[i : i + 1]
        same(fast.decide_lazily(Fetching(one), 1), fast.decide(one))


# ---- what is refused --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named():
    """A classifier of an XGBoost model with names, and new rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6000, 4)), columns=list("abcd"))
    y = X["a"] + X["b"] * X["c"] + 0.3 * X["d"] > 0
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=2, n_jobs=1).fit(X[:1000], y[:1000])
    return qwyc.optimize(model, X[1000:4000], **FAST), X[4000:].reset_index(drop=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table[1:], r"2,000 rows.*it returned DataFrame of shape \(1999, "),
        (lambda table: table.iloc[:, 1:], r"returned DataFrame of shape \(2000, "),
        (lambda table: table.to_numpy()[:, 0], r"it returned ndarray of shape \(2000,\)"),
        (lambda table: table.to_numpy()[np.newaxis], r"ndarray of shape \(1, 2000, "),
        (lambda table: None, "it returned None"),
        (lambda table: 5, "it returned 5"),
        (lambda table: {"a": 1}, "it returned {'a': 1}"),
        (lambda table: [[1.0]] * 3, r"it returned list of shape \(3, 1\)"),
        (lambda table: table.astype(str).to_numpy().astype("U9"), "what fetch returned must hold numbers"),
        (lambda table: table.rename(columns=lambda c: f"{c}x"), "what fetch returned has no column"),
        (lambda table: pl.from_pandas(table).lazy(), "what fetch returned is lazy"),
    ],
)  # fmt: skip
def test_what_fetch_returns_is_checked(named, change, message):
    fast, new = named
    whole = Fetching(new)
    with pytest.raises(qwyc.InputError, match=message):
        fast.decide_lazily(lambda columns, rows: change(whole(columns, rows)), len(new))


def test_a_value_that_is_refused_is_named_by_its_row():
    X, y = make_data(rows=3000, missing=0)
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X[:1000], y[:1000])
    fast = qwyc.optimize(model, X[1000:], **FAST)
    rows = X.copy()
    fetch = Fetching(rows)
    found = fast.decide_lazily(fetch, 3000, round_cost=0)
    columns, late = fetch.asked[-1]
    assert len(late) < 3000
    rows[late[3], columns[0]] = np.nan
    place = f"row {late[3]:,} of column {columns[0]}"
    with pytest.raises(
        qwyc.InputError, match=f"what fetch returned has a missing value in {place}"
    ):
        fast.decide_lazily(Fetching(rows), 3000, round_cost=0)
    early = int(np.flatnonzero(found.fetched < found.fetched.max())[0])
    rows[late[3]] = X[late[3]]
    rows[early, columns[0]] = np.nan  # a value that is never fetched
    same(fast.decide_lazily(Fetching(rows), 3000, round_cost=0), found)


def test_an_error_of_fetch_comes_through(named):
    def fetch(columns, rows):
        raise ConnectionError("the store is away")

    with pytest.raises(ConnectionError, match="the store is away"):
        named[0].decide_lazily(fetch, 5)


def test_options_are_checked(named):
    fast, new = named
    for n in (-1, 2.5, "many", None):
        with pytest.raises(qwyc.OptionError, match="n must be a whole number of at least 0"):
            fast.decide_lazily(Fetching(new), n)
    for cost in (-1, np.inf, np.nan, "free"):
        with pytest.raises(qwyc.OptionError, match="round_cost must be a"):
            fast.decide_lazily(Fetching(new), 5, round_cost=cost)
    with pytest.raises(qwyc.OptionError, match="fetch must be a function of columns and rows"):
        fast.decide_lazily(new, 5)


def test_rows_and_columns_that_fetch_changes_are_copies(named):
    fast, new = named
    whole = Fetching(new)

    def fetch(columns, rows):
        table = whole(columns, rows)
        rows[:] = 0
        columns.clear()
        return table

    same(fast.decide_lazily(fetch, len(new), round_cost=0), fast.decide(new))


def test_code_does_not_say_what_it_looks_at(named):
    X, y = make_data(rows=3000, missing=0)
    pipeline = make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=10))
    fast = qwyc.optimize(pipeline.fit(X[:1000], y[:1000]), X[1000:], **FAST)
    with pytest.raises(qwyc.OptionError, match=r"without_transform\(\).decide_lazily"):
        fast.decide_lazily(Fetching(X), 3000)
    inner, made = fast.without_transform(), pipeline[:-1].transform(X)
    same(inner.decide_lazily(Fetching(made), 3000), fast.decide(X))
    callables = qwyc.optimize([lambda X: X[:, 0], lambda X: X[:, 1]], X, alpha=0.2, progress=False)
    with pytest.raises(qwyc.OptionError, match="do not say which columns they look at"):
        callables.decide_lazily(Fetching(X), 3000)


def test_runners_are_kept_but_not_all_of_them(named):
    fast, new = named
    fast = replace(fast)
    for cost in range(20):
        fast.decide_lazily(Fetching(new), 10, round_cost=cost / 7)
    assert len(fast._lazy_runners) <= 4
    assert fast._lazy_runner(None) is fast._lazy_runner(None)
