"""ClassTreeModels: decision trees that give each of K classes a score.

A base model is what adds to all scores at once: a round of boosting with a tree for each class, or one tree
whose leaves hold a number for each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import ModelError, OptionError, RowsError
from qwyc.model.base_models import Bounds, Floats
from qwyc.model.ensemble import Ensemble, Source
from qwyc.model.link import Link
from qwyc.model.native import rows_at_once, scores_in_parts
from qwyc.model.output import Output
from qwyc.model.tree_selection import offsets, some_trees, spans
from qwyc.model.trees import (
    ON_ONE_THREAD,
    Summation,
    TreeModels,
    Trees,
    rounding_margin,
    scale_facts,
)
from qwyc.model.used_columns import SparseRunner, UsedColumns, score_full, score_matrix
from qwyc.policy.features import Pairs
from qwyc.policy.filter_policy import ClassPolicy, FilterPolicy
from qwyc.policy.path import AnyPath
from qwyc.policy.rule import StoppingRule
from qwyc.rows.schema import Schema
from qwyc.runtime.progress import Report
from qwyc.runtime.threads import thread_count
from qwyc.target.target import Decided
from qwyc.target.ties import BY_SCORES, Ties


@dataclass(frozen=True, eq=False)
class ClassTreeModels:
    """Trees of K classes as base models: how a row goes through them, and how the source adds them up.

    A tree adds a number to the score of its class, `tree_class`; or, where that is empty, its leaves hold
    vectors, and it adds to all scores. Base model r is the trees step_begin[r]:step_begin[r+1], at most one
    of each class. The source adds the trees of a class in this order."""

    trees: Trees  # leaf_value is empty where leaves hold vectors
    tree_class: npt.NDArray[np.int32]  # (n_trees,), or empty
    leaf_vector: npt.NDArray[np.float64]  # (n_leaves, K), or empty
    step_begin: npt.NDArray[np.int64]  # (R + 1,)
    n_features: int
    summation: Summation
    less_equal: bool
    truncates: bool
    start: Floats  # (K,) what the source's own sums start from, or have added at the end
    divisor: float
    ties: Ties = BY_SCORES
    weighs: str = "rows"
    scale: float = 1.0  # of FLOAT64_LATE: what sums are multiplied by before `start` is added

    kind: ClassVar[str] = "class-trees"

    def __post_init__(self) -> None:
        trees, K = self.trees, self.n_scores
        n_leaves = int(trees.leaf_begin[-1])
        if self.has_vectors:
            if self.leaf_vector.shape != (n_leaves, K) or len(trees.leaf_value):
                raise ModelError("leaves must hold a number for each class")
            if not np.array_equal(self.step_begin, np.arange(trees.n_trees + 1)):
                raise ModelError("a tree whose leaves hold vectors is a base model of its own")
        else:
            if self.tree_class.shape != (trees.n_trees,) or self.leaf_vector.size:
                raise ModelError("every tree must have a class")
            if not (self.tree_class.min() >= 0 and self.tree_class.max() < K):
                raise ModelError(f"a tree's class is not one of {K}")
            sizes = np.diff(self.step_begin)
            ends = self.step_begin[0] == 0 and self.step_begin[-1] == trees.n_trees
            if not ends or sizes.min() < 1:
                raise ModelError("the base models do not divide the trees")
            step = np.repeat(np.arange(len(sizes)), sizes)
            if len(np.unique(step * K + self.tree_class)) != trees.n_trees:
                raise ModelError("a base model has two trees of one class")
        if self.summation == Summation.SHARES:
            raise ModelError("shares of two classes are for models of two classes")

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again, and native objects cannot be pickled.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    @property
    def has_vectors(self) -> bool:
        """Whether leaves hold a number for each class."""
        return not len(self.tree_class)

    @property
    def n_scores(self) -> int:
        """Number of classes, K, each of which has a score."""
        return len(self.start)

    @property
    def n_models(self) -> int:
        """Number of base models, R."""
        return len(self.step_begin) - 1

    @property
    def description(self) -> str:
        """Such as "100 rounds of trees"."""
        return f"{self.n_models} trees" if self.has_vectors else f"{self.n_models} rounds of trees"

    @property
    def base(self) -> Floats:
        """What the running sums start from, (K,)."""
        return self.start / self.divisor

    @property
    def average(self) -> bool:
        """Whether the full score is a mean of votes."""
        return self.divisor != 1

    @property
    def score_bytes(self) -> int:
        """Bytes that one base model's scores of one row take in a ScoreMatrix."""
        return 4 * self.n_scores

    @cached_property
    def native(self) -> _native.ClassForest:
        """The same trees in the native core; raises ModelError where the arrays are not sound."""
        t, ties = self.trees, self.ties
        try:
            return _native.ClassForest(
                t.node_begin,
                t.leaf_begin,
                t.feature,
                t.threshold,
                t.left,
                t.right,
                t.flags,
                t.category_begin,
                t.category_words,
                self.leaf_vector.ravel() if self.has_vectors else t.leaf_value,
                self.tree_class,
                self.step_begin,
                self.start,
                n_features=self.n_features,
                summation=int(self.summation),
                less_equal=self.less_equal,
                truncates=self.truncates,
                divisor=self.divisor,
                ties=ties.code,
                ties_scale=ties.scale,
                scale=self.scale,
            )
        except ValueError as error:
            raise ModelError(f"the model's trees are not valid: {error}") from None

    @cached_property
    def structure(self) -> TreeModels:
        """All trees, without what they add."""
        values = np.zeros(int(self.trees.leaf_begin[-1]))
        return TreeModels(
            replace(self.trees, leaf_value=values),
            self.n_features,
            Summation.FLOAT64,
            self.less_equal,
            self.truncates,
            0.0,
            1.0,
            self.weighs,
        )

    @cached_property
    def used(self) -> UsedColumns:
        """The same trees by the columns that they look at."""
        return UsedColumns.of(self)

    def scores(
        self, rows: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> tuple[npt.NDArray[np.float32], Floats]:
        """Every base model on every row, (N, R, K), and the full scores, (N, K). Long work is done in
        parts, so that it can be interrupted and reports how far it is."""
        block = rows_at_once(self.n_models * self.n_scores)
        evaluate = partial(score_matrix, self)
        return scores_in_parts(evaluate, self.n_models, block, rows, threads, report)

    def score_full(self, rows: Any, *, threads: int | None = None) -> Floats:
        """The full scores of every row, (N, K), bit for bit the source library's own."""
        few = threads is None and len(rows) <= ON_ONE_THREAD
        full: Floats = score_full(self, rows, 1 if few else thread_count(threads))
        return full

    def runner(self, policy: StoppingRule, survival: Floats | None = None) -> ClassRunner:
        """The trees laid out for one policy on leads, or a filter for one class."""
        if not isinstance(policy, ClassPolicy):
            raise OptionError(
                f"trees of {self.n_scores} classes run with a LeadPolicy; got a {type(policy).__name__}"
            )
        if policy.n_classes != self.n_scores:
            raise OptionError(
                f"the policy is for {policy.n_classes} classes; the trees have {self.n_scores}"
            )
        if isinstance(policy, FilterPolicy):
            never = np.full(self.n_models, np.inf)
            quitter = _native.LeadQuitter(
                self.native, policy.order, policy.by_class, never, survival, policy.only
            )
        else:
            quitter = _native.LeadQuitter(
                self.native, policy.order, policy.lead, policy.ruled_out_at, survival
            )
        return ClassRunner(quitter, SparseRunner(lambda: self.used, policy, survival))

    def path_counter(self, path: AnyPath) -> None:
        """None: scores have to be made first."""

    def expected_cost(self) -> float:
        """Nanoseconds that full scores take by the cost model of native/core/cost_model.hpp."""
        return self.native.expected_cost

    def costs(self, rows: Any, how: str, *, threads: int | None = None) -> Floats:
        """What each base model costs on rows like these, (R,): the sum over its trees."""
        if not len(rows):
            raise RowsError("{rows} has no rows; costs are measured on rows")
        return np.add.reduceat(
            self.structure.costs(rows, how, threads=threads), self.step_begin[:-1]
        )

    def cost_unit(self, how: str) -> str:
        """What costs of this kind count."""
        return self.structure.cost_unit(how)

    def bounds(self) -> Bounds:
        """Every base model adds at least its smallest and at most its largest leaf to each class. The
        margin is that of any class."""
        R, K, first = self.n_models, self.n_scores, self.trees.leaf_begin[:-1]
        leaves = self.leaf_vector if self.has_vectors else self.trees.leaf_value[:, np.newaxis]
        with np.errstate(over="ignore"):  # a step past float32 is infinite, and so is its bound
            steps = leaves / self.divisor * self.scale
            steps = steps.astype(np.float32).astype(np.float64)
        least, most = np.minimum.reduceat(steps, first), np.maximum.reduceat(steps, first)
        size = np.maximum.reduceat(np.abs(leaves), first)  # (n_trees, K or 1)
        if not self.has_vectors:  # a base model adds nothing to a class that it has no tree of
            at = (np.repeat(np.arange(R), np.diff(self.step_begin)), self.tree_class)
            of_trees = least[:, 0], most[:, 0], size[:, 0]
            least, most, size = np.zeros((R, K)), np.zeros((R, K)), np.zeros((R, K))
            least[at], most[at], size[at] = of_trees
        with np.errstate(over="ignore"):
            sums = size.sum(axis=0) * max(self.scale, 1.0)
            largest = float((np.abs(self.start) + sums).max())
        margin = rounding_margin(largest, R + (self.scale != 1), self.summation, self.divisor)
        return Bounds(least, most, self.ties.margin(largest / self.divisor) + margin)

    def cuts(self) -> dict[int, Floats]:
        """The thresholds of each feature, and the category codes of its sets and one more."""
        return self.structure.cuts()

    def feature_needs(self) -> Pairs:
        """The feature of each node."""
        trees, features = self.structure.feature_needs()
        step = np.repeat(np.arange(self.n_models), np.diff(self.step_begin))
        return step[trees], features

    def tensors(self) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays that decide rows, by name."""
        own = {name: getattr(self.trees, name) for name in Trees.decisive()}
        own |= {"tree_class": self.tree_class, "leaf_vector": self.leaf_vector}
        return own | {"step_begin": self.step_begin, "start": self.start}

    def facts(self) -> dict[str, Any]:
        """How rows go through the trees, and how the trees add up."""
        return {
            "summation": self.summation.name.lower(),
            "less_equal": self.less_equal,
            "truncates": self.truncates,
            "divisor": self.divisor,
            "ties": [self.ties.kind, self.ties.dtype, self.ties.scale],
            **scale_facts(self.scale),
        }

    def digest_facts(self) -> tuple[list[Any], list[float]]:
        """How rows go and how trees add up; the constants of the sum."""
        ties = self.ties
        rules = [int(self.summation), self.less_equal, self.truncates, ties.kind, ties.dtype]
        return rules, [self.divisor, ties.scale, *scale_facts(self.scale).values()]

    def layout(self) -> tuple[dict[str, Any], str]:
        """How large the trees are and how they are evaluated."""
        return self.structure.layout()


@dataclass(frozen=True, eq=False)
class ClassRunner:
    """Trees of K classes laid out for one policy."""

    quitter: _native.LeadQuitter
    sparse: SparseRunner

    def decide(
        self, rows: Any, *, threads: int | None = None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats]:
        """The index of each row's class, the base models that it took, (N,), and its scores, (N, K)."""
        if isinstance(rows, _native.SparseRows):
            return self.sparse.decide(rows, threads=threads)  # type: ignore[no-any-return]
        return self.quitter.decide(rows, thread_count(threads))

    def decide_table(
        self, table: _native.Table, *, threads: int | None = None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats] | None:
        """The same for a table; None if a value is refused."""
        return self.quitter.decide_table(table, thread_count(threads))

    def one_row(
        self, labels: Sequence[Any], fallback: Callable[[Any], Any], schema: Schema | None
    ) -> Callable[[Any], Any] | None:
        """The native path for one row of plain numbers."""
        if schema is None or not schema.takes_plain_rows:
            return None
        return _native.ClassOneRow(
            self.quitter,
            list(labels),
            fallback,
            np.ndarray,
            schema.finite_only,
            schema.exact_integers,
        ).predict

    def expected_cost(self) -> float:
        """Nanoseconds by the cost model of native/core/cost_model.hpp."""
        return self.quitter.expected_cost


def class_tree_ensemble(
    trees: Trees,
    schema: Schema,
    *,
    classes: npt.NDArray[Any],
    source: Source,
    summation: Summation,
    less_equal: bool,
    truncates: bool,
    start: npt.ArrayLike = 0.0,
    divisor: float = 1.0,
    tree_class: npt.ArrayLike | None = None,
    leaf_vector: npt.NDArray[np.float64] | None = None,
    ties: Ties = BY_SCORES,
    weighs: str = "rows",
    output: Output | None = None,
    scale: float = 1.0,
) -> Ensemble:
    """An ensemble of trees for K classes, or K values where `classes` is empty; raises ModelError where its
    arrays are not sound.

    `tree_class` (n_trees,) is the class that each tree adds to. The i-th trees of the classes are base
    model i; trees are put in that order. Or `leaf_vector` (n_leaves, K) is what leaves add, and each tree
    is a base model."""
    K = len(classes) or _number_of_values(start, leaf_vector)
    of_class = np.asarray(() if tree_class is None else tree_class, dtype=np.int32)
    if leaf_vector is None:
        step = _number_among_equals(of_class)
        order = np.lexsort((of_class, step))
        trees, of_class = some_trees(trees, order), of_class[order]
        begin = offsets(np.bincount(step))
    else:
        trees = replace(trees, leaf_value=np.empty(0))
        begin = np.arange(trees.n_trees + 1, dtype=np.int64)
    vector = np.empty((0, K)) if leaf_vector is None else leaf_vector
    models = ClassTreeModels(
        trees,
        of_class,
        np.ascontiguousarray(vector, dtype=np.float64),
        begin,
        schema.n_features,
        summation,
        less_equal,
        truncates,
        np.array(np.broadcast_to(np.asarray(start, dtype=np.float64), (K,))),
        divisor,
        ties,
        weighs,
        scale,
    )
    _ = models.native  # checks every array
    return Ensemble(models, schema, 0.0, classes, source, Link("none"), output=output)


def _number_of_values(start: npt.ArrayLike, leaf_vector: npt.NDArray[np.float64] | None) -> int:
    return leaf_vector.shape[1] if leaf_vector is not None else len(np.atleast_1d(start))


def _number_among_equals(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """How many equal values come before each, (n,)."""
    order = np.argsort(values, kind="stable")
    sizes = np.unique(values, return_counts=True)[1]
    number = np.empty(len(values), dtype=np.int64)
    number[order] = spans(np.zeros(len(sizes), dtype=np.int64), sizes)
    return number
