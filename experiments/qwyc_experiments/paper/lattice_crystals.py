"""Features of each lattice by the Crystals algorithm of TensorFlow Lattice (Canini et al., 2016).

A prefitting ensemble has a lattice for every pair of features. The torsion of such a lattice, its
departure from a sum of two terms, tells how much the pair interacts. Crystals puts features that interact
into the same lattice, and the more important ones into more lattices."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .data import Data
from .lattice_graph import MISSING, tensorflow, without_nan
from .lattice_shapes import Shape, keypoints

PAIRS = 2
RATE, BATCH, EPOCHS = 0.02, 1024, 2  # of the prefitting ensemble
SEED = 0


def crystals(shape: Shape, data: Data) -> npt.NDArray[np.int64]:
    """Features of each lattice, (T, d), from the training rows without the validation rows."""
    _, tfl, _ = tensorflow()
    config, model = prefitted(data, shape.keypoints, shape.missing)
    names = [f"f{j}" for j in range(data.X.shape[1])]
    if shape.lattices * shape.inputs < len(names):
        # Crystals uses every feature at least once, for which there is no room. Take what it looks for:
        # the features whose pairs interact most.
        torsion = np.array(tfl.premade_lib._get_torsions_and_laplacians(config, model, names)[0])
        best = max(
            itertools.combinations(range(len(names)), shape.inputs),
            key=lambda kept: torsion[np.ix_(kept, kept)].sum(),
        )
        return np.array([best])
    wanted = ensemble_config(data, shape.keypoints, shape.missing, shape.lattices, shape.inputs)
    tfl.premade_lib.set_crystals_lattice_ensemble(wanted, config, model)
    return np.array([sorted(names.index(name) for name in each) for each in wanted.lattices])


@lru_cache(maxsize=1)
def prefitted(data: Data, points: int, missing: bool) -> tuple[Any, Any]:
    """A trained ensemble of all pairs and its configuration. It serves ensembles of every size."""
    _, tfl, keras = tensorflow()
    pairs = ensemble_config(data, points, missing, PAIRS, PAIRS)
    config = tfl.premade_lib.construct_prefitting_model_config(pairs)
    keras.utils.set_random_seed(SEED)
    model = tfl.premade.CalibratedLatticeEnsemble(config)
    model.compile(
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        optimizer=keras.optimizers.Adam(RATE),
    )
    rows = without_nan(data.X[~data.validation])
    model.fit(
        [rows[:, j : j + 1] for j in range(rows.shape[1])],
        data.y[~data.validation],
        batch_size=BATCH,
        epochs=EPOCHS,
        verbose=0,
    )
    return config, model


def ensemble_config(data: Data, points: int, missing: bool, lattices: int, inputs: int) -> Any:
    """A configuration whose lattices Crystals is to find."""
    _, tfl, _ = tensorflow()
    features = [
        tfl.configs.FeatureConfig(
            name=f"f{j}",
            lattice_size=2,
            pwl_calibration_input_keypoints=keypoints(column, points).tolist(),
            default_value=MISSING if missing else None,
        )
        for j, column in enumerate(data.X[~data.validation].T)
    ]
    return tfl.configs.CalibratedLatticeEnsembleConfig(
        feature_configs=features,
        lattices="crystals",
        num_lattices=lattices,
        lattice_rank=inputs,
        separate_calibrators=False,
        output_initialization=[-2.0, 2.0],
        random_seed=SEED,
    )
