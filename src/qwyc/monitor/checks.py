"""Which rows are checked, and the rows that wait for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.classifier import Classifier, as_table
from qwyc.model.native import PlainArrays, plain_arrays, sampled_one_row
from qwyc.policy.decisions import Decisions
from qwyc.rows.selection import take
from qwyc.target.target import Decided

CHECKED_AT_ONCE = 2048  # rows that wait until they are evaluated in full together, at most
EVALUATIONS_AT_ONCE = 1 << 20  # of base models, so that no call waits long
WAITING_NUMBERS = 1 << 21  # of the waiting rows


class Early(NamedTuple):
    """Rows that were decided, and are to be checked."""

    rows: Any  # as the base models take them: (k, n_features) where they take a matrix
    decided: Decided  # (k,) the index of each row's class
    steps: npt.NDArray[np.int32]  # (k,) base models evaluated


class Checks:
    """Decides rows and picks those to check: each with the same probability, whatever it holds. Which
    positions of the stream are picked depends on the seed alone, not on the sizes of batches.

    Full evaluation of a few rows costs more per row than that of many, so picked rows wait until there
    are enough, or until somebody looks. Rows of callables are checked at once."""

    def __init__(
        self,
        classifier: Classifier,
        rate: float,
        seed: list[int],
        check: Callable[[Early, int | None], None],  # rows, on so many threads
        check_waiting: Callable[[int | None], None],
    ) -> None:
        self.classifier = classifier
        self._check = check
        self._check_waiting = check_waiting
        self._matrix = classifier.ensemble.takes_matrix
        schema = classifier.ensemble.schema
        width = 0 if schema is None else schema.n_features
        self._dtype = np.dtype(np.float64 if schema is None else schema.dtype)
        state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        evaluations = EVALUATIONS_AT_ONCE // classifier.policy.n_models
        most = max(1, min(CHECKED_AT_ONCE, evaluations, WAITING_NUMBERS // max(1, width)))
        self._picked = _native.PickedRows(rate, int(state[0]), width, most)

    @property
    def taken(self) -> int:
        """Rows decided."""
        return self._picked.taken

    def decide(self, X: Any, threads: int | None) -> Decisions:
        """The classifier's decisions."""
        plain = self._plain_arrays
        found: Any = None if plain is None else plain.decide_indices(X, threads)
        if found is not None:
            decisions, indices = found
            self._keep_some(X, indices, decisions.steps, threads)
            return decisions  # type: ignore[no-any-return]
        ensemble = self.classifier.ensemble
        rows = ensemble.rows_to_decide(X)
        decided, steps, score = self.classifier.runner.decide(rows, threads=threads)
        if self._matrix:
            self._keep_some(rows, decided, steps, threads)
        else:
            self._check_some(rows, decided, steps, threads)
        return ensemble.decisions(decided, steps, score)

    @cached_property
    def _plain_arrays(self) -> PlainArrays | None:
        return plain_arrays(self.classifier.runner, self.classifier.ensemble)

    def _keep_some(
        self, rows: Any, decided: Decided, steps: npt.NDArray[np.int32], threads: int | None
    ) -> None:
        """Keep those of the rows, a matrix, that are picked."""
        begin = self._picked.take(len(steps))
        if begin >= 0:  # some may be picked
            indices = np.asarray(decided, dtype=np.uint8)
            if self._picked.add(begin, rows, indices, steps):
                self._check_waiting(threads)

    def _check_some(
        self, rows: Any, decided: Decided, steps: npt.NDArray[np.int32], threads: int | None
    ) -> None:
        """Check those of the rows that are picked at once."""
        picked = self._picked.pick(len(steps))
        if picked is not None:
            early = Early(take(rows, picked), decided[picked], steps[picked])
            self._check(early, threads)

    def predict_one(self) -> Callable[[Any], Any]:
        """A function that decides one row."""
        one_row = self.classifier.predict_one
        sampled = sampled_one_row(
            one_row, self._picked, self._keep_row, lambda: self._check_waiting(1)
        )
        if sampled is not None:
            return sampled

        def predict_one(row: Any) -> Any:
            label = one_row(row)
            if self._picked.pick(1) is not None:
                self._keep_row(row)
            return label

        return predict_one

    def _keep_row(self, row: Any) -> None:
        """One row in any form that was decided and picked."""
        rows = self.classifier.ensemble.rows(as_table(row))
        decided, steps, _ = self.classifier.runner.decide(rows, threads=1)
        if not self._matrix:
            self._check(Early(rows, decided, steps), 1)
        elif self._picked.keep(rows, np.asarray(decided, dtype=np.uint8), steps):
            self._check_waiting(1)

    def waiting(self) -> Early | None:
        """The rows that wait, if there are any. They wait no longer."""
        rows, decided, steps = self._picked.drain()
        return Early(rows.astype(self._dtype), decided, steps) if len(steps) else None
