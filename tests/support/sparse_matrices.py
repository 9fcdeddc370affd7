"""Sparse matrices for tests."""

from __future__ import annotations

import numpy as np
import scipy.sparse


def matrix(n, width, *, seed, density=0.12, dtype=np.float32):
    """CSR with values that trees split between, and entries of 0."""
    rows = scipy.sparse.random(n, width, density, format="csr", random_state=seed, dtype=np.float64)
    rows.data = np.round(8 * rows.data) / 8 - 0.25  # some are 0
    assert (rows.data == 0).any()
    return rows.astype(dtype)


def target(rows, classes=2):
    """A class of each row, (N,), which some columns decide."""
    score = np.asarray(rows[:, : rows.shape[1] // 3].sum(axis=1), dtype=np.float64).ravel()
    edges = np.quantile(score, np.arange(1, classes) / classes)
    return np.searchsorted(edges, score)


def dense_of(rows, absent):
    """The same rows, (N, n_features), with `absent` where there is no entry."""
    dense = np.full(rows.shape, absent, dtype=rows.dtype)
    entries = rows.tocoo()
    dense[entries.row, entries.col] = entries.data
    return dense
