"""Rows made from a model alone: values at its own thresholds and next to them, what is missing, infinities,
zeros and categories. They show whether a live model decides as it was read where no sample is given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.model.ensemble import Ensemble, Sample
from qwyc.policy.lead_policy import leaders
from qwyc.rows.schema import Schema

ROWS = 320
ROUNDS = 25  # of the search for rows with high and low scores, and for rows close to the threshold
MOST_CUTS = 2000  # of one feature
CHANGED = 0.3  # the share of a row that a round of the search changes
SPECIAL = 0.15  # the share of values that are not next to a cut
PLAIN = (0.0, -0.0, 1.0, -1.0, 1e-36, -1e-36, 1e30, -1e30)
TEXTS = ("0", "1", "2", "a", "b", "unseen")

Matrix = npt.NDArray[Any]  # (n, n_features) of the schema's dtype; codes where there are categories
Rng = np.random.Generator


def synthetic_samples(ensemble: Ensemble, seed: int) -> Iterator[Sample]:
    """The same rows in each container that a live model may take, the likeliest first; first with values
    that only some libraries take, then without. Nothing where rows cannot be made: the base models are
    Python code, or a pipeline's own steps come before them."""
    schema, cuts = ensemble.schema, ensemble.base_models.cuts()
    if schema is None or cuts is None or ensemble.transform is not None:
        return
    for special in (True, False):
        rng = np.random.default_rng(seed)
        pools = [_pool(schema, j, cuts.get(j), rng, special) for j in range(schema.n_features)]
        matrix = _matrix(ensemble, pools, rng)
        if not schema.categories and not schema.by_name:
            yield ensemble.sample(_with_missing(matrix, schema, rng))
            continue
        table = _table(matrix, schema, rng, special)
        if table is not None:
            yield ensemble.sample(table)
        yield Sample(
            ensemble, matrix, partial(np.asarray, matrix)
        )  # codes, of which no values are made


def _pool(schema: Schema, j: int, cuts: Any, rng: Rng, special: bool) -> list[Matrix]:
    """Values of a feature: those next to cuts, and others."""
    dtype = np.dtype(schema.dtype)
    nan = np.array([np.nan], dtype)
    takes_nan = special and schema.accepts_missing and j not in schema.must_have
    if j in schema.categories:
        codes = np.arange(max(1, len(schema.categories[j])), dtype=dtype)
        return [codes, nan if takes_nan and not schema.hashed else codes]
    at = np.zeros(1) if cuts is None else np.asarray(cuts, np.float64)
    if len(at) > MOST_CUTS:
        at = rng.choice(at, MOST_CUTS, replace=False)
    at = at.astype(dtype)
    around = [np.nextafter(at, dtype.type(-np.inf)), at, np.nextafter(at, dtype.type(np.inf))]
    beyond = np.array([at.min() - 1, at.max() + 1], dtype)
    near = np.concatenate([*around, beyond])
    near = near[np.isfinite(near)]
    if not special or dict(schema.own_missing).get(j) is not None:
        return [near, near]
    others = [np.array(PLAIN, dtype)]
    others += [nan] if takes_nan else []
    others += [np.array([np.inf, -np.inf], dtype)] if schema.accepts_infinity else []
    return [near, np.concatenate(others)]


def _draw(pools: list[list[Matrix]], n: int, rng: Rng) -> Matrix:
    """n random rows."""
    columns = []
    for near, others in pools:
        other = rng.random(n) < SPECIAL
        columns.append(np.where(other, rng.choice(others, n), rng.choice(near, n)))
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _matrix(ensemble: Ensemble, pools: list[list[Matrix]], rng: Rng) -> Matrix:
    """Rows in four equal parts: random ones, and those that a search finds with high scores, with low
    scores, and with scores close to the threshold. Of K classes, high and low are the scores of one class,
    for every row another, and close are those of the two best classes."""
    rows = _draw(pools, ROWS, rng)
    part = np.arange(ROWS) * 4 // ROWS  # (n,)

    def worth(some: Matrix) -> npt.NDArray[np.float64]:
        score = ensemble.base_models.score_full(some, threads=1)
        if ensemble.by_class:
            distance = -leaders(score)[1]
            score = score[np.arange(ROWS), np.arange(ROWS) % score.shape[1]]
        else:
            distance = -np.abs(score - ensemble.threshold)
        return np.choose(part, [np.zeros(ROWS), score, -score, distance])

    now = worth(rows)
    for _ in range(ROUNDS):
        drawn = _draw(pools, ROWS, rng)
        tried = np.ascontiguousarray(np.where(rng.random(rows.shape) < CHANGED, drawn, rows))
        then = worth(tried)
        better = then > now
        rows[better], now[better] = tried[better], then[better]
    return rows


def _with_missing(matrix: Matrix, schema: Schema, rng: Rng) -> Matrix:
    """The rows, with the model's own number for a missing value here and there."""
    if np.isnan(schema.missing):
        return matrix
    return np.where(rng.random(matrix.shape) < SPECIAL / 2, schema.missing, matrix).astype(
        matrix.dtype
    )


def _table(matrix: Matrix, schema: Schema, rng: Rng, special: bool) -> Any:
    """The rows as a pandas frame whose categories are values; None where pandas is not loaded. A library
    that takes frames of categories has usually loaded it; without it, codes are tried instead."""
    pandas: Any = sys.modules.get("pandas")
    if pandas is None:
        return None
    unseen = special and schema.unseen != "error"
    columns: dict[str, Any] = {}
    for j in range(schema.n_features):
        name = str(j) if schema.names is None else schema.names[j]
        known, code = schema.categories.get(j), matrix[:, j]
        if known is None:
            columns[name] = code
        elif schema.hashed:
            columns[name] = rng.choice(TEXTS, len(code)).astype(object)
        elif schema.arrays_hold_values and all(type(value) in (int, float) for value in known):
            values = np.array([*known, np.nan], np.float64)
            new = np.nanmax(values, initial=0.0) + 1
            taken = values[np.where(np.isnan(code), len(known), code).astype(np.intp)]
            columns[name] = np.where(unseen & (rng.random(len(code)) < SPECIAL / 2), new, taken)
        else:
            place = np.where(np.isnan(code), -1, code).astype(np.intp)
            kinds: list[Any] = [value for value in known if value is not None]
            if unseen and len(kinds) == len(known):
                place[rng.random(len(place)) < SPECIAL / 2] = len(known)
                kinds.append(_other(kinds))
            columns[name] = pandas.Categorical.from_codes(place, categories=kinds)
    return pandas.DataFrame(columns)


def _other(known: list[Any]) -> Any:
    """A value that is not among the known ones, of their kind."""
    if any(isinstance(value, str) for value in known):
        return "".join(str(value) for value in known)[:100] + " unseen"
    return max(known, default=0) + 1
