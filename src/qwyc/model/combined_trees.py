"""Trees that look at combinations of columns: CatBoost's statistics (CTR) of several categories.

A combination of categories, of numbers above borders or not, and of single categories has a 64-bit key. A
table has a number for each key that training had. That number is one more column, which the trees look at
like at any other; native code computes these columns for all rows before the trees are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import ModelError
from qwyc.model.base_models import Bounds, Floats, Runner
from qwyc.model.class_trees import ClassTreeModels
from qwyc.model.trees import TreeModels
from qwyc.policy.costs import Costs
from qwyc.policy.features import Pairs
from qwyc.policy.path import AnyPath
from qwyc.policy.rule import StoppingRule
from qwyc.rows.schema import Schema
from qwyc.runtime.progress import Report
from qwyc.runtime.threads import thread_count
from qwyc.target.target import Decided
from qwyc.target.ties import Ties

Array = npt.NDArray[Any]

FEW_ROWS = 256  # that one thread takes at once

# Kinds of parts (native/core/combinations.hpp): the hash of a category; whether a number is above a border,
# where NaN is not or is; whether a category has a certain hash.
CATEGORY, ABOVE, ABOVE_OR_MISSING, IS_CATEGORY = range(4)


@dataclass(frozen=True, eq=False)
class Combinations:
    """P combinations of columns, M tables of keys, and D columns of numbers by key."""

    code_begin: npt.NDArray[np.int64]  # (n_features + 1,)
    code_hash: npt.NDArray[np.uint32]  # the hash of each code of each feature
    is_category: npt.NDArray[np.uint8]  # (n_features,)
    part_begin: npt.NDArray[np.int64]  # (P + 1,)
    part_kind: npt.NDArray[np.uint8]
    part_feature: npt.NDArray[np.int32]
    part_value: npt.NDArray[np.float64]  # a border or a hash
    table_of: npt.NDArray[np.int32]  # (M,) the combination of each table
    key_begin: npt.NDArray[np.int64]  # (M + 1,)
    key: npt.NDArray[np.uint64]  # rising within a table
    column_table: npt.NDArray[np.int32]  # (D,)
    value_begin: npt.NDArray[np.int64]  # (D + 1,)
    value: npt.NDArray[np.float32]  # by key, and one more for all that are not known

    def __getstate__(self) -> dict[str, Any]:
        # Native objects cannot be pickled.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    @property
    def n_features(self) -> int:
        """Number of columns of rows as they are given."""
        return len(self.is_category)

    @property
    def n_columns(self) -> int:
        """Number of columns that the trees take."""
        return self.n_features + len(self.column_table)

    @cached_property
    def native(self) -> _native.Combinations:
        """The same in the native core; raises ModelError where the arrays are not sound."""
        try:
            return _native.Combinations(*(getattr(self, f.name) for f in fields(self)))
        except ValueError as error:
            raise ModelError(f"the model's combinations are not valid: {error}") from None

    def expand(self, rows: Any, threads: int | None = None) -> npt.NDArray[np.float32]:
        """Rows (N, n_features) with the columns of the combinations, (N, n_columns)."""
        workers = 1 if len(rows) <= FEW_ROWS else thread_count(threads)
        return self.native.expand(np.asarray(rows, np.float64), workers)

    def parts(self, column: int) -> slice:
        """The parts of the combination that a column of the trees, from n_features, is computed from."""
        combination = self.table_of[self.column_table[column - self.n_features]]
        return slice(int(self.part_begin[combination]), int(self.part_begin[combination + 1]))


@dataclass(frozen=True, eq=False)
class CombinedTreeModels:
    """Trees as base models, some of whose columns are computed from combinations of others."""

    trees: TreeModels | ClassTreeModels  # of `combinations.n_columns` features
    combinations: Combinations

    @property
    def kind(self) -> str:
        """The family's name in files."""
        return f"combined-{self.trees.kind}"

    @property
    def description(self) -> str:
        """Such as "500 trees"."""
        n = len(self.combinations.part_begin) - 1
        return f"{self.trees.description} and {n} combination{'s' * (n != 1)} of columns"

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return self.trees.n_models

    @property
    def n_scores(self) -> int:
        """How many scores they add up to."""
        return self.trees.n_scores

    @property
    def ties(self) -> Ties:
        """Which of K classes wins where their scores are equal."""
        return self.trees.ties

    @property
    def base(self) -> Any:
        """What the running sum starts from."""
        return self.trees.base

    @property
    def average(self) -> bool:
        """Whether the full score is a mean of T votes."""
        return self.trees.average

    @property
    def score_bytes(self) -> int:
        """Bytes that one base model's scores of one row take in a ScoreMatrix."""
        return self.trees.score_bytes

    def scores(
        self, rows: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> tuple[Array, Floats]:
        """Every base model on every row, and the full scores."""
        wide = self.combinations.expand(rows, threads)
        return self.trees.scores(wide, threads=threads, report=report)

    def score_full(self, rows: Any, *, threads: int | None = None) -> Floats:
        """The full scores, bit for bit the source library's own."""
        return self.trees.score_full(self.combinations.expand(rows, threads), threads=threads)

    def runner(self, policy: StoppingRule, survival: Floats | None = None) -> CombinedRunner:
        """The trees laid out for one policy."""
        return CombinedRunner(self.trees.runner(policy, survival), self.combinations)

    def path_counter(self, path: AnyPath) -> None:
        """None: scores have to be made first."""

    def expected_cost(self) -> float:
        """Nanoseconds that a full score takes in the trees."""
        return self.trees.expected_cost()

    def bounds(self) -> Bounds:
        """What every base model can add."""
        return self.trees.bounds()

    def cuts(self) -> dict[int, Floats]:
        """The thresholds of each feature, with the borders in combinations."""
        found, made = {}, self.combinations
        for column, values in self.trees.cuts().items():
            if column < made.n_features:
                found[column] = values
        for column in sorted(self.trees.cuts()):
            if column >= made.n_features:
                at = made.parts(column)
                for j, value in zip(made.part_feature[at], made.part_value[at], strict=True):
                    value = 0.0 if made.is_category[j] else value
                    known = found.get(int(j), np.empty(0))
                    found[int(j)] = np.unique(np.append(known, value))
        return found

    def feature_needs(self) -> Pairs:
        """The feature of each node, and those of the combination that a node looks at."""
        models, columns = self.trees.feature_needs()
        made = self.combinations
        plain = columns < made.n_features
        steps, needed = [models[plain]], [columns[plain]]
        pairs = np.unique(np.stack([models[~plain], columns[~plain]]), axis=1)
        for step, column in pairs.T.tolist():
            features = made.part_feature[made.parts(column)]
            steps.append(np.full(len(features), step))
            needed.append(features)
        return np.concatenate(steps), np.concatenate(needed)

    def costs(self, rows: Any, how: str, *, threads: int | None = None) -> Floats | Costs:
        """What each base model costs, without the columns that are computed first."""
        return self.trees.costs(
            self.combinations.expand(rows, threads) if len(rows) else rows, how, threads=threads
        )

    def cost_unit(self, how: str) -> str:
        """What costs of this kind count."""
        return self.trees.cost_unit(how)

    def tensors(self) -> Mapping[str, Array]:
        """The arrays that decide rows, by name."""
        made = self.combinations
        return {**self.trees.tensors(), **{f.name: getattr(made, f.name) for f in fields(made)}}

    def facts(self) -> dict[str, Any]:
        """How rows go through the trees, and how the trees add up."""
        return self.trees.facts()

    def digest_facts(self) -> tuple[list[Any], list[float]]:
        """How rows go and how trees add up; the constants of the sum."""
        return self.trees.digest_facts()

    def layout(self) -> tuple[dict[str, Any], str]:
        """How large the trees are, how they are evaluated, and how many columns are computed."""
        facts, text = self.trees.layout()
        n, keys = len(self.combinations.column_table), len(self.combinations.key)
        text += f"; {n:,} columns of combinations, with {keys:,} keys"
        return facts | {"combined_columns": n, "combined_keys": keys}, text


@dataclass(frozen=True, eq=False)
class CombinedRunner:
    """Trees laid out for one policy, before which the columns of combinations are computed."""

    trees: Runner
    combinations: Combinations

    def decide(
        self, rows: Any, *, threads: int | None = None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats]:
        """The index of each row's class, the base models that it took and its scores."""
        return self.trees.decide(self.combinations.expand(rows, threads), threads=threads)

    def one_row(
        self, labels: Sequence[Any], fallback: Callable[[Any], Any], schema: Schema | None
    ) -> Callable[[Any], Any] | None:
        """Nothing faster: rows hold categories, which are no plain numbers."""
        return None

    def expected_cost(self) -> float | None:
        """What a decision costs in the trees."""
        return self.trees.expected_cost()
