"""C99 text: numbers, arrays, strings, comments and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError

WIDTH = 100
LONGEST_TEXT = 1000  # bytes of a string; C99 promises 4,095
_TYPES = {
    "u1": "uint8_t",
    "i1": "int8_t",
    "u2": "uint16_t",
    "i2": "int16_t",
    "u4": "uint32_t",
    "i4": "int32_t",
    "i8": "int64_t",
    "f4": "float",
    "f8": "double",
}


def real_literal(value: float, *, single: bool) -> str:
    """A number of float32 or float64 to the last bit."""
    number, end = float(value), "f" if single else ""
    if number != number:
        return "NAN"
    if number in (float("inf"), float("-inf")):
        return "INFINITY" if number > 0 else "-INFINITY"
    if number.is_integer() and abs(number) < 2**24:
        return f"{number:.1f}{end}"  # -0.0 too
    mantissa, exponent = number.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}{end}"


def integer_literal(value: int) -> str:
    """An integer of at most 64 bits."""
    if value == -(2**63):
        return "INT64_MIN"
    if value == 2**63 - 1:
        return "INT64_MAX"
    if abs(value) < 2**31:
        return str(value)
    return f"{value}u" if 0 < value < 2**32 else f"INT64_C({value})"


def literals(values: npt.NDArray[Any]) -> list[str]:
    """The numbers of an array."""
    if values.dtype.kind == "f":
        single = values.dtype == np.float32
        return [real_literal(value, single=single) for value in values.tolist()]
    return [integer_literal(value) for value in values.tolist()]


def c_type(dtype: npt.DTypeLike) -> str:
    """The C type of a NumPy dtype."""
    return _TYPES[np.dtype(dtype).str[1:]]


def narrowed(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Integers in the narrowest type that holds all of them."""
    wide = np.asarray(values, dtype=np.int64)
    least, most = (int(wide.min()), int(wide.max())) if wide.size else (0, 0)
    kinds = ("u1", "u2", "u4", "i8") if least >= 0 else ("i1", "i2", "i4", "i8")
    for kind in kinds:
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return wide.astype(kind)
    raise AssertionError("int64 holds every int64")


def real_narrowed(values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Numbers as float32 where that changes none of them, bit for bit."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single.astype(np.float64), values) else values


def lines_of(items: Iterable[str], indent: str = "    ") -> str:
    """Items with commas between them, in lines of at most WIDTH characters."""
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) + 1 > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += f"{item}, "
    lines.append(line.rstrip().removesuffix(","))
    return "\n".join(lines)


def array(name: str, values: npt.NDArray[Any], note: str) -> str:
    """A constant array, with a comment."""
    return (
        f"/* {comment(note)} */\nstatic const {c_type(values.dtype)} {name}[{len(values)}] = {{\n"
        f"{lines_of(literals(values))}\n}};\n"
    )


def string(text: str) -> str:
    """A string literal of UTF-8; what is too long for C99 is cut."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > LONGEST_TEXT:
        data = data[:LONGEST_TEXT] + b"..."
    parts = []
    for byte in data:
        character = chr(byte)
        if character in '"\\?':  # ? because of trigraphs
            parts.append("\\" + character)
        else:
            parts.append(character if 32 <= byte < 127 else f"\\{byte:03o}")
    return f'"{"".join(parts)}"'


def strings(name: str, values: Sequence[str]) -> str:
    """A constant array of strings that other files can see."""
    items = ",\n".join(f"    {string(value)}" for value in values)
    return f"const char *const {name}[{len(values)}] = {{\n{items}\n}};\n"


def comment(text: str) -> str:
    """Text of which nothing ends a comment, or looks as if it began one."""
    plain = "".join(c if 32 <= ord(c) < 127 else ascii(c)[1:-1] for c in text)
    plain = re.sub(r"\*(?=/)", "* ", plain)
    plain = re.sub(r"/(?=\*)", "/ ", plain)
    plain = re.sub(r"\?(?=\?)", "? ", plain)
    return plain if not plain.endswith("\\") else f"{plain} "


def block_comment(text: str, width: int = WIDTH) -> str:
    """A comment of several lines; an empty line starts a paragraph."""
    import textwrap

    lines = ["/*"]
    for paragraph in text.split("\n"):
        wrapped = textwrap.wrap(comment(paragraph), width - 3, break_long_words=False) or [""]
        lines += [f" * {line}".rstrip() for line in wrapped]
    # Wrapping may have put a slash at the start of a line, after the star.
    return "\n".join(line.replace("*/", "* /") for line in lines) + "\n */\n"


def check_prefix(prefix: Any) -> str:
    """`prefix`, if names of C can begin with it."""
    is_name = isinstance(prefix, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", prefix)
    if not is_name:
        raise OptionError(
            "prefix must be a letter and up to 62 letters, digits and underscores, since names of C begin "
            f"with it; got {prefix!r}"
        )
    return str(prefix)


def identifiers(names: Sequence[str]) -> list[str]:
    """A part of a C name for each of these, all different."""
    made: list[str] = []
    for index, name in enumerate(names):
        part = re.sub(r"[^A-Za-z0-9]+", "_", name)[:40].strip("_").lower() or f"column_{index}"
        made.append(part)
    return [part if made.count(part) == 1 else f"{part}_{index}" for index, part in enumerate(made)]
