"""What families of base models share that the native core evaluates."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.model.base_models import Floats, Runner
from qwyc.model.ensemble import Ensemble
from qwyc.model.output import CODES, IDENTITY
from qwyc.model.used_columns import SparseRunner
from qwyc.policy.decisions import Decisions
from qwyc.policy.fan_policy import FanPolicy
from qwyc.policy.policy import Policy
from qwyc.policy.rule import StoppingRule
from qwyc.rows.schema import Schema
from qwyc.runtime.progress import Report
from qwyc.runtime.threads import thread_count
from qwyc.target.target import Decided

BLOCK = 1 << 24  # evaluations between two reports of progress
Found = tuple[Decided, npt.NDArray[np.int32], Floats]  # what a runner decides


class SparseDecider(Protocol):
    """What decides sparse rows for a runner."""

    def decide(self, rows: _native.SparseRows, *, threads: int | None = None) -> Found: ...


LABEL_KINDS = "biufSUO"  # dtypes of classes that native code writes; others are rare


def rows_at_once(evaluations: float) -> int:
    """Rows of one call of the native core, after which Python can be interrupted; `evaluations` is what a
    row counts as."""
    return max(1, int(BLOCK / evaluations))


def parts_of(rows: Any, most: int) -> list[Any]:
    """Rows in parts of at most so many; one part where there are none."""
    return [rows[i : i + most] for i in range(0, max(len(rows), 1), most)]


def scores_in_parts(
    evaluate: Callable[[Any, int], tuple[npt.NDArray[Any], Floats]],
    n_models: int,
    block: int,
    rows: Any,
    threads: int | None,
    report: Report,
) -> tuple[npt.NDArray[Any], Floats]:
    """Every base model on every row, (N, T), and the full scores, (N,); of K classes (N, T, K) and (N, K).
    `evaluate` takes rows and a number of threads and gives the scores by base model first, (T, N, ...), and
    the full scores. Long work is done in parts of `block` rows, so that it can be interrupted and reports
    how far it is."""
    n, cores = len(rows), thread_count(threads)
    values, full = evaluate(rows[:block], cores)  # (T, block, ...), (block, ...)
    if n > block:
        first, values = values, np.empty((n_models, n, *values.shape[2:]), dtype=values.dtype)
        values[:, :block] = first
        full = np.concatenate([full, np.empty((n - block, *full.shape[1:]))])
    for i in range(block, n, block):
        report(i * n_models)
        part = slice(i, i + block)
        values[:, part], full[part] = evaluate(rows[part], cores)
    report(n * n_models)
    return np.swapaxes(values, 0, 1), full


def native_runner(
    native: _native.Forest | _native.Lattices,
    family: str,
    policy: StoppingRule,
    rows_at_once: int | None = None,
    survival: Floats | None = None,
    sparse: SparseRunner | None = None,
) -> NativeRunner:
    """Base models of a family, such as "trees", laid out for one policy of a kind that the native core
    runs."""
    if isinstance(policy, FanPolicy):
        fan = _native.FanQuitter(
            native,
            policy.order,
            policy.bin_begin,
            policy.bin,
            policy.lower,
            policy.upper,
            policy.bin_width,
            policy.threshold,
        )
        return NativeRunner(fan, rows_at_once, sparse)
    if not isinstance(policy, Policy):
        raise OptionError(
            f"{family} run with a Policy, two thresholds per step, or a FanPolicy; got a "
            f"{type(policy).__name__}: apply it to their scores instead"
        )
    quitter = _native.Quitter(
        native, policy.order, policy.lower, policy.upper, policy.threshold, survival
    )
    return NativeRunner(quitter, rows_at_once, sparse)


class NativeRunner:
    """Base models laid out for one policy. Where `rows_at_once` is given, a call of the native core
    takes at most so many rows, so that long work can be interrupted. `sparse` decides sparse rows, where
    base models take them."""

    def __init__(
        self,
        quitter: _native.Quitter | _native.FanQuitter,
        rows_at_once: int | None = None,
        sparse: SparseDecider | None = None,
    ) -> None:
        self.quitter = quitter
        self.rows_at_once = rows_at_once
        self.sparse = sparse

    def decide(
        self, rows: Any, *, threads: int | None = None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats]:
        """The index of each row's class, the base models that it took and its score, each (N,)."""
        if self.sparse is not None and isinstance(rows, _native.SparseRows):
            return self.sparse.decide(rows, threads=threads)
        cores = thread_count(threads)
        if self.rows_at_once is None or len(rows) <= self.rows_at_once:
            return self.quitter.decide(rows, cores)
        parts = [self.quitter.decide(part, cores) for part in parts_of(rows, self.rows_at_once)]
        positive, steps, score = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return positive, steps, score

    def decide_table(
        self, table: _native.Table, *, threads: int | None = None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats] | None:
        """The same for a table; None if a value is refused, or if there are too many rows for one call."""
        if self.rows_at_once is not None and len(table) > self.rows_at_once:
            return None
        return self.quitter.decide_table(table, thread_count(threads))

    def one_row(
        self, labels: Sequence[Any], fallback: Callable[[Any], Any], schema: Schema | None
    ) -> Callable[[Any], Any] | None:
        """The native path for one row of plain numbers, which Fan's rule does not have."""
        if schema is None or not schema.takes_plain_rows:
            return None
        if isinstance(self.quitter, _native.FanQuitter):
            return None
        negative, positive = labels
        # The bound method itself: fewer steps from Python to the engine than a callable object.
        return _native.OneRow(
            self.quitter,
            negative,
            positive,
            fallback,
            np.ndarray,
            schema.finite_only,
            schema.exact_integers,
        ).predict

    def expected_cost(self) -> float | None:
        """Nanoseconds by the cost model of native/core/cost_model.hpp, which knows trees under a Policy."""
        return None if isinstance(self.quitter, _native.FanQuitter) else self.quitter.expected_cost


PlainArrays = _native.PlainArrays | _native.FanPlainArrays | _native.ClassPlainArrays
# By the kind of quitter.
PLAIN_ARRAYS: dict[type, Any] = {
    _native.Quitter: _native.PlainArrays,
    _native.FanQuitter: _native.FanPlainArrays,
    _native.LeadQuitter: _native.ClassPlainArrays,
}


def plain_arrays(runner: Runner, ensemble: Ensemble) -> PlainArrays | None:
    """What decides NumPy arrays of floats as `ensemble.decide(X, runner)` does, in one native call. It
    gives None for everything else; None where all rows need more than that."""
    schema, classes = ensemble.schema, ensemble.classes
    quitter = getattr(runner, "quitter", None)
    by_class = isinstance(quitter, _native.LeadQuitter)
    if not (type(runner) is NativeRunner or by_class):
        return None
    if type(ensemble).decide is not Ensemble.decide or not ensemble.has_classes:
        return None
    if schema is None or ensemble.transform is not None or not schema.takes_plain_rows:
        return None
    if classes.dtype.kind not in LABEL_KINDS:
        return None
    rows_at_once = getattr(runner, "rows_at_once", None)
    made: PlainArrays = PLAIN_ARRAYS[type(quitter)](
        quitter,
        np.ascontiguousarray(classes),
        classes.dtype.kind == "O",
        ensemble.n_models,
        schema.finite_only,
        sys.maxsize if rows_at_once is None else rows_at_once,
        np,
        Decisions,
        thread_count,
    )
    return made


# By the kind of quitter.
ONE_VALUE: dict[type, Any] = {
    _native.Quitter: _native.OneValue,
    _native.LeadQuitter: _native.ClassOneValue,
}


def one_value(
    runner: Runner, ensemble: Ensemble, fallback: Callable[[Any], Any]
) -> Callable[[Any], Any] | None:
    """The native path to the value of one row of plain numbers, or to its list of values; everything else
    is passed to `fallback`. None where all rows need more than that."""
    schema, output = ensemble.schema, ensemble.output or IDENTITY
    kind = ONE_VALUE.get(type(getattr(runner, "quitter", None)))
    if kind is None or schema is None or ensemble.transform is not None:
        return None
    if not schema.takes_plain_rows:
        return None
    code, ties = CODES.get((output.kind, output.dtype)), ensemble.base_models.ties

    def finish(score: Any) -> Any:
        return output.values(np.array([score]), ties, 1).tolist()[0]

    made: Callable[[Any], Any] = kind(
        runner.quitter,  # type: ignore[attr-defined] # it has one of these kinds
        CODES["identity", "float64"] if code is None else code,
        output.scale,
        finish if code is None else None,
        fallback,
        np.ndarray,
        schema.finite_only,
        schema.exact_integers,
    ).predict
    return made


def sampled_one_row(
    one_row: Callable[[Any], Any],
    picked: _native.PickedRows,
    on_other: Callable[[Any], None],
    on_full: Callable[[], None],
) -> Callable[[Any], Any] | None:
    """`one_row` that keeps copies of rows that are picked, where it is the native path for one row; None
    otherwise. `on_other(row)` is called with a picked row that is not plain numbers, `on_full()` when
    enough rows wait."""
    native = getattr(one_row, "__self__", None)
    if not isinstance(native, _native.OneRow):
        return None
    return _native.SampledOneRow(native, picked, on_other, on_full).predict


def watched_runner(
    runner: Runner,
    picked: _native.PickedRows,
    on_full: Callable[[int], None],
    sparse: SparseDecider,
) -> NativeRunner | None:
    """A runner that counts the rows that it decides and keeps copies of those that are picked, where the
    native core decides them; None otherwise. `on_full(threads)` is called when enough rows wait. The
    garbage collector does not see what it refers to. `sparse` decides sparse rows."""
    if not isinstance(runner, NativeRunner) or isinstance(runner.quitter, _native.FanQuitter):
        return None
    quitter = _native.watched(runner.quitter, picked, on_full)
    return NativeRunner(quitter, runner.rows_at_once, sparse)


def native_checker(
    runner: Runner, picked: _native.PickedRows, judge: _native.RunningJudge, threshold: float
) -> _native.Checker | None:
    """What evaluates the rows that wait in full and judges them in one call, where the native core decides
    them; None otherwise."""
    if not isinstance(runner, NativeRunner) or isinstance(runner.quitter, _native.FanQuitter):
        return None
    return _native.Checker(runner.quitter, picked, judge, threshold)
