"""DuckDB, 1.2 and later: relations, and classifiers as functions of SQL.

DuckDB runs in this process, so nothing is shipped. It calls a function with chunks of 2,048 rows as Arrow
arrays, from as many threads as it runs a query on. Functions take arguments of any type: DuckDB casts
nothing, and each column reaches the classifier as it is stored."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow

from qwyc.classifier import Classifier
from qwyc.distributed.adding import CLASSIFIER, Adding, check_output
from qwyc.distributed.shipping import Parcel, digest, once, unpack
from qwyc.distributed.watching import Delivery
from qwyc.distributed.work import Counting, Deciding
from qwyc.errors import InputError, OptionError
from qwyc.policy.columns import REASON, arrow_type
from qwyc.rows.column_names import quoted_names, similar_names
from qwyc.runtime.threads import thread_count

CASE_MATTERS = False  # in names of columns
BATCH = (
    16_384  # rows that are counted at once; recertifying holds every base model's scores of them
)

# DuckDB functions belong to a database, but the connection that makes one holds the only reference to its
# Python code. Another connection that calls it later would crash the process, so it is kept here.
_kept: list[Callable[..., Any]] = []
_lock = threading.Lock()


# ---- relations ------------------------------------------------------------------------------


def columns(data: Any) -> list[str]:
    return list(data.columns)


def empty(data: Any, columns: list[str]) -> Any:
    """A table without rows, of these columns and their types."""
    return _reader(data.limit(0), columns).read_all()


def decide(data: Any, parcel: Parcel, work: Adding, classes: npt.NDArray[Any]) -> Any:
    """The relation with decisions: a projection that calls a function, which is made for it."""
    facts = repr((work.features, work.added, work.unseen, parcel.watch))
    name = f"{parcel.key}-{hashlib.sha256(facts.encode()).hexdigest()[:16]}"
    function = _Function(name, _deliver(parcel), work, None, classes)
    with _lock:
        # DuckDB moves filters below projections, and would call a function without side effects in both.
        _make_once(_connection(data), function)
    taken = {column.casefold() for column in work.keep}
    row = next(row for i in range(len(taken) + 1) if (row := f"decisions {i}") not in taken)
    kept = [_quoted(column) for column in work.keep]
    arguments = ", ".join(map(_quoted, work.features))
    fields = [
        f"struct_extract({_quoted(row)}, {_text(field)}) AS {_quoted(column)}"
        for field, column in zip(work.added, work.names, strict=True)
    ]
    try:
        called = data.project(", ".join([*kept, f"{_quoted(name)}({arguments}) AS {_quoted(row)}"]))
    except duckdb.CatalogException:
        raise InputError(
            f"DuckDB {duckdb.__version__} does not tell which connection a relation belongs to: use "
            "qwyc.distributed.register with that connection, or DuckDB 2.0 or later"
        ) from None
    return called.project(", ".join([*kept, *fields]))


def total(data: Any, parcel: Parcel, work: Counting, size: int) -> npt.NDArray[np.float64]:
    """Sums over all rows. DuckDB streams them, and a few batches at a time are counted on all cores."""
    classifier = _deliver(parcel)()
    cores, sums = thread_count(None), np.zeros(size)
    waiting: deque[Future[npt.NDArray[np.float64]]] = deque()

    def count(batch: Any, rows_before: int) -> npt.NDArray[np.float64]:
        try:
            return work.on_arrow(classifier, batch)
        except InputError as error:
            raise error.after(rows_before) from None

    # An open stream would keep the connection busy after an error.
    with closing(_batches(data, work.features)) as batches, ThreadPoolExecutor(cores) as pool:
        rows = 0
        for batch in batches:
            waiting.append(pool.submit(count, batch, rows))
            rows += len(batch)
            if len(waiting) > cores:
                sums += waiting.popleft().result()
        for part in waiting:  # in the order of the rows, so that sums are the same every time
            sums += part.result()
    return sums


def count(data: Any) -> int:
    return int(data.aggregate("count(*)").fetchall()[0][0])


def draw(data: Any, columns: list[str], share: float, seed: int) -> Any:
    """About that share of the rows, as a pandas frame. DuckDB's own samples are not the same every time
    where it runs on more than one thread."""
    random, drawn = np.random.default_rng(seed), []
    with closing(_batches(data, columns)) as batches:
        for table in batches:
            drawn.append(table.filter(pyarrow.array(random.random(len(table)) < share)))
    whole = pyarrow.concat_tables(drawn) if drawn else _reader(data, columns).read_all()
    return _without_decimals(whole).to_pandas()


def _reader(data: Any, names: Sequence[str]) -> Any:
    """A stream of Arrow batches of these columns."""
    chosen = data.project(", ".join(map(_quoted, names)))
    read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader  # before 1.5
    return read(BATCH)


def _batches(data: Any, names: Sequence[str]) -> Generator[Any, None, None]:
    """The rows of these columns, as Arrow tables of about BATCH rows."""
    with closing(_reader(data, names)) as reader:
        for batch in reader:
            yield pyarrow.Table.from_arrays(batch.columns, names=list(names))


def _connection(data: Any) -> Any:
    """The connection of a relation, or where DuckDB does not tell (before 2.0) the default one."""
    found = getattr(data, "_con", None)
    return duckdb.default_connection() if found is None else found


def _make_once(connection: Any, function: _Function) -> None:
    """Make a function in the database of a connection unless it is there. A cursor does so outside of the
    transaction that the connection may be in, and would take the function along if it is rolled back."""
    with connection.cursor() as other:
        known = "SELECT 1 FROM duckdb_functions() WHERE function_name = ?"
        if other.execute(known, [function.name]).fetchone() is None:
            _make(other, function, side_effects=True)


def _deliver(parcel: Parcel) -> Delivery:
    """What gives the classifier: this process is the only worker."""
    classifier = once(parcel.key, lambda: unpack(parcel.content))
    return parcel.follow(lambda: classifier)


# ---- functions ------------------------------------------------------------------------------


def register(
    connection: Any,
    parcel: Parcel,
    name: str,
    work: Adding,
    output: str | None,
    classes: npt.NDArray[Any],
) -> None:
    """Make a classifier a function of SQL: `SELECT id, fraud(age, job) FROM t`, or `fraud(t)`. All
    connections to the same database have it. It replaces one that this connection has registered."""
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        raise OptionError(
            f"a DuckDB connection was expected, such as duckdb.connect(); got {type(connection).__name__}"
        )
    check_output(output, work)
    function = _Function(name, _deliver(parcel), work, output, classes)
    with _lock:
        # There may be none, or one that a transaction took along when it was rolled back.
        with suppress(duckdb.InvalidInputException, duckdb.CatalogException):
            connection.remove_function(name)
        try:
            try:
                _make(connection, function, side_effects=False)
            except duckdb.NotImplementedException:  # the connection believes that it has the latter
                _make(connection.cursor(), function, side_effects=False)
        except duckdb.CatalogException as error:
            raise OptionError(f"DuckDB has a function {name!r} already: {error}") from None


def _make(connection: Any, function: _Function, *, side_effects: bool) -> None:
    types = output_types(function.classes, function.work)
    whole = ", ".join(f"{_quoted(column)} {kind}" for column, kind in types.items())
    code = function.code()
    _kept.append(code)
    connection.create_function(
        function.name,
        code,
        None,  # arguments of any type
        f"STRUCT({whole})" if function.output is None else types[function.output],
        type="arrow",
        null_handling="special",  # a null is a missing value, not a decision that is null
        side_effects=side_effects,
    )


def output_types(classes: npt.NDArray[Any], work: Adding) -> dict[str, str]:
    """The columns that decisions come in, and their types in SQL."""
    kinds = work.types(classes)
    label = kinds.get("label")
    if label is not None and str(label) not in _SQL_TYPES:
        raise OptionError(f"DuckDB has no type for classes of {label}; relabel them")
    return {column: _SQL_TYPES[str(kind)] for column, kind in kinds.items()}


_SQL_TYPES = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
}


@dataclass(frozen=True, eq=False)
class _Function:
    """A function of SQL."""

    name: str
    deliver: Delivery
    work: Adding
    output: str | None  # one of the columns, or None for a struct of all
    classes: npt.NDArray[Any]

    def code(self) -> Callable[..., Any]:
        """What DuckDB calls with a chunk of rows: a `pyarrow.ChunkedArray` for each argument."""
        names, n, name = list(self.work.features), len(self.work.features), self.name
        is_struct, columns_of, output = pyarrow.types.is_struct, self._columns_of(), self.output
        added = list(self.work.added)

        def decide(*arguments: Any) -> Any:
            absent = None
            if len(arguments) == 1 and is_struct(arguments[0].type):
                table = _fields(arguments[0], name, names)
                absent = arguments[0].is_null() if arguments[0].null_count else None
            elif len(arguments) == n:
                table = pyarrow.Table.from_arrays(arguments, names=names)
            else:
                raise InputError(
                    f"{name} takes {n} columns ({quoted_names(names)}), or one row that has them; got "
                    f"{len(arguments)} arguments"
                )
            made = columns_of(table)
            if output is not None:
                found = made[output]()
            else:
                found = pyarrow.StructArray.from_arrays([made[column]() for column in added], added)
            # A row that is null has no decision; one whose columns are all null has.
            return found if absent is None else _without(found, absent)

        return decide

    def _columns_of(self) -> Callable[[Any], dict[str, Callable[[], Any]]]:
        """From a table to functions that make each column: only those that are needed are called."""
        work, deliver, classes, array = self.work, self.deliver, self.classes, pyarrow.array
        if not isinstance(work, Deciding):
            return self._evaluated
        label_type, numbers = arrow_type(classes), classes.dtype.kind in "biuf"
        arrow_classes, scores = array(classes, label_type), work.scores

        def columns_of(table: Any) -> dict[str, Callable[[], Any]]:
            classifier = deliver()
            ensemble = classifier.ensemble
            plain = (
                type(classifier).decide is Classifier.decide
            )  # a subclass may decide rows itself
            found = ensemble.decide_in_order(table, classifier.runner) if plain else None
            if found is None:
                decided = zip(work.added, work.decided(classifier, table), strict=True)
                return {column: _give(made) for column, made in decided}
            index, steps, score = found
            return {
                "label": lambda: (
                    array(classes.take(index), label_type)
                    if numbers
                    else arrow_classes.take(array(index))
                ),
                "steps": lambda: array(steps),
                **dict(zip(scores, map(_array_of, np.atleast_2d(score.T)), strict=True)),
                "complete": lambda: array(steps == ensemble.n_models),
                REASON: lambda: pyarrow.nulls(len(steps), pyarrow.string()),
                CLASSIFIER: lambda: pyarrow.repeat(digest(classifier), len(steps)),
            }

        return columns_of

    def _evaluated(self, table: Any) -> dict[str, Callable[[], Any]]:
        """The columns of a model that is evaluated in full."""
        made = self.work.decided(self.deliver(), table)
        return {name: _give(column) for name, column in zip(self.work.added, made, strict=True)}


def _without(found: Any, absent: Any) -> Any:
    """An array with nulls where `absent` (N,) is true."""
    gone = absent.combine_chunks() if isinstance(absent, pyarrow.ChunkedArray) else absent
    places = np.where(gone.to_numpy(zero_copy_only=False), -1, np.arange(len(found)))
    return found.take(pyarrow.array(places, mask=places < 0))


def _give(made: Any) -> Callable[[], Any]:
    return lambda: made


def _array_of(values: Any) -> Callable[[], Any]:
    return lambda: pyarrow.array(values)


def _fields(rows: Any, function: str, names: list[str]) -> Any:
    """Fields of a column of structs, as a table."""
    present = [rows.type.field(i).name for i in range(rows.type.num_fields)]
    absent = [name for name in names if name not in present]
    if absent:
        similar = similar_names(absent, present)
        raise InputError(
            f"the row has no column {absent[0]!r}, which {function} takes (it has: "
            f"{quoted_names(present)})"
            + (f"; did you mean {quoted_names(similar)}?" if similar else "")
        )
    return pyarrow.Table.from_arrays(rows.flatten(), names=present).select(names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _without_decimals(table: Any) -> Any:
    """A table with decimals as doubles: pandas would hold objects."""
    for i, field in enumerate(table.schema):
        if pyarrow.types.is_decimal(field.type):
            # By way of text: Arrow's own conversion does not round to the nearest.
            numbers = table.column(i).cast(pyarrow.string()).cast(pyarrow.float64())
            table = table.set_column(i, field.name, numbers)
    return table
