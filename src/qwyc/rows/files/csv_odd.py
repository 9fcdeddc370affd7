"""CSV text with values that are no numbers in columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.rows.files.csv_dialect import CsvDialect
from qwyc.rows.files.csv_errors import converts

_NUMBER = r"^-?[0-9]{1,15}(\.[0-9]{1,30})?$"  # which Arrow converts to a float for certain
_NO_NUMBER = r"[^-+.0-9einfatyEINFATY\s]"  # a character that no number, nan or infinity has
_COLUMN = re.compile(r"CSV column #([0-9]+): .*conversion error")  # in Arrow's messages
Wrong = tuple[str, npt.NDArray[np.intp], list[str]]  # a column, rows of it (m,) and their texts


def read_odd_block(
    block: memoryview,
    names: Sequence[str],
    types: Mapping[str, Any],
    dialect: CsvDialect,
    likely: set[str],
) -> tuple[Any, list[Wrong]]:
    """A pyarrow.Table of the columns that have types, with null for values of a wrong type, and these
    values. Raises pyarrow.ArrowInvalid if a row is wrong in another way.

    `likely` are columns that had such values in earlier blocks; those of this block are added."""
    import pyarrow

    table, doubtful = _with_texts(block, names, types, dialect, likely & types.keys())
    columns: dict[str, Any] = {name: table.column(name) for name in types}
    wrong: list[Wrong] = []
    for name in doubtful:
        chunks = columns[name].chunks or [pyarrow.array([], pyarrow.string())]
        column = pyarrow.concat_arrays(chunks)
        columns[name], bad = _converted(column.dictionary_encode(), types[name], dialect)
        if len(bad):
            wrong.append((name, bad, column.take(pyarrow.array(bad)).to_pylist()))
            likely.add(name)
    return pyarrow.table(columns).combine_chunks(), wrong


def _with_texts(
    block: memoryview,
    names: Sequence[str],
    types: Mapping[str, Any],
    dialect: CsvDialect,
    doubtful: set[str],
) -> tuple[Any, list[str]]:
    """A table in which columns with values of a wrong type are text, and those columns. `doubtful` are
    some that may be among them."""
    import pyarrow

    everything = {name for name in types if not pyarrow.types.is_string(types[name])}
    doubtful = doubtful & everything
    while True:
        text = dict.fromkeys(doubtful, pyarrow.string())
        try:
            table = dialect.read(block, names=names, types={**types, **text})
        except pyarrow.ArrowInvalid as error:
            if doubtful == everything:
                raise
            found = _COLUMN.search(str(error))
            more = {names[int(found[1])]} & everything - doubtful if found else set()
            doubtful = doubtful | more if more else everything
        else:
            return table, [name for name in types if name in doubtful]


def is_mostly_boolean(column: Any) -> bool:
    """Whether most texts of a column, a pyarrow.ChunkedArray, stand for true and false."""
    import pyarrow
    import pyarrow.compute
    from pyarrow import csv

    options = csv.ConvertOptions()
    words = [word for word in (*options.true_values, *options.false_values) if word.isalpha()]
    known = pyarrow.compute.is_in(column, pyarrow.array(words))
    count = pyarrow.compute.sum(known).as_py() or 0
    return bool(2 * count > len(column) - column.null_count)


def _converted(
    encoded: Any, arrow_type: Any, dialect: CsvDialect
) -> tuple[Any, npt.NDArray[np.intp]]:
    """A pyarrow.DictionaryArray of texts as an array of a type, and the rows that are not of it. Each
    distinct text is converted once, and by Arrow's own reader of CSV if it is no plain number."""
    import pyarrow
    from pyarrow import compute

    def matches(pattern: str) -> npt.NDArray[np.bool_]:
        found = compute.match_substring_regex(distinct, pattern)
        return np.array(found.to_numpy(zero_copy_only=False), bool)

    distinct = encoded.dictionary
    plain, wrong = np.zeros((2, len(distinct)), bool)
    if pyarrow.types.is_floating(arrow_type):
        nulls = compute.is_in(distinct, pyarrow.array(dialect.null_spellings, pyarrow.string()))
        plain = matches(_NUMBER)
        wrong = matches(_NO_NUMBER) & ~nulls.to_numpy(zero_copy_only=False)
    numbers = np.flatnonzero(plain)
    parts = [distinct.take(pyarrow.array(numbers)).cast(arrow_type)] if len(numbers) else []
    others = np.flatnonzero(~plain & ~wrong)
    texts = distinct.take(pyarrow.array(others)).to_pylist()
    wrong[others[list(_wrong_texts(texts, 0, arrow_type, dialect))]] = True
    good = np.flatnonzero(~wrong[others])
    if len(good):
        text = "\n".join(_quoted(texts[k]) for k in good)
        read = dialect.read(text.encode(), names=["cell"], types={"cell": arrow_type})
        parts += read.column("cell").chunks
    place = np.full(len(distinct), -1)
    place[np.concatenate([numbers, others[good]])] = np.arange(len(numbers) + len(good))
    values = pyarrow.concat_arrays(parts or [pyarrow.nulls(0, arrow_type)])
    values = values.take(pyarrow.array(place, mask=place < 0))
    indices = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return values.take(encoded.indices), np.flatnonzero(np.append(wrong, False)[indices])


def _wrong_texts(
    texts: Sequence[str], first: int, arrow_type: Any, dialect: CsvDialect
) -> Iterator[int]:
    """The positions, from `first` on, of the texts that Arrow does not convert, found by halving."""
    if converts(texts, arrow_type, dialect):
        return
    if len(texts) == 1:
        yield first
        return
    middle = len(texts) // 2
    yield from _wrong_texts(texts[:middle], first, arrow_type, dialect)
    yield from _wrong_texts(texts[middle:], first + middle, arrow_type, dialect)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
