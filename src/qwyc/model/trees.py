"""Trees: decision trees as flat arrays, evaluated natively, whatever library they came from."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import ModelError, RowsError
from qwyc.model.base_models import Bounds, Floats, PathCounter
from qwyc.model.ensemble import Ensemble, Source
from qwyc.model.link import LOGISTIC, Link
from qwyc.model.native import NativeRunner, native_runner, rows_at_once, scores_in_parts
from qwyc.model.output import Output
from qwyc.model.used_columns import SparseRunner, UsedColumns, score_full, score_matrix
from qwyc.policy.features import Pairs
from qwyc.policy.path import AnyPath, Path, PathSeen
from qwyc.policy.rule import StoppingRule
from qwyc.rows.schema import Schema
from qwyc.runtime.arguments import check_choice
from qwyc.runtime.progress import Report
from qwyc.runtime.threads import thread_count
from qwyc.target.ties import BY_SCORES, Ties

MEASURED_ROWS = 4096
ON_ONE_THREAD = 256  # rows that the native core never divides among threads, so nobody has to count
HALF_ULP_32, HALF_ULP_64 = 2.0**-24, 2.0**-53  # relative error of one rounding
SMALLEST_32 = 2.0**-149  # absolute error of one rounding near zero
LARGEST_32, LARGEST_64 = (float(np.finfo(kind).max) for kind in (np.float32, np.float64))
# Other trees are compared for many rows at once (native/core/masked_trees.hpp).
WHY_WALKED = "node by node, because they have many leaves or a category of more than 254 kinds"


def _unknown() -> Floats:
    return np.empty(0)


class NodeFlag(enum.IntFlag):
    """What a split does besides comparing (native/core/forest.hpp has the same numbers)."""

    DEFAULT_LEFT = 1  # a missing value goes left
    CATEGORICAL = 2  # the split is a set of category codes, not a threshold
    IN_SET_LEFT = 4  # a code in the set goes left (otherwise right)
    ZERO_IS_MISSING = 8  # |x| <= 1e-35 counts as missing (LightGBM's zero_as_missing)


class Summation(enum.IntEnum):
    """How the source library adds its base models up; the full score is that, bit for bit."""

    FLOAT32 = 0  # base + f_1 + ... + f_T, every partial sum rounded to float32 (XGBoost)
    FLOAT64 = 1  # (base + f_1 + ... + f_T) / divisor in float64 (LightGBM, scikit-learn boosting)
    SHARES = 2  # both classes' shares added apart in float64, divided, compared (random forests)
    FLOAT64_LATE = 3  # (f_1 + ... + f_T) * scale in float64, the base added last (CatBoost)
    FLOAT32_LATE = 4  # f_1 + ... + f_T in float32, the base added last (ONNX Runtime)


@dataclass(frozen=True, eq=False)
class Trees:
    """T binary decision trees. Tree t owns nodes node_begin[t]:node_begin[t+1], children after their
    parents, root first; and leaves leaf_begin[t]:leaf_begin[t+1], one more than it has nodes."""

    node_begin: npt.NDArray[np.int64]  # (T + 1,)
    leaf_begin: npt.NDArray[np.int64]  # (T + 1,)
    feature: npt.NDArray[np.int32]  # (n_nodes,)
    threshold: npt.NDArray[Any]  # (n_nodes,) of the dtype that rows are converted to
    left: npt.NDArray[np.int32]  # (n_nodes,) counted within the tree: >= 0 a node, < 0 leaf ~left
    right: npt.NDArray[np.int32]  # (n_nodes,)
    flags: npt.NDArray[np.uint8]  # (n_nodes,) NodeFlag
    category_begin: npt.NDArray[np.int64]  # (n_nodes + 1,) into category_words
    category_words: npt.NDArray[np.uint32]  # bit sets of category codes, 32 codes a word
    leaf_value: npt.NDArray[np.float64]  # (n_leaves,) the source's own values
    leaf_other: npt.NDArray[np.float64]  # (n_leaves,) the other class's share; empty but for SHARES
    # (n_leaves,) training rows in each leaf, or what `TreeModels.weighs` says; empty where not known.
    # No part of the model's decisions: files and digests leave it out.
    leaf_weight: npt.NDArray[np.float64] = field(default_factory=_unknown)

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return len(self.node_begin) - 1

    @classmethod
    def decisive(cls) -> tuple[str, ...]:
        """The names of the arrays that decide rows: those that files keep."""
        return tuple(name for name in cls.__dataclass_fields__ if name != "leaf_weight")


@dataclass(frozen=True, eq=False)
class TreeModels:
    """Trees as base models: how a row goes through them, and how the source adds them up."""

    trees: Trees
    n_features: int
    summation: Summation
    less_equal: bool  # a row goes left where x <= threshold (otherwise x < threshold)
    truncates: bool  # category codes are cut to integers before their sign is looked at
    start: float  # what the source's own sum starts from, or has added at the end
    divisor: float  # T for averages, otherwise 1
    weighs: str = "rows"  # what leaf weights count: "rows" or "curvature", the sum of p (1 - p)
    scale: float = 1.0  # of FLOAT64_LATE: what the sum is multiplied by before `start` is added

    kind: ClassVar[str] = "trees"
    n_scores: ClassVar[int] = 1
    ties: ClassVar[Ties] = BY_SCORES
    score_bytes: ClassVar[int] = 4

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again, and the native forest cannot be pickled.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    @property
    def n_models(self) -> int:
        """Number of trees, T."""
        return self.trees.n_trees

    @property
    def description(self) -> str:
        """Such as "500 trees"."""
        return f"{self.n_models} trees"

    @property
    def base(self) -> float:
        """What the running sum starts from."""
        return self.start / self.divisor

    @property
    def average(self) -> bool:
        """Whether the full score is a mean of T votes."""
        return self.divisor != 1

    @cached_property
    def native(self) -> _native.Forest:
        """The same trees in the native core; raises ModelError where the arrays are not sound."""
        t = self.trees
        try:
            return _native.Forest(
                t.node_begin,
                t.leaf_begin,
                t.feature,
                t.threshold,
                t.left,
                t.right,
                t.flags,
                t.category_begin,
                t.category_words,
                t.leaf_value,
                t.leaf_other,
                n_features=self.n_features,
                summation=int(self.summation),
                less_equal=self.less_equal,
                truncates=self.truncates,
                base=self.start,
                divisor=self.divisor,
                scale=self.scale,
            )
        except ValueError as error:
            raise ModelError(f"the model's trees are not valid: {error}") from None

    @cached_property
    def used(self) -> UsedColumns:
        """The same trees by the columns that they look at."""
        return UsedColumns.of(self)

    def scores(
        self, rows: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> tuple[npt.NDArray[np.float32], Floats]:
        """Every tree on every row, (N, T), and the full scores, (N,). Long work is done in parts, so
        that it can be interrupted and reports how far it is."""
        block = rows_at_once(self.n_models)
        evaluate = partial(score_matrix, self)
        return scores_in_parts(evaluate, self.n_models, block, rows, threads, report)

    def score_full(self, rows: Any, *, threads: int | None = None) -> Floats:
        """The full score of every row, (N,), bit for bit the source library's own."""
        few = threads is None and len(rows) <= ON_ONE_THREAD
        full: Floats = score_full(self, rows, 1 if few else thread_count(threads))
        return full

    def runner(self, policy: StoppingRule, survival: Floats | None = None) -> NativeRunner:
        """The trees laid out for one policy, of the kind that the engine runs."""
        sparse = SparseRunner(lambda: self.used, policy, survival)
        return native_runner(self.native, "trees", policy, survival=survival, sparse=sparse)

    def path_counter(self, path: AnyPath) -> PathCounter | None:
        """Counts the policies of a `Path` without a matrix of scores, except on sparse rows."""
        return partial(self._count_path, path) if type(path) is Path else None

    def _count_path(
        self, path: Path, rows: Any, *, with_wrong: bool, threads: int | None = None
    ) -> PathSeen | None:
        if isinstance(rows, _native.SparseRows):
            return None
        rules = path.order, path.lower, path.upper, path.threshold
        return PathSeen(*self.native.count_path(rows, *rules, with_wrong, thread_count(threads)))

    def expected_cost(self) -> float:
        """Nanoseconds that a full score takes by the cost model of native/core/cost_model.hpp."""
        return self.native.expected_cost

    def costs(self, rows: Any, how: str, *, threads: int | None = None) -> Floats:
        """What each tree costs on rows like these, (T,): "size" counts the nodes that a row visits, leaf
        included; "measured" is microseconds per row on this machine, so it differs from run to run."""
        check_choice("costs", how, ("measured", "size"))
        if not len(rows):
            raise RowsError("{rows} has no rows; costs are measured on rows")
        if isinstance(rows, _native.SparseRows):
            return self.used.costs(rows, how, threads)  # type: ignore[no-any-return]
        if how == "size":
            return 1.0 + self.native.mean_path_lengths(rows, thread_count(threads))
        return np.maximum(1e6 * self.native.measure_seconds(rows[:MEASURED_ROWS], 5), 1e-6)

    def cost_unit(self, how: str) -> str:
        """What costs of this kind count."""
        units = {"size": "nodes that a row visits", "measured": "microseconds, as measured"}
        return units.get(how, "")

    def bounds(self) -> Bounds:
        """Every tree adds at least its smallest and at most its largest leaf."""
        first = self.trees.leaf_begin[:-1]
        with np.errstate(over="ignore"):  # a step past float32 is infinite, and so is its bound
            step = self.trees.leaf_value / self.divisor * self.scale
            step = step.astype(np.float32).astype(np.float64)
        least, most = np.minimum.reduceat(step, first), np.maximum.reduceat(step, first)
        return Bounds(least, most, self.rounding_margin())

    def cuts(self) -> dict[int, Floats]:
        """The thresholds of each feature, and the category codes of its sets and one more."""
        trees = self.trees
        categorical = (trees.flags & NodeFlag.CATEGORICAL) != 0
        numerical = ~categorical
        feature = [trees.feature[numerical].astype(np.int64)]
        value = [trees.threshold[numerical].astype(np.float64)]
        for node in np.flatnonzero(categorical):
            words = trees.category_words[
                trees.category_begin[node] : trees.category_begin[node + 1]
            ]
            bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
            codes = np.append(np.flatnonzero(bits), len(bits)).astype(np.float64)
            feature.append(np.full(len(codes), trees.feature[node], dtype=np.int64))
            value.append(codes)
        features, values = np.concatenate(feature), np.concatenate(value)
        return {int(j): np.unique(values[features == j]) for j in np.unique(features)}

    def feature_needs(self) -> Pairs:
        """The feature of each node."""
        nodes = np.diff(self.trees.node_begin)
        return np.repeat(np.arange(self.n_models), nodes), self.trees.feature

    def rounding_margin(self) -> float:
        """More than running sum + exact remainder and the source's full score can differ by, for any
        row. It is infinite where a partial sum of the source may overflow."""
        trees, T, first = self.trees, self.n_models, self.trees.leaf_begin[:-1]
        size = np.maximum.reduceat(np.abs(trees.leaf_value), first)  # (T,)
        with np.errstate(over="ignore"):
            # No partial sum is larger, nor its product with the scale.
            undivided = abs(self.start) + float(size.sum()) * max(self.scale, 1.0)
        roundings = T + (self.scale != 1)
        margin = rounding_margin(undivided, roundings, self.summation, self.divisor)
        # Shares are compared with each other, and add up to about 1.
        if self.summation == Summation.SHARES and margin < math.inf:
            off = np.abs(trees.leaf_value + trees.leaf_other - 1.0)
            with np.errstate(over="ignore"):  # the other class's sum may overflow too
                shares = float(np.maximum.reduceat(off, first).sum()) / self.divisor
            margin += 2.0 * (shares + 4 * (T + 2) * HALF_ULP_64)
        return margin

    def tensors(self) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays that decide rows, by name."""
        return {name: getattr(self.trees, name) for name in Trees.decisive()}

    def facts(self) -> dict[str, Any]:
        """How rows go through the trees, and how the trees add up."""
        return {
            "summation": self.summation.name.lower(),
            "less_equal": self.less_equal,
            "truncates": self.truncates,
            "base": self.start,
            "divisor": self.divisor,
            **scale_facts(self.scale),
        }

    def digest_facts(self) -> tuple[list[Any], list[float]]:
        """How rows go and how trees add up; the constants of the sum."""
        numbers = [self.start, self.divisor, *scale_facts(self.scale).values()]
        return [int(self.summation), self.less_equal, self.truncates], numbers

    def layout(self) -> tuple[dict[str, Any], str]:
        """How large the trees are and how they are evaluated."""
        facts: dict[str, Any] = {
            "nodes": len(self.trees.feature),
            "most_leaves": int(np.diff(self.trees.leaf_begin).max()),
            "walked": self.native.n_walked,
        }
        text = f"{facts['nodes']:,} nodes, up to {facts['most_leaves']:,} leaves a tree"
        if facts["walked"]:
            text += f"; {facts['walked']:,} trees are walked {WHY_WALKED}"
        return facts, text


def scale_facts(scale: float) -> dict[str, float]:
    """What a file keeps of a scale: nothing where it is 1, as in files that had none."""
    return {} if scale == 1 else {"scale": scale}


def rounding_margin(largest: float, T: int, summation: Summation, divisor: float) -> float:
    """More than running sum + exact remainder and the source's full score can differ by, given that no
    partial sum of the source over T trees, before it is divided, is larger than `largest`."""
    narrow = summation in (Summation.FLOAT32, Summation.FLOAT32_LATE)
    half_ulp, limit = (HALF_ULP_32, LARGEST_32) if narrow else (HALF_ULP_64, LARGEST_64)
    if not largest * (1 + (T + 2) * half_ulp) < limit:
        return math.inf
    total = largest / divisor
    source = (T + 2) * half_ulp * total  # the library's own additions
    ours = (T + 2) * HALF_ULP_64 * total  # running sums, and the sums of bounds
    steps = HALF_ULP_32 * total + T * SMALLEST_32  # scores rounded to float32
    return 2.0 * (source + 2 * ours + steps)


def tree_ensemble(
    trees: Trees,
    schema: Schema,
    *,
    summation: Summation,
    less_equal: bool,
    truncates: bool,
    base: float,
    divisor: float,
    threshold: float,
    classes: npt.NDArray[Any],
    source: Source,
    link: Link = LOGISTIC,
    weighs: str = "rows",
    output: Output | None = None,
    scale: float = 1.0,
) -> Ensemble:
    """An ensemble of trees; raises ModelError where its arrays are not sound."""
    models = TreeModels(
        trees, schema.n_features, summation, less_equal, truncates, base, divisor, weighs, scale
    )
    _ = models.native  # checks every array
    return Ensemble(models, schema, threshold, classes, source, link, output=output)


def by_share(ensemble: Ensemble, probability: float) -> Ensemble:
    """An ensemble whose score decides `share >= probability` exactly as the positive class's share does.

    Near 1/2, the score of class shares is moved to the side of the source's own decision, which compares
    the two shares. For a probability that close to 1/2, the score becomes the share itself; otherwise, and
    for ensembles without shares, this is the ensemble as it is."""
    models = ensemble.base_models
    if not isinstance(models, TreeModels) or models.summation != Summation.SHARES:
        return ensemble
    if abs(probability - 0.5) > models.rounding_margin():
        return ensemble
    trees = replace(models.trees, leaf_other=np.empty(0, dtype=np.float64))
    return replace(ensemble, base_models=replace(models, trees=trees, summation=Summation.FLOAT64))
