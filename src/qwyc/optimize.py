"""optimize: from a trained model and a sample of rows to a classifier that quits early."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import importers
from qwyc.capacity import check_capacity
from qwyc.cascade import BaseModels
from qwyc.certify import in_sample
from qwyc.classifier import Classifier
from qwyc.ensemble import Ensemble
from qwyc.errors import InputError, OptionError, ParityError
from qwyc.fit import fit_policy
from qwyc.options import Probability, check_alpha, check_choice, check_number
from qwyc.policy import Policy
from qwyc.progress import ProgressOption
from qwyc.rows import row_count, take
from qwyc.scores import ScoreMatrix

METHODS = ("auto", "joint", "natural")


def optimize(
    model: Any,
    X: Any,
    *,
    alpha: float,
    confidence: float = 0.95,
    quit: str = "both",
    threshold: float | None = None,
    costs: Any = None,
    method: str = "auto",
    seed: int = 0,
    max_rows: int | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Classifier:
    """Make a classifier that decides like `model` from a fraction of its base models.

    Parameters
    ----------
    model : a path, or a live XGBoost, LightGBM or scikit-learn model (see `read_model`); or a list of
        callables, or a scikit-learn bagging, voting or AdaBoost ensemble of anything.
    X : a sample of rows like those to come, without labels. Rows that the model was not trained on
        are better: on its training rows a model is surer than on others.
    alpha : the share of decisions that may differ from the full ensemble's.
    confidence : with which alpha should hold on new rows. Not used yet: `certificate` says
        "in-sample" and promises nothing for new rows.
    quit : "both", "negative" (a filter: what is not rejected gets its full score) or "positive".
    threshold : decide positive where score >= threshold; None is the model's own decision.
        `Probability(0.3)` puts it where the model's predicted probability is 0.3.
    costs : cost of evaluating each base model, (T,); None is 1 for all, "size" the nodes that rows
        visit, "measured" the time that each takes on this machine.
    method : "joint", the paper's Algorithm 1; "natural", Algorithm 2 along the model's own order;
        "auto" is "joint" for now.
    seed : of everything random; the same inputs and seed give the same classifier.
    max_rows : draw this many rows of X at random where it has more. Optimising holds 6 bytes of memory
        for each row and base model; it says so, and stops, before it starts what does not fit.
    threads : None is every core.
    progress : None shows a bar on a terminal, True always, False never, or a callable
        (what, done, total).
    """
    alpha = check_alpha(alpha)
    check_choice("method", method, METHODS)
    if not 0 < confidence < 1:
        raise OptionError(f"confidence is a probability between 0 and 1; got {confidence!r}")
    ensemble: Ensemble | BaseModels = importers.base_models(model) or importers.read_model(model)
    beta = _threshold(threshold, ensemble)
    X = _sample(X, max_rows, seed)
    check_capacity(row_count(X), ensemble.n_models)
    scores = ensemble.scores(X, threads=threads)
    if not len(scores.full):
        raise InputError("X has no rows; optimising needs a sample of rows like those to come")
    prove_parity(model, X, ensemble, scores)
    if isinstance(costs, str):
        costs = ensemble.costs(X, costs, threads=threads)
    policy = fit_policy(
        scores,
        alpha=alpha,
        order="joint" if method == "auto" else method,
        quit=quit,
        threshold=beta,
        costs=costs,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    assert isinstance(policy, Policy)  # rule="threshold" gives no other
    decisions = policy.apply(scores, threads=threads)
    certificate = in_sample(alpha, policy, decisions, scores.full >= policy.threshold)
    return Classifier(ensemble, policy, certificate)


def prove_parity(model: Any, X: Any, ensemble: Ensemble | BaseModels, scores: ScoreMatrix) -> None:
    """Compare full decisions with a live model's own; raise, naming a row, where they differ."""
    expected = importers.live_labels(model, X, ensemble)
    if expected is None:  # a file, or plain callables: nothing to compare with
        return
    ours: npt.NDArray[Any] = ensemble.classes[scores.positive.astype(np.intp)]
    differs = np.flatnonzero(np.asarray(expected) != ours)
    if len(differs):
        i = int(differs[0])
        raise ParityError(
            f"row {i} of X: the model's own predict says {expected[i]!r}, the base models as read say "
            f"{ours[i]!r} (score {scores.full[i]!r}, positive from {scores.threshold!r}); "
            f"{len(differs):,} of {len(ours):,} rows differ. The model was not read exactly, "
            "so it is refused; please report it with the library's version."
        )


def _threshold(threshold: Any, ensemble: Ensemble | BaseModels) -> float | None:
    if threshold is None:
        return None
    if isinstance(threshold, Probability):
        if isinstance(ensemble, BaseModels):
            raise OptionError("callables give scores, not probabilities; pass threshold as a score")
        return ensemble.score_at(threshold.value)
    return check_number("threshold", threshold)


def _sample(X: Any, max_rows: int | None, seed: int) -> Any:
    """X, or `max_rows` rows of it drawn at random without repetition, in their order."""
    if max_rows is None:
        return X
    if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
        raise OptionError(
            f"max_rows must be a whole number of at least 1, or None; got {max_rows!r}"
        )
    n = row_count(X)
    if n <= max_rows:
        return X
    return take(X, np.sort(np.random.default_rng(seed).choice(n, size=max_rows, replace=False)))
