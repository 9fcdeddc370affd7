"""CSV text with values that are no numbers in columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.rows.files.csv_dialect import CsvDialect
from qwyc.rows.files.csv_errors import converts

_NUMBER = re.compile(
    r"-?[0-9]{1,15}(\.[0-9]{1,30})?"
)  # which Arrow converts to a float for certain
Wrong = tuple[str, npt.NDArray[np.intp], list[str]]  # a column, rows of it (m,) and their texts


def read_odd_block(
    block: memoryview, names: Sequence[str], types: Mapping[str, Any], dialect: CsvDialect
) -> tuple[Any, list[Wrong]]:
    """A pyarrow.Table of the columns that have types, with null for values of a wrong type, and these
    values. Raises pyarrow.ArrowInvalid if a row is wrong in another way.

    Each distinct text of a column is converted once, by Arrow's own reader of CSV."""
    import pyarrow

    # First as text, so that rows that are wrong in another way raise their error.
    texts = dialect.read(block, names=names, types={name: pyarrow.string() for name in types})
    columns = _good_columns(block, names, list(types), types, dialect)
    wrong: list[Wrong] = []
    for name in types:
        if name in columns:
            continue
        chunks = texts.column(name).chunks or [pyarrow.array([], pyarrow.string())]
        column = pyarrow.concat_arrays(chunks)
        columns[name], bad = _converted(column.dictionary_encode(), types[name], dialect)
        wrong.append((name, bad, column.take(pyarrow.array(bad)).to_pylist()))
    return pyarrow.table({name: columns[name] for name in types}).combine_chunks(), wrong


def _good_columns(
    block: memoryview,
    names: Sequence[str],
    chosen: Sequence[str],
    types: Mapping[str, Any],
    dialect: CsvDialect,
) -> dict[str, Any]:
    """Those of the chosen columns that hold no value of a wrong type, found by halving."""
    import pyarrow

    try:
        table = dialect.read(block, names=names, types={name: types[name] for name in chosen})
    except pyarrow.ArrowInvalid:
        if len(chosen) == 1:
            return {}
        middle = len(chosen) // 2
        halves = (chosen[:middle], chosen[middle:])
        first, second = (_good_columns(block, names, half, types, dialect) for half in halves)
        return first | second
    return {name: table.column(name) for name in chosen}


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
    """A pyarrow.DictionaryArray of texts as an array of a type, and the rows that are not of it."""
    import pyarrow

    distinct = encoded.dictionary.to_pylist()
    plain = pyarrow.types.is_floating(arrow_type)
    doubtful = [i for i, text in enumerate(distinct) if not (plain and _NUMBER.fullmatch(text))]
    texts = [distinct[i] for i in doubtful]
    bad = {doubtful[k] for k in _wrong_texts(texts, 0, arrow_type, dialect)}
    good = [i for i in range(len(distinct)) if i not in bad]
    values = pyarrow.nulls(len(distinct), arrow_type)
    if good:
        text = "\n".join(_quoted(distinct[i]) for i in good)
        read = dialect.read(text.encode(), names=["cell"], types={"cell": arrow_type})
        place = np.full(len(distinct), -1)
        place[good] = np.arange(len(good))
        at = pyarrow.array(place, mask=place < 0)
        values = pyarrow.concat_arrays(read.column("cell").chunks).take(at)
    is_bad = np.zeros(len(distinct) + 1, bool)
    is_bad[list(bad)] = True
    indices = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return values.take(encoded.indices), np.flatnonzero(is_bad[indices])


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
