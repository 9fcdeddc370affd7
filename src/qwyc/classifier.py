"""Classifier: the value that users hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.approximation import Approximation, refuse_approximation
from qwyc.errors import ArtifactError, OptionError
from qwyc.files import classifier_file, export_c
from qwyc.importers import is_model_file
from qwyc.model.ensemble import Ensemble
from qwyc.model.lazy import Fetch, LazyDecisions, LazyRunner, check_needs_known
from qwyc.model.native import PlainArrays, plain_arrays
from qwyc.model.one_row import OneRow
from qwyc.model.probabilities import class_probabilities
from qwyc.policy.counts import exit_bins
from qwyc.policy.decisions import Decisions
from qwyc.policy.estimate_policy import EstimatePolicy
from qwyc.policy.rounds import Round, plan_rounds, survival
from qwyc.predictor import Predictor, read_model
from qwyc.promise.budget import Alpha, Budget
from qwyc.promise.certificate import check_confidence
from qwyc.promise.certified import Certified
from qwyc.promise.doubtful import warn_of_moves, warn_of_rare_classes
from qwyc.promise.evaluation import Evaluation
from qwyc.promise.evidence import Choices
from qwyc.promise.requested import budget_for
from qwyc.report.card import card
from qwyc.report.text import summary
from qwyc.rows.odd_values import ERROR, FLAG, MISSING, check_unseen, row_reasons
from qwyc.rows.slices import Slices
from qwyc.runtime.arguments import check_count, check_number
from qwyc.runtime.progress import ProgressOption

MOST_LAZY_RUNNERS = 4  # that are kept


@dataclass(frozen=True, eq=False, repr=False)
class Classifier(Certified):
    """Makes the decisions of a full ensemble from as few of its base models as each row needs.

    Rows may be NumPy arrays, pandas, Polars and Arrow tables, or sparse matrices of scipy, whose absent
    entries have the same meaning as in the source library. All methods may be called from many threads at
    once."""

    def predict(
        self, X: Any, *, threads: int | None = None, unseen: str = ERROR
    ) -> npt.NDArray[Any]:
        """The class of every row, (N,), as the source model's own `predict` gives it.

        `unseen` is "error" or "missing", as in `decide`."""
        if unseen != ERROR:
            if check_unseen(unseen) == FLAG:
                raise OptionError(
                    "unseen='flag' leaves rows without a class, and predict has no place for a reason: use "
                    "decide(X, unseen='flag'), which gives label and reason"
                )
            return self.decide(X, threads=threads, unseen=unseen).label
        plain = self._plain_arrays
        label: Any = None if plain is None else plain.predict(X, threads)
        if label is None and plain is not None and (frame := self.ensemble.frame(X)) is not None:
            label = plain.predict(frame, threads)
        return self.decide(X, threads=threads).label if label is None else label

    def decide(self, X: Any, *, threads: int | None = None, unseen: str = ERROR) -> Decisions:
        """The class of every row, how many base models it took, its score and whether the score is
        complete.

        `unseen` says what happens to a value that the model refuses: an unknown category, if the source
        library refuses those, or a value that is not a number in a column of numbers. "error" raises an
        error that names the row and the column. "missing" takes the value as missing. "flag" does not
        decide the row, and `reason` says why; it also flags missing values and infinities that the model
        refuses."""
        if unseen != ERROR:
            return self._decide_unseen(X, check_unseen(unseen), threads)
        plain = self._plain_arrays
        decided: Any = None if plain is None else plain.decide(X, threads)
        if decided is None and plain is not None and (frame := self.ensemble.frame(X)) is not None:
            decided = plain.decide(frame, threads)
        return self.ensemble.decide(X, self.runner, threads=threads) if decided is None else decided

    def _decide_unseen(self, X: Any, unseen: str, threads: int | None) -> Decisions:
        plain = self._plain_arrays
        found: Any = None if plain is None else plain.decide(X, threads)
        if found is None:
            return self.ensemble.decide_unseen(X, self.runner, unseen, threads=threads)
        decided: Decisions = found
        return decided if unseen == MISSING else decided.among(*row_reasons([], len(decided)))

    @cached_property
    def _plain_arrays(self) -> PlainArrays | None:
        """What decides NumPy arrays of floats in one native call, unless a subclass decides rows itself."""
        if type(self).decide is not Classifier.decide:
            return None
        return plain_arrays(self.runner, self.ensemble)

    def decide_lazily(
        self,
        fetch: Fetch,
        n: int,
        *,
        round_cost: float | None = None,
        threads: int | None = None,
    ) -> LazyDecisions:
        """`decide` for n rows whose features are fetched only when they are needed.

        Rows are decided in a few rounds. In each, `fetch` gets the columns that are needed next and the
        rows that are still undecided; rows that have quit need no more columns. The rounds are those that
        cost least on the rows of the certificate. Decisions, steps and scores equal those of `decide` on
        whole rows, bit for bit. Nothing is returned where `fetch` raises an error.

        Parameters
        ----------
        fetch : called as fetch(columns, rows), with a list of column names (positions where the model has
            no names) and an array of row numbers from 0 to n - 1, ascending, (m,) int64. It returns their
            values, (m, len(columns)), as an array, a list of rows or a table, in the form that `decide`
            takes. No column is fetched twice for a row.
        n : number of rows.
        round_cost : what a round costs each row that takes part in it, besides the cost of the features,
            in the unit of `feature_costs`. None is the mean cost of a feature. With 0 there are the most
            rounds and the fewest values; with a large number there is one round.
        """
        check_needs_known(self.ensemble)
        if not callable(fetch):
            raise OptionError(
                f"fetch must be a function of columns and rows; got {type(fetch).__name__}"
            )
        n = check_count("n", n, least=0)
        return self._lazy_runner(round_cost).decide(fetch, n, threads)

    def _lazy_runner(self, round_cost: float | None) -> LazyRunner:
        if round_cost is not None and not check_number("round_cost", round_cost) >= 0:
            raise OptionError(f"round_cost must be a number of at least 0; got {round_cost!r}")
        runner, kept = self._lazy_runners.get(round_cost), self._lazy_runners
        if runner is None:
            rounds = self.rounds(round_cost)
            runner = LazyRunner.of(self.ensemble, self.policy, rounds, self.runner)
            if len(kept) >= MOST_LAZY_RUNNERS:
                kept.clear()
            kept[round_cost] = runner
        return runner

    @cached_property
    def _lazy_runners(self) -> dict[float | None, LazyRunner]:
        """By the cost of a round."""
        return {}

    def rounds(self, round_cost: float | None = None) -> list[Round]:
        """The rounds of `decide_lazily`: the steps of each, and the features that it fetches."""
        check_needs_known(self.ensemble)
        use = self.feature_use
        assert use is not None  # it is known what base models look at
        if self.feature_costs is None:
            use = replace(use, costs=np.ones(len(use.costs)))
        if round_cost is None:
            costly = use.costs[use.used & (use.costs > 0)]
            round_cost = float(costly.mean()) if len(costly) else 0.0
        share = survival(self.certificate.counts, self.policy.n_models)
        return plan_rounds(use, share, round_cost)

    @cached_property
    def predict_one(self) -> Callable[[Any], Any]:
        """`predict_one(row)`: the class of one row, (n_features,), from a NumPy array, a sequence, a
        dict of values by column name, a pandas Series, or a table or sparse matrix of one row. Dicts,
        tables, and Series whose labels are column names hold categories as values, as `predict` takes them
        in tables.
        Arrays of float32 or float64, and lists and tuples of Python's own numbers, are evaluated directly,
        which is many times faster; everything else is converted first. Safe to call from many threads at
        once. A value that the model refuses is an error: `decide` of a table of one row has the option
        `unseen`."""
        any_row = OneRow(self.ensemble, self.runner)
        if self.ensemble.transform is not None:
            return any_row
        labels = self.ensemble.classes.tolist()
        return self.runner.one_row(labels, any_row, self.ensemble.schema) or any_row

    def score_full(self, X: Any, *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """The full score of every row, (N,), or of each of K classes, (N, K), from every base model."""
        return self.ensemble.score_full(X, threads=threads)

    def predict_proba(self, X: Any, *, threads: int | None = None) -> npt.NDArray[Any]:
        """The probability of every class, (N, n_classes), as the source model's own `predict_proba` gives
        it. All base models are evaluated on every row: this never quits early."""
        return class_probabilities(self.ensemble, X, threads=threads)

    def at(
        self,
        alpha: Alpha | None = None,
        *,
        by_class: Mapping[Any, float] | None = None,
        confidence: float | None = None,
        headroom: int = 0,
    ) -> Classifier:
        """The same classifier for another alpha or other limits by class, without fitting anything again.

        The policy is chosen from the series of policies fitted by `optimize`, using the held-out rows.
        The promise holds for a single choice, not for the best of several, so do not try many and keep
        the best. Whether quitting pays is not decided again: the result quits early if a policy that does
        so is certified, unless full evaluation was requested (`evaluation="full"`, `full()`). The
        parameters are those of `qwyc.optimize`."""
        budget = budget_for(self.ensemble, alpha, by_class, self.only)
        choices = self.needed_choices()
        if budget.is_zero:
            raise OptionError(
                "alpha=0 is proven rather than sampled: call qwyc.optimize with alpha=0"
            )
        level = check_confidence(self.certificate.confidence if confidence is None else confidence)
        self.check_quits(budget)
        room = check_count("headroom", headroom, least=0)
        chosen = self.chosen_from(choices, budget, level, room)
        warn_of_rare_classes(chosen.certificate, self.ensemble.classes.tolist())
        warn_of_moves(chosen.certificate)
        return chosen

    def check_quits(self, budget: Budget) -> None:
        """Refuse a budget without a limit on mistakes that the path's policies can make."""
        quit = self.needed_choices().path[-1].quit
        if quit != "never" and budget.allowed(quit) != quit:
            raise OptionError(
                f"rows quit {quit if quit != 'both' else 'both ways'}, and by_class limits the mistakes of "
                "one way only: give alpha too, or name the other class, or optimise the model again"
            )

    def chosen_from(
        self, choices: Choices, budget: Budget, confidence: float, headroom: int = 0
    ) -> Classifier:
        """The same ensemble with the boldest policy of these choices that passes."""
        policy, certificate = choices.choose(budget, confidence, headroom)
        evaluation = Evaluation(True, "default")
        if self.evaluation == Evaluation(False, "request"):  # never to quit, whatever the budget
            evaluation = self.evaluation
            policy, certificate = choices.member(0, budget, confidence, headroom)
        return replace(
            self,
            policy=policy,
            certificate=certificate,
            choices=choices,
            evaluation=evaluation,
            speed=None,
        )

    def full(self) -> Classifier:
        """The same classifier, never quitting: every row is decided by all base models. It can be used and
        saved like any other. Switch to it if early decisions are in doubt."""
        if self.policy.quit == "never":
            return self
        seen, policy = self.certificate, self.policy.without_quitting()
        if self.choices is not None and seen.confidence is not None:
            known = (seen.budget, seen.confidence, seen.headroom)
            policy, certificate = self.choices.member(0, *known)
        else:
            exits = (*(0 for _ in exit_bins(policy.n_models)[1:]), seen.rows)
            counts = replace(
                seen.counts,
                differences=(0,) * len(seen.counts.differences),
                mean_models=float(policy.n_models),
                mean_cost=seen.full_cost,
                exits=exits,
                stops=(*(0,) * (policy.n_models - 1), seen.rows) if seen.counts.stops else (),
            )
            certificate = replace(seen, counts=counts, quit="never")
        return replace(
            self,
            policy=policy,
            certificate=certificate,
            evaluation=Evaluation(False, "request"),
            speed=None,
        )

    def without_transform(self) -> Classifier:
        """The same classifier for rows as they reach the base models: a pipeline's own steps are left
        out."""
        if self.ensemble.transform is None:
            return self
        return replace(self, ensemble=replace(self.ensemble, transform=None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `.qwyc` file; an existing one is replaced in one step or not at all."""
        if self.ensemble.base_models.tensors() is None:
            raise ArtifactError(
                f"a classifier of {self.ensemble.description} cannot be saved, since files hold no code; "
                "keep its policy (order, lower, upper, threshold, costs) and build a qwyc.Cascade from it"
            )
        if self.ensemble.transform is not None:
            raise ArtifactError(
                f"the pipeline's own steps ({self.ensemble.transform}) are code, and files hold none; "
                "save classifier.without_transform(), which takes rows as pipeline[:-1].transform "
                "gives them"
            )
        classifier_file.write(path, self)

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        slices: Slices | None = None,
        speed: bool = True,
        max_rows: int = 20_000,
        threads: int | None = None,
        progress: ProgressOption = None,
    ) -> None:
        """Write an HTML page that works offline: what is promised, what other alphas cost, how soon rows
        are decided and where decisions differ. An existing file is replaced in one step or not at all.

        Parameters
        ----------
        X : rows that the classifier was not made from. They add times, the paper's method and others to
            compare with, and disagreement by slice.
        y : the true class of each row, (N,), to show accuracy.
        slices : more columns to slice by: names of columns of the table X, or a mapping from names to
            values, one per row. The features are sliced anyway.
        speed : whether to measure times. They differ from run to run; everything else is the same.
        max_rows : if X has more rows, this many are drawn at random.
        """
        from qwyc.report.html import (
            Settings,
            write_report,
        )  # where it is used: importing it takes time

        settings = Settings(max_rows, speed, threads, progress)
        write_report(self, path, X, y, slices=slices, settings=settings)

    def export_c(
        self, path: str | os.PathLike[str], *, prefix: str = "qwyc", small: bool = False
    ) -> tuple[Path, Path]:
        """Write `path`.c and `path`.h: C99 that needs nothing else and decides every row as `decide` does,
        bit for bit. Returns the two paths.

        `prefix_predict_one(row)` returns the index of the class; the header documents the other functions
        and what a row holds. Programs that link several models give each its own prefix. With `small`,
        trees of two classes are written in integers, without floating-point arithmetic, for small devices.
        A model is refused if it cannot be proven that integers give the same decisions."""
        return export_c.write(path, self, prefix=prefix, for_small_devices=small)

    def __repr__(self) -> str:
        return summary(self)

    def _repr_html_(self) -> str:
        """A compact card, which notebooks show instead of the text."""
        return card(self)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a `.qwyc` file: the `Classifier`, `Approximation` or `Predictor` that was saved. Nothing in the
    file is executed."""
    found = classifier_file.read(path)
    return Predictor.of(found) if isinstance(found, Ensemble) else from_certified(found)


def load_classifier(path: str | os.PathLike[str]) -> Classifier:
    """Read a classifier; ArtifactError where the file holds a model that never quits."""
    return check_classifier(load_certified(path))


def load_certified(path: str | os.PathLike[str]) -> Classifier | Approximation:
    """Read what quits early; ArtifactError where the file holds a model that never quits."""
    found = load(path)
    if not isinstance(found, (Classifier, Approximation)):
        raise ArtifactError(
            f"{path} holds a model without a policy, which evaluates every row in full; a classifier that "
            "quits early was expected: make one with qwyc.optimize(model, X, alpha=...)"
        )
    return found


def load_any(path: str | os.PathLike[str]) -> Any:
    """What a `.qwyc` file holds, or the model in another library's file: a `Classifier`, an `Approximation`
    or a `Predictor`."""
    file = classifier_file.file_path(path)
    return read_model(file) if is_model_file(file) else load(file)


def from_certified(certified: Certified) -> Classifier | Approximation:
    """What a file holds, with what users call."""
    fields = (getattr(certified, name) for name in Certified.__dataclass_fields__)
    if isinstance(certified.policy, EstimatePolicy):
        return Approximation(*fields)
    return Classifier(*fields)


def check_classifier(classifier: Any) -> Classifier:
    """`classifier`, if it is one."""
    if isinstance(classifier, Predictor):
        raise OptionError(
            "a qwyc.Classifier was expected; got a qwyc.Predictor, which evaluates every row in full and "
            "has no policy: make a classifier with qwyc.optimize(model, X, alpha=...)"
        )
    refuse_approximation(classifier)
    if not isinstance(classifier, Classifier):
        raise OptionError(
            f"a qwyc.Classifier was expected; got {type(classifier).__name__}: make one from a model with "
            "qwyc.optimize(model, X, alpha=...), or load a file with qwyc.load"
        )
    return classifier
