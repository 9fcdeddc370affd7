"""A classifier that often differs from its full ensemble, and rows for its monitor."""

from dataclasses import replace

import numpy as np

import qwyc
from forests import classifier_of, random_ensemble, random_rows
from qwyc.policy.policy import Policy
from qwyc.promise.budget import budget_of


def bold(alpha=0.05, by_class=None, how="held-out", seed=6, n_trees=12):
    """A classifier that quits after half of its trees by the running sum alone, and promises alpha."""
    ensemble = random_ensemble(seed, n_trees=n_trees, summation=0)
    T, half = n_trees, n_trees // 2
    lower, upper = np.full(T, -np.inf), np.full(T, np.inf)
    lower[half - 1], upper[half - 1] = -0.2, 0.2
    policy = Policy(np.arange(T), lower, upper, ensemble.threshold, np.ones(T))
    made = classifier_of(ensemble, policy)
    confidence = 0.95 if how == "held-out" else None
    budget = budget_of(alpha, by_class)
    return replace(
        made, certificate=replace(made.certificate, budget=budget, how=how, confidence=confidence)
    )


def rows_for(classifier, n=4_000, seed=7):
    return random_rows(seed, classifier.ensemble, n=n)


def truth(classifier, rows):
    """What every row's check gives: decided and full, as indices of classes."""
    classes = classifier.ensemble.classes
    decided = np.searchsorted(classes, classifier.predict(rows))
    full = classifier.policy.target.decide(classifier.score_full(rows))
    return decided, full


def slow_callables(n_models=8):
    """Base models in Python that read their score from a column."""
    return [lambda X, t=t: np.asarray(X)[:, t] for t in range(n_models)]


def of_callables(seed=0, n=3_000, alpha=0.05):
    """A classifier of callables, and rows."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, 8))
    return qwyc.optimize(slow_callables(), rows, alpha=alpha, progress=False), rows
