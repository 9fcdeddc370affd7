"""Words in messages."""

from __future__ import annotations

from typing import Any


def one_line(value: Any) -> str:
    """A value as text for a table or a sentence: line breaks and other control characters as Python writes
    them, such as \\n."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value)
    )


def class_name(label: Any) -> str:
    """A class in a sentence: a label that is text as it is, any other as in "class 1"."""
    return one_line(label) if isinstance(label, str) else f"class {label}"


def number_of(count: int, noun: str) -> str:
    """A number and what it counts: "1 group", "2,000 groups"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
