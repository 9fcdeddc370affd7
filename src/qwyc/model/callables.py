"""Cascade: a policy over Python callables, each called only with the rows still undecided."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError, OptionError, QwycError
from qwyc.policy.policy import Decisions, FanPolicy, Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.rows.selection import row_count, take
from qwyc.runtime.arguments import check_choice, check_number
from qwyc.runtime.progress import Report

BaseModel = Callable[[Any], Any]
MEASURED_PASSES = 3


def _as_they_are(X: Any) -> Any:
    return X


@dataclass(frozen=True, eq=False)
class BaseModels:
    """T callables that add up to an ensemble: each takes rows and gives one score per row, (n,), or
    the shares of the two classes, (n, 2).

    Shares are added apart and compared at the end, as scikit-learn does it, so that ties come out
    the same way; a score is then the positive share less the negative one."""

    models: Sequence[BaseModel]
    base: float = 0.0
    divisor: float = 1.0
    threshold: float = 0.0
    classes: npt.NDArray[Any] = field(default_factory=lambda: np.array([0, 1]))
    prepare: Callable[[Any], Any] = _as_they_are  # checks rows, gives them as base models take them

    def __post_init__(self) -> None:
        for t, model in enumerate(self.models):
            if not callable(model):
                raise OptionError(f"base model {t} cannot be called; it is {model!r}")
        if not len(self.models):
            raise OptionError("there must be at least one base model")
        check_number("divisor", self.divisor, above=0)
        check_number("base", self.base)
        check_number("threshold", self.threshold)
        if np.shape(self.classes) != (2,):
            raise OptionError(
                f"classes must be two labels, negative and positive; got {self.classes!r}"
            )
        object.__setattr__(self, "classes", np.asarray(self.classes))

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
            total += self.base
        for out in outputs:
            total = total + out
        total = total / self.divisor
        return total if total.ndim == 1 else total[:, 1] - total[:, 0]

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return len(self.models)

    def scores(
        self, X: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> ScoreMatrix:
        """Every base model on every row, one after the other: callables run as they are. `report` is
        called with the number of evaluations done, of rows times base models."""
        n, X = row_count(X), self.prepare(X)
        outputs = []
        for t in range(len(self.models)):
            outputs.append(self.outputs(t, X, n))
            report(n * (t + 1))
        values = np.asfortranarray(np.stack([self.step(out) for out in outputs], axis=1))
        return ScoreMatrix(values, self.base / self.divisor, self.threshold, self.total(outputs))

    @property
    def description(self) -> str:
        """What it is, in a few words."""
        return f"{self.n_models} Python callables"

    def score_full(self, X: Any, *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """The full score of every row, (N,)."""
        return self.scores(X).full

    def decide(
        self, X: Any, policy: Policy | FanPolicy, *, threads: int | None = None
    ) -> Decisions:
        """Evaluate rows in the policy's order, each base model only on the rows still undecided."""
        n, T = row_count(X), policy.n_models
        X = self.prepare(X)
        positive, steps = np.zeros(n, dtype=np.int64), np.full(n, T, dtype=np.int32)
        score = np.zeros(n)
        running = np.full(n, self.base / self.divisor)
        rows = np.arange(n)  # not decided yet
        may_quit = np.ones(n, dtype=bool)  # no more once Fan's rule wants a row in full
        kept: dict[int, tuple[npt.NDArray[Any], npt.NDArray[np.float64]]] = {}
        for r, t in enumerate(policy.order):
            if not len(rows):
                break
            out = self.outputs(int(t), X if len(rows) == n else take(X, rows), len(rows))
            kept[int(t)] = (rows, out)
            running[rows] += self.step(out)
            if r == T - 1:
                continue
            outcome = np.where(may_quit[rows], policy.outcomes(r, running[rows]), 0)
            quits = np.abs(outcome) == 1
            done = rows[quits]
            positive[done], steps[done], score[done] = outcome[quits] == 1, r + 1, running[done]
            may_quit[rows[outcome == 2]] = False
            rows = rows[~quits]
        if len(rows):
            outputs = [out[np.searchsorted(at, rows)] for at, out in (kept[t] for t in range(T))]
            score[rows] = self.total(outputs)
            positive[rows] = score[rows] >= policy.threshold
        return Decisions(self.classes[positive], steps, score, steps == T)

    def costs(self, X: Any, how: str, *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """Microseconds a row that each base model takes on X here, (T,); `how` must be "measured"."""
        check_choice("costs", how, ("measured",))
        n, X = row_count(X), self.prepare(X)
        if n == 0:
            raise InputError("X has no rows; costs are measured on rows")
        costs = np.empty(len(self.models))
        for t in range(len(self.models)):
            spent = []
            for _ in range(MEASURED_PASSES):
                started = time.perf_counter()
                self.outputs(t, X, n)
                spent.append(time.perf_counter() - started)
            costs[t] = max(1e6 * float(np.median(spent)) / n, 1e-6)
        return costs


class Cascade:
    """Decides rows with a policy over callables: f(x) = base + sum of models[t](x).

    Rows may be an array, a pandas, Polars or Arrow table, a sparse matrix or a list; a base model is
    called with the same kind of thing, holding only the rows that are still undecided."""

    def __init__(
        self,
        models: BaseModels | Sequence[BaseModel],
        policy: Policy | FanPolicy,
        *,
        base: float = 0.0,
        classes: Any = (0, 1),
    ) -> None:
        if not isinstance(policy, (Policy, FanPolicy)):
            raise OptionError(f"a policy was expected, as fit_policy gives it; got {policy!r}")
        if not isinstance(models, BaseModels):
            models = BaseModels(list(models), base=base, classes=classes)
        if models.n_models != policy.n_models:
            raise OptionError(
                f"the policy is for {policy.n_models} base models; got {models.n_models}"
            )
        self.base_models = models
        self.policy = policy

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of every row, (N,)."""
        return self.decide(X).label

    def decide(self, X: Any) -> Decisions:
        """The class of every row, how many base models it took, its score and whether it is complete."""
        return self.base_models.decide(X, self.policy)

    def score_full(self, X: Any) -> npt.NDArray[np.float64]:
        """The full score of every row, (N,), from every base model."""
        return self.base_models.score_full(X)

    def __repr__(self) -> str:
        return f"qwyc.Cascade: {self.base_models.description}, quits {self.policy.quit}"
