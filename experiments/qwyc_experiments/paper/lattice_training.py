"""`python -m qwyc_experiments.paper.lattice_training`: train the lattice ensembles of the stand-ins.

Needs TensorFlow Lattice. Every ensemble is trained with a few learning rates on the training rows without
the validation rows. The rate with the least validation loss is used to train on all training rows, and the
result is stored. A model whose entry in the index matches the rows and settings is skipped, so that an
interrupted run can be resumed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import qwyc

from . import stored
from .data import Data, load
from .lattice_crystals import crystals
from .lattice_graph import Fit, Graph, tensorflow
from .lattice_shapes import (
    INDEPENDENT,
    JOINT,
    SHAPES,
    SIZES,
    Shape,
    assemble,
    keypoints,
    subsets_are_random,
)

SEED = 0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How the ensembles of an experiment are trained."""

    rates: dict[str, tuple[float, ...]]  # learning rates to choose from, by kind of training
    calibrator_rate: float
    epochs: int
    batch: int

    def fit(self, rate: float) -> Fit:
        return Fit(rate, self.calibrator_rate, self.epochs, self.batch)


PLANS = {
    "rw1": Plan({JOINT: (0.1, 0.3, 1.0, 3.0), INDEPENDENT: (0.1, 0.3, 1.0, 3.0)}, 0.005, 5, 512),
    "rw2": Plan({JOINT: (0.01, 0.03, 0.1, 0.3), INDEPENDENT: (0.1, 0.3, 1.0, 3.0)}, 0.005, 6, 256),
}


def jobs() -> list[tuple[str, str, int]]:
    """Experiment, kind of training and size of every model that is stored."""
    listed = []
    for name, shape in SHAPES.items():
        for size in (shape.lattices, *SIZES[name]):
            # One base model is trained alike either way. The first base models of an independently trained
            # ensemble on random features are a smaller such ensemble, so that it need not be stored.
            if size > 1:
                listed.append((name, JOINT, size))
            if size == shape.lattices or name == "rw1":
                listed.append((name, INDEPENDENT, size))
    return listed


def train(
    shape: Shape, training: str, data: Data, plan: Plan, say: Say = print
) -> tuple[qwyc.Ensemble, dict[str, Any]]:
    """An ensemble, and what its entry in the index says."""
    tensorflow()
    started = time.perf_counter()
    joint, rest, held_out = training == JOINT, ~data.validation, data.validation
    points = [keypoints(column, shape.keypoints) for column in data.X[rest].T]
    subsets = choose_subsets(shape, data)
    graph = Graph(points, subsets, missing=shape.missing, joint=joint, seed=SEED)
    losses = {}
    for rate in plan.rates[training]:
        graph.fit(data.X[rest], data.y[rest], plan.fit(rate), seed=SEED)
        scores = graph.predict(data.X[held_out])
        losses[rate] = validation_loss(scores, data.y[held_out], joint=joint)
        say(f"  rate {rate:g}: validation loss {losses[rate]:.5f}")
    best = min(losses, key=lambda rate: losses[rate])
    graph.fit(data.X, data.y, plan.fit(best), seed=SEED)
    ensemble = assemble(graph.numbers(), data, shape.negative)
    off = np.abs(graph.predict(data.X).mean(axis=1) - ensemble.score_full(data.X)).max()
    seconds = time.perf_counter() - started
    facts = {
        **wanted(shape, training, data, plan),
        "versions": versions(),
        "chosen_rate": best,
        "validation_losses": {f"{rate:g}": loss for rate, loss in losses.items()},
        "seconds": round(seconds, 1),
        "largest_difference_to_tensorflow": float(off),
        "subsets": "random" if subsets_are_random(shape) else subsets.tolist(),
        "ranges": [[float(each[0]), float(each[-1])] for each in points],
    }
    say(f"  rate {best:g} on all rows; {seconds:.0f} s in all, largest difference {off:.1e}")
    return ensemble, facts


def wanted(shape: Shape, training: str, data: Data, plan: Plan) -> dict[str, Any]:
    """What must be equal for a stored model to be up to date."""
    settings = {**asdict(plan), "rates": list(plan.rates[training]), "seed": SEED}
    return {
        "experiment": shape.name,
        "training": training,
        "size": shape.lattices,
        "shape": asdict(shape),
        "settings": settings,
        "rows": stored.rows_digest(data),
    }


def versions() -> dict[str, str]:
    packages = ("tensorflow", "tensorflow-lattice", "tf_keras")
    return {"qwyc": qwyc.__version__, **{name: version(name) for name in packages}}


def validation_loss(scores: npt.NDArray[Any], y: npt.NDArray[Any], *, joint: bool) -> float:
    """What training minimises: the loss of the mean of the base models, or the mean of their losses."""
    if joint:
        scores = scores.mean(axis=1, keepdims=True)
    return float(np.mean(np.logaddexp(0, scores) - y[:, None] * scores))


# ---- features of the lattices -----------------------------------------------------------------


def choose_subsets(shape: Shape, data: Data) -> npt.NDArray[np.int64]:
    """Features of each lattice, (T, d): at random, or by Crystals."""
    if subsets_are_random(shape):
        rng = np.random.default_rng(SEED)
        D = data.X.shape[1]
        # An ensemble of T lattices has the subsets of the first T of a larger one.
        drawn = [np.sort(rng.choice(D, shape.inputs, replace=False)) for _ in range(shape.lattices)]
        return np.array(drawn)
    return crystals(shape, data)


# ---- the command ------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> None:
    """Train and store what is not stored yet."""
    names = [stored.key(*job) for job in jobs()]
    parser = argparse.ArgumentParser(
        prog="python -m qwyc_experiments.paper.lattice_training", description=__doc__
    )
    parser.add_argument(
        "--only", nargs="+", metavar="MODEL", help=f"such as rw1-joint; all are {', '.join(names)}"
    )
    parser.add_argument("--folder", type=Path, default=stored.FOLDER, help="where models are kept")
    options = parser.parse_args(arguments)
    only = options.only or [""]
    unknown = [prefix for prefix in only if not any(name.startswith(prefix) for name in names)]
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; there are {', '.join(names)}")
    chosen = [job for job in jobs() if any(stored.key(*job).startswith(prefix) for prefix in only)]
    for name in dict.fromkeys(job[0] for job in chosen):
        data = load(name, None)
        for _, training, size in (job for job in chosen if job[0] == name):
            train_and_store(name, training, size, data, options.folder)


def train_and_store(name: str, training: str, size: int, data: Data, folder: Path) -> None:
    """Skips what is stored already."""
    shape, plan, key = (
        replace(SHAPES[name], lattices=size),
        PLANS[name],
        stored.key(name, training, size),
    )
    entry = stored.read_index(folder).get(key, {})
    if (
        is_current(entry, wanted(shape, training, data, plan))
        and (folder / entry["file"]).is_file()
    ):
        print(f"{key}: stored already", flush=True)
        return
    print(f"{key}: training", flush=True)
    ensemble, facts = train(shape, training, data, plan, say=lambda text: print(text, flush=True))
    stored.save(key, ensemble, facts, folder)


def is_current(entry: dict[str, Any], needed: dict[str, Any]) -> bool:
    return {name: entry.get(name) for name in needed} == json.loads(json.dumps(needed))


if __name__ == "__main__":
    try:
        main()
    except qwyc.QwycError as error:
        sys.exit(f"error: {error}")
