"""Classifiers and rows in every layout of memory, for tests of arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import qwyc
from forests import classifier_of, random_ensemble, random_rows, with_inputs
from lattices import lattice_rows, random_lattices


def unaligned(rows):
    room = np.zeros(rows.nbytes + 1, np.uint8)
    view = room[1:].view(rows.dtype).reshape(rows.shape)
    view[:] = rows
    return view


def read_only(rows):
    rows = rows.copy()
    rows.flags.writeable = False
    return rows


def within(rows, order):
    """The rows as columns of a wider array."""
    wide = np.full((len(rows), rows.shape[1] + 4), np.nan, rows.dtype, order=order)
    wide[:, 3:-1] = rows
    return wide[:, 3:-1]


# The second item says whether native code reads the array where it lies.
LAYOUTS = {
    "C": (np.ascontiguousarray, True),
    "Fortran": (np.asfortranarray, True),
    "read-only": (read_only, True),
    "read-only Fortran": (lambda rows: read_only(rows.T).T, True),
    "part of wider rows": (lambda rows: within(rows, "C"), True),
    "part of more columns": (lambda rows: within(rows, "F"), True),
    "every second row": (lambda rows: np.repeat(rows, 2, axis=0)[::2], True),
    "every second column": (
        lambda rows: np.asfortranarray(np.repeat(rows, 2, axis=1))[:, ::2],
        True,
    ),
    "rows of Fortran": (lambda rows: np.asfortranarray(np.repeat(rows, 3, axis=0))[1::3], False),
    "columns of C": (lambda rows: np.repeat(rows, 2, axis=1)[:, ::2], False),
    "reversed rows": (lambda rows: np.ascontiguousarray(rows[::-1])[::-1], False),
    "reversed columns": (lambda rows: np.ascontiguousarray(rows[:, ::-1])[:, ::-1], False),
    "unaligned": (unaligned, False),
    "other byte order": (lambda rows: rows.astype(rows.dtype.newbyteorder()), False),
    "list": (lambda rows: rows.tolist(), False),
    "masked": (lambda rows: np.ma.masked_array(rows, mask=False), False),
}


def quitting(seed=0, **options):
    ensemble = random_ensemble(seed, n_trees=40, **options)
    rows = random_rows(seed, ensemble)
    return classifier_of(ensemble, qwyc.fit_policy(ensemble.scores(rows), alpha=0.1)), rows


def finite(seed=0, **options):
    """A classifier that refuses NaN and infinity, and rows that have none."""
    fast, rows = quitting(seed, **options)
    ensemble = with_inputs(fast.ensemble, accepts_missing=False, accepts_infinity=False)
    return replace(fast, ensemble=ensemble), np.nan_to_num(rows, posinf=7, neginf=-7)


def of_lattices(seed=0, **options):
    ensemble = random_lattices(seed, n_models=15, **options)
    rows = lattice_rows(seed, ensemble)
    return classifier_of(ensemble, qwyc.fit_policy(ensemble.scores(rows), alpha=0.1)), rows


def never(seed=0, **options):
    fast, rows = quitting(seed, **options)
    return fast.full(), rows


KINDS = {"trees": quitting, "finite": finite, "lattices": of_lattices, "full": never}


def long_way(fast, X, threads=None):
    """What a classifier decides without its native call for arrays."""
    return fast.ensemble.decide(X, fast.runner, threads=threads)
