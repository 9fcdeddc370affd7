"""Data of K classes, and models of K classes against the library that trained them."""

from __future__ import annotations

import numpy as np

from qwyc import importers
from qwyc.check.parity import prove_parity
from trained import make_data, make_frame


def labels(signal, K, seed=0):
    """Classes, (N,), of which every one has about as many rows: they follow a signal, with noise."""
    noisy = signal + np.random.default_rng(seed).normal(size=len(signal)) * signal.std() / 3
    return noisy.argsort().argsort() * K // len(signal)


def make_classes(K, seed=0, rows=500):
    """Rows with missing values, (rows, 6), and classes 0 to K - 1, (rows,)."""
    X, y = make_data(seed, rows)
    return X, labels(np.nan_to_num(2 * X[:, 0] + X[:, 1] + X[:, 4]) + y, K, seed)


def make_class_frame(K, seed=0, rows=700):
    """A frame with categories and missing values, and classes 0 to K - 1, (rows,)."""
    frame, y = make_frame(seed, rows)
    return frame, labels(np.nan_to_num(frame["a"].to_numpy()) + y, K, seed)


def odd_rows(ensemble, seed=0, rows=400, infinities=True):
    """Rows on the thresholds of the model's own nodes and beside them, in float64, with zeros, missing
    values and infinities."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, ensemble.schema.n_features))
    for j, cuts in ensemble.base_models.cuts().items():
        gap = np.spacing(cuts.astype(ensemble.schema.dtype)).astype(np.float64)
        pool = np.concatenate([cuts, cuts + gap, cuts - gap, cuts + gap / 8, cuts - gap / 8])
        X[:, j] = rng.choice(pool, rows)
    odd = rng.random(X.shape)
    specials = [np.nan, 0.0, -0.0] + [np.inf, -np.inf] * infinities
    for i, value in enumerate(specials):
        X[(odd > i / 20) & (odd < (i + 1) / 20)] = value
    return X


def assert_classes(model, X, own_scores, own_labels, ensemble=None):
    """What was read from a model gives the rows X the scores (N, K), bit for bit, and the labels (N,) that
    its library gives them; the comparison that `optimize` makes finds no difference."""
    source = importers.open_model(model)
    ensemble = ensemble or source.ensemble
    full = ensemble.score_full(X)
    assert full.shape == own_scores.shape == (len(X), len(ensemble.classes))
    np.testing.assert_array_equal(full, own_scores)
    decided = ensemble.classes[ensemble.target.decide(full)]
    np.testing.assert_array_equal(decided, own_labels)
    np.testing.assert_array_equal(ensemble.scores(X).full, full)
    if source.predict_live is not None:
        assert prove_parity(source, ensemble.sample(X), ensemble.scores(X))
    return ensemble
