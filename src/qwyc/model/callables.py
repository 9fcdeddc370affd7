"""Callables: any Python functions as base models, each called only with the rows still undecided."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError, OptionError, QwycError, RowsError
from qwyc.model.base_models import Floats
from qwyc.model.ensemble import Ensemble
from qwyc.model.link import Link
from qwyc.policy.path import AnyPath
from qwyc.policy.rule import GO_ON, IN_FULL, StoppingRule
from qwyc.rows.schema import Schema
from qwyc.rows.selection import row_count, take
from qwyc.runtime.arguments import check_choice, check_number
from qwyc.runtime.progress import Report
from qwyc.target.target import Decided
from qwyc.target.ties import BY_SCORES, Ties

BaseModel = Callable[[Any], Any]
MEASURED_PASSES = 3


def _unchanged(X: Any) -> Any:
    return X


@dataclass(frozen=True, eq=False)
class CallableModels:
    """T callables that add up to an ensemble: each takes rows and gives one score per row, (n,), or
    the shares of the two classes, (n, 2).

    Shares are added apart and compared at the end, as scikit-learn does it, so that ties come out
    the same way; a score is then the positive share less the negative one."""

    models: Sequence[BaseModel]
    start: float = 0.0  # what is added to the scores
    divisor: float = 1.0
    prepare: Callable[[Any], Any] = _unchanged  # checks rows, gives them as base models take them

    kind: ClassVar[str] = "callables"
    n_scores: ClassVar[int] = 1
    ties: ClassVar[Ties] = BY_SCORES
    score_bytes: ClassVar[int] = 8
    average: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for t, model in enumerate(self.models):
            if not callable(model):
                raise OptionError(f"base model {t} cannot be called; it is {model!r}")
        if not len(self.models):
            raise OptionError("there must be at least one base model")
        check_number("divisor", self.divisor, above=0)
        check_number("base", self.start)

    @property
    def n_models(self) -> int:
        """Number of callables, T."""
        return len(self.models)

    @property
    def description(self) -> str:
        """Such as "12 Python callables"."""
        return f"{self.n_models} Python callables"

    @property
    def base(self) -> float:
        """What the running sum starts from."""
        return self.start / self.divisor

    def outputs(self, t: int, X: Any, n: int) -> npt.NDArray[np.float64]:
        """What base model t says of n rows, (n,) or (n, 2), checked."""
        try:
            out = np.asarray(self.models[t](X), dtype=np.float64)
        except QwycError:
            raise
        except Exception as error:  # whatever the user's own code raises is the cause
            kind = type(error).__name__
            raise InputError(f"{self.name(t)} failed: {kind}: {error}") from error
        if out.shape == (n, 1):
            out = out[:, 0]
        if out.shape not in ((n,), (n, 2)):
            raise InputError(
                f"{self.name(t)} must give {n} scores, or {n} rows of two shares; got {out.shape}"
            )
        if not np.isfinite(out).all():
            raise InputError(f"{self.name(t)} gave a score that is not finite")
        return out

    def name(self, t: int) -> str:
        """Base model t as messages name it: by its number, and by the name it has in the code."""
        model = self.models[t]
        estimator = getattr(model, "estimator", None)  # of scikit-learn
        named = model if estimator is None else type(estimator)
        found = getattr(named, "__qualname__", None) or type(model).__qualname__
        return f"base model {t} ({found})"

    def step(self, out: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What outputs add to the running sum, (n,)."""
        share: npt.NDArray[np.float64] = out if out.ndim == 1 else out[:, 1] - out[:, 0]
        return share / self.divisor

    def total(self, outputs: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """The full score, (n,), from the outputs of all base models in their own order."""
        if len({out.ndim for out in outputs}) > 1:
            raise InputError(
                "some base models give scores and some two shares; all must give the same"
            )
        total = np.zeros_like(outputs[0])
        if total.ndim == 1:
            total += self.start
        for out in outputs:
            total = total + out
        total = total / self.divisor
        return total if total.ndim == 1 else total[:, 1] - total[:, 0]

    def scores(
        self, rows: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> tuple[npt.NDArray[Any], Floats]:
        """Every base model on every row, (N, T), one after the other, and the full scores, (N,)."""
        n, X = row_count(rows), self.prepare(rows)
        outputs = []
        for t in range(len(self.models)):
            outputs.append(self.outputs(t, X, n))
            report(n * (t + 1))
        values = np.asfortranarray(np.stack([self.step(out) for out in outputs], axis=1))
        return values, self.total(outputs)

    def score_full(self, rows: Any, *, threads: int | None = None) -> Floats:
        """The full score of every row, (N,)."""
        return self.scores(rows)[1]

    def runner(self, policy: StoppingRule, survival: Floats | None = None) -> CallableRunner:
        """The callables in a policy's order."""
        return CallableRunner(self, policy)

    def path_counter(self, path: AnyPath) -> None:
        """None: scores have to be made first."""

    def expected_cost(self) -> None:
        """Nothing is known about what a call costs."""
        return

    def costs(self, rows: Any, how: str, *, threads: int | None = None) -> Floats:
        """Microseconds per row that each base model takes here, (T,); `how` must be "measured"."""
        check_choice("costs", how, ("measured",))
        n, X = row_count(rows), self.prepare(rows)
        if n == 0:
            raise RowsError("{rows} has no rows; costs are measured on rows")
        costs = np.empty(len(self.models))
        for t in range(len(self.models)):
            seconds = []
            for _ in range(MEASURED_PASSES):
                started = time.perf_counter()
                self.outputs(t, X, n)
                seconds.append(time.perf_counter() - started)
            costs[t] = max(1e6 * float(np.median(seconds)) / n, 1e-6)
        return costs

    def cost_unit(self, how: str) -> str:
        """What costs of this kind count."""
        return "microseconds, as measured" if how == "measured" else ""

    def cuts(self) -> None:
        """Nothing is known about callables."""
        return

    def feature_needs(self) -> None:
        """Nothing is known about what a callable looks at."""
        return

    def bounds(self) -> None:
        """Nothing is known about what a callable may return."""
        return

    def tensors(self) -> None:
        """Callables are code, which files do not hold."""
        return

    def facts(self) -> dict[str, Any]:
        """Nothing of it is kept in files."""
        return {}

    def digest_facts(self) -> tuple[list[Any], list[float]]:
        """Code has no digest."""
        return [], []

    def layout(self) -> tuple[dict[str, Any], str]:
        """Callables are called one by one; there is nothing to lay out."""
        return {}, ""


@dataclass(frozen=True, eq=False)
class CallableRunner:
    """Callables in a policy's order."""

    base_models: CallableModels
    policy: StoppingRule

    def decide(
        self, rows: Any, *, threads: int | None = None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats]:
        """Evaluate rows in the policy's order, each base model only on the rows still undecided."""
        models, policy, n, T = self.base_models, self.policy, row_count(rows), self.policy.n_models
        X = models.prepare(rows)
        decided, steps = np.zeros(n, dtype=np.intp), np.full(n, T, dtype=np.int32)
        score = np.zeros(n)
        running = np.full(n, models.base)
        undecided = np.arange(n)
        may_quit = np.ones(n, dtype=bool)  # no more once the rule wants a row in full
        kept: dict[int, tuple[npt.NDArray[Any], Floats]] = {}  # rows and outputs by base model
        for r, t in enumerate(policy.order):
            if not len(undecided):
                break
            part = X if len(undecided) == n else take(X, undecided)
            out = models.outputs(int(t), part, len(undecided))
            kept[int(t)] = (undecided, out)
            running[undecided] += models.step(out)
            if r == T - 1:
                continue
            outcome = policy.outcomes(r, running[undecided])
            quits = may_quit[undecided] & (outcome != GO_ON) & (outcome != IN_FULL)
            done = undecided[quits]
            decided[done], steps[done], score[done] = outcome[quits], r + 1, running[done]
            may_quit[undecided[outcome == IN_FULL]] = False
            undecided = undecided[~quits]
        if len(undecided):
            outputs = [
                out[np.searchsorted(at, undecided)] for at, out in (kept[t] for t in range(T))
            ]
            score[undecided] = models.total(outputs)
            decided[undecided] = policy.target.decide(score[undecided])
        return decided, steps, score

    def one_row(
        self, labels: Sequence[Any], fallback: Callable[[Any], Any], schema: Schema | None
    ) -> None:
        """One row is decided like many."""
        return

    def expected_cost(self) -> None:
        """Nothing is known about what a call costs."""
        return


def callable_ensemble(
    models: Sequence[BaseModel],
    base: float = 0.0,
    divisor: float = 1.0,
    threshold: float = 0.0,
    classes: Any = (0, 1),
    prepare: Callable[[Any], Any] = _unchanged,
) -> Ensemble:
    """An ensemble of callables: `f(x) = (base + sum of models[t](x)) / divisor`. A row is positive if f(x)
    is at least `threshold`. `prepare` checks rows and converts them to what the base models take."""
    check_number("threshold", threshold)
    family = CallableModels(list(models), base, divisor, prepare)
    return Ensemble(family, None, threshold, classes, link=Link(kind="none"))
