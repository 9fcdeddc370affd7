"""Data sets larger than one machine: Spark, Ray Data and Dask, each behind a thin adapter.

    decide(classifier, data)        the data set, with label, steps, score and complete;
                                    of a model that is evaluated in full, with label or value
    column(classifier)              the same as a Spark column expression
    register(classifier, session, name)   the same as a function of SQL, in Spark and DuckDB
    Watched(path)                   a classifier's file whose newest version decides
    digest(classifier)              the name that `decide(..., digest=True)` adds to every row
    sample(data, rows)              some rows of it, drawn at random
    qwyc.verify(classifier, data)   and qwyc.recertify: only counts come back
    qwyc.optimize(model, data)      draws its sample from it

Where these take a classifier, they take a `qwyc.Predictor` too, which is evaluated in full, and the path of
a file of either; `verify` and `recertify` take classifiers only. The classifier travels once to every
worker, rows never leave the engine, and nothing is computed before the engine itself starts. Workers
need qwyc installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from qwyc.classifier import Classifier
from qwyc.distributed.adding import Adding, output_names
from qwyc.distributed.evaluating import first_output
from qwyc.distributed.failures import unwrapped
from qwyc.distributed.given import Given, added_by, packed, with_proba, work_of
from qwyc.distributed.shipping import Model, Parcel, digest, ensemble_of, pack
from qwyc.distributed.types import check_types
from qwyc.distributed.watching import Watched
from qwyc.distributed.work import Counting
from qwyc.errors import InputError, MissingDependencyError, OptionError
from qwyc.model.ensemble import Ensemble
from qwyc.policy.counts import Sums
from qwyc.predictor import Predictor
from qwyc.rows.odd_values import ERROR, check_unseen
from qwyc.runtime.arguments import check_count

__all__ = [
    "Watched",
    "column",
    "decide",
    "digest",
    "is_distributed",
    "register",
    "sample",
    "sums_of_path",
    "sums_of_policy",
]

AUTO = "auto"
SAMPLE = 100_000  # rows that `optimize` draws where not told how many


class Engine(Protocol):
    """An adapter to an engine: a module with these functions."""

    CASE_MATTERS: bool  # in names of columns

    def columns(self, data: Any) -> list[str]:
        """Names of the columns."""

    def empty(self, data: Any, columns: list[str]) -> Any:
        """A table or frame without rows, of these columns and their types; None if types are not known."""

    def decide(self, data: Any, parcel: Parcel, work: Adding, classes: npt.NDArray[Any]) -> Any:
        """The same kind of data set, with decisions."""

    def total(self, data: Any, parcel: Parcel, work: Counting, size: int) -> npt.NDArray[Any]:
        """Sums over all rows, (size,)."""

    def count(self, data: Any) -> int:
        """Number of rows."""

    def draw(self, data: Any, columns: list[str], share: float, seed: int) -> Any:
        """About that share of the rows, drawn at random, as a pandas frame."""


def is_distributed(X: Any) -> bool:
    """Whether X is a data set of Spark, Ray, Dask or DuckDB."""
    return type(X).__module__.split(".")[0] in ("pyspark", "ray", "dask", "duckdb", "_duckdb")


def decide(
    classifier: Given,
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    prefix: str = "",
    digest: bool = False,
    unseen: str = ERROR,
    proba: bool = False,
) -> Any:
    """Decide every row of a Spark DataFrame, Ray Dataset or Dask DataFrame, lazily, on its workers.

    The result is a data set of the same kind with the columns

        label       the class, of the type of the model's classes
        steps       int32, base models evaluated
        score       float64, the full score where complete, otherwise the running sum at the quit
        complete    bool, every base model was evaluated
        reason      text, why the row was not decided, or null; with `unseen="flag"` only
        classifier  text, which classifier decided; with `digest=True` only

    A model that has a score for each class gets a column for each instead of `score`, named by its label,
    such as `score_setosa`.

    A `qwyc.Predictor` is evaluated in full, and what it adds has the types of its source's own outputs:

        label       the class, of a model of classes
        value       the value of a regression or a ranking; value_0, value_1 and so on where it has several.
                    Of an isolation forest, the anomaly score beside its label
        proba_...   with `proba=True`, the probability of every class, named by its label
        classifier  text, which model it was; with `digest=True` only

    Parameters
    ----------
    classifier : a `qwyc.Classifier`, a `qwyc.Predictor`, or the path of a file of one; or a `Watched` file,
        whose newest version decides.
    columns : the columns that the model takes, in its order, where it does not know them by name. Names
        are compared exactly, in upper and lower case too, whatever the engine does.
    keep : columns to keep beside the decisions; None keeps all. With fewer columns, less data is moved.
    prefix : goes before the names of the columns added.
    digest : add the column `classifier`, the `digest` of the classifier that decided the row.
    unseen : as in `Classifier.decide`: what becomes of a row with a value that the model refuses. "error"
        fails the job, "missing" takes the value as missing, "flag" leaves the row undecided, with a reason.
        Of classifiers only.
    proba : add the probabilities of the classes; of a `qwyc.Predictor` only, since they need every base
        model.
    """
    current, parcel = packed(classifier, digest, unseen)
    ensemble = ensemble_of(current)
    engine, present, features = _prepare(ensemble, data, columns, unseen)
    kept = _names("keep", present if keep is None else keep, present)
    if not isinstance(prefix, str):
        raise OptionError(f"prefix must be text, such as 'qwyc_'; got {prefix!r}")
    added = added_by(current, digest, unseen, proba)
    names = output_names(prefix, kept, engine.CASE_MATTERS, added)
    work = work_of(current, features, tuple(kept), names, added, unseen, proba)
    return engine.decide(data, parcel, work, ensemble.classes)


def column(
    classifier: Given,
    *,
    columns: Sequence[str] | None = None,
    output: str | None = AUTO,
    digest: bool = False,
    unseen: str = ERROR,
    proba: bool = False,
) -> Any:
    """A Spark column expression: one of label, steps, score and complete, or with None a struct of all.
    "auto" is the label; of a model of values it is the value, or a struct where there are several.

    `df.withColumn("fraud", column(fast))`; only the model's own columns go to Python. Several outputs in
    one query are one evaluation. `columns` are those that the model takes, where it does not know them by
    name; Spark looks them up, by default without regard to case, unlike `decide`. Outputs are the columns
    of `decide`: with `digest`, `classifier` is one more, with `unseen="flag"` `reason`, and scores of
    classes are named by their labels. An `output` such as "proba_1" needs no `proba=True`."""
    current, parcel = packed(classifier, digest, unseen)
    if output == AUTO:
        output = first_output(current) if isinstance(current, Predictor) else "label"
    work = _function(current, columns, digest, unseen, with_proba(output, proba))
    return _spark().column(parcel, work, output, ensemble_of(current).classes)


def register(
    classifier: Given,
    session: Any,
    name: str,
    *,
    columns: Sequence[str] | None = None,
    output: str | None = None,
    digest: bool = False,
    unseen: str = ERROR,
    proba: bool = False,
) -> None:
    """Register a classifier as a function of SQL, in a SparkSession or a DuckDB connection.

    `register(fast, spark, "fraud")`, then `spark.sql("select id, fraud(a, b, c).label from t")`. The
    arguments are the model's columns in its order, or one row that has them by name: `fraud(struct(*))` in
    Spark, `fraud(t)` in DuckDB. The function gives a struct of label, steps, score and complete, or the
    one of them that `output` names; of a `qwyc.Predictor` a struct of what `decide` adds. `columns`,
    `digest`, `unseen` and `proba` are those of `column`."""
    if not isinstance(name, str) or not name.isidentifier():
        raise OptionError(f"name must be a name for a function of SQL; got {name!r}")
    library = type(session).__module__.partition(".")[0].lstrip("_")
    if library == "pyspark" and hasattr(session, "udf"):
        adapter = _spark()
    elif library == "duckdb":
        adapter = importlib.import_module("qwyc.distributed.duckdb")
    else:
        raise OptionError(
            "a SparkSession or a DuckDB connection was expected; got "
            f"{type(session).__module__}.{type(session).__name__}"
        )
    current, parcel = packed(classifier, digest, unseen)
    work = _function(current, columns, digest, unseen, with_proba(output, proba))
    adapter.register(session, parcel, name, work, output, ensemble_of(current).classes)


def _function(
    model: Model, columns: Sequence[str] | None, with_digest: bool, unseen: str, proba: bool
) -> Adding:
    """What a function of columns does."""
    names, ensemble = columns, ensemble_of(model)
    if names is None and ensemble.schema is not None and ensemble.transform is None:
        names = ensemble.schema.names
    if names is None:
        raise OptionError("the model does not know its columns by name; pass columns")
    features = tuple(ensemble.columns(_names("columns", names)))
    added = added_by(model, with_digest, unseen, proba)
    return work_of(model, features, (), added, added, unseen, proba)


def _spark() -> Any:
    try:
        from qwyc.distributed import spark
    except ImportError as error:
        raise MissingDependencyError(
            f"Spark needs {error.name}: pip install {error.name}"
        ) from None
    return spark


def sample(data: Any, rows: int, *, columns: Sequence[str] | None = None, seed: int = 0) -> Any:
    """That many rows drawn at random without repetition, as a pandas frame; all where there are no
    more. The same seed gives the same rows as long as partitions, and the rows in them, keep their
    order."""
    engine = engine_of(data)
    rows, seed = check_count("rows", rows), check_count("seed", seed, least=0)
    present = engine.columns(data)
    chosen = _names("columns", present if columns is None else columns, present)
    with unwrapped():
        return _drawn(engine, data, chosen, rows, seed)


def _drawn(engine: Engine, data: Any, chosen: list[str], rows: int, seed: int) -> Any:
    n = engine.count(data)
    if not n:
        raise InputError("the data set has no rows")
    # Engines draw each row by itself, so draw a few more rows than needed and drop the surplus.
    share = min(1.0, (rows + 6 * np.sqrt(rows) + 20) / n)
    drawn = engine.draw(data, chosen, share, seed)
    while len(drawn) < rows and share < 1:  # too few were drawn, which is rare
        share = min(1.0, 2 * share)
        drawn = engine.draw(data, chosen, share, seed)
    if len(drawn) > rows:
        picked = np.random.default_rng(seed).choice(len(drawn), size=rows, replace=False)
        drawn = drawn.iloc[np.sort(picked)]
    return drawn.reset_index(drop=True)


def sample_for(ensemble: Ensemble, data: Any, rows: int | None, seed: int) -> Any:
    """The sample that `optimize` works on: the model's own columns only."""
    rows = None if rows is None else check_count("max_rows", rows)
    _, _, features = _prepare(ensemble, data, None)
    return sample(data, SAMPLE if rows is None else rows, columns=features, seed=seed)


def sums_of_policy(classifier: Classifier, data: Any, *, unseen: str = ERROR) -> Sums:
    """What a classifier's policy does on a whole data set; only sums come back."""
    return _sums(classifier, data, whole_path=False, unseen=unseen)


def sums_of_path(classifier: Classifier, data: Any, *, unseen: str = ERROR) -> Sums:
    """What every policy of a classifier's path does on a whole data set; only sums come back."""
    return _sums(classifier, data, whole_path=True, unseen=unseen)


def _sums(classifier: Classifier, data: Any, *, whole_path: bool, unseen: str) -> Sums:
    if check_unseen(unseen) != ERROR:
        classifier.ensemble.schema_of_values(unseen)  # refuses code
    engine, _, features = _prepare(classifier.ensemble, data, None, unseen)
    work = Counting(features, whole_path, unseen)
    parcel = pack(classifier, whole_path=whole_path)
    with unwrapped():
        vector = engine.total(data, parcel, work, work.size(classifier))
    return Sums.from_vector(vector, classifier.policy.target, classifier.policy.n_models)


def engine_of(data: Any) -> Engine:
    """The adapter for a data set."""
    library, kind = type(data).__module__.split(".")[0], type(data).__name__
    try:
        if library == "pyspark" and kind == "DataFrame" and hasattr(data, "mapInArrow"):
            from qwyc.distributed import spark

            return spark
        if library == "ray" and hasattr(data, "map_batches") and hasattr(data, "schema"):
            from qwyc.distributed import ray

            return ray
        if library == "dask" and kind == "DataFrame":
            from qwyc.distributed import dask

            return dask
        if library in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
            from qwyc.distributed import duckdb

            return duckdb
    except ImportError as error:
        raise MissingDependencyError(
            f"{library} data sets need {error.name}: pip install {error.name}"
        ) from None
    raise InputError(
        "a Spark DataFrame, a Ray Dataset, a Dask DataFrame or a DuckDB relation was expected; got "
        f"{type(data).__module__}.{kind}" + _HINTS.get((library, kind), "")
    )


_QUERY = ": pass connection.sql(query)"
_HINTS = {
    ("pyspark", "RDD"): ": pass rdd.toDF()",
    ("dask", "Array"): ": pass dask.dataframe.from_dask_array(X)",
    ("dask", "Bag"): ": pass bag.to_dataframe()",
    ("duckdb", "DuckDBPyConnection"): _QUERY,
    ("_duckdb", "DuckDBPyConnection"): _QUERY,
}


def _prepare(
    ensemble: Ensemble, data: Any, columns: Sequence[str] | None, unseen: str = ERROR
) -> tuple[Engine, list[str], tuple[str, ...]]:
    """The adapter, the columns that are there and those that the classifier takes; a missing one, or one of
    a wrong type, is found here, before any work is started."""
    engine = engine_of(data)
    present = engine.columns(data)
    chosen = present if columns is None else _names("columns", columns, present)
    features = tuple(ensemble.columns(chosen))
    # A Ray data set without rows has no columns. Any value may come where odd ones are not errors.
    if present and unseen == ERROR:
        check_types(ensemble, engine.empty(data, list(features)))
    return engine, present, features


def _names(option: str, names: Any, present: list[str] | None = None) -> list[str]:
    """Columns that an option names, each once, and each there if it is known what is."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise OptionError(f"{option} must be a list of column names; got {names!r}")
    chosen: list[str] = list(names)
    for name in chosen:
        if not isinstance(name, (str, int)):  # Dask has numbers too
            raise OptionError(f"{option} must be a list of column names; it has {name!r}")
        if present is not None and name not in present:
            raise InputError(f"{option}: the data has no column {name!r} (it has: {present})")
        if present is not None and present.count(name) > 1:
            raise InputError(f"the data has more than one column {name!r}; rename or drop them")
    if len(set(chosen)) < len(chosen):
        raise OptionError(f"{option} names a column twice: {chosen}")
    return chosen
