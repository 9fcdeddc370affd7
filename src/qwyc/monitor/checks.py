"""Which rows are checked, and the rows that wait for it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.classifier import Classifier, check_classifier, from_certified
from qwyc.model.base_models import Runner
from qwyc.model.native import Found, native_checker, plain_arrays, sampled_one_row, watched_runner
from qwyc.model.one_row import as_table
from qwyc.policy.decisions import Decisions
from qwyc.policy.policy import Policy
from qwyc.rows.selection import take
from qwyc.rows.sparse import dense_rows
from qwyc.target.target import Decided

CHECKED_AT_ONCE = 8192  # rows that wait until they are evaluated in full together, at most
EVALUATIONS_AT_ONCE = 1 << 21  # of base models, so that no call waits long
WAITING_NUMBERS = 1 << 21  # of the waiting rows


class Early(NamedTuple):
    """Rows that were decided, and are to be checked."""

    rows: Any  # as the base models take them: (k, n_features) where they take a matrix
    decided: Decided  # (k,) the index of each row's class
    steps: npt.NDArray[np.int32]  # (k,) base models evaluated


# What decides NumPy arrays of floats: the same as the decider's `predict`, by the shortest way. It gives
# None for everything else.
PlainPredict = Callable[[Any, int | None], Any]


class Decider(Protocol):
    """What decides rows as a classifier does, and picks some of them."""

    def predict(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]: ...
    def decide(self, X: Any, *, threads: int | None = None) -> Decisions: ...


class Checks:
    """Picks the rows to check: each with the same probability, whatever it holds. Which positions of the
    stream are picked depends on the seed alone, not on the sizes of batches.

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
        schema = classifier.ensemble.schema
        width = 0 if schema is None else schema.n_features
        wide = schema is None or np.dtype(schema.dtype) == np.float64
        state = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        evaluations = EVALUATIONS_AT_ONCE // classifier.policy.n_models
        most = max(1, min(CHECKED_AT_ONCE, evaluations, WAITING_NUMBERS // max(1, width)))
        self._picked = _native.PickedRows(rate, int(state[0]), width, most, wide)
        native = self._native_decider()
        self.decider: Decider = native or _PythonDecider(self)
        plain = None if native is None else plain_arrays(native.runner, native.ensemble)
        self.plain_predict: PlainPredict = (
            (lambda X, threads: None) if plain is None else plain.predict
        )

    @property
    def taken(self) -> int:
        """Rows decided."""
        return self._picked.taken

    def _native_decider(self) -> Classifier | None:
        """The classifier with an engine that picks rows as it decides them, so that a call costs no more
        in Python than a call of the classifier; None where base models are evaluated in Python."""
        mine = weakref.ref(self)  # the native engine would hide a cycle from the garbage collector

        def on_full(threads: int) -> None:
            checks = mine()
            if checks is not None:
                checks._check_waiting(threads)

        sparse = _SparsePicker(self.classifier.runner, mine)
        runner = watched_runner(self.classifier.runner, self._picked, on_full, sparse)
        if runner is None:
            return None
        decider = check_classifier(from_certified(self.classifier))
        decider.__dict__["runner"] = runner  # which is made once
        return decider

    def checker(self, judge: _native.RunningJudge) -> _native.Checker | None:
        """What checks the rows that wait, where the native core evaluates base models."""
        classifier, policy = self.classifier, self.classifier.policy
        assert isinstance(policy, Policy)  # judges of more classes are not native
        return native_checker(classifier.runner, self._picked, judge, policy.threshold)

    def pick(
        self, rows: Any, decided: Decided, steps: npt.NDArray[np.int32], threads: int | None
    ) -> None:
        """Count rows that were decided in Python, and keep those of them that are picked."""
        picked = self._picked.pick(len(steps))
        if picked is not None:
            self._keep(Early(take(rows, picked), decided[picked], steps[picked]), threads)

    def _keep(self, early: Early, threads: int | None) -> None:
        """Rows that were picked: let them wait, or check them at once where they are no matrix."""
        if not self.classifier.ensemble.takes_matrix:
            self._check(early, threads)
        elif self._picked.keep(
            _dense(early.rows), np.asarray(early.decided, dtype=np.uint8), early.steps
        ):
            self._check_waiting(threads)

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
        rows = self.classifier.ensemble.rows(as_table(row, self.classifier.ensemble))
        decided, steps, _ = self.classifier.runner.decide(rows, threads=1)
        self._keep(Early(rows, decided, steps), 1)

    def waiting(self) -> Early | None:
        """The rows that wait, if there are any. They wait no longer."""
        rows, decided, steps = self._picked.drain()
        return Early(rows, decided, steps) if len(steps) else None


def _dense(rows: Any) -> npt.NDArray[Any]:
    """Rows that are picked as a matrix, (k, n_features)."""
    if not isinstance(rows, _native.SparseRows):
        matrix: npt.NDArray[Any] = rows
        return matrix
    return dense_rows(rows, "float64")  # which holds a float32 too


class _SparsePicker:
    """Decides sparse rows and picks some, where the native engine picks others as it decides them."""

    def __init__(self, runner: Runner, checks: Callable[[], Checks | None]) -> None:
        self._runner, self._checks = runner, checks

    def decide(self, rows: _native.SparseRows, *, threads: int | None = None) -> Found:
        """As the runner."""
        decided, steps, score = self._runner.decide(rows, threads=threads)
        checks = self._checks()
        if checks is not None:
            checks.pick(rows, decided, steps, threads)
        return decided, steps, score


class _PythonDecider:
    """Decides rows of base models that are evaluated in Python."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    def predict(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        label: npt.NDArray[Any] = self.decide(X, threads=threads).label
        return label

    def decide(self, X: Any, *, threads: int | None = None) -> Decisions:
        classifier = self._checks.classifier
        rows = classifier.ensemble.rows_to_decide(X)
        decided, steps, score = classifier.runner.decide(rows, threads=threads)
        self._checks.pick(rows, decided, steps, threads)
        return classifier.ensemble.decisions(decided, steps, score)
