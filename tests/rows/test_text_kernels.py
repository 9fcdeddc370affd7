"""Kernels that look up many texts at once give the codes that single lookups give."""

from __future__ import annotations

import ctypes

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from qwyc import _native

UNSEEN, NULL = -5.0, -7.0
KNOWN = {
    "sizes": ["", "a", "bc", "def", "x" * 62, "y" * 63],
    "first bytes": ["0", "1", "2", "10", "11", "12", "ab", "abcdefgh", "abcdefgi", "b" * 40],
    "bytes in the middle": [f"the same start {i:03} and the same end" for i in range(200)],
    "last bytes": ["a long text that ends with 1", "a long text that ends with 2"],
    "zeros": ["a", "a\0", "b\0\0", "\0", "b", "cc\0d"],
    "not ASCII": ["ä", "ö", "日本", "日月", "🙂", "🙃"],
    "many": [f"{i}" for i in range(250)],
    "too many": [f"{i}" for i in range(251)],
    "too long": ["a", "z" * 64, "z" * 65],
    "none": [],
}


def looked_up(texts: list[str]) -> list[str]:
    """Known texts and others that nearly equal them, in random order."""
    others = [text + more for text in texts for more in ("\0", "x", "\0\0x")]
    others += [text[:-1] for text in texts] + [text[1:] for text in texts]
    others += [text[:-1] + "~" for text in texts] + [text.swapcase() for text in texts]
    # Sizes whose lowest byte is that of a known text.
    others += [text + "y" * 256 for text in texts] + [text + "\0" * 256 for text in texts]
    # Sizes that a text must have, besides its bytes, where the places of both are the same.
    others += [text + "\0" * n for text in texts[:8] for n in range(3, 60)]
    others += ["", "\0", "\x01", "y" * 64, "\0" * 63 + "\x01", "\0" * 64, "é" * 32, "z" * 300]
    rows = [*texts * 3, *others]
    return [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]


def codes(frame, texts, isa, *, unseen=UNSEEN, null=NULL, single=True, numbers=None):
    """The codes of a column, (N,), or None where a text is refused. numbers: those of the texts."""
    numbers = [float(i) for i in range(len(texts))] if numbers is None else numbers
    given = _native.TextCodes(texts, numbers, unseen, null, isa)
    shape = _native.TableShape([False], float("nan"), False, False, single)
    table = _native.Table(len(frame), shape)
    if isinstance(frame, np.ndarray):
        assert table.add_objects(0, frame, given)
    else:
        assert (
            table.add_arrow(
                frame.__arrow_c_stream__(), _native.ArrowColumns([0], [given]), one=False
            )
            == []
        )
    found = table.matrix32(1) if single else table.matrix64(1)
    return None if found is None else found[0]


def frames(rows: list[str | None]):
    """A column of text as each of the ways in which it may lie in memory."""
    yield pa.table({"c": pa.array(rows, pa.string())})
    yield pa.table({"c": pa.array(rows, pa.large_string())})
    yield pa.table({"c": pa.array(["before", *rows], pa.string())})[1:]
    yield pl.DataFrame({"c": pl.Series(rows, dtype=pl.String)})
    yield np.array([row if row is None else "".join(["", *row]) for row in rows], object)


@pytest.mark.parametrize("isa", _native.available_isas())
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("name", KNOWN)
def test_codes_of_texts(name, isa, single):
    texts = KNOWN[name]
    place = {text: i for i, text in enumerate(texts)}
    rows = looked_up(texts)
    expected = [place.get(text, UNSEEN) for text in rows]
    assert UNSEEN in expected
    for frame in frames(rows):
        np.testing.assert_array_equal(codes(frame, texts, isa, single=single), expected)
    with_nulls = [None if i % 3 == 1 else text for i, text in enumerate(rows)]
    expected = [NULL if text is None else place.get(text, UNSEEN) for text in with_nulls]
    for frame in frames(with_nulls):
        np.testing.assert_array_equal(codes(frame, texts, isa, single=single), expected)


def few_others(texts: list[str], n: int) -> list[str | None]:
    """Mostly known texts; here and there a null, and a text that is nearly one of them."""
    random = np.random.default_rng(n)
    rows: list[str | None] = [texts[i] for i in random.integers(0, len(texts), n)]
    others = [None, *(text for text in looked_up(texts) if text not in texts)]
    for place in random.integers(0, n, n // 100):
        rows[place] = others[random.integers(0, len(others))]
    return rows


@pytest.mark.parametrize("isa", _native.available_isas())
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("name", [name for name, texts in KNOWN.items() if texts])
@pytest.mark.parametrize("kind", ["0, 1, ...", "any", "negative zero"])
def test_codes_of_groups(name, isa, single, kind):
    texts = KNOWN[name]
    numbers = [float(i) for i in range(len(texts))]
    if kind == "any":
        numbers = [300.0, -0.5, *numbers][: len(texts)]
    elif kind == "negative zero":
        numbers[0] = -0.0
    place = {None: NULL, **dict(zip(texts, numbers, strict=True))}
    for n in (15, 16, 17, 31, 250, 2_000):
        rows = few_others(texts, n)
        expected = np.array([place.get(text, UNSEEN) for text in rows])
        for frame in frames(rows):
            found = codes(frame, texts, isa, single=single, numbers=numbers)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
        known = [text for text in rows if text in place and text is not None]
        expected = np.array([place[text] for text in known])
        for frame in frames(known):
            found = codes(frame, texts, isa, single=single, unseen=np.inf, numbers=numbers)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("isa", _native.available_isas())
@pytest.mark.parametrize("name", [name for name, texts in KNOWN.items() if texts])
def test_one_text_that_is_refused_is_found(name, isa):
    texts, infinity = KNOWN[name], float("inf")
    for frame in frames(texts * 40):
        assert codes(frame, texts, isa, unseen=infinity) is not None
    for strange in ["\0" * 64, "?", "q" * 63, "\0" * 63 + "\x01", "y" * 319]:
        rows = texts * 40
        rows[len(rows) // 2] = strange
        for frame in frames(rows):
            assert codes(frame, texts, isa, unseen=infinity) is None
            assert codes(frame, texts, isa) is not None
    for frame in frames([*texts, None]):
        assert codes(frame, texts, isa, null=infinity) is None


def test_objects_of_all_kinds_in_one_column():
    texts = ["a", "ä", "日本"]
    rows = np.array(["a", "ä", None, float("nan"), "日本", "b"] * 100, object)
    for isa in _native.available_isas():
        found = codes(rows, texts, isa)
        np.testing.assert_array_equal(found, [0, 1, NULL, NULL, 2, UNSEEN] * 100)


class Text(str):
    """Not exactly a str."""

    __slots__ = ()


def table_of(objects, texts, isa, unseen):
    """A table of one column of objects, and whether it takes them."""
    given = _native.TextCodes(texts, [float(i) for i in range(len(texts))], unseen, NULL, isa)
    shape = _native.TableShape([False], float("nan"), False, False, True)
    table = _native.Table(len(objects), shape)
    return table, table.add_objects(0, objects, given)


@pytest.mark.parametrize("isa", _native.available_isas())
@pytest.mark.parametrize(
    ("strange", "code"),
    [
        (None, NULL),
        (float("nan"), NULL),
        ("ä", 2),
        ("日本", UNSEEN),
        ("zz" * 40, UNSEEN),
        (b"a", None),
        (7, None),
        (Text("a"), None),
        (object(), None),
        ((), None),
    ],
)
def test_one_object_of_another_kind(isa, strange, code):
    texts = ["a", "bcd", "ä", "the same size", "this size too"]
    for at in (0, 5, 15, 16, 40, 99):
        objects = np.array(["".join(["", *texts[i % 5]]) for i in range(100)], object)
        objects[at] = strange
        expected = np.arange(100.0) % 5
        expected[at] = code
        table, taken = table_of(objects, texts, isa, UNSEEN)
        assert taken == (code is not None)
        if taken:
            np.testing.assert_array_equal(table.matrix32(1)[0], expected)
        table, _ = table_of(objects, texts, isa, float("inf"))
        found = table.matrix32(1)
        assert (found is None) == (code in (None, UNSEEN))
        if found is not None:
            np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize("isa", _native.available_isas())
def test_objects_that_are_not_there(isa):
    """NumPy takes a null pointer for None."""
    objects = np.array(["".join(["", *["one", "two"][i % 2]]) for i in range(64)], object)
    objects[20] = None  # which lives for ever
    ctypes.memset(objects.ctypes.data + 20 * objects.itemsize, 0, objects.itemsize)
    expected = np.arange(64.0) % 2
    expected[20] = NULL
    table, taken = table_of(objects, ["one", "two"], isa, UNSEEN)
    assert taken
    np.testing.assert_array_equal(table.matrix32(1)[0], expected)


@pytest.mark.parametrize("isa", _native.available_isas())
def test_every_second_object(isa):
    texts = ["one", "two"]
    objects = np.array(["".join(["", *texts[i // 2 % 2]]) for i in range(200)], object)
    objects[1::2] = 5
    np.testing.assert_array_equal(codes(objects[::2], texts, isa), np.arange(100.0) % 2)


def test_of_equal_texts_the_last_counts():
    frame = pa.table({"c": ["a", "b"]})
    for isa in _native.available_isas():
        np.testing.assert_array_equal(codes(frame, ["a", "b", "a"], isa), [2, 1])


def test_pandas_text_is_looked_up_like_arrows():
    column = pd.Series(["a", "b", "a"], dtype="str").array.__arrow_array__()
    np.testing.assert_array_equal(codes(pa.table({"c": column}), ["b", "a"], ""), [1, 0, 1])
