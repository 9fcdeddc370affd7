"""What Spark's Python workers run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.distributed.adding import Adding
from qwyc.distributed.watching import Delivery
from qwyc.distributed.work import Counting
from qwyc.errors import InputError


@dataclass(frozen=True)
class Decide:
    """For `mapInArrow`: rows in, rows with decisions out."""

    delivery: Delivery
    work: Adding

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Record batches whose columns are `work.needed`, under other names."""
        names = self.work.needed
        for batch in batches:
            yield self.work.on_arrow(self.delivery(), _renamed(batch.columns, names))


@dataclass(frozen=True)
class Count:
    """For `mapInArrow`: rows in, the sums of a partition out."""

    delivery: Delivery
    work: Counting

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Record batches whose columns are `work.features`, under other names."""
        import pyarrow

        sums: npt.NDArray[np.float64] | None = None
        names = list(self.work.features)
        for batch in batches:
            rows = pyarrow.Table.from_arrays(batch.columns, names=names)  # can be taken in blocks
            part = self.work.on_arrow(self.delivery(), rows)
            sums = part if sums is None else sums + part
        if sums is not None:
            at = pyarrow.array(np.arange(len(sums), dtype=np.int32))
            yield pyarrow.RecordBatch.from_arrays([at, pyarrow.array(sums)], ["at", "value"])


@dataclass(frozen=True)
class Function:
    """A function of columns: the features in order, or one struct that has them by name. It gives a struct
    of decisions, or one field of it."""

    delivery: Delivery
    work: Adding
    output: str | None = None

    def over_arrow(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """Of Arrow arrays; its annotations say what Spark looks for."""
        import pyarrow

        def decide(arguments: Iterator[Any]) -> Iterator[Any]:
            for arrays in arguments:
                given = arrays if isinstance(arrays, tuple) else (arrays,)
                columns = self.work.decided(self.delivery(), self._rows(given))
                if self.output is None:
                    yield pyarrow.StructArray.from_arrays(columns, names=list(self.work.added))
                else:
                    yield columns[self.work.added.index(self.output)]

        decide.__annotations__ = {
            "arguments": Iterator[tuple[pyarrow.Array, ...]],
            "return": Iterator[pyarrow.Array],
        }
        return decide

    def _rows(self, arrays: tuple[Any, ...]) -> Any:
        """The arguments as a record batch of the features."""
        import pyarrow

        names = list(self.work.features)
        if len(arrays) == 1 and pyarrow.types.is_struct(arrays[0].type):
            struct = arrays[0]
            fields = [field.name for field in struct.type]
            missing = [name for name in names if name not in fields]
            if missing:
                raise InputError(
                    f"the struct has no field {missing[0]!r}; the model takes {names}; it has {fields}"
                )
            values = struct.flatten()
            return _renamed([values[fields.index(name)] for name in names], names)
        if len(arrays) != len(names):
            raise InputError(
                f"the function takes the {len(names)} columns of the model, {names}, or one struct with "
                f"these fields; got {len(arrays)} arguments"
            )
        return _renamed(list(arrays), names)

    def over_pandas(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """Of pandas frames, which Spark before 4.1 makes of one struct."""
        import pandas

        def decide(frames: Iterator[Any]) -> Iterator[Any]:
            for frame in frames:
                columns = self.work.on_pandas(self.delivery(), frame)
                yield columns if self.output is None else columns[self.output]

        out: Any = pandas.DataFrame if self.output is None else pandas.Series
        decide.__annotations__ = {"frames": Iterator[pandas.DataFrame], "return": Iterator[out]}
        return decide


def _renamed(columns: list[Any], names: list[str]) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays(columns, names=names)
