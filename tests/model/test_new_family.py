"""A family of base models that the package has never heard of goes all the way: it is one class here."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import qwyc
from qwyc.model.base_models import BaseModels, Bounds, Runner
from qwyc.model.ensemble import Ensemble, Source
from qwyc.policy.rule import GO_ON
from qwyc.promise.budget import TotalBudget
from qwyc.promise.evaluation import Evaluation
from qwyc.rows.schema import Schema
from qwyc.target.ties import BY_SCORES


@dataclass(frozen=True, eq=False)
class LinearTerms:
    """f_t(x) = weight[t] * x[t], with x cut to -3 .. 3, so that bounds exist."""

    weight: np.ndarray  # (T,)
    quit_cost: float = 60.0  # of a decision, by its cost model
    kind = "linear terms"
    average = False
    base = 0.25
    score_bytes = 8
    n_scores = 1
    ties = BY_SCORES

    @property
    def n_models(self):
        return len(self.weight)

    @property
    def description(self):
        return f"{self.n_models} linear terms"

    def scores(self, rows, *, threads=None, report=lambda done: None):
        values = np.asfortranarray(np.clip(rows, -3, 3) * self.weight)
        full = np.full(len(rows), self.base)
        for t in range(self.n_models):
            full += values[:, t]
        report(values.size)
        return values, full

    def score_full(self, rows, *, threads=None):
        return self.scores(rows)[1]

    def runner(self, policy, survival=None):
        return TermByTerm(self, policy)

    def path_counter(self, path):
        return None

    def expected_cost(self):
        return 10.0 * self.n_models

    def bounds(self):
        size = 3 * np.abs(self.weight)
        return Bounds(-size, size, 1e-9)

    def cuts(self):
        return dict.fromkeys(range(self.n_models), np.array([-3.0, 3.0]))

    def feature_needs(self):
        return np.arange(self.n_models), np.arange(self.n_models)

    def costs(self, rows, how, *, threads=None):
        return np.arange(1.0, self.n_models + 1)

    def cost_unit(self, how):
        return ""

    def tensors(self):
        return None

    def facts(self):
        return {}

    def digest_facts(self):
        return [], []

    def layout(self):
        return {"terms": self.n_models}, f"{self.n_models} products"


@dataclass(frozen=True, eq=False)
class TermByTerm:
    terms: LinearTerms
    policy: object

    def decide(self, rows, *, threads=None):
        values, full = self.terms.scores(rows)
        n, T = values.shape
        decided, steps, score = np.zeros(n, int), np.full(n, T, np.int32), full.copy()
        running, going = np.full(n, self.terms.base), np.ones(n, bool)
        for r, t in enumerate(self.policy.order[:-1]):
            running += values[:, t]
            outcome = self.policy.outcomes(r, running)
            quits = going & (outcome != GO_ON)
            decided[quits], steps[quits], score[quits] = outcome[quits], r + 1, running[quits]
            going &= ~quits
        decided[going] = self.policy.target.decide(full[going])
        return decided, steps, score

    def one_row(self, labels, fallback, schema):
        return None

    def expected_cost(self):
        return self.terms.quit_cost


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    terms = LinearTerms(np.round(rng.normal(size=12), 3))
    schema = Schema(n_features=12, names=tuple("abcdefghijkl"), dtype="float64")
    ensemble = Ensemble(terms, schema, 0.0, np.array(["no", "yes"]), Source("tests", "1", "linear"))
    return ensemble, rng.normal(size=(6000, 12))


def test_it_has_what_the_interface_asks_for(made):
    terms = made[0].base_models
    for protocol, thing in ((BaseModels, terms), (Runner, TermByTerm(terms, None))):
        wanted = [name for name in vars(protocol) if not name.startswith("_")]
        assert wanted
        assert not [name for name in wanted if not hasattr(thing, name)]


def test_it_is_optimised_verified_and_described(made):
    ensemble, X = made
    fast = qwyc.optimize(
        ensemble, X[:4000], alpha=0.02, costs="any", evaluation="quit", progress=False
    )
    decisions, full = fast.decide(X[4000:]), fast.score_full(X[4000:]) >= 0
    assert decisions.steps.mean() < 12
    assert np.mean((decisions.label == "yes") != full) < 0.03
    assert qwyc.verify(fast, X[4000:], alpha=0.05).passed
    assert fast.predict_one(X[0]) == fast.predict(X[:1])[0]
    assert fast.predict_one(X[0].tolist()) == fast.predict(X[:1])[0]
    assert repr(fast).startswith(
        "qwyc.Classifier: 12 linear terms from tests 1 (linear), 12 features"
    )
    assert "linear terms" in fast._repr_html_()
    assert qwyc.recertify(fast, X[4000:], alpha=0.05).certificate.rows == 2000
    with pytest.raises(qwyc.ArtifactError, match="cannot be saved"):
        fast.save("nowhere.qwyc")


@pytest.mark.parametrize(("quit_cost", "quits"), [(120.0, True), (120.5, False)])
def test_its_cost_model_decides_whether_rows_quit(made, quit_cost, quits):
    ensemble, X = made
    dear = replace(ensemble, base_models=replace(ensemble.base_models, quit_cost=quit_cost))
    fast = qwyc.optimize(dear, X, alpha=0.02, progress=False)
    assert fast.evaluation == Evaluation(quits, "model")
    assert (fast.policy.quit == "both") == quits
    assert fast.decide(X).complete.all() != quits


def test_zero_is_proven_from_its_bounds(made):
    ensemble, X = made
    fast = qwyc.optimize(ensemble, alpha=0)
    decisions = fast.decide(X)
    assert decisions.steps.mean() < 12
    np.testing.assert_array_equal(decisions.label == "yes", fast.score_full(X) >= 0)


def test_a_budget_of_another_kind_goes_wherever_alpha_does(made):
    ensemble, X = made

    class HalfOf(TotalBudget):
        """What nobody thought of: half of a share."""

        def passes(self, counts, confidence):
            return TotalBudget(self.share / 2).passes(counts, confidence)

        def rows_needed(self, confidence):
            return TotalBudget(self.share / 2).rows_needed(confidence)

    half = qwyc.optimize(ensemble, X, alpha=HalfOf(0.04), progress=False)
    same = qwyc.optimize(ensemble, X, alpha=0.02, progress=False)
    np.testing.assert_array_equal(half.policy.lower, same.policy.lower)
    assert half.certificate.counts == same.certificate.counts
