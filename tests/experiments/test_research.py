"""The research protocol: its variants are what they say, and its halves share no row."""

import numpy as np
import pytest

import qwyc
from qwyc_experiments import research, variants
from qwyc_experiments.brute_force import general_instance

STUDIES = [
    *("order", "penalty", "sweeps", "thresholds"),
    *("ridge", "costs-0.5", "rows-1000", "models-10"),
]


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    fit, test = (
        qwyc.ScoreMatrix.from_array(general_instance(rng, n, 12), threshold=0.2)
        for n in (1500, 1500)
    )
    return variants.Case(fit, test, "both", np.ones(12))


@pytest.mark.parametrize("name", STUDIES)
def test_every_variant_gives_a_path_from_never_to_bold(case, name):
    change, makers = research.study(name)
    assert next(iter(makers)) == "default"
    changed = change(case)
    for make in makers.values():
        points = variants.points_of(make(changed), changed.test)
        assert points[0] == (0.0, pytest.approx(changed.costs.sum()))
        assert points[-1][1] < points[0][1]


def test_a_rule_may_be_changed(case):
    other = variants.path_of(case, variants.order_of(case, ridge=5.0), most_bins=1)
    assert not np.array_equal(other.lower[-1], variants.path_of(case).lower[-1])


def test_fewer_base_models_are_an_ensemble_of_their_own(case):
    few = variants.first_models(case, 5)
    np.testing.assert_allclose(few.fit.full, case.fit.values[:, :5].sum(axis=1))
    assert few.test.values.shape == (1500, 5)


def test_backward_elimination_ends_with_what_is_best_alone(case):
    C = variants.covariances(case)
    alone = C.sum(axis=1) * np.abs(C.sum(axis=1)) / np.diag(C)
    order = variants.backward_order(case)
    assert sorted(order) == list(range(12))
    assert alone[order[0]] > np.median(alone)


def test_the_halves_share_no_row(tmp_path, monkeypatch):
    X = np.arange(400, dtype=np.float32)[:, None]
    seen = {}

    class Model:
        def fit(self, rows, labels):
            return self

    def scores(self, rows):
        seen.setdefault(half, []).append(rows[:, 0])
        return qwyc.ScoreMatrix.from_array(np.tile(rows - 200, (1, 3)))

    class Read:
        def __init__(self, model):
            pass

    Read.scores = scores
    pair = (lambda seed: (X, X[:, 0] > 200), lambda seed: Model(), "both", 100)
    with monkeypatch.context() as patch:
        patch.setattr(qwyc, "read_model", Read)
        for half in research.HALVES:
            kept = research.case_of("toy", pair, half, 0, tmp_path)
            assert kept.fit.values.shape[1] == 3
    select, report = (np.concatenate(seen[half]) for half in research.HALVES)
    assert len(select) == len(report) == 150
    assert not np.intersect1d(select, report).size
