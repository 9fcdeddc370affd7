"""Ensemble: base models of one family, the rows that they take and what their score decides.

An importer builds one (`qwyc.read_model`), policies are fitted to its scores, files keep it. It is
complete and frozen: nothing here refers back to the source library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc import _native
from qwyc.errors import OptionError
from qwyc.model.base_models import BaseModels, Floats, Runner
from qwyc.model.link import LOGISTIC, Link
from qwyc.model.output import Output
from qwyc.policy.costs import Costs
from qwyc.policy.decisions import Decisions
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.policy.rule import StoppingRule
from qwyc.policy.scores import ScoreMatrix
from qwyc.rows.column_names import match_columns
from qwyc.rows.identity import Hashes, row_hashes, sparse_column_hashes, sparse_hashes
from qwyc.rows.matrix import to_matrix
from qwyc.rows.odd_rows import take_rows
from qwyc.rows.odd_values import ERROR, MISSING, MarkedRows, refuse_code, row_reasons
from qwyc.rows.schema import Schema
from qwyc.rows.selection import take
from qwyc.rows.tables import frame_library, has_columns, reader_of
from qwyc.runtime.progress import Report
from qwyc.runtime.wording import class_name
from qwyc.target.many_classes import ManyClasses
from qwyc.target.target import Decided
from qwyc.target.two_classes import TwoClasses


@dataclass(frozen=True)
class Source:
    """Where an ensemble came from."""

    library: str  # such as "xgboost"
    version: str  # of the library that wrote the model, "" where the model does not say
    kind: str  # the model's own name for itself, such as "binary:logistic"


@dataclass(frozen=True, eq=False)
class Ensemble:
    """f(x) = base + sum of T base models. For two classes, the full decision is classes[1] if f(x) >=
    threshold. For K classes with a score each, it is the class with the largest score. A model of values,
    such as a regression, has no classes."""

    base_models: BaseModels
    schema: Schema | None  # what rows must look like; None: base models take them as they are
    threshold: float  # the smallest full score that the source calls positive; 0 for K scores
    classes: npt.NDArray[Any]  # (2,) negative, positive; or (K,); (0,) for a model of values
    source: Source | None = None
    link: Link = LOGISTIC
    transform: Callable[[Any], Any] | None = None  # a pipeline's own steps, from its rows to ours
    doubt: str = ""  # why the threshold may not be the one that was meant; files do not keep it
    # From full scores to the source's probabilities, or to its values where there are no classes. None:
    # the link says it.
    output: Output | None = None

    def __post_init__(self) -> None:
        n_scores = self.base_models.n_scores
        if np.shape(self.classes) == (0,):
            object.__setattr__(self, "classes", np.asarray(self.classes))
            return
        if n_scores == 1 and np.shape(self.classes) != (2,):
            raise OptionError(
                f"classes must be two labels, negative and positive; got {self.classes!r}"
            )
        if n_scores > 1 and np.shape(self.classes) != (n_scores,):
            raise OptionError(
                f"classes must be {n_scores} labels, one per score; got {self.classes!r}"
            )
        object.__setattr__(self, "classes", np.asarray(self.classes))

    def __getstate__(self) -> dict[str, Any]:
        # What is cached can be made again.
        return {k: v for k, v in self.__dict__.items() if k in self.__dataclass_fields__}

    @property
    def n_models(self) -> int:
        """Number of base models, T."""
        return self.base_models.n_models

    @property
    def has_classes(self) -> bool:
        """Whether it decides among classes; otherwise it gives values."""
        return len(self.classes) > 0

    @property
    def is_isolation_forest(self) -> bool:
        """Whether full scores are path lengths, which make anomaly scores."""
        return self.output is not None and self.output.kind == "path length"

    @property
    def by_class(self) -> bool:
        """Whether each of K classes has a score; otherwise one score decides between two."""
        return self.base_models.n_scores > 1

    @cached_property
    def used_features(self) -> list[int] | None:
        """The features that base models look at, ascending; None where that is not known."""
        cuts = self.base_models.cuts()
        return None if cuts is None else sorted(cuts)

    @cached_property
    def target(self) -> TwoClasses | ManyClasses:
        """What full scores decide, as the source decides it."""
        if not self.has_classes:
            raise OptionError(
                f"a model of {self.description} gives values, so there are no classes to choose from"
            )
        if self.by_class:
            return ManyClasses(self.base_models.n_scores, self.base_models.ties, self.class_names)
        return TwoClasses(self.threshold)

    @property
    def class_names(self) -> tuple[str, ...]:
        """What sentences call the classes; empty where there are none."""
        return tuple(map(class_name, self.classes.tolist())) if self.has_classes else ()

    @property
    def takes_matrix(self) -> bool:
        """Whether base models take rows as a matrix; otherwise they take them as they were given."""
        return self.schema is not None

    @property
    def description(self) -> str:
        """What it is, in a few words."""
        words = self.base_models.description
        if self.by_class:
            outputs = "classes" if self.has_classes else "outputs"
            words += f" for {self.base_models.n_scores} {outputs}"
        if self.source is not None:
            words += f" from {self.source.library} {self.source.version}".rstrip()
            words += f" ({self.source.kind})"
        if self.schema is not None:
            words += f", {self.schema.n_features} features"
        return words if self.transform is None else f"{words}, behind {self.transform}"

    @property
    def inputs(self) -> Schema | None:
        """The schema, by the name that it had in version 0.1.0."""
        return self.schema

    @property
    def has_code(self) -> bool:
        """Whether deciding a row runs Python code, which files do not hold."""
        return self.transform is not None or self.base_models.tensors() is None

    def rows(self, X: Any) -> Any:
        """Rows as the base models take them: a matrix (N, n_features), C order, float32 or float64, where
        there is a schema; or sparse rows."""
        if isinstance(X, Sample):
            return X.rows
        return self._converted(X if self.transform is None else self.transform(X))

    def rows_to_decide(self, X: Any) -> Any:
        """Rows as runners take them, which read Fortran order and parts of wider arrays too
        (`to_matrix`): fewer arrays are copied."""
        if isinstance(X, Sample):
            return X.rows
        rows = X if self.transform is None else self.transform(X)
        return rows if self.schema is None else to_matrix(rows, self.schema, c_order=False)

    def matrix(self, X: Any) -> npt.NDArray[Any]:
        """Rows as a matrix, (N, n_features), of a model that has a schema."""
        if self.schema is None:
            raise OptionError("Python callables take rows as they are, not as a matrix")
        matrix: npt.NDArray[Any] = self.rows(X)
        return matrix

    def _converted(self, X: Any) -> Any:
        return X if self.schema is None else to_matrix(X, self.schema)

    def sample(self, X: Any, unseen: str = ERROR) -> Sample:
        """Rows that are used more than once, to be converted only once. It goes wherever X does. `unseen`
        is what happens to values that the model refuses: with FLAG, their rows are not in the sample."""
        if unseen == ERROR:
            return Sample(self, X)
        taken = take_rows(X, self.schema_of_values(unseen), unseen, c_order=True)
        kept = None if taken.kept is None or taken.kept.all() else taken.kept
        given = X.frame if isinstance(X, MarkedRows) else X
        if kept is not None:
            given = take(given, np.flatnonzero(kept))
        return Sample(self, given, lambda: taken.rows, kept)

    def columns(self, present: Sequence[Any]) -> list[Any]:
        """Of the columns that a table has, those that the model takes, in its order; all of them where
        code decides which it looks at."""
        if self.schema is None or self.transform is not None:
            return list(present)
        return [present[i] for i in match_columns([str(name) for name in present], self.schema)]

    def scores(
        self, X: Any, *, threads: int | None = None, report: Report = lambda done: None
    ) -> ScoreMatrix:
        """Every base model on every row. `report` is called with the number of evaluations done, of
        rows times base models."""
        values, full = self.base_models.scores(self.rows(X), threads=threads, report=report)
        models = self.base_models
        return ScoreMatrix(values, models.base, self.threshold, full, models.average, models.ties)

    def score_full(self, X: Any, *, threads: int | None = None) -> Floats:
        """The full score of every row, (N,), or scores, (N, K), bit for bit the source library's own."""
        return self.base_models.score_full(self.rows_to_decide(X), threads=threads)

    def decide(self, X: Any, runner: Runner, *, threads: int | None = None) -> Decisions:
        """Decide rows with base models that are laid out for a policy."""
        return self.decisions(*self.run(X, runner, threads=threads))

    def run(
        self, X: Any, runner: Runner, *, threads: int | None = None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats]:
        """What a runner finds: the index of each row's class, its steps and its score."""
        if isinstance(X, Sample) or self.schema is None:
            return runner.decide(self.rows_to_decide(X), threads=threads)
        rows = X if self.transform is None else self.transform(X)
        found = self._decide_where_they_lie(rows, self.schema, runner, threads)
        if found is None:
            matrix = to_matrix(rows, self.schema, c_order=False)
            reader_of(self.schema).learn(rows)
            found = runner.decide(matrix, threads=threads)
        return found

    def _decide_where_they_lie(
        self, X: Any, schema: Schema, runner: Runner, threads: int | None
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats] | None:
        """What a runner finds about a frame that is read without a conversion; None for other rows, and if
        the model refuses a value."""
        decide_table = getattr(runner, "decide_table", None)
        if decide_table is None and schema.categories:
            return None  # a frame with categories is never a matrix
        if not has_columns(X, schema.n_features):
            return None
        read = reader_of(schema).readable(X, self._unused_features)
        if isinstance(read, np.ndarray):
            return runner.decide(read, threads=threads) if schema.takes_any_numbers else None
        if read is None or decide_table is None:
            return None
        found: tuple[Decided, npt.NDArray[np.int32], Floats] | None = decide_table(
            read, threads=threads
        )
        return found

    def decide_unseen(
        self, X: Any, runner: Runner, unseen: str, *, threads: int | None = None
    ) -> Decisions:
        """`decide` for rows that may hold values that the model refuses. `unseen` is MISSING or FLAG of
        `qwyc.rows.odd_values`. Odd values are looked for only where the model refuses one."""
        schema = self.schema_of_values(unseen)
        found = self._decide_where_they_lie(X, schema, runner, threads)
        if found is not None:
            decided = self.decisions(*found)
            return decided if unseen == MISSING else decided.among(*row_reasons([], len(decided)))
        taken = take_rows(X, schema, unseen, tried=bool(frame_library(X)))
        decided = self.decisions(*runner.decide(taken.rows, threads=threads))
        return decided if taken.reason is None else decided.among(taken.reason, taken.kept)

    def schema_of_values(self, unseen: str) -> Schema:
        """The schema, which says what values are refused, unless code of others reads the rows."""
        if self.schema is None:
            raise refuse_code("a base model", unseen)
        if self.transform is not None:
            raise refuse_code(f"the pipeline's own step {self.transform}", unseen)
        return self.schema

    def decide_in_order(
        self, table: Any, runner: Runner
    ) -> tuple[Decided, npt.NDArray[np.int32], Floats] | None:
        """What `decide` says on one thread about an Arrow table that has one column for each feature, in
        their order: the index of each row's class, its steps and its score. None if the table needs more
        than native code does, or has a value that is refused: `decide` then says which."""
        decide_table = getattr(runner, "decide_table", None)
        if self.schema is None or self.transform is not None or decide_table is None:
            return None
        reader = reader_of(self.schema)
        read = reader.readable_in_order(table, self._unused_features)
        found: tuple[Decided, npt.NDArray[np.int32], Floats] | None = (
            None if read is None else decide_table(read, threads=1)
        )
        return found

    def frame(self, X: Any) -> Any:
        """A data frame as native code reads it, a table or a matrix; None for anything else."""
        if self.schema is None or self.transform is not None:
            return None
        if not has_columns(X, self.schema.n_features):
            return None
        return reader_of(self.schema).readable(X, self._unused_features)

    @cached_property
    def _unused_features(self) -> list[int]:
        """Features that no base model is known to look at."""
        needs = self.base_models.feature_needs()
        if needs is None or self.schema is None:
            return []
        unused = np.ones(self.schema.n_features, bool)
        unused[needs[1]] = False
        return np.flatnonzero(unused).tolist()

    def decisions(self, decided: Decided, steps: npt.NDArray[np.int32], score: Floats) -> Decisions:
        """What a runner decided, with the classes."""
        return Decisions(self.classes.take(decided), steps, score, steps == self.n_models)

    def runner(self, policy: StoppingRule, survival: Floats | None = None) -> Runner:
        """The base models laid out for one policy, and for the share of rows that reach each step."""
        return self.base_models.runner(policy, survival)

    @cached_property
    def full_runner(self) -> Runner:
        """The base models laid out to be evaluated in full on every row."""
        T, K = self.n_models, self.base_models.n_scores
        never, costs, order = np.full(T, np.inf), np.ones(T), np.arange(T, dtype=np.int32)
        if self.by_class:
            lead = np.full((T, K), np.inf)
            return self.runner(LeadPolicy(order, lead, costs, self.base_models.ties))
        return self.runner(Policy(order, -never, never, self.threshold, costs))

    def costs(self, X: Any, how: str, *, threads: int | None = None) -> Floats | Costs:
        """What each base model costs on rows like X: (T,), or a `Costs` where they share parts.
        "measured" is microseconds per row on this machine, so it differs from run to run;
        "size" counts the nodes of trees that rows visit, or the multiply-adds and comparisons of
        lattices."""
        return self.base_models.costs(self.rows(X), how, threads=threads)

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 over everything that decides a row: equal digests decide alike. None for code."""
        tensors = self.base_models.tensors()
        if tensors is None or self.schema is None:
            return None
        rules, numbers = self.base_models.digest_facts()
        facts = {
            "inputs": self.schema.digest_facts(),
            "rules": rules,
            "numbers": [float(v).hex() for v in (*numbers, self.threshold)],
            "classes": [self.classes.dtype.str, self.classes.tolist()],
        }
        if not self.has_classes and self.output is not None:
            facts["output"] = self.output.facts()
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode())
        for name in sorted(tensors):
            array = np.ascontiguousarray(tensors[name])
            digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
            digest.update(array.data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as they were given, and as the base models take them."""

    ensemble: Ensemble
    given: Any
    convert: Callable[[], Any] | None = None  # where another sample has the rows already
    kept: npt.NDArray[np.bool_] | None = None  # (N,) which of N rows these are; None: all of them

    @property
    def left_out(self) -> int:
        """How many rows are not in the sample, since the model refuses a value of theirs."""
        return 0 if self.kept is None else int(np.count_nonzero(~self.kept))

    @property
    def is_empty(self) -> bool:
        """Whether all rows were left out."""
        return self.kept is not None and not self.kept.any()

    @cached_property
    def transformed(self) -> Any:
        """The rows after a pipeline's own steps, as its last step takes them."""
        transform = self.ensemble.transform
        return self.given if transform is None else transform(self.given)

    @cached_property
    def rows(self) -> Any:
        """The rows as the base models take them."""
        if self.convert is not None:
            return self.convert()
        return self.ensemble._converted(self.transformed)

    @cached_property
    def hashes(self) -> Hashes | None:
        """A hash of each row as the base models take it, (N,); None where rows are no table of numbers."""
        schema, rows = self.ensemble.schema, self.rows
        if schema is not None and isinstance(rows, _native.SparseRows):
            return sparse_hashes(rows, schema.dtype)
        if schema is not None:
            return row_hashes(rows, schema.dtype)
        plain = isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "biuf"
        return row_hashes(rows) if plain else None

    @cached_property
    def used_hashes(self) -> Hashes | None:
        """The same by the columns that base models look at, as far as that is known: rows that differ in
        the others, such as a line number, are alike."""
        used, schema, rows = self.ensemble.used_features, self.ensemble.schema, self.rows
        if self.hashes is None or used is None or schema is None:
            return self.hashes
        if isinstance(rows, _native.SparseRows):
            return sparse_column_hashes(rows, used, schema.dtype)
        if len(used) == schema.n_features:
            return self.hashes
        return row_hashes(rows[:, used], schema.dtype)

    def without_transform(self) -> Sample:
        """The same rows for the same ensemble without a pipeline's own steps."""
        inner = replace(self.ensemble, transform=None)
        return Sample(inner, self.transformed, lambda: self.rows)
