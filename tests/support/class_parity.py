"""Models of K classes as qwyc reads them against the models themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from qwyc import importers
from qwyc.check.parity import prove_parity, prove_parity_without_rows
from qwyc.model.ensemble import Ensemble

NAMES = np.array([f"kind {chr(122 - k % 26)}{k}" for k in range(100)])


def class_data(
    K: int, n: int = 600, seed: int = 0, missing: float = 0.0, coarse: bool = False
) -> tuple[Any, Any]:
    """Rows of 5 numbers, the third of them one of four, and labels 0 to K - 1, each of which occurs.
    Coarse rows have few values, so that many are alike."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    if coarse:
        X = np.round(X)
    X[:, 3] = rng.integers(0, 4, n)
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + (X[:, 3] == 2) + 0.5 * rng.normal(size=n)
    y = (np.argsort(np.argsort(score)) * K // n) % K
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def check_classes(model: Any, X: Any, labels: Any, scores: Any, file: Any = None) -> Ensemble:
    """Full scores and decisions of all rows are these, bit for bit; the proof of parity says so too. The
    same goes for the model in a file."""
    source = importers.open_model(model)
    for ensemble in (source.ensemble, *([] if file is None else [importers.read_model(file)])):
        assert ensemble.by_class
        full = ensemble.score_full(X)
        np.testing.assert_array_equal(full, np.asarray(scores, dtype=np.float64))
        np.testing.assert_array_equal(ensemble.classes[ensemble.target.decide(full)], labels)
        assert ensemble.digest == source.ensemble.digest
    sample = source.ensemble.sample(X)
    matrix = source.ensemble.scores(sample)
    assert prove_parity(source, sample, matrix)
    if source.ensemble.transform is None and source.ensemble.base_models.n_scores < 10:
        assert prove_parity_without_rows(source, 0)
    # Base models add up to full scores, but for rounding.
    sums = matrix.values.sum(axis=1, dtype=np.float64) + matrix.base
    size = max(1.0, float(np.abs(matrix.full).max()))
    np.testing.assert_allclose(sums, matrix.full, rtol=0, atol=1e-5 * size)
    return source.ensemble


def ties_of(full: Any) -> int:
    """Rows whose two largest scores are equal."""
    ordered = np.sort(full, axis=1)
    return int(np.count_nonzero(ordered[:, -1] == ordered[:, -2]))
