"""Dask: the classifier's file is one key of the graph, which every worker fetches once and all of its
tasks share; each process loads it once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from dask import compute, delayed

from qwyc.distributed.adding import Adding
from qwyc.distributed.shipping import Model, Parcel, once, unpack
from qwyc.distributed.watching import Watch
from qwyc.distributed.work import Counting


def _deliver(parcel: Parcel) -> tuple[Any, str, Watch | None]:
    return delayed(parcel.content, name=parcel.key), parcel.key, parcel.watch


CASE_MATTERS = True  # in names of columns
ADDED = 16  # arrays that one task adds up


def columns(data: Any) -> list[str]:
    return list(data.columns)


def empty(data: Any, columns: list[str]) -> Any:
    """A frame without rows, of these columns; those of objects, which may hold anything, are taken to be
    numbers."""
    frame = data._meta[columns]
    unknown = [name for name in columns if frame[name].dtype == object]
    return frame.astype(dict.fromkeys(unknown, "float64")) if unknown else frame


def decide(data: Any, parcel: Parcel, work: Adding, classes: npt.NDArray[Any]) -> Any:
    """The DataFrame with decisions, through `map_partitions`."""
    meta = work.with_columns(data._meta[list(work.keep)], work.nothing(classes))
    return data[work.needed].map_partitions(
        _decide, *_deliver(parcel), work, meta=meta, enforce_metadata=False
    )


def total(data: Any, parcel: Parcel, work: Counting, size: int) -> npt.NDArray[np.float64]:
    """Sums over all rows: an array for each partition, added up in a tree. A frame of them would have
    hundreds of columns, which Dask examines one by one."""
    delivered = _deliver(parcel)
    parts = data[list(work.features)].to_delayed()
    sums = [delayed(_count)(part, *delivered, work) for part in parts]
    while len(sums) > 1:
        sums = [delayed(_add)(sums[i : i + ADDED]) for i in range(0, len(sums), ADDED)]
    total: npt.NDArray[np.float64] = compute(*sums)[0]
    return total


def count(data: Any) -> int:
    return len(data)


def draw(data: Any, columns: list[str], share: float, seed: int) -> Any:
    """About that share of the rows, as a pandas frame. Each row is drawn by itself: Dask's own `sample`
    takes a rounded share of every partition, which leaves out the small ones."""
    import pandas

    if share >= 1:
        return data[columns].compute()
    parts = data[columns].to_delayed()
    drawn = [delayed(_pick)(part, share, (seed, i)) for i, part in enumerate(parts)]
    return pandas.concat(compute(*drawn))


# ---- in a worker ----------------------------------------------------------------------------


def _classifier(content: bytes | Model, key: str, watch: Watch | None) -> Any:
    def first() -> Any:
        return once(key, lambda: unpack(content))

    return first() if watch is None else watch.follow(first)()


def _pick(frame: Any, share: float, seed: tuple[int, int]) -> Any:
    return frame[np.random.default_rng(seed).random(len(frame)) < share]


def _decide(frame: Any, content: bytes | Model, key: str, watch: Watch | None, work: Adding) -> Any:
    return work.on_pandas(_classifier(content, key, watch), frame)


def _count(
    frame: Any, content: bytes | Model, key: str, watch: Watch | None, work: Counting
) -> npt.NDArray[np.float64]:
    return work.on_pandas(_classifier(content, key, watch), frame)


def _add(sums: list[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    total: npt.NDArray[np.float64] = np.sum(sums, axis=0)
    return total
