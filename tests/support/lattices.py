"""Random ensembles of lattices with everything that a calibrator and a base model can have."""

from __future__ import annotations

import numpy as np

from qwyc.model.lattices.join import CalibratorPart, ModelPart, pack
from qwyc.model.lattices.models import CalibratorKind, Interpolation, lattice_ensemble
from qwyc.rows.schema import Schema


def random_calibrator(rng, n_features, largest):
    """A calibrator of a random column, whose outputs may leave 0 .. largest a little."""
    feature, missing = int(rng.integers(n_features)), None
    if rng.random() < 0.4:
        value = float(rng.choice([np.nan, -1.0, 0.5, 2.0]))
        missing = (value, float(rng.uniform(0, largest)))
    if rng.random() < 0.3:
        count = int(rng.integers(1, 7))
        if missing is not None and not np.isnan(missing[0]):
            missing = (float(rng.integers(-1, count + 1)), missing[1])
        return CalibratorPart(
            CalibratorKind.CATEGORICAL,
            feature,
            np.arange(count),
            rng.uniform(-0.2, largest + 0.2, count),
            missing,
            float(rng.uniform(0, largest)),
        )
    count = int(rng.integers(2, 11))
    points = np.sort(rng.choice(np.arange(-30, 31), count, replace=False)) / 10
    outputs = rng.uniform(-0.2, largest + 0.2, count)
    if rng.random() < 0.3:
        outputs = np.round(outputs)  # on the vertices
    return CalibratorPart(CalibratorKind.PIECEWISE_LINEAR, feature, points, outputs, missing)


def random_model(rng, n_calibrators, *, most_inputs, most_size, kind=None):
    """A base model of a random kind, on random calibrators, some of them perhaps twice."""
    kind = Interpolation(int(rng.integers(3)) if kind is None else kind)
    d = int(rng.integers(1, most_inputs + 1))
    inputs = rng.integers(0, n_calibrators, d).tolist()
    weight = float(rng.choice([1.0, -1.0, 0.1, rng.normal()]))
    if kind == Interpolation.LINEAR:
        return ModelPart(kind, weight, inputs, [0] * d, rng.normal(size=d + 1))
    sizes = rng.integers(2, most_size + 1, d).tolist()
    return ModelPart(kind, weight, inputs, sizes, rng.normal(size=int(np.prod(sizes))))


def random_lattices(
    seed, *, n_models=12, n_features=5, most_inputs=5, most_size=3, dtype=None, kind=None, **options
):
    """An ensemble of random lattices and linear terms."""
    rng = np.random.default_rng(seed)
    dtype = dtype or str(rng.choice(["float32", "float64"]))
    calibrators = [random_calibrator(rng, n_features, most_size - 1) for _ in range(2 * n_features)]
    models = [
        random_model(rng, len(calibrators), most_inputs=most_inputs, most_size=most_size, kind=kind)
        for _ in range(n_models)
    ]
    options = {"base": float(rng.normal()), "mean": False, "threshold": 0.0} | options
    return lattice_ensemble(
        pack(calibrators, models, dtype),
        Schema(n_features=n_features, names=None, dtype=dtype),
        classes=np.array([0, 1]),
        **options,
    )


def lattice_rows(seed, ensemble, n=300):
    """Rows on keypoints and beside them, with codes, NaN, infinities and values that mean missing."""
    rng = np.random.default_rng(seed)
    shape = (n, ensemble.schema.n_features)
    rows = rng.normal(size=shape)
    rows = np.where(rng.random(shape) < 0.4, np.round(rows, 1), rows)
    rows = np.where(rng.random(shape) < 0.3, rng.integers(-2, 9, shape).astype(float), rows)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1.0, 0.5, 1e30, -0.5, 2.0**24, 3.999]
    rows = np.where(rng.random(shape) < 0.2, rng.choice(odd, shape), rows)
    return rows.astype(ensemble.schema.dtype)
