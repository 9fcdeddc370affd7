"""A scikit-learn model as qwyc reads it against the model itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from qwyc.importers.sklearn import live_labels, read_live
from qwyc.model.ensemble import Ensemble

NAN = float("nan")


def data(n: int = 600, seed: int = 0, missing: float = 0.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 3] = rng.integers(0, 4, n)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + (X[:, 3] == 2) + rng.normal(size=n) > 0.3).astype(int)
    X[rng.random(X.shape) < missing] = NAN
    return X, y


def labels(ensemble: Ensemble, score: Any) -> Any:
    return ensemble.classes[(score >= ensemble.threshold).astype(int)]


def check(model: Any, X: Any) -> Ensemble:
    """Full score and decision of every row of X, and what the model itself says."""
    ensemble = read_live(model)
    score = ensemble.score_full(X)
    expected = model.predict(X)
    ours = labels(ensemble, score)
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(live_labels(model, ensemble.sample(X)), expected)
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(score, model.decision_function(X))
    else:
        proba = model.predict_proba(X)
        far = np.abs(proba[:, 1] - 0.5) > 1e-15
        np.testing.assert_array_equal(score[far], proba[far, 1])
        assert np.all(np.abs(score - proba[:, 1]) < 1e-15)
    some = [ensemble.link.probability(value) for value in score[:50]]
    np.testing.assert_allclose(some, model.predict_proba(X[:50])[:, 1], rtol=1e-12, atol=1e-300)
    return ensemble


def around_thresholds(ensemble: Ensemble, X: Any) -> Any:
    """Rows with one value each at, just above and just below a threshold, as float64."""
    trees, rows = ensemble.base_models.trees, []
    for feature, t in list(zip(trees.feature, trees.threshold, strict=True))[:300]:
        with np.errstate(over="ignore"):
            up, down = (np.nextafter(t, t.dtype.type(s)) for s in (np.inf, -np.inf))
        for value in (t, up, down, np.nextafter(float(t), np.inf), np.nextafter(float(t), -np.inf)):
            row = np.array(X[len(rows) % len(X)], np.float64)
            row[feature] = value
            rows.append(row)
    return np.array(rows)
