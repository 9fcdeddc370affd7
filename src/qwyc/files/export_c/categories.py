"""How categories become the codes that rows hold: a comment, and a function where values are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qwyc.files.export_c.text import LONGEST_TEXT, identifiers, string
from qwyc.rows.schema import Schema

MOST_VALUES = 1000  # of a column that has a function
SHOWN = 40  # values of a column in a comment

UNSEEN = {
    "missing": "a value that the model does not know is missing (NAN)",
    "invalid": "a value that the model does not know has the code -1",
    "first": "a value that the model does not know has the code 0, and empty text is missing (NAN)",
    "error": "the model refuses a value that it does not know",
}

_FUNCTION = """
int {name}({argument}, {real} *code) {{
{table}    size_t i;
{null}    for (i = 0; i < {count}; ++i)
        if ({equal}) {{
            *code = ({real})i;
            return 1;
        }}
{unseen}}}
"""

_UNSEEN = {
    "missing": "    *code = NAN;\n    return 1;\n",
    "invalid": "    *code = -1;\n    return 1;\n",
    "first": "    *code = 0;\n    return 1;\n",
    "error": "    return 0;\n",
}


def column_names(schema: Schema) -> list[str]:
    """A name of each column, its position where it has none."""
    return (
        [str(j) for j in range(schema.n_features)] if schema.names is None else list(schema.names)
    )


def describe(schema: Schema) -> list[str]:
    """What a row holds in the columns of categories, as lines of a comment."""
    if not schema.categories:
        return []
    names, lines = column_names(schema), ["Columns of categories hold codes:"]
    for j, known in sorted(schema.categories.items()):
        values = ", ".join(f"{value!r} = {code}" for code, value in enumerate(known[:SHOWN]))
        more = ", ..." if len(known) > SHOWN else ""
        kind = "hash = code: " if schema.hashed else ""
        lines.append(f"  {j} ({names[j]}): {kind}{values}{more}")
    lines.append(f"In these, {UNSEEN[schema.unseen]}; a missing value is NAN.")
    if schema.hashed:
        lines.append(
            "A hash is the low 32 bits of CityHash64 of the text, as CatBoost computes it."
        )
    return lines


def functions(schema: Schema, prefix: str, real: str, small: bool) -> list[tuple[str, str]]:
    """The declaration and the definition of a function for each column whose values are known."""
    if schema.hashed:
        return []
    columns = sorted(schema.categories)
    all_names = column_names(schema)
    made = []
    for j, part in zip(columns, identifiers([all_names[j] for j in columns]), strict=True):
        known = schema.categories[j]
        argument = _argument(known, small)
        if argument is None:
            continue
        name = f"{prefix}_code_of_{part}"
        declaration = f"int {name}({argument}, {real} *code); /* column {j} */\n"
        made.append((declaration, _definition(schema, known, name, argument, real)))
    return made


def _argument(known: Sequence[Any], small: bool) -> str | None:
    """What the function takes; None where there is none."""
    if not 0 < len(known) <= MOST_VALUES:
        return None
    if all(isinstance(value, str) for value in known):
        return "const char *value" if all(_is_plain(value) for value in known) else None
    if all(isinstance(value, int) and abs(value) < 2**31 for value in known):
        return "int32_t value"
    if all(isinstance(value, (int, float)) and float(value) == value for value in known):
        return None if small else "double value"
    return None


def _is_plain(text: str) -> bool:
    """Whether C can hold the text."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return False
    return len(data) <= LONGEST_TEXT and b"\0" not in data


def _definition(schema: Schema, known: Sequence[Any], name: str, argument: str, real: str) -> str:
    null, equal = "", "value == known[i]"
    if argument == "const char *value":
        values = ",\n".join(f"        {string(value)}" for value in known)
        table = f"    static const char *const known[{len(known)}] = {{\n{values}\n    }};\n"
        absent = "value == NULL"
        if schema.unseen == "first" and "" not in known:
            absent = "value == NULL || value[0] == '\\0'"
        null, equal = _missing(absent), "strcmp(value, known[i]) == 0"
    else:
        kind = argument.split()[0]
        numbers = [repr(float(value)) if kind == "double" else str(int(value)) for value in known]
        table = f"    static const {kind} known[{len(known)}] = {{{', '.join(numbers)}}};\n"
        if kind == "double":
            null = _missing("value != value")
    return _FUNCTION.format(
        name=name,
        argument=argument,
        real=real,
        table=table,
        null=null,
        count=len(known),
        equal=equal,
        unseen=_UNSEEN[schema.unseen],
    )


def _missing(condition: str) -> str:
    return f"    if ({condition}) {{\n        *code = NAN;\n        return 1;\n    }}\n"
