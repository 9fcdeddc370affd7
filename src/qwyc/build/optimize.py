"""optimize: from a trained model and a sample of rows to a classifier that quits early."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import distributed, importers
from qwyc.build.speed import measure
from qwyc.check.parity import prove_parity
from qwyc.classifier import Classifier
from qwyc.errors import InputError, OptionError
from qwyc.model.callables import BaseModels
from qwyc.model.ensemble import Ensemble
from qwyc.policy.fit.orders import fixed_order
from qwyc.policy.fit.paper import fit_thresholds
from qwyc.policy.fit.problem import QUITS, Problem
from qwyc.policy.fit.stopping import fit_path
from qwyc.policy.scores import ScoreMatrix
from qwyc.promise.certificate import (
    Choices,
    Evidence,
    check_budget,
    check_confidence,
    group_numbers,
    observed_certificate,
    split_sample,
    warn_of_rare_classes,
)
from qwyc.promise.proof import provable_policy
from qwyc.rows.selection import row_count, take
from qwyc.runtime.arguments import (
    Probability,
    allowed_disagreements,
    check_choice,
    check_costs,
    check_count,
    check_number,
)
from qwyc.runtime.memory import check_capacity
from qwyc.runtime.progress import ProgressOption, progress_reporter

METHODS = ("auto", "joint", "natural")


def optimize(
    model: Any,
    X: Any = None,
    *,
    alpha: float | Mapping[str, float],
    confidence: float = 0.95,
    quit: str = "both",
    threshold: float | Probability | None = None,
    costs: Any = None,
    method: str = "auto",
    groups: Any = None,
    seed: int = 0,
    max_rows: int | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Classifier:
    """Make a classifier that decides like `model` from a fraction of its base models.

    With `confidence`, at most a share `alpha` of decisions on new rows differs from the full
    ensemble's. Order and thresholds are fitted on one part of X and the operating point is chosen on
    the other part by an exact binomial test, so X must be like the rows to come. Rows that the model
    was trained on are not: on them it is surer than on others, and the promise would be void.

    Parameters
    ----------
    model : a path, or a live model of XGBoost, LightGBM, CatBoost, scikit-learn, YDF, Treelite or ONNX
        (see `read_model`), or a pipeline that ends in one; or a list of callables, or a scikit-learn
        bagging, voting, AdaBoost or stacking ensemble of anything.
    X : rows like those to come, without labels, and not those that the model was trained on; or a data
        set of Spark, Ray or Dask, of which 100,000 rows are drawn (or `max_rows`).
    alpha : the share of decisions that may differ from the full ensemble's; or both kinds apart,
        `dict(negative=..., positive=...)`: full-positive rows called negative, and the reverse. 0 is
        proven for every input by bounds on what the remaining trees can add, and needs no X.
    confidence : with which alpha holds on new rows.
    quit : "both", "negative" (a filter: what is not rejected gets its full score) or "positive".
    threshold : decide positive where score >= threshold; None is the model's own decision.
        `Probability(0.3)` puts it where the model's predicted probability is 0.3.
    costs : cost of evaluating each base model, (T,); None is 1 for all, "size" the nodes that rows
        visit, "measured" the time that each takes on this machine.
    method : "auto" as above. "joint" and "natural" are the published procedure, Algorithm 1, and
        Algorithm 2 along the model's own order: fitted on all of X, and alpha holds on X only.
    groups : a label per row; rows of one group are never on both sides of the split. Rows are still
        counted as independent draws: where those of a group are alike, the promise holds less surely.
    seed : of everything random; the same inputs and seed give the same classifier. (But for one choice
        that is measured: rows do not quit early where evaluating all in full takes less than 0.8 of
        the time on this machine.)
    max_rows : draw this many rows of X at random where it has more. Optimising holds 6 bytes of memory
        for each row and base model; it says so, and stops, before it starts what does not fit.
    threads : None is every core.
    progress : None shows a bar on a terminal, True always, False never, or a callable
        (what, done, total).
    """
    budget, confidence = check_budget(alpha), check_confidence(confidence)
    check_choice("method", method, METHODS)
    check_choice("quit", quit, QUITS)
    seed = check_count("seed", seed, least=0)
    ensemble: Ensemble | BaseModels = importers.base_models(model) or importers.read_model(model)
    beta = _threshold(threshold, ensemble)
    if X is None and not (method == "auto" and budget == 0):
        raise InputError(
            "a sample is needed, of rows like those to come; only alpha=0 does without"
        )
    if groups is not None and (method != "auto" or max_rows is not None):
        raise OptionError("groups go with method='auto', and not with max_rows")
    if distributed.is_distributed(X):
        if groups is not None:
            raise OptionError(
                "groups are labels of rows in memory: draw a sample with qwyc.distributed.sample and "
                "pass it with its groups"
            )
        X = distributed.sample_for(ensemble, X, max_rows, seed)
    X = _sample(X, max_rows, seed)
    scores = _score(model, X, ensemble, threads, progress)
    with progress_reporter(progress, "Measuring costs", 0):
        weights = check_costs(_costs(costs, X, ensemble, threads), ensemble.n_models)
    if method == "auto" and budget == 0:
        fast = _proven(ensemble, scores, beta, weights, quit, seed, threads)
    else:
        assert scores is not None  # only a proof does without rows
        problem = Problem(scores, beta, weights, quit, threads)
        if method == "auto":
            fast = _certified(ensemble, problem, budget, confidence, groups, seed, progress)
        else:
            fast = _published(ensemble, problem, budget, method, seed, progress)
    fast = _the_faster_way(fast, X, scores, costs, threads, progress)
    if fast.certificate.how == "held-out":
        warn_of_rare_classes(fast.certificate, fast.policy.quit)
    return fast


def _the_faster_way(
    fast: Classifier,
    X: Any,
    scores: ScoreMatrix | None,
    costs: Any,
    threads: int | None,
    progress: ProgressOption,
) -> Classifier:
    """The classifier as it is; or one that never quits early, where that is measured to be faster.
    Costs that the user gave are what counts, not time."""
    timed = costs is None or isinstance(costs, str)
    if scores is None or not timed or not isinstance(fast.ensemble, Ensemble):
        return fast
    with progress_reporter(progress, "Timing", 0):
        speed = measure(fast.ensemble, fast.policy, X)
    if speed is None or speed.quitting_pays:
        return replace(fast, speed=speed)
    seen = fast.certificate
    if fast.choices is not None and seen.confidence is not None:  # its first member never quits
        policy, certificate = fast.choices.member(0, seen.alpha, seen.confidence)
    else:
        policy = fast.policy.without_quitting()
        certificate = observed_certificate(
            seen.how, seen.alpha, policy, scores, seed=seen.seed, threads=threads
        )
    return replace(fast, policy=policy, certificate=certificate, speed=speed)


def _proven(
    ensemble: Ensemble | BaseModels,
    scores: ScoreMatrix | None,
    beta: float,
    costs: npt.NDArray[np.float64],
    quit: str,
    seed: int,
    threads: int | None,
) -> Classifier:
    """Quits that no input can prove wrong."""
    if isinstance(ensemble, BaseModels):
        raise OptionError(
            "alpha=0 rests on the leaves' ranges, and callables have none: ask for a small alpha"
        )
    policy = provable_policy(ensemble, threshold=beta, costs=costs, quit=quit)
    certificate = observed_certificate("proven", 0.0, policy, scores, seed=seed, threads=threads)
    return Classifier(ensemble, policy, certificate)


def _published(
    ensemble: Ensemble | BaseModels,
    problem: Problem,
    alpha: float | dict[str, float],
    method: str,
    seed: int,
    progress: ProgressOption,
) -> Classifier:
    """Algorithm 1, or 2 along the model's own order: alpha holds on the sample."""
    if isinstance(alpha, dict):
        raise OptionError("alpha by kind of disagreement goes with method='auto'")
    order = None if method == "joint" else fixed_order(problem, method)
    allowed = allowed_disagreements(alpha, problem.n_rows)
    policy = fit_thresholds(problem, order, allowed, progress=progress)
    certificate = observed_certificate(
        "in-sample", alpha, policy, problem.matrix, seed=seed, threads=problem.threads
    )
    return Classifier(ensemble, policy, certificate)


def _certified(
    ensemble: Ensemble | BaseModels,
    problem: Problem,
    alpha: float | dict[str, float],
    confidence: float,
    groups: Any,
    seed: int,
    progress: ProgressOption,
) -> Classifier:
    """Fit a path on one part of the sample, take the boldest policy that the other part certifies."""
    scores, threads = problem.matrix, problem.threads
    fit_rows, held_out = split_sample(len(scores.full), alpha, confidence, groups, seed)
    fitting = replace(problem, matrix=scores.take(fit_rows))
    weights = (1.0, 1.0)
    if isinstance(alpha, dict):  # what is allowed less often costs more
        mean = 2 / (1 / alpha["negative"] + 1 / alpha["positive"])
        weights = (mean / alpha["negative"], mean / alpha["positive"])
    with progress_reporter(progress, "Finding the order", 0):
        order = fixed_order(fitting, "correlation")
    path = fit_path(fitting, order, weights=weights, progress=progress)
    with progress_reporter(progress, "Certifying", len(path)) as report:
        certified = path.tally(scores, rows=held_out, threads=threads, report=report)
    evidence = Evidence(
        rows=certified.rows,
        full_positive=certified.full_positive,
        flips=certified.flips,
        mean_models=certified.mean_models,
        mean_cost=certified.mean_cost,
        fit_rows=len(fit_rows),
        fit_flips=path.tally(fitting.matrix, threads=threads).flips,
        seed=seed,
        sample=scores.digest,
        groups=0 if groups is None else _count_groups(groups, held_out, len(scores.full)),
    )
    choices = Choices(path, evidence)
    return Classifier(ensemble, *choices.choose(alpha, confidence), choices)


def _count_groups(groups: Any, rows: npt.NDArray[np.intp], n_rows: int) -> int:
    return len(np.unique(group_numbers(groups, n_rows)[rows]))


def _score(
    model: Any,
    X: Any,
    ensemble: Ensemble | BaseModels,
    threads: int | None,
    progress: ProgressOption,
) -> ScoreMatrix | None:
    """Every base model on every row, once memory and the model's own decisions have been checked."""
    if X is None:
        return None
    score_bytes = 8 if isinstance(ensemble, BaseModels) else 4
    check_capacity(row_count(X), ensemble.n_models, score_bytes=score_bytes)
    evaluations = row_count(X) * ensemble.n_models
    with progress_reporter(progress, "Evaluating every base model", evaluations) as report:
        scores = ensemble.scores(X, threads=threads, report=report)
    if not len(scores.full):
        raise InputError("X has no rows; optimising needs a sample of rows like those to come")
    with progress_reporter(progress, "Comparing with the model itself", 0):
        prove_parity(model, X, ensemble, scores.full, scores.threshold)
    return scores


def _costs(costs: Any, X: Any, ensemble: Ensemble | BaseModels, threads: int | None) -> Any:
    if not isinstance(costs, str):
        return costs
    if X is None:
        raise InputError(f"costs={costs!r} are measured on rows: pass X")
    return ensemble.costs(X, costs, threads=threads)


def _threshold(threshold: Any, ensemble: Ensemble | BaseModels) -> float:
    if threshold is None:
        return ensemble.threshold
    if isinstance(threshold, Probability):
        if isinstance(ensemble, BaseModels):
            raise OptionError("callables give scores, not probabilities; pass threshold as a score")
        return ensemble.score_at(threshold.value)
    return check_number("threshold", threshold)


def _sample(X: Any, max_rows: int | None, seed: int) -> Any:
    """X, or `max_rows` rows of it drawn at random without repetition, in their order."""
    if max_rows is None or X is None:
        return X
    max_rows = check_count("max_rows", max_rows)
    n = row_count(X)
    if n <= max_rows:
        return X
    return take(X, np.sort(np.random.default_rng(seed).choice(n, size=max_rows, replace=False)))
