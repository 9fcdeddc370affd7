"""The two ensembles, and how much is run: everything, or enough to see that it works."""

from __future__ import annotations

from dataclasses import dataclass, replace

KEYPOINTS = 10
INTERPOLATIONS = ("hypercube", "simplex")


@dataclass(frozen=True)
class Shape:
    """An ensemble of lattices of size 2, its data and how it is trained."""

    name: str
    lattices: int
    inputs: int  # of a lattice
    features: int  # of a row
    positive: float  # share of positive labels
    sharpness: float  # of labels: larger is less noise
    quit: str  # "both" or "negative", for `qwyc.optimize`
    seed: int
    training_rows: int
    policy_rows: int
    test_rows: int
    epochs: int
    training_batch: int
    learning_rate: float
    hypercube_call: int  # most rows in a call of TensorFlow: it has tensors of (rows, vertices)
    simplex_call: int  # the same, of (rows, inputs of all lattices)
    paper: str  # what the paper's ensemble of these sizes took per row, on its machine

    @property
    def title(self) -> str:
        return f"{self.name}: {self.lattices} lattices on {self.inputs} of {self.features} features"

    def call_rows(self, interpolation: str) -> int:
        return self.simplex_call if interpolation == "simplex" else self.hypercube_call


@dataclass(frozen=True)
class Sizes:
    """One run's sizes."""

    name: str
    shapes: tuple[Shape, ...]
    rows: int  # in the largest batch, drawn from the test rows
    batches: tuple[int, ...]
    seconds: float  # for each contestant with the largest batch
    small_seconds: float  # and with the others
    peak_seconds: float
    cpu_time: bool = False  # of batches, for a busy machine


A = Shape(
    name="A",
    lattices=5,
    inputs=13,
    features=16,
    positive=0.05,
    sharpness=8.0,
    quit="negative",
    seed=1,
    training_rows=60_000,
    policy_rows=40_000,
    test_rows=16_384,
    epochs=8,
    training_batch=256,
    learning_rate=0.02,
    hypercube_call=4096,
    simplex_call=100_000,
    paper="4.98 µs",
)
B = Shape(
    name="B",
    lattices=500,
    inputs=8,
    features=30,
    positive=0.5,
    sharpness=4.0,
    quit="both",
    seed=2,
    training_rows=20_000,
    policy_rows=40_000,
    test_rows=16_384,
    epochs=4,
    training_batch=256,
    learning_rate=0.05,
    hypercube_call=4096,
    simplex_call=4096,
    paper="322 µs",
)
TINY_A = replace(
    A,
    lattices=3,
    inputs=4,
    features=5,
    training_rows=2000,
    policy_rows=2000,
    test_rows=512,
    epochs=1,
)
TINY_B = replace(
    B,
    lattices=20,
    inputs=3,
    features=6,
    training_rows=2000,
    policy_rows=2000,
    test_rows=512,
    epochs=1,
)
TINY_A, TINY_B = (
    replace(shape, hypercube_call=256, simplex_call=256) for shape in (TINY_A, TINY_B)
)
FULL = Sizes("full", (A, B), 100_000, (1, 256, 100_000), 1.5, 0.5, 0.5)
TINY = Sizes("tiny", (TINY_A, TINY_B), 1000, (1, 16, 1000), 0.01, 0.01, 0.01)
SIZES = {sizes.name: sizes for sizes in (FULL, TINY)}
