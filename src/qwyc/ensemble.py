"""Ensemble: a trained tree ensemble as flat arrays, whatever library it came from.

An importer builds one (`qwyc.read_model`), the scorer and the engine run it, the artifact stores it.
It is complete and frozen: nothing here refers back to the source library.
"""

from __future__ import annotations

import enum
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native, tables
from qwyc.border import smallest_positive
from qwyc.errors import InputError, ModelError, OptionError
from qwyc.options import check_choice
from qwyc.policy import Policy
from qwyc.progress import Report
from qwyc.scores import ScoreMatrix
from qwyc.threads import thread_count

Category = str | int | float | bool | None  # None: scikit-learn may count it as a value
MEASURED_ROWS = 4096
BLOCK = 1 << 24  # evaluations between two reports of progress


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
    FLOAT64_LATE = 3  # f_1 + ... + f_T in float64, the base added last (CatBoost)
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

    @property
    def n_trees(self) -> int:
        """Number of trees, T."""
        return len(self.node_begin) - 1


@dataclass(frozen=True)
class Inputs:
    """What rows must look like for the model to take them."""

    n_features: int
    names: tuple[str, ...] | None  # None: the model knows its columns by position only
    dtype: str  # "float32" or "float64": rows are converted to it before any comparison
    categories: Mapping[int, tuple[Category, ...]] = field(default_factory=dict)  # code -> value
    arrays_hold_values: bool = False  # plain arrays hold category values too (otherwise codes)
    unseen: str = "missing"  # or "invalid" (-1), "first" (0), "error": as in the source
    hashed: bool = False  # categories are CatBoost's hashes of values, not values
    missing: float = float("nan")  # a value that means missing, besides NaN
    accepts_missing: bool = True  # otherwise NaN is refused, as the source does
    accepts_infinity: bool = True

    @cached_property
    def takes_plain_rows(self) -> bool:
        """Whether numbers are all there is to a row: none of them stands for something else."""
        return math.isnan(self.missing) and not (self.arrays_hold_values and self.categories)

    @cached_property
    def takes_any_numbers(self) -> bool:
        """Whether, besides, none is refused, so that nobody needs to look at them."""
        return self.takes_plain_rows and self.accepts_missing and self.accepts_infinity


@dataclass(frozen=True)
class Link:
    """From a score to the probability of the positive class, as the source library computes it."""

    kind: str = "logistic"  # "identity": the score is the probability; "none": there is none
    scale: float = 1.0  # logistic: 1 / (1 + exp(-scale * score))
    dtype: str = "float64"  # in which the source computes that

    def probability(self, score: float) -> float:
        """The probability of the positive class at a score."""
        if self.kind == "none":
            raise OptionError("the model gives no probabilities; pass threshold as a score")
        if self.kind == "identity":
            return score
        if self.dtype == "float32":
            one = np.float32(1)  # where exp would overflow the probability is 0 in float32 too
            return float(one / (one + np.float32(_native.exp_f32(min(-score, 88.7)))))
        return 1.0 / (1.0 + math.exp(min(-self.scale * score, 700.0)))


@dataclass(frozen=True)
class Source:
    """Where an ensemble came from."""

    library: str  # such as "xgboost"
    version: str  # of the library that wrote the model, "" where the model does not say
    kind: str  # the model's own name for itself, such as "binary:logistic"


@dataclass(frozen=True, eq=False)
class Ensemble:
    """f(x) = base + sum of T trees; the full decision is classes[1] where f(x) >= threshold."""

    trees: Trees
    inputs: Inputs
    summation: Summation
    less_equal: bool  # a row goes left where x <= threshold (otherwise x < threshold)
    truncates: bool  # category codes are cut to integers before their sign is looked at
    base: float
    divisor: float  # T for averages, otherwise 1
    threshold: float  # the smallest full score that the source calls positive
    classes: npt.NDArray[Any]  # (2,) negative, positive
    source: Source
    link: Link = Link()
    transform: Callable[[Any], Any] | None = None  # a pipeline's own steps, from its rows to ours

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again, and the native forest cannot be pickled.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return self.trees.n_trees

    @property
    def description(self) -> str:
        """What it is, in a few words."""
        source = f"{self.source.library} {self.source.version}".rstrip()
        steps = "" if self.transform is None else f", behind {self.transform}"
        return (
            f"{self.n_models} trees from {source} ({self.source.kind}), "
            f"{self.inputs.n_features} features{steps}"
        )

    @cached_property
    def native(self) -> _native.Forest:
        """The same ensemble in the native core; raises ModelError where the arrays are not sound."""
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
                n_features=self.inputs.n_features,
                summation=int(self.summation),
                less_equal=self.less_equal,
                truncates=self.truncates,
                base=self.base,
                divisor=self.divisor,
            )
        except ValueError as error:
            raise ModelError(f"the model's trees are not sound: {error}") from None

    def checked(self) -> Ensemble:
        """The ensemble; raises ModelError where its arrays are not sound."""
        _ = self.native
        return self

    def matrix(self, X: Any) -> npt.NDArray[Any]:
        """Rows as the trees take them: (N, n_features), C order, float32 or float64; the engine reads
        either as `inputs.dtype`."""
        return tables.to_matrix(X if self.transform is None else self.transform(X), self.inputs)

    def scores(
        self, X: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> ScoreMatrix:
        """Every base model on every row. `report` is called with the number of evaluations done, of
        rows times base models."""
        rows, cores = self.matrix(X), thread_count(threads)
        n, block = len(rows), max(1, BLOCK // self.n_models)
        values, full = self.native.score_matrix(rows[:block], cores)  # (T, block), (block,)
        if (
            n > block
        ):  # in parts: it can be interrupted, and somebody may want to know how far it is
            first, values = values, np.empty((self.n_models, n), dtype=values.dtype)
            values[:, :block], full = first, np.concatenate([full, np.empty(n - block)])
        for i in range(block, n, block):
            report(i * self.n_models)
            part = slice(i, i + block)
            values[:, part], full[part] = self.native.score_matrix(rows[part], cores)
        report(n * self.n_models)
        return ScoreMatrix(
            values=values.T,
            base=self.base / self.divisor,
            threshold=self.threshold,
            full=full,
            average=self.divisor != 1,
        )

    def score_full(self, X: Any, *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """The full score of every row, (N,), bit for bit the source library's own."""
        return self.native.score_full(self.matrix(X), thread_count(threads))

    def quitter(self, policy: Policy) -> _native.Quitter:
        """The ensemble laid out for one policy."""
        return _native.Quitter(
            self.native, policy.order, policy.lower, policy.upper, policy.threshold
        )

    def score_at(self, probability: float) -> float:
        """The smallest score at which the source gives the positive class this probability or more."""
        self.link.probability(0.0)  # raises where the model gives no probabilities
        if self.link.kind == "identity":
            return probability
        try:
            return smallest_positive(
                lambda score: self.link.probability(score) >= probability,
                np.float32 if self.link.dtype == "float32" else np.float64,
            )
        except ValueError:
            raise OptionError(
                f"no score has a probability that turns at {probability!r}; pass threshold as a score"
            ) from None

    def costs(self, X: Any, how: str, *, threads: int | None = None) -> npt.NDArray[np.float64]:
        """What each base model costs on rows like X, (T,): "size" counts nodes visited, leaf included;
        "measured" is microseconds a row on this machine, so it differs from run to run."""
        check_choice("costs", how, ("measured", "size"))
        rows = self.matrix(X)
        if not len(rows):
            raise InputError("X has no rows; costs are measured on rows")
        if how == "size":
            return 1.0 + self.native.mean_path_lengths(rows, thread_count(threads))
        return np.maximum(1e6 * self.native.measure_seconds(rows[:MEASURED_ROWS], 5), 1e-6)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that decides a row: equal digests decide alike."""
        facts = {
            "inputs": asdict(self.inputs),
            "rules": [int(self.summation), self.less_equal, self.truncates],
            "numbers": [float(v).hex() for v in (self.base, self.divisor, self.threshold)],
            "classes": [self.classes.dtype.str, self.classes.tolist()],
        }
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode())
        for name in sorted(Trees.__dataclass_fields__):
            array = np.ascontiguousarray(getattr(self.trees, name))
            digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
            digest.update(array.data)
        return digest.hexdigest()
