"""How a live premade model decides. Keras models have no labels, so its loss and its bounds tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qwyc.errors import ModelError, OptionError
from qwyc.importers.tensorflow_lattice.calibrators import piecewise_linear
from qwyc.model.link import Link

# A threshold for a model whose output is always above, or always below, the one that decides. Scores are
# much smaller.
FAR = 2.0**1000


@dataclass(frozen=True)
class Decision:
    """The decision on the model's own output, and how the output follows from the score."""

    output: float  # positive where the output is at least this
    link: Link
    told: bool = True  # whether the loss or the bounds say where the output turns

    @property
    def score(self) -> float:
        """The smallest score whose output is positive."""
        try:
            return self.link.score_of_output(self.output)
        except OptionError:
            return -FAR if self.link.outputs[0] >= self.output else FAR

    @property
    def doubt(self) -> str:
        """Why this may not be the decision that was meant; empty where nothing speaks against it."""
        if abs(self.score) == FAR:
            every = "positive" if self.score < 0 else "negative"
            return f"the model's output never crosses {self.output:g}, so every row is {every}"
        if not self.told:
            return (
                "neither the loss that the model was compiled with nor its bounds tell where it decides, "
                f"so rows are positive where its output is at least {self.output:g}"
            )
        return ""


def decision_of(model: Any, output_calibration: Any) -> Decision:
    """The decision of a model, and the layer that calibrates its output or None."""
    found = _from_loss(getattr(model, "loss", None)) or _from_bounds(model)
    output, link = found or (0.0, Link("none"))
    if output_calibration is not None:
        link = replace(_calibration(output_calibration), means=link.kind)
    return Decision(output, link, told=found is not None)


def _from_loss(loss: Any) -> tuple[float, Link] | None:
    """By the loss that the model was compiled with; None where it does not tell."""
    if isinstance(loss, (list, tuple)) and len(loss) == 1:
        loss = loss[0]
    if isinstance(loss, dict) and len(loss) == 1:
        loss = next(iter(loss.values()))
    # A name, a function, or an object of a class such as BinaryCrossentropy.
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    name = name.replace("_", "").lower()
    if name in ("binarycrossentropy", "bce"):  # Keras takes "bce" and "BCE" for the same loss
        if getattr(loss, "from_logits", False):
            return 0.0, Link()
        return 0.5, Link("identity")
    if name in ("hinge", "squaredhinge"):
        return 0.0, Link("none")
    return None


def _from_bounds(model: Any) -> tuple[float, Link] | None:
    """By the bounds of its output; None where they do not tell."""
    config = getattr(model, "model_config", None)
    bounds = getattr(config, "output_min", None), getattr(config, "output_max", None)
    return (0.5, Link("identity")) if bounds == (0.0, 1.0) else None


def _calibration(layer: Any) -> Link:
    """An output calibration as a link."""
    curves = piecewise_linear(layer, 0)
    if len(curves) != 1 or curves[0].missing is not None:
        raise ModelError(
            f"the layer {layer.name!r} calibrates the output with {len(curves)} units or an output for "
            "missing values; qwyc reads an increasing output calibration of one unit"
        )
    points, outputs = curves[0].points, curves[0].outputs
    if (np.diff(outputs) < 0).any():
        raise ModelError(
            f"the layer {layer.name!r} calibrates the output, and is not increasing: a threshold on the "
            "output is then none on the score. Train the model with its constraints on"
        )
    return Link("piecewise", points=tuple(points.tolist()), outputs=tuple(outputs.tolist()))
