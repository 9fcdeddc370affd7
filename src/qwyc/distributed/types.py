"""Types of columns, which engines know before any job is started."""

from __future__ import annotations

from typing import Any

from qwyc.errors import InputError
from qwyc.model.ensemble import Ensemble


def check_types(ensemble: Ensemble, empty: Any) -> None:
    """Raise the error that a worker would raise about the types of columns: `empty` is a table or frame of
    them without rows, or None where they are not known. Code decides for itself what it takes."""
    if empty is None or ensemble.has_code:
        return
    for name, kind in _nested(empty):
        raise InputError(
            f"column {str(name)!r} holds {kind}; the model takes one number or category in a row: select "
            "the values that it takes as columns"
        )
    ensemble.rows(empty)


def _nested(empty: Any) -> list[tuple[Any, Any]]:
    """Columns of lists, maps and structs, and their types."""
    import pyarrow

    if not isinstance(empty, pyarrow.Table):
        kinds = [
            (name, getattr(kind, "pyarrow_dtype", None)) for name, kind in empty.dtypes.items()
        ]
    else:
        kinds = [(field.name, field.type) for field in empty.schema]
    return [
        (name, kind) for name, kind in kinds if kind is not None and pyarrow.types.is_nested(kind)
    ]
