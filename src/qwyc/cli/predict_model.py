"""`qwyc predict` for models that are evaluated in full: values, classes, probabilities and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import InputError
from qwyc.model.probabilities import full_scores, values_of
from qwyc.policy.columns import arrow_type
from qwyc.predictor import Predictor
from qwyc.rows.files.batch import Batch
from qwyc.rows.files.reader import TableFiles
from qwyc.rows.files.writer import TableWriter
from qwyc.runtime.output import open_output


@dataclass
class FullPredictions:
    """Evaluates rows in full, batch by batch, and counts them."""

    model: Predictor
    files: TableFiles
    prefix: str
    threads: int | None
    proba: bool
    raw: bool
    rows: int = 0

    @property
    def names(self) -> list[str]:
        """The columns that are added."""
        model, of = self.model, self._names_of
        names = ["label"] if model.has_classes else of("value", not model.by_class)
        if self.proba:
            names += of("proba", False)
        if self.raw:
            names += of("score", not model.by_class)
        return [self.prefix + name for name in names]

    def _names_of(self, name: str, single: bool) -> list[str]:
        labels = self.model.classes.tolist() or range(self.model.base_models.n_scores)
        return [name] if single else [f"{name}_{label}" for label in labels]

    def write_all(self, batches: Iterator[Batch], output: Path, kind: str) -> None:
        """Evaluate all rows and write them."""
        write_batches(self.predict, batches, output, kind)

    def predict(self, batch: Batch) -> Any:
        """A batch of the output, a pyarrow.RecordBatch."""
        import pyarrow

        model, threads = self.model, self.threads
        arrays: list[Any] = []
        try:
            scores = full_scores(model, batch.rows, threads=threads)
            if model.has_classes:
                labels = model.classes[model.target.decide(scores)]
                arrays.append(pyarrow.array(labels.tolist(), type=arrow_type(model.classes)))
            else:
                arrays += _columns(values_of(model, scores, threads=threads))
            if self.proba:
                arrays += _columns(model.predict_proba(batch.rows, threads=threads))
        except InputError as error:
            raise self.files.named(error, self.rows) from None
        if self.raw:
            arrays += _columns(scores)
        self.rows += len(scores)
        return pyarrow.RecordBatch.from_arrays(
            [*batch.kept.columns, *arrays], names=[*batch.kept.schema.names, *self.names]
        )

    def facts(self) -> dict[str, Any]:
        """The counts, for --json."""
        return {"rows": self.rows, "base_models": self.model.n_models}

    def summary(self) -> str:
        """The counts as a sentence."""
        return f"all {self.model.n_models} base models on every row."


def write_batches(
    predict: Callable[[Batch], Any], batches: Iterator[Batch], output: Path, kind: str
) -> None:
    """Write what is predicted for each batch, a pyarrow.RecordBatch."""
    first = predict(next(batches))  # an error in it comes before the output is opened
    with open_output(output) as file:
        writer = TableWriter(file, kind, first.schema, pipe=str(output) == "-")
        writer.write(first)
        for batch in batches:
            writer.write(predict(batch))
        writer.close()


def _columns(values: npt.NDArray[Any]) -> list[Any]:
    """(N,) or (N, K) as Arrow arrays."""
    import pyarrow

    columns = values[:, np.newaxis] if values.ndim == 1 else values
    return [pyarrow.array(np.ascontiguousarray(column)) for column in columns.T]
