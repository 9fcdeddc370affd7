"""What `optimize` does with a tolerance: which models and options go with it, and what is fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import importers
from qwyc.errors import OptionError, ParityError
from qwyc.importers.live import made_by
from qwyc.model.ensemble import Sample
from qwyc.model.probabilities import single_output
from qwyc.policy.costs import Costs
from qwyc.policy.estimate_path import EstimatePath
from qwyc.policy.fit.problem import Problem
from qwyc.policy.fit.tolerance import fit_tolerance_path
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.budget import Budget
from qwyc.runtime.progress import ProgressOption
from qwyc.target.target import Decided
from qwyc.target.within import Within

ROUNDING = 1e-6  # relative: a live model on many threads may add up in another order


@dataclass(frozen=True, eq=False)
class ToleranceFitting:
    """The scores of some rows, and what policies for outputs are fitted with."""

    scores: ScoreMatrix  # of finite scores, one row at least
    within: Within
    threshold: float  # between classes, where there are some
    costs: Costs
    threads: int | None

    @property
    def decided(self) -> Decided:
        """Full decisions, (N,): all the same, because outputs are compared."""
        return self.within.decide(self.scores.full)

    def take(self, rows: npt.NDArray[np.intp]) -> ToleranceFitting:
        """The same for some of the rows."""
        return replace(self, scores=self.scores.take(rows))

    def path(self, budget: Budget, progress: ProgressOption) -> EstimatePath:
        """Policies from "never quit" to bold, by optimal stopping."""
        problem = Problem(self.scores, self.threshold, self.costs, "both", self.threads)
        return fit_tolerance_path(problem, self.within, progress=progress)


def refuse_beside_tolerance(
    by_class: Any, quit: str, only: Any, threshold: Any, feature_costs: Any, method: str
) -> None:
    """Refuse options of `optimize` that a tolerance cannot be used with."""
    given = {
        "by_class": by_class is not None,
        f"quit={quit!r}": quit != "both",
        "only": only is not None,
        "threshold": threshold is not None,
        "feature_costs": feature_costs is not None,
        f"method={method!r}": method != "auto",
    }
    for name, is_given in given.items():
        if is_given:
            raise OptionError(
                f"tolerance cannot be used with {name}: outputs are compared, not decisions. Leave out "
                "one of the two"
            )


def open_within(source: importers.OpenModel, tolerance: Any) -> tuple[importers.OpenModel, Within]:
    """A model whose score gives its output, and the output within a tolerance. Of a forest whose trees hold
    shares of both classes, the score becomes the share of the positive class."""
    source = source.for_probability(0.5)
    return source, Within(tolerance, single_output(source.ensemble))


def prove_outputs(
    model: Any,
    source: importers.OpenModel,
    sample: Sample | None,
    scores: ScoreMatrix,
    within: Within,
) -> None:
    """Compare the full values with a live model's own `predict`; ParityError, naming a row, where one
    differs. Decisions and scores of models of classes are compared elsewhere."""
    if source.ensemble.has_classes or source.predict_live is None or sample is None:
        return
    if not hasattr(model, "predict") or (
        type(model).__name__ == "Booster" and made_by(model, "xgboost")
    ):
        return  # it takes rows in a form of its own
    theirs = np.asarray(model.predict(sample.given), dtype=np.float64).reshape(-1)
    ours = within.output(scores.full).astype(np.float64)
    if theirs.shape != ours.shape:
        raise ParityError(
            f"the model's own predict gives {theirs.size:,} values for {ours.size:,} rows of X"
        )
    close = np.abs(theirs - ours) <= ROUNDING * np.maximum(np.abs(theirs), np.std(theirs))
    rows = np.flatnonzero(~(close | (theirs == ours)))
    if len(rows):
        i = int(rows[0])
        raise ParityError(
            f"row {i} of X: the model's own predict says {theirs[i]!r}, the base models as read say "
            f"{ours[i]!r}; {len(rows):,} of {len(ours):,} rows differ. The model was not read exactly, so "
            "it is refused; please report it with the library's version"
        )
