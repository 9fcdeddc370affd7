"""The ensembles of the experiments, with their smaller versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import qwyc

from . import forests, lattices, margins, models
from .bench import Bench
from .data import Data
from .experiments import Experiment
from .setting import Setting

Done = Callable[[], None]
Stage = Callable[[str, int], Done]  # name, number of steps


def prepare(experiment: Experiment, setting: Setting, data: Data, stage: Stage) -> Bench:
    """Train the full ensemble and the smaller ones, or take those that are stored."""
    if experiment.features is not None:
        stage("Choosing features", 0)
        data = data.features(models.strongest_features(data, experiment.features))
    return FAMILIES[experiment.family](experiment, setting, data, stage)


def boosted(library: Any) -> Callable[[Experiment, Setting, Data, Stage], Bench]:
    """Gradient boosted trees of a library: `models` (XGBoost) or `margins` (LightGBM)."""

    def make(experiment: Experiment, setting: Setting, data: Data, stage: Stage) -> Bench:
        grid = stage("Choosing settings", library.steps(setting))
        choices = library.choose(data, setting, grid)
        done = stage("Training", 1 + len(setting.sizes))

        def train(size: int) -> Any:
            model = library.train(data, size, setting, choices[size])
            done()
            return model

        full = train(setting.models)
        smaller = {size: _predicts(train(size)) for size in setting.sizes}
        facts = {
            "model": library.describe(setting),
            "settings": "; ".join(
                f"{size} trees: {choice}" for size, choice in sorted(choices.items())
            ),
            "version": library.version(),
        }
        return Bench(experiment, setting, data, qwyc.read_model(full), smaller, facts)

    return make


def voting(experiment: Experiment, setting: Setting, data: Data, stage: Stage) -> Bench:
    """A random forest whose trees vote."""
    done = stage("Choosing settings", len(forests.LEAF_ROWS))
    choice = forests.choose(data, setting.models, done)
    stage("Training", 0)
    forest = forests.train(data, setting.models, choice)
    smaller = {size: _predicts(forests.first_trees(forest, size)) for size in setting.sizes}
    facts = {
        "model": forests.describe(setting.models),
        "settings": str(choice),
        "version": forests.version(),
    }
    return Bench(experiment, setting, data, qwyc.read_model(forest), smaller, facts)


def of_lattices(experiment: Experiment, setting: Setting, data: Data, stage: Stage) -> Bench:
    """Lattices, trained jointly or independently: stored models, or trained now."""
    name, training = experiment.data, experiment.family
    done = stage("Reading or training lattices", 1 + len(setting.sizes))
    full = lattices.full(name, training, data, setting.quick)
    done()

    smaller = {}
    for size in setting.sizes:
        smaller[size] = _decides(lattices.smaller(name, training, size, data, setting.quick))
        done()
    return Bench(experiment, setting, data, full, smaller, _of_index(experiment, setting, full))


def _of_index(experiment: Experiment, setting: Setting, full: qwyc.Ensemble) -> dict[str, str]:
    """How lattices were trained, in words."""
    how = "trained jointly" if experiment.family == "joint" else "each trained by itself"
    model = f"{full.n_models} lattices, {how}"
    if setting.quick:
        return {"model": model, "settings": "fitted by regression", "version": "no TensorFlow"}
    entry = lattices.describe(experiment.data, experiment.family)
    losses = ", ".join(f"{rate}: {loss:.4f}" for rate, loss in entry["validation_losses"].items())
    versions = entry["versions"]
    return {
        "model": f"{model}, each on {entry['shape']['inputs']} features",
        "settings": f"Adam with learning rate {entry['chosen_rate']:g} (validation losses {losses}), "
        f"{entry['settings']['epochs']} epochs, batches of {entry['settings']['batch']}; trained in "
        f"{entry['seconds']:.0f} s",
        "version": f"TensorFlow Lattice {versions['tensorflow-lattice']} on TensorFlow "
        f"{versions['tensorflow']}",
    }


FAMILIES = {
    "xgboost": boosted(models),
    "lightgbm": boosted(margins),
    "forest": voting,
    "joint": of_lattices,
    "independent": of_lattices,
}


def _predicts(model: Any) -> Callable[[Any], npt.NDArray[np.bool_]]:
    return lambda X: np.asarray(model.predict(X)).astype(bool)


def _decides(ensemble: qwyc.Ensemble) -> Callable[[Any], npt.NDArray[np.bool_]]:
    return lambda X: ensemble.score_full(X) >= ensemble.threshold
