"""Which costs a classifier was made with: in optimize, at, recertify, files and reports."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
import xgboost

import qwyc
from qwyc.files import classifier_file, container
from qwyc.model.trees import TreeModels
from qwyc.report.inspection import describe, inspect

T, FEATURES = 30, 6
UNIT = "comparisons; a column counts where it is first needed"


class ColumnTrees(TreeModels):
    """Trees that read columns from somewhere dear: the first tree that needs a column pays for it."""

    def costs(self, rows, how, *, threads=None):
        trees, needs = self.trees, np.zeros((self.n_models, FEATURES), dtype=bool)
        for t in range(self.n_models):
            needs[t, trees.feature[trees.node_begin[t] : trees.node_begin[t + 1]]] = True
        return qwyc.Costs(np.full(self.n_models, 2.0), np.full(FEATURES, 25.0), needs)

    def cost_unit(self, how):
        return UNIT


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, FEATURES)).astype(np.float32)
    noise = rng.normal(size=9000)
    y = X @ [2.0, 1.5, 1.0, 0.7, 0.4, 0.2] + noise > 0
    booster = xgboost.XGBClassifier(n_estimators=T, max_depth=2, learning_rate=0.3, n_jobs=1)
    ensemble = qwyc.read_model(booster.fit(X[:2000], y[:2000]))
    models = ensemble.base_models
    values = {f.name: getattr(models, f.name) for f in fields(models) if f.init}
    return replace(ensemble, base_models=ColumnTrees(**values)), X[2000:]


@pytest.fixture(scope="module")
def fast(made):
    ensemble, X = made
    return qwyc.optimize(
        ensemble, X[:4000], alpha=0.02, costs="size", evaluation="quit", progress=False
    )


def cost_by_hand(costs, order, steps):
    """Mean cost of rows, each of which is walked step by step."""
    total = 0.0
    for n in steps:
        columns = set()
        for t in order[:n]:
            total += costs.own[t] + 25.0 * len(set(np.flatnonzero(costs.needs[t])) - columns)
            columns |= set(np.flatnonzero(costs.needs[t]))
    return total / len(steps)


def test_figures_count_each_column_once(made, fast):
    ensemble, X = made
    costs = ensemble.costs(X, "size")
    policy, seen = fast.policy, fast.certificate
    np.testing.assert_array_equal(policy.costs, costs.along(policy.order))
    assert seen.full_cost == 2 * T + 25 * FEATURES
    again = qwyc.recertify(fast, X[4000:], alpha=0.03)
    steps = again.decide(X[4000:]).steps
    assert 1 < steps.mean() < T
    by_hand = cost_by_hand(costs, policy.order, steps)
    assert again.certificate.mean_cost == pytest.approx(by_hand, rel=1e-12)
    assert again.certificate.full_cost == seen.full_cost


def test_the_order_reads_fewer_columns_than_with_fixed_costs(made, fast):
    ensemble, X = made
    costs, new = ensemble.costs(X, "size"), X[4000:]
    alone = costs.own + costs.needs @ costs.parts
    fixed = qwyc.optimize(
        ensemble, X[:4000], alpha=0.02, costs=alone, evaluation="quit", progress=False
    )
    assert not np.array_equal(fixed.policy.order, fast.policy.order)
    ours, theirs = (
        cost_by_hand(costs, c.policy.order, c.decide(new[:1000]).steps) for c in (fast, fixed)
    )
    assert ours < theirs


@pytest.mark.parametrize("method", ["auto", "joint", "natural", "proven"])
def test_every_method_has_the_costs_along_its_order(made, method):
    ensemble, X = made
    alpha = 0 if method == "proven" else 0.02
    how = "auto" if method == "proven" else method
    fast = qwyc.optimize(
        ensemble, X[:3000], alpha=alpha, costs="size", method=how, evaluation="quit", progress=False
    )
    costs = ensemble.costs(X, "size")
    np.testing.assert_array_equal(fast.policy.costs, costs.along(fast.policy.order))
    assert fast.cost_kind == "size"
    never = qwyc.optimize(
        ensemble, X[:3000], alpha=alpha, costs="size", method=how, evaluation="full", progress=False
    )
    np.testing.assert_array_equal(never.policy.costs, costs.along(never.policy.order))
    assert never.cost_kind == "size"
    assert never.certificate.mean_cost == pytest.approx(never.certificate.full_cost)


def test_at_recertify_and_files_keep_the_costs(made, fast, tmp_path):
    _, X = made
    fast.save(tmp_path / "f.qwyc")
    loaded = qwyc.load(tmp_path / "f.qwyc")
    for other in (
        fast.at(alpha=0.05),
        qwyc.recertify(fast, X[4000:]),
        loaded,
        loaded.at(alpha=0.05),
    ):
        assert other.cost_kind == "size"
        np.testing.assert_array_equal(other.policy.costs, fast.policy.costs)
        np.testing.assert_array_equal(other.choices.path.costs, fast.policy.costs)


@pytest.mark.parametrize(
    ("costs", "kind"),
    [
        (None, "one"),
        (np.ones(T), "one"),
        (qwyc.Costs(np.ones(T)), "one"),
        (np.full(T, 2.0), "given"),
        (qwyc.Costs(np.ones(T), [1.0], np.arange(T)[:, None] < 3), "given"),
        ("size", "size"),
        ("measured", "measured"),
    ],
)
def test_a_classifier_knows_how_its_costs_came_about(made, costs, kind):
    ensemble, X = made
    fast = qwyc.optimize(
        ensemble, X[:2000], alpha=0.05, costs=costs, evaluation="quit", progress=False
    )
    assert fast.cost_kind == kind
    assert classifier_file.from_bytes(classifier_file.to_bytes(fast)).cost_kind == kind


# ---- files ------------------------------------------------------------------------------------


def rewritten(fast, change):
    found = container.unpack(classifier_file.to_bytes(fast), (2,))
    body = json.loads(json.dumps(found.body))
    change(body)
    content = container.pack(container.Container(2, body, found.tensors))
    return classifier_file.from_bytes(content)


def test_files_that_do_not_say_it_are_read_as_one_or_given(made, fast):
    ensemble, X = made
    ones = qwyc.optimize(ensemble, X[:2000], alpha=0.05, evaluation="quit", progress=False)
    for made_with, kind in ((ones, "one"), (fast, "given")):
        assert rewritten(made_with, lambda body: body.pop("costs")).cost_kind == kind


@pytest.mark.parametrize("value", ["one", "free", "", 1, ["size"], {}])
def test_kinds_that_do_not_fit_are_refused(fast, value):
    with pytest.raises(qwyc.ArtifactError, match=r"expected one of one, size|does not fit"):
        rewritten(fast, lambda body: body.update(costs=value))


# ---- reports ----------------------------------------------------------------------------------


def test_reports_say_what_costs_count(made, fast):
    share = f"{fast.certificate.mean_cost / fast.certificate.full_cost:.1%}"
    assert f"base models per row on held-out rows, cost {share} ({UNIT})" in repr(fast)
    assert f"\n  costs      {UNIT}\n" in describe(fast)
    assert inspect(fast)["costs"] == {"kind": "size", "unit": UNIT}
    assert f"{share} of all: {UNIT}" in fast._repr_html_()
    proven = qwyc.optimize(made[0], alpha=0, costs=np.full(T, 2.0))
    assert repr(proven).count("no sample was given; costs: as given") == 1
    assert ">as given<" in proven._repr_html_()


def test_costs_of_one_are_mentioned_by_inspect_only(made):
    ensemble, X = made
    fast = qwyc.optimize(ensemble, X[:2000], alpha=0.05, evaluation="quit", progress=False)
    assert "cost" not in repr(fast)
    assert "cost" not in fast._repr_html_()
    assert "\n  costs      each base model counts 1\n" in describe(fast)
    assert inspect(fast)["costs"] == {"kind": "one", "unit": "each base model counts 1"}


def test_trees_and_callables_say_what_they_count(made, tmp_path):
    ensemble, X = made
    plain = qwyc.optimize(
        ensemble, X[:2000], alpha=0.05, costs="size", evaluation="quit", progress=False
    )
    plain.save(tmp_path / "f.qwyc")
    assert "(nodes that a row visits)" in repr(qwyc.load(tmp_path / "f.qwyc"))
    timed = replace(qwyc.load(tmp_path / "f.qwyc"), cost_kind="measured")
    assert "(microseconds, as measured)" in repr(timed)
    callables = qwyc.optimize(
        [lambda X: X[:, 0], lambda X: X[:, 1]], X[:2000], alpha=0.05, costs="measured"
    )
    assert "(microseconds, as measured)" in repr(callables)
