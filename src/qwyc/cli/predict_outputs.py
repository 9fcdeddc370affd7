"""`qwyc predict` for files that were made with a tolerance: values or probabilities, and steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import qwyc
from qwyc.cli.predict_model import write_batches
from qwyc.errors import InputError
from qwyc.policy.columns import arrow_type
from qwyc.rows.files.batch import Batch
from qwyc.rows.files.reader import TableFiles


@dataclass
class OutputPredictions:
    """Approximates the outputs of rows batch by batch, and counts them."""

    made: qwyc.Approximation
    files: TableFiles
    prefix: str
    threads: int | None
    rows: int = 0
    steps: int = 0
    complete: int = 0

    @property
    def names(self) -> list[str]:
        """The columns that are added."""
        output, ensemble = ["value"], self.made.ensemble
        if ensemble.has_classes:
            output = ["label", f"proba_{ensemble.classes.tolist()[1]}"]
        return [self.prefix + name for name in (*output, "steps", "complete")]

    def write_all(self, batches: Iterator[Batch], output: Path, kind: str) -> None:
        """Approximate all rows and write them."""
        write_batches(self.predict, batches, output, kind)

    def predict(self, batch: Batch) -> Any:
        """A batch of the output, a pyarrow.RecordBatch."""
        import pyarrow

        try:
            decided = self.made.decide(batch.rows, threads=self.threads)
        except InputError as error:
            raise self.files.named(error, self.rows) from None
        self.rows += len(decided)
        self.steps += int(decided.steps.sum())
        self.complete += int(np.count_nonzero(decided.complete))
        classes, labels = self.made.ensemble.classes, []
        if self.made.ensemble.has_classes:
            labels.append(pyarrow.array(decided.label, arrow_type(classes)))
        added = [*labels, *map(pyarrow.array, (decided.score, decided.steps, decided.complete))]
        kept = batch.kept
        return pyarrow.RecordBatch.from_arrays(
            [*kept.columns, *added], names=[*kept.schema.names, *self.names]
        )

    def facts(self) -> dict[str, Any]:
        """The counts, for --json."""
        return {
            "rows": self.rows,
            "tolerance": self.made.tolerance,
            "mean_models": self.steps / self.rows if self.rows else None,
            "base_models": self.made.ensemble.n_models,
            "complete": self.complete,
        }

    def summary(self) -> str:
        """The counts as a sentence, if there are rows."""
        n_models = self.made.ensemble.n_models
        return f"{self.steps / self.rows:.1f} of {n_models} base models per row."
