"""Ray Data: the classifier's file is in Ray's object store, once on every node. Worker processes map
it, and each loads it once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import ray

from qwyc.distributed.adding import Adding
from qwyc.distributed.shipping import KEPT, Parcel, once, unpack
from qwyc.distributed.watching import Delivery
from qwyc.distributed.work import Counting

SUMS = "sums"
CASE_MATTERS = True  # in names of columns


@dataclass(frozen=True)
class FromStore:
    """Where a worker finds a classifier: in the object store."""

    key: str
    content: Any  # ray.ObjectRef, of an array of bytes, or of what has code in it

    def __call__(self) -> Any:
        """The classifier, in a worker."""
        return once(self.key, self._load)

    def _load(self) -> Any:
        content = ray.get(self.content)  # an array: mapped, not copied
        return unpack(content.data if isinstance(content, np.ndarray) else content)


# What this driver has put into the store, by session and key; the oldest goes first.
_in_store: dict[tuple[str, str, str], Any] = {}


def _deliver(parcel: Parcel) -> Delivery:
    return parcel.follow(_from_store(parcel))


def _from_store(parcel: Parcel) -> FromStore:
    if not isinstance(parcel.content, bytes):  # with code in it, so no two are known to be alike
        return FromStore(parcel.key, ray.put(parcel.content))
    if not ray.is_initialized():
        ray.init()
    here = ray.get_runtime_context()
    place = here.get_node_id(), here.get_job_id(), parcel.key
    if place not in _in_store:  # put it there once only
        while len(_in_store) >= KEPT:
            del _in_store[next(iter(_in_store))]
        _in_store[place] = ray.put(np.frombuffer(parcel.content, np.uint8))
    return FromStore(parcel.key, _in_store[place])


def columns(data: Any) -> list[str]:
    return list(data.columns() or [])


def empty(data: Any, columns: list[str]) -> Any:
    """A table without rows, of these columns; None where Ray does not know their types."""
    import pyarrow

    schema = data.schema()
    base = None if schema is None else schema.base_schema
    if not isinstance(base, pyarrow.Schema):  # of pandas blocks, whose columns may hold any objects
        return None
    return pyarrow.schema([base.field(name) for name in columns]).empty_table()


def decide(data: Any, parcel: Parcel, work: Adding, classes: npt.NDArray[Any]) -> Any:
    """The Dataset with decisions, through `map_batches`, a block at a time."""
    return data.select_columns(work.needed).map_batches(
        _Decide(_deliver(parcel), work), batch_format="pyarrow", batch_size=None
    )


def total(data: Any, parcel: Parcel, work: Counting, size: int) -> npt.NDArray[np.float64]:
    """Sums over all rows: one row comes back for each block."""
    parts = data.select_columns(list(work.features)).map_batches(
        _Count(_deliver(parcel), work), batch_format="pyarrow", batch_size=None
    )
    sums = np.zeros(size)
    for batch in parts.iter_batches(batch_format="numpy"):
        sums += np.stack(batch[SUMS]).sum(axis=0)
    return sums


def count(data: Any) -> int:
    return int(data.count())


def draw(data: Any, columns: list[str], share: float, seed: int) -> Any:
    """About that share of the rows, as a pandas frame."""
    drawn = data.select_columns(columns)
    if share < 1:
        drawn = drawn.random_sample(share, seed=seed)
    return drawn.to_pandas()


# ---- in a worker ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Decide:
    delivery: Delivery
    work: Adding

    def __call__(self, table: Any) -> Any:
        return self.work.on_arrow(self.delivery(), table)


@dataclass(frozen=True)
class _Count:
    delivery: Delivery
    work: Counting

    def __call__(self, table: Any) -> Any:
        return {SUMS: self.work.on_arrow(self.delivery(), table)[np.newaxis]}
