"""Decisions on rows whose features are fetched only when they are needed.

Rows are decided in rounds (`qwyc.policy.rounds`). In each round, the features that it adds are fetched for
the rows that are still undecided, and the engine runs on them up to the next round. Features that were not
fetched hold a number that no base model evaluated so far looks at, so it changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import InputError, OptionError, RowsError
from qwyc.model.base_models import Runner
from qwyc.model.ensemble import Ensemble
from qwyc.policy.decisions import Decisions
from qwyc.policy.filter_policy import ClassPolicy, FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.policy.rounds import Round
from qwyc.rows.arrays import as_array
from qwyc.rows.column_names import feature_name
from qwyc.rows.frames import as_frame
from qwyc.rows.matrix import to_matrix
from qwyc.rows.schema import Schema
from qwyc.rows.sparse import dense_rows

Ints = npt.NDArray[np.int64]
Fetch = Callable[[list[Any], Ints], Any]  # (columns, rows) -> a table (len(rows), len(columns))

NOT_FETCHED = 0.0  # in place of a feature that was not fetched; any number would do
MOST_NAMES = 10  # in a message
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class LazyDecisions(Decisions):
    """What was decided about N rows whose features were fetched when they were needed."""

    fetched: npt.NDArray[np.int32]  # (N,) values that were fetched for each row
    rounds: int  # calls of `fetch`

    @property
    def mean_fetched(self) -> float:
        """Values that were fetched per row; 0 for no rows."""
        return float(self.fetched.mean()) if len(self.fetched) else 0.0


@dataclass(frozen=True, eq=False)
class LazyRunner:
    """An ensemble laid out for a policy that is run in rounds."""

    ensemble: Ensemble
    schema: Schema
    rounds: Sequence[Round]
    runners: Sequence[Runner]  # one for each round

    @classmethod
    def of(
        cls,
        ensemble: Ensemble,
        policy: Policy | ClassPolicy,
        rounds: Sequence[Round],
        whole: Runner,
    ) -> LazyRunner:
        """`whole` runs the policy itself, which the last round does."""
        assert ensemble.schema is not None  # its base models say which features they look at
        cut = [ensemble.runner(stopping_at(policy, part.end)) for part in rounds[:-1]]
        return cls(ensemble, ensemble.schema, rounds, [*cut, whole])

    def decide(self, fetch: Fetch, n: int, threads: int | None) -> LazyDecisions:
        """Decide n rows."""
        label_index = np.zeros(n, dtype=np.intp)
        steps, models = np.zeros(n, dtype=np.int32), self.ensemble.base_models
        score = np.zeros((n, models.n_scores) if self.ensemble.by_class else n)
        fetched, calls = np.zeros(n, dtype=np.int32), 0
        left = np.arange(n, dtype=np.int64)  # rows that are undecided
        # float64 holds what float32 does, and the engine rounds it back to the same float32.
        known = np.full((n, self.schema.n_features), NOT_FETCHED)  # (len(left), n_features)
        for part, runner in zip(self.rounds, self.runners, strict=True):
            if not len(left):
                break
            if len(part.features):
                known[:, part.features] = self._fetched(fetch, part.features, left)
                fetched[left] += len(part.features)
                calls += 1
            decided, taken, sums = runner.decide(known, threads=threads)
            done = np.asarray(taken) <= part.end
            rows = left[done]
            label_index[rows], steps[rows], score[rows] = decided[done], taken[done], sums[done]
            left, known = left[~done], np.ascontiguousarray(known[~done])
        plain = self.ensemble.decisions(label_index, steps, score)
        return LazyDecisions(plain.label, plain.steps, plain.score, plain.complete, fetched, calls)

    def _fetched(self, fetch: Fetch, features: Ints, rows: Ints) -> npt.NDArray[Any]:
        """What `fetch` gives for some rows, as the base models take it, (len(rows), len(features))."""
        schema = self.schema.of_columns([int(j) for j in features])
        columns = [feature_name(int(j), self.schema) for j in features]
        given = fetch(list(columns), rows.copy())
        try:
            _check_shape(given, len(rows), columns)
            rows = to_matrix(given, schema)
            if isinstance(rows, _native.SparseRows):
                return dense_rows(rows, schema.dtype)
            matrix: npt.NDArray[Any] = rows
            return matrix
        except RowsError as error:
            row = None if error.row is None else int(rows[error.row])
            column = error.column
            if self.schema.names is None and isinstance(column, int):
                column = int(features[column])
            raise RowsError(
                error.sentence, row=row, column=column, rows="what fetch returned", **error.details
            ) from None


def stopping_at(policy: Policy | ClassPolicy, step: int) -> Policy | ClassPolicy:
    """The same policy up to a step, from 0; a row that gets there takes one more base model and quits, or
    more where classes tie. Its decision means nothing, and it is told by having taken more than `step` base
    models."""
    if isinstance(policy, FilterPolicy):
        gap = policy.gap.copy()
        gap[step:] = -LARGEST
        return replace(policy, gap=gap)
    if isinstance(policy, LeadPolicy):
        lead = policy.lead.copy()
        lead[step:] = 0.0
        return replace(policy, lead=lead)
    lower, upper = policy.lower.copy(), policy.upper.copy()
    lower[step:], upper[step:] = LARGEST, LARGEST
    return Policy(policy.order, lower, upper, policy.threshold, policy.costs)


def check_needs_known(ensemble: Ensemble) -> None:
    """Raise OptionError where it is not known which columns a row needs."""
    if ensemble.transform is not None:
        raise OptionError(
            f"the pipeline's own steps ({ensemble.transform}) need whole rows: use "
            "classifier.without_transform().decide_lazily, and fetch what pipeline[:-1].transform gives"
        )
    if ensemble.schema is None or ensemble.base_models.feature_needs() is None:
        raise OptionError(
            f"{ensemble.base_models.description} do not say which columns they look at, so nothing can be "
            "fetched lazily: use decide"
        )


def _check_shape(given: Any, n: int, columns: Sequence[Any]) -> None:
    """Refuse what is not a table of n rows with these columns."""
    shape = _shape(given)
    if shape == (n, len(columns)):
        return
    what = f"{type(given).__name__} of shape {shape}" if shape else _shown(given)
    names = ", ".join(repr(name) for name in columns[:MOST_NAMES])
    more = ", ..." if len(columns) > MOST_NAMES else ""
    raise InputError(
        f"fetch must return a table of {n:,} rows, one for each that it was given, and {len(columns):,} "
        f"columns ({names}{more}); it returned {what}"
    )


def _shape(given: Any) -> tuple[int, ...]:
    """Rows and columns of a table; () where it is none."""
    if isinstance(given, (list, tuple)) or not hasattr(given, "shape"):
        frame = None if isinstance(given, (list, tuple)) else as_frame(given)
        if frame is not None:
            return (len(frame), len(frame.columns))
        given = as_array(given, object)
    return tuple(int(n) for n in given.shape)


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
