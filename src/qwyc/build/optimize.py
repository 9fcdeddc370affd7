"""optimize: from a trained model and a sample of rows to a classifier that quits early."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, overload

import numpy as np

from qwyc import distributed, importers
from qwyc.approximation import Approximation
from qwyc.build.feature_costs import costs_of_features, with_features
from qwyc.build.fitting import Fitting, has_trees_by_class
from qwyc.build.held_out import order_column
from qwyc.build.run import Run
from qwyc.build.sample_checks import look_at_sample
from qwyc.build.speed import Measure
from qwyc.build.tolerance import (
    ToleranceFitting,
    open_within,
    prove_outputs,
    refuse_beside_tolerance,
)
from qwyc.check.parity import prove_parity_without_rows
from qwyc.classifier import Classifier
from qwyc.errors import InputError, OptionError, QwycWarning
from qwyc.model.ensemble import Ensemble, Sample
from qwyc.policy.costs import KINDS, Costs
from qwyc.policy.fit.leads import refuse_options_of_two_classes
from qwyc.policy.fit.problem import QUITS
from qwyc.promise.budget import Alpha, budget_of
from qwyc.promise.certificate import check_confidence
from qwyc.promise.doubtful import warn_of_moves, warn_of_rare_classes
from qwyc.promise.group_labels import group_numbers
from qwyc.promise.ordered import order_of
from qwyc.promise.origin import Origin, Origins
from qwyc.promise.repeats import INDEPENDENT, REPEATS
from qwyc.promise.requested import DEFAULT_ALPHA, budget_for, index_of_class
from qwyc.promise.tolerance import ToleranceBudget
from qwyc.rows.selection import row_count, take
from qwyc.runtime.arguments import (
    check_choice,
    check_count,
    check_number,
    is_number,
)
from qwyc.runtime.progress import ProgressOption
from qwyc.target.thresholds import Probability, Score, Threshold

METHODS = ("auto", "joint", "natural")
LARGE_ALPHA = 0.25  # from here on it may be a percentage by mistake
EVALUATIONS = ("model", "measured", "quit", "full")


@overload
def optimize(
    model: Any,
    X: Any = None,
    *,
    alpha: Alpha | None = None,
    by_class: Mapping[Any, float] | None = None,
    tolerance: None = None,
    confidence: float = 0.95,
    quit: str = "both",
    only: Any = None,
    threshold: Threshold | None = None,
    costs: Any = None,
    feature_costs: Any = None,
    method: str = "auto",
    groups: Any = None,
    order_by: Any = None,
    repeats: str = "together",
    headroom: int = 0,
    seed: int = 0,
    max_rows: int | None = None,
    evaluation: str | Measure = "model",
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Classifier: ...


@overload
def optimize(
    model: Any,
    X: Any = None,
    *,
    alpha: Alpha | None = None,
    by_class: Mapping[Any, float] | None = None,
    tolerance: float,
    confidence: float = 0.95,
    quit: str = "both",
    only: Any = None,
    threshold: Threshold | None = None,
    costs: Any = None,
    feature_costs: Any = None,
    method: str = "auto",
    groups: Any = None,
    order_by: Any = None,
    repeats: str = "together",
    headroom: int = 0,
    seed: int = 0,
    max_rows: int | None = None,
    evaluation: str | Measure = "model",
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Approximation: ...


def optimize(
    model: Any,
    X: Any = None,
    *,
    alpha: Alpha | None = None,
    by_class: Mapping[Any, float] | None = None,
    tolerance: float | None = None,
    confidence: float = 0.95,
    quit: str = "both",
    only: Any = None,
    threshold: Threshold | None = None,
    costs: Any = None,
    feature_costs: Any = None,
    method: str = "auto",
    groups: Any = None,
    order_by: Any = None,
    repeats: str = "together",
    headroom: int = 0,
    seed: int = 0,
    max_rows: int | None = None,
    evaluation: str | Measure = "model",
    threads: int | None = None,
    progress: ProgressOption = None,
) -> Classifier | Approximation:
    """Make a classifier that decides like `model` from a fraction of its base models.

        fast = qwyc.optimize(model, X, alpha=0.005)  # X: rows that the model was not trained on
        labels = fast.predict(X_new)

    Most users need only `alpha`, `by_class` (if one class is rare) and `threshold`. The result is a
    `Classifier`, with `predict`, `predict_one`, `decide`, `certificate`, `at` and `save`.

    With the stated `confidence`, at most a share `alpha` of all rows drawn like X is decided differently
    from the full ensemble. This is a statement about the population that X is a sample of: a batch of new
    rows may show a little more or less by chance. A series of policies is fitted on one part of X, and one
    of them is chosen on the other part by an exact binomial test, so X must be like future rows.

    Keep rows that the model was trained on out of X: the model is more certain of them than of other rows,
    so the promise may not hold. If all of X is training rows, `TrainingRowsWarning` says so for most
    models. If half of X is, this goes unnoticed for most models, and the promise may break: for random
    forests of 100 trees and an alpha of 1%, 0.9% to 1.5% of new rows were decided differently.

    Raises `ModelError` if the model cannot be read, `InputError` for rows that do not fit it,
    `InfeasibleError` if there are too few rows for the limits, `ParityError` if the model as read does not
    decide like the model itself, and `OptionError` for options that cannot be used.

    With `tolerance`, the result is an `Approximation` of the model's output instead of a `Classifier`:
    with the stated `confidence`, at most a share `alpha` of all rows gets an output that is off by more
    than the tolerance. The output is a probability, or the value of a regression or ranking.

    Parameters
    ----------
    model : a path, or a model object of XGBoost, LightGBM, CatBoost, scikit-learn, YDF, Treelite, ONNX or
        TensorFlow Lattice (see `read_model`), or a pipeline that ends in one; or a list of callables or of
        TensorFlow Lattice models, or a scikit-learn bagging, voting, AdaBoost or stacking ensemble of
        anything.
    X : rows like future rows, without labels, that the model was not trained on; or a data set of Spark,
        Ray or Dask, from which 100,000 rows (or `max_rows`) are drawn.
    alpha : the share of decisions that may differ from the full ensemble's, by default 0.005 unless
        `by_class` is given. To limit both kinds separately, pass `dict(negative=..., positive=...)`:
        full-positive rows called negative, and the reverse. 0 means that no decision differs for any
        input; this is proven by bounds on what the remaining trees can add, and needs no X.
    by_class : how much of a class may be lost, `{label: share}`: of the rows that the full ensemble puts
        in that class, at most this share is decided differently. At 95% confidence, this needs about 3 /
        share held-out rows of the class. It can be used alone or with `alpha`. Without `alpha`, only rows
        of the named classes may be decided differently, so rows quit in one direction if one class is
        named. With more than two classes and no `alpha`, all must be named.
    tolerance : by how much outputs may be off, in the unit of the output: the probability of the positive
        class of two, or the value. `alpha` is then the share of rows that may be off by more. It is for
        models with one output only, and cannot be combined with by_class, quit, only, threshold,
        feature_costs or another method.
    confidence : how confident to be that alpha holds on new rows.
    quit : "both", "negative" (a filter: rows that are not rejected get their full score) or "positive".
        With more than two classes, rows quit for any class.
    only : for more than two classes, the label of one of them: a filter that decides whether a row belongs
        to this class. XGBoost keeps no class names: its labels are 0, 1, 2 and so on. Rows that almost
        certainly belong to another class leave early; the rows that stay get all full scores and the full
        decision. Rows of this class can be lost, but none is gained: `alpha` is the share of all rows that
        may be lost, and `by_class={label: share}` that of the rows of the class. The label of a row that
        left is the best other class so far, which need not be the full ensemble's.
    threshold : for two classes: a row is positive if its score, or its probability, is at least this. None
        is the model's own decision. `qwyc.Probability(0.3)` is a predicted probability of the positive
        class, `qwyc.Score(0.3)` a full score, which is in log-odds for most boosted trees. A bare number
        is a score. It is refused if it could be a mistake: between 0 and 1 for a model whose scores are not
        its probabilities, and outside of 0 to 1 for a model whose scores are. The positive class is the
        second of the model's classes. For a model with an output calibration (TensorFlow Lattice), a score
        is compared with its output.
    costs : cost of evaluating each base model, (T,), or a `Costs` if base models share parts. None is 1
        for all, as in the paper; "size" is the number of nodes of trees that rows visit, or of
        multiply-adds and comparisons of lattices; "measured" is the time that each takes on this machine.
        The classifier records which costs it was made with.
    feature_costs : what it costs to get each feature of a row, in the unit of `costs` (1 is a base model
        if those are not given): one number per feature, or a mapping from column name or position to cost
        for the columns that have a cost. The first base model that looks at a feature pays for it. Order
        and thresholds then avoid features that cost more than they help, and the classifier's
        `decide_lazily` fetches only those that a row still needs.
    method : "auto" is the method described above. "joint" is the published procedure, Algorithm 1, and
        "natural" is Algorithm 2 along the model's own order. Both are fitted on all of X, and alpha holds
        on X only.
    groups : a label per row, if rows come in groups that are drawn whole, such as the visits of one
        patient. The promise is then about the rows of new groups, and groups are counted instead of rows.
        It holds however alike the rows of a group are. A group is never on both sides of the split.
    order_by : values to sort rows by, one per row, or the name of a column of X: numbers, dates or text.
        The policy is then fitted on the earlier half and certified on the later half, in up to 8 windows,
        and the promise is about rows drawn like those of the latest window. In the other windows, the
        observed share must be within alpha. The certificate shows how the share moved. Without `order_by`,
        rows are assumed to be exchangeable.
    repeats : how equal rows of X are counted. "together": they are copies and form one group; this applies
        only if many rows repeat, and a warning then says so. "independent": they are independent draws
        that happen to be equal, such as rows with only a few categorical columns.
    headroom : leave room for a later `verify` on this many other rows: the policy is the boldest that
        passes such a verification, at the same limits and confidence, with a probability of about 90%.
        With 0, a policy may be chosen that a second test does not confirm.
    seed : seed of all random choices. The same inputs and seed give the same classifier, unless `costs` or
        `evaluation` are measured.
    evaluation : "model" evaluates rows in full if quitting costs more by a cost model, which is the same
        on every machine. "measured" times both ways on the sample instead, and evaluates rows in full if
        that takes less than 0.8 of the time that quitting takes; a callable (classifier, rows) that
        returns a `Speed` replaces the clock. If costs, of base models or of features, are given as
        numbers, rows quit, and the two ways are not compared. "quit" always quits, "full" never. The file
        records what was chosen and who chose it.
    max_rows : if X has more rows, draw this many at random. Optimising needs 6 bytes of memory for each
        row and base model, times the number of classes if there are more than two. If that does not fit
        into memory, it raises an error that says so before it starts.
    threads : number of threads; None is every core.
    progress : None shows a bar on a terminal, True always, False never, or a callable
        (what, done, total).
    """
    confidence = check_confidence(confidence)
    check_choice("method", method, METHODS)
    check_choice("quit", quit, QUITS)
    check_choice("repeats", repeats, REPEATS)
    if not callable(evaluation):
        check_choice("evaluation", evaluation, EVALUATIONS)
    seed, headroom = check_count("seed", seed, least=0), check_count("headroom", headroom, least=0)
    if alpha is None and by_class is None:
        alpha = DEFAULT_ALPHA
    if tolerance is not None:
        refuse_beside_tolerance(by_class, quit, only, threshold, feature_costs, method)
    elif alpha is not None:
        budget_of(alpha)  # a wrong alpha is said before the model is read
    source = importers.open_model(model)
    within = None
    if tolerance is not None:
        source, within = open_within(source, tolerance)
    elif not source.ensemble.has_classes:
        raise OptionError(
            f"the model gives values and no classes ({source.ensemble.description}). With tolerance=, "
            "rows quit early where the value is known closely enough; qwyc.read_model(model).predict(X) "
            "gives exact values, from every base model"
        )
    if source.ensemble.by_class:
        refuse_options_of_two_classes(threshold=threshold, quit=quit, labels=None)
    if isinstance(threshold, Probability):
        source = source.for_probability(threshold.value)
    ensemble = source.ensemble
    own = None if only is None else index_of_class(ensemble, only)
    budget = (
        budget_for(ensemble, alpha, by_class, own)
        if within is None
        else ToleranceBudget.of(alpha, within)
    )
    if headroom and (method != "auto" or budget.is_zero):
        raise OptionError("headroom can only be used with method='auto' and an alpha above 0")
    if method == "auto":
        quit = budget.allowed(quit)
    proof = method == "auto" and budget.is_zero
    if X is None and not proof:
        rest = "" if tolerance is not None else " unless alpha=0"
        raise InputError(
            f"a sample of rows is needed{rest}: rows like those that will come, which the model was not "
            "trained on. It needs no labels"
        )
    if groups is not None and (method != "auto" or max_rows is not None):
        raise OptionError(
            "groups can only be used with method='auto', and not together with max_rows"
        )
    if order_by is not None and (method != "auto" or max_rows is not None or groups is not None):
        raise OptionError(
            "order_by can only be used with method='auto', and not together with max_rows or groups"
        )
    of_features = costs_of_features(feature_costs, ensemble, costs)
    beta = _threshold(threshold, ensemble)
    if threshold is None and ensemble.doubt:
        warnings.warn(f"{ensemble.doubt}; pass threshold=", QwycWarning, stacklevel=2)
    if (budget.total or 0) >= LARGE_ALPHA:
        warnings.warn(
            f"alpha = {budget} lets {100 * (budget.total or 0):g}% of all decisions differ; 0.5% is "
            "alpha=0.005",
            QwycWarning,
            stacklevel=2,
        )
    if isinstance(order_by, str) and X is not None and not distributed.is_distributed(X):
        order_by, X = order_column(X, order_by, ensemble)
    sample = None if X is None else _draw(X, ensemble, groups, order_by, max_rows, seed)
    run = Run(
        ensemble, sample, budget, confidence, headroom, quit, own, beta, seed, threads, progress
    )
    scores = None if sample is None else run.score(source)
    if scores is not None and within is not None:
        prove_outputs(model, source, run.sample, scores, within)
    if scores is not None and isinstance(threshold, Probability):
        beta = ensemble.link.score_among(scores.full, threshold.value)
        run = replace(run, threshold=beta)
    if sample is None:
        prove_parity_without_rows(source, seed, threads)
    own_weights = Costs.of(run.measured_costs(costs), ensemble.n_models)
    weights = with_features(own_weights, ensemble, of_features)
    # Given costs count instead of time.
    by_time = (costs is None or isinstance(costs, str)) and feature_costs is None
    classifier: Classifier | Approximation
    if proof:
        classifier = run.proven(scores, weights)
    else:
        assert sample is not None  # only a proof needs no rows
        assert scores is not None
        rule_out = by_time and has_trees_by_class(ensemble)
        problem = Fitting(scores, beta, weights, quit, threads, own, by_time, rule_out)
        fitted: Fitting | ToleranceFitting = problem
        if within is not None:
            fitted = ToleranceFitting(scores, within, beta, weights, threads)
        if method == "auto":
            n = len(scores.full)
            units = None if groups is None else group_numbers(groups, n)
            when = None if order_by is None else order_of(order_by, n)
            seen = look_at_sample(sample, scores, units, repeats, when is not None, threads)
            with seen.explaining():
                classifier = run.certified(fitted, seen.units, when, seen.doubts)
        else:
            classifier = run.published(problem, method)
    classifier = replace(
        classifier,
        cost_kind=_cost_kind(costs, own_weights),
        origins=_origins(sample, repeats),
        feature_costs=of_features,
    )
    classifier = run.choose_evaluation(classifier, scores, evaluation, by_time)
    if classifier.certificate.how == "held-out":
        warn_of_rare_classes(classifier.certificate, ensemble.classes.tolist())
        warn_of_moves(classifier.certificate)
    return classifier


def _cost_kind(costs: Any, weights: Costs) -> str:
    """How costs came about: one of KINDS."""
    if isinstance(costs, str):
        return costs if costs in KINDS else "given"  # a family may know others
    return "one" if weights.all_one else "given"


def _origins(sample: Sample | None, repeats: str) -> Origins:
    """By what the rows of the sample are recognised later."""
    hashes = None if sample is None else sample.used_hashes
    independent = repeats == INDEPENDENT
    return Origins(None if hashes is None else Origin.of(hashes), independent=independent)


def _threshold(threshold: Any, ensemble: Ensemble) -> float:
    if threshold is None:
        return ensemble.threshold
    if isinstance(threshold, Probability):
        return ensemble.link.score_at(threshold.value)
    if isinstance(threshold, Score):
        return ensemble.link.score_of_output(float(threshold.value))
    if not is_number(threshold):
        raise OptionError(
            f"threshold must be qwyc.Probability(p), qwyc.Score(s) or a number; got {threshold!r}"
        )
    number = check_number("threshold", threshold)
    if 0 < number < 1 and ensemble.link.score_is_no_probability:
        as_probability = ensemble.link.probability(ensemble.link.score_of_output(number))
        raise OptionError(
            f"threshold={number!r} could be a score or a probability, and this model's scores are not "
            f"probabilities: a score of {number!r} is a probability of {as_probability:.4g}. Pass "
            f"threshold=qwyc.Score({number!r}) or threshold=qwyc.Probability({number!r})"
        )
    if not 0 <= number <= 1 and ensemble.link.kind == "identity":
        raise OptionError(
            f"threshold={number!r} is compared with this model's scores, which are probabilities, from 0 "
            "to 1, so that every row would be decided alike. Pass a number between 0 and 1"
        )
    return ensemble.link.score_of_output(number)


def _draw(
    X: Any, ensemble: Ensemble, groups: Any, order_by: Any, max_rows: int | None, seed: int
) -> Sample:
    """The sample to work on: X, or at most `max_rows` of its rows, drawn at random without repetition."""
    if distributed.is_distributed(X):
        if groups is not None:
            raise OptionError(
                "groups are labels of rows in memory: draw a sample with qwyc.distributed.sample and "
                "pass it with its groups"
            )
        if order_by is not None:
            raise OptionError(
                "order_by sorts rows in memory: draw a sample with qwyc.distributed.sample and pass it "
                "with its order"
            )
        return ensemble.sample(distributed.sample_for(ensemble, X, max_rows, seed))
    if max_rows is None:
        return ensemble.sample(X)
    max_rows, n = check_count("max_rows", max_rows), row_count(X)
    if n > max_rows:
        drawn = np.random.default_rng(seed).choice(n, size=max_rows, replace=False)
        X = take(X, np.sort(drawn))
    return ensemble.sample(X)
