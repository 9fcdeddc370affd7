"""An extension of griffe: docstrings as this project writes them, in the form that numpydoc has.

Here "name : what it is" is a description, as types are in the signature. numpydoc takes what follows the
colon for a type."""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(Parameters|Attributes)\n-{3,}\n", flags=re.M)
ITEM = re.compile(r"^(\w[\w, \n]*?) : ", flags=re.M)


class Descriptions(griffe.Extension):
    """Moves descriptions below the names of parameters."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)


def rewritten(text: str) -> str:
    """A docstring whose items have their description on a line of its own."""
    pieces = SECTION.split(text)
    out = [pieces[0]]
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        items = ITEM.sub(lambda found: f"{' '.join(found[1].split())} :\n    ", body)
        out.append(f"{name}\n{'-' * len(name)}\n{items}")
    return "".join(out)
