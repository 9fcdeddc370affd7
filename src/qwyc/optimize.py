"""optimize: from a trained model and a sample of rows to a classifier that quits early."""

from __future__ import annotations

from typing import Any

import numpy as np

from qwyc import importers
from qwyc.certify import in_sample
from qwyc.classifier import Classifier
from qwyc.ensemble import Ensemble
from qwyc.errors import InputError, OptionError, ParityError
from qwyc.fit import check_alpha, check_choice, check_threshold, fit_policy
from qwyc.progress import ProgressOption

METHODS = ("auto", "joint")


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
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Classifier:
    """Make a classifier that decides like `model` from a fraction of its base models.

    Parameters
    ----------
    model : a path, or a live XGBoost, LightGBM or scikit-learn model; see `read_model`.
    X : a sample of rows like those to come, without labels. Rows that the model was not trained on
        are better: on its training rows a model is surer than on others.
    alpha : the share of decisions that may differ from the full ensemble's.
    confidence : with which alpha should hold on new rows. Not used yet: `certificate` says
        "in-sample" and promises nothing for new rows.
    quit : "both", "negative" (a filter: what is not rejected gets its full score) or "positive".
    threshold : decide positive where score >= threshold; None is the model's own decision.
    costs : cost of evaluating each base model, (T,); None is 1 for all.
    method : "joint", the paper's Algorithm 1; "auto" is the same for now.
    seed : of everything random; the same inputs and seed give the same classifier.
    threads : None is every core.
    progress : None shows a bar on a terminal, True always, False never, or a callable
        (what, done, total).
    """
    alpha = check_alpha(alpha)
    check_choice("method", method, METHODS)
    if not 0 < confidence < 1:
        raise OptionError(f"confidence is a probability between 0 and 1; got {confidence!r}")
    if threshold is not None:
        threshold = check_threshold(threshold)
    ensemble = importers.read_model(model)
    scores = ensemble.scores(X, threads=threads)
    if not len(scores.full):
        raise InputError("X has no rows; optimising needs a sample of rows like those to come")
    prove_parity(model, X, ensemble, scores.full)
    policy = fit_policy(
        scores,
        alpha=alpha,
        order="joint",
        quit=quit,
        threshold=threshold,
        costs=costs,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    decisions = policy.apply(scores, threads=threads)
    certificate = in_sample(alpha, decisions, scores.full >= policy.threshold)
    return Classifier(ensemble, policy, certificate)


def prove_parity(model: Any, X: Any, ensemble: Ensemble, full: Any) -> None:
    """Compare full decisions (N,) with a live model's own; raise, naming a row, where they differ."""
    expected = importers.live_labels(model, X, ensemble)
    if expected is None:  # a file: nothing to compare with
        return
    ours = ensemble.classes[(full >= ensemble.threshold).astype(np.intp)]
    differs = np.flatnonzero(np.asarray(expected) != ours)
    if len(differs):
        i = int(differs[0])
        raise ParityError(
            f"row {i} of X: the model's own predict says {expected[i]!r}, the trees as read say "
            f"{ours[i]!r} (score {full[i]!r}, positive from {ensemble.threshold!r}); "
            f"{len(differs):,} of {len(ours):,} rows differ. The model was not read exactly, "
            "so it is refused; please report it with the library's version."
        )
