"""recertify: another operating point for the same classifier, from other rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from qwyc import distributed
from qwyc.build.sample_checks import NO_PROMISE
from qwyc.check.fresh_rows import KeptRows, RowHashes, fresh_rows, repeats_option
from qwyc.check.training_rows import doubts_of, look_at_rows
from qwyc.check.verify import DEFAULT_CONFIDENCE, check_unseen_rows, warn_of_missing_groups
from qwyc.classifier import Classifier, check_classifier
from qwyc.errors import InputError, OptionError
from qwyc.model.ensemble import Sample
from qwyc.policy.grouped import Differing
from qwyc.promise.budget import Alpha
from qwyc.promise.certificate import check_confidence
from qwyc.promise.compare import group_counter, sums_of_path
from qwyc.promise.doubtful import warn_of_rare_classes
from qwyc.promise.evidence import Choices
from qwyc.promise.origin import Origin
from qwyc.promise.repeats import TOGETHER
from qwyc.promise.requested import budget_for
from qwyc.rows.odd_values import ERROR
from qwyc.runtime.arguments import check_count
from qwyc.runtime.progress import ProgressOption


def recertify(
    classifier: Classifier,
    X: Any,
    *,
    alpha: Alpha | None = None,
    by_class: Mapping[Any, float] | None = None,
    confidence: float | None = None,
    groups: Any = None,
    headroom: int = 0,
    repeats: str | None = None,
    threads: int | None = None,
    progress: ProgressOption = False,
    unseen: str = ERROR,
) -> Classifier:
    """Choose and certify another policy for a classifier on other rows: on more rows, or on current ones.
    Nothing is fitted again.

    Every policy that `optimize` fitted is tried on all of X, a table or a data set of Spark, Ray or Dask,
    and the boldest that passes an exact binomial test is taken. With more rows, the result comes closer to
    alpha, and alpha can be smaller. X must be like future rows and must not hold the rows that the
    classifier was made from: rows in memory are recognised, and InputError is raised. By default, alpha
    and confidence are those of the certificate. Choose them before you see results, because the promise
    holds for each choice by itself only. Rows are counted as independent draws, unless `groups` has a
    label per row: then the promise is about the rows of new groups, as in `optimize`. If many rows repeat,
    copies of a row are one group, unless `repeats`, by default that of `optimize`, is "independent".
    Whether quitting pays is not decided again.

    `unseen` says what happens to values that the model refuses, as in `Classifier.decide`. With "flag",
    rows with such values are left out; `certificate.left_out` is their number, and the promise is about
    rows without such values. `certificate.recertified` is a digest of X, which is saved in files.
    """
    check_classifier(classifier)
    check_unseen_rows(classifier, unseen)
    if classifier.certificate.how == "proven":
        raise OptionError(
            "this classifier is proven for every input, so there is nothing to certify"
        )
    before = classifier.needed_choices()
    budget = classifier.certificate.budget
    if alpha is not None or by_class is not None:
        budget = budget_for(classifier.ensemble, alpha, by_class, classifier.only)
    if budget.is_zero:
        raise OptionError("alpha=0 is proven rather than sampled: call qwyc.optimize with alpha=0")
    classifier.check_quits(budget)
    warn_of_missing_groups(classifier, groups)
    room = check_count("headroom", headroom, least=0)
    level = classifier.certificate.confidence if confidence is None else confidence
    level = check_confidence(DEFAULT_CONFIDENCE if level is None else level)
    counter = grouped = None
    certified_on: Origin | None = None
    digest = ""  # of a data set it is not known
    doubts: tuple[str, ...] = ()
    if distributed.is_distributed(X):
        if groups is not None:
            raise OptionError("groups are labels of rows in memory: draw a sample of the data set")
        sums = distributed.sums_of_path(classifier, X, unseen=unseen)
        if not sums.rows:
            raise InputError("the data set has no rows; certifying needs rows like those to come")
    else:
        together = repeats_option(classifier, repeats)
        hashes, kept = RowHashes(), KeptRows()
        watch = look_at_rows(classifier.ensemble, X, unseen)

        def look(sample: Sample) -> None:
            kept.add(sample)
            if not sample.is_empty:
                hashes.add(sample)

        differing = None
        if groups is not None or together == TOGETHER:
            differing = Differing(before.path.target, len(before.path))
        sums, digest = sums_of_path(
            classifier,
            X,
            threads=threads,
            progress=progress,
            differing=differing,
            look=look,
            look_at_scores=None if watch is None else partial(watch.add_sample, threads=threads),
            unseen=unseen,
        )
        kept.check("certify")
        known_rows = [classifier.origins.sample]
        fresh = fresh_rows(hashes.take(), known_rows, kept.of(groups), together)
        certified_on = None if fresh.hashes is None else Origin.of(fresh.hashes)
        if differing is not None:
            counter = group_counter(fresh.groups, sums.rows, differing)
        doubts = doubts_of(None if watch is None else watch.closeness(), NO_PROMISE)
        if digest == before.evidence.sample:
            raise InputError(
                "these are the rows that the classifier was made from, and its thresholds were fitted to "
                "some of them: certify it on others"
            )
    if counter is not None and not counter.alone:
        known = before.evidence.counts.groups  # its prior is from the rows that were fitted on
        grouped = counter.groups(None if known is None else known.prior)
    evidence = replace(
        before.evidence,
        counts=sums.counts(grouped),
        groups=0 if counter is None else counter.n_groups,
        windows=None,
        doubts=doubts,
        left_out=sums.left_out,
        recertified=digest,
    )
    choices = Choices(before.path, evidence)
    chosen = classifier.chosen_from(choices, budget, level, room)
    warn_of_rare_classes(chosen.certificate, classifier.ensemble.classes.tolist())
    return replace(chosen, origins=replace(classifier.origins, recertified=certified_on))
