"""Rows in any form -> the matrix that the trees take.

NumPy arrays and nested sequences are read by position (`arrays`), data frames of pandas, Polars and Arrow
by name if the model knows its names (`frames`). X is never modified, and not copied if it already fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import RowsError
from qwyc.rows.arrays import NATIVE_DTYPES, array_to_matrix, as_array
from qwyc.rows.column_names import feature_name
from qwyc.rows.frames import as_frame, frame_to_matrix
from qwyc.rows.schema import Schema

Array = npt.NDArray[Any]


def to_matrix(X: Any, schema: Schema) -> Array:
    """Rows as the trees take them: (N, n_features), C order, float32 or float64.

    The dtype is `schema.dtype`, except for arrays of the other dtype that need no change: the native code
    converts them while it reads them."""
    if type(X) is np.ndarray and X.dtype in NATIVE_DTYPES and schema.takes_any_numbers:
        fits = X.ndim == 2 and X.shape[1] == schema.n_features
        if fits and X.flags.c_contiguous and X.flags.aligned:
            return X  # no value needs a check, which keeps small batches fast
    # Casts to float32 may overflow to infinity, as they do in the source libraries.
    with np.errstate(all="ignore"):
        rows = _convert(X, schema)
        if not np.isnan(schema.missing):
            missing = rows == rows.dtype.type(schema.missing)  # (N, n_features)
            if missing.any():
                rows = np.where(missing, rows.dtype.type(np.nan), rows)
    _check_special_values(rows, schema)
    return rows


def _convert(X: Any, schema: Schema) -> Array:
    if isinstance(X, np.ndarray):
        return array_to_matrix(X, schema)
    if hasattr(X, "toarray") and hasattr(X, "nnz"):  # scipy.sparse, without importing it
        raise RowsError(
            "{rows} is sparse ({kind}), and the model needs dense rows: pass X.toarray(). If the model "
            "takes absent entries for missing, as XGBoost does, fill them with NaN",
            kind=type(X).__name__,
        )
    if isinstance(X, (list, tuple)):
        values = as_array(X, object if schema.arrays_hold_values else None)
        return array_to_matrix(values, schema, from_list=True)
    frame = as_frame(X)
    return array_to_matrix(as_array(X), schema) if frame is None else frame_to_matrix(frame, schema)


def _check_special_values(rows: Array, schema: Schema) -> None:
    """Refuse NaN and infinity if the source library refuses them."""
    if (schema.accepts_missing and schema.accepts_infinity) or np.isfinite(rows).all():
        return
    if not schema.accepts_missing:
        _refuse(np.isnan(rows), "a missing value", "missing values", schema)
    if not schema.accepts_infinity:
        what = "infinity" if rows.dtype == np.float64 else "infinity, or a number past float32,"
        _refuse(np.isinf(rows), what, "infinities", schema)


def _refuse(bad: npt.NDArray[np.bool_], what: str, kind: str, schema: Schema) -> None:
    """Raise an error if any value is bad, (N, n_features)."""
    if bad.any():
        i, j = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise RowsError(
            "{rows} has {what} in {place}; the source library refuses {kind} with this model: fill them in "
            "or drop the rows",
            row=int(i),
            column=feature_name(int(j), schema),
            what=what,
            kind=kind,
        )
