"""The oracle of lattices itself: its multiply-adds are rounded once, and its interpolations are what their
names say."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from lattices import lattice_rows, random_lattices
from oracle import lattices
from qwyc.model.lattices.models import Interpolation


def rounded(exact, bits, least_exponent):
    """A fraction rounded to the nearest float of that many bits; ties go to even."""
    if exact == 0:
        return 0.0
    size, exponent = abs(exact), 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    step = Fraction(2) ** max(exponent - bits + 1, least_exponent)
    whole, rest = divmod(size, step)
    if rest * 2 > step or (rest * 2 == step and whole % 2):
        whole += 1
    return float(whole * step) * (1 if exact > 0 else -1)


@pytest.mark.parametrize("scale", [1.0, 1e-19, 1e-22, 1e15])
@pytest.mark.parametrize(
    ("dtype", "bits", "least_exponent"), [("float32", 24, -149), ("float64", 53, -1074)]
)
def test_a_multiply_add_is_rounded_once(dtype, bits, least_exponent, scale):
    rng = np.random.default_rng(0)
    a = (rng.normal(size=800) * scale).astype(dtype)
    b = (rng.normal(size=800) * scale).astype(dtype)
    near = -(a * b) * (1 + rng.integers(-3, 4, 800) * 2.0 ** -rng.integers(bits - 4, bits + 3, 800))
    c = np.where(rng.random(800) < 0.5, near, rng.normal(size=800) * scale**2).astype(dtype)
    expected = [
        rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), bits, least_exponent)
        for x, y, z in zip(a, b, c, strict=True)
    ]
    found = lattices.fma(a, b, c)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    if scale == 1:  # two roundings give something else
        assert (found != a * b + c).any()


def exact_hypercube(inputs, sizes, vertices):
    """Multilinear interpolation in float64, corner by corner."""
    z = np.clip(inputs.astype(float), 0, np.array(sizes) - 1)
    corner = np.minimum(np.trunc(z), np.array(sizes) - 2).astype(int)
    table, value = vertices.reshape(sizes).astype(float), np.zeros(len(inputs))
    for sides in product((0, 1), repeat=len(sizes)):
        r = z - corner
        weight = np.prod(np.where(np.array(sides) == 1, r, 1 - r), axis=1)
        value += weight * table[tuple((corner + np.array(sides)).T)]
    return value


def exact_simplex(inputs, sizes, vertices):
    """The value of the function that is linear on each simplex, as a sum over its level sets."""
    z = np.clip(inputs.astype(float), 0, np.array(sizes) - 1)
    corner = np.minimum(np.trunc(z), np.array(sizes) - 2).astype(int)
    table, r = vertices.reshape(sizes).astype(float), z - corner
    values = []
    for place, first in zip(r, corner, strict=True):
        cuts = [1.0, *sorted(place, reverse=True), 0.0]
        total = 0.0
        for high, low in pairwise(cuts):
            above = (place >= high) if high < 1 else (place >= 1)
            total += (high - low) * table[tuple(first + above)]
        values.append(total)
    return np.array(values)


@pytest.mark.parametrize("kind", [Interpolation.HYPERCUBE, Interpolation.SIMPLEX])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_interpolation_is_what_its_name_says(kind, dtype):
    exact = exact_hypercube if kind == Interpolation.HYPERCUBE else exact_simplex
    tolerance = 3e-6 if dtype == "float32" else 1e-14
    for seed in range(6):
        ensemble = random_lattices(seed, n_models=6, dtype=dtype, kind=kind, most_inputs=6)
        models, rows = ensemble.base_models, lattice_rows(seed, ensemble, n=40)
        inputs, values = lattices.calibrated(models, rows), lattices.lattice_values(models, rows)
        for t in range(models.n_models):
            own, sizes, vertices = lattices._parts(models, t)
            expected = exact(inputs[:, own], tuple(sizes.tolist()), vertices)
            np.testing.assert_allclose(values[:, t], expected, atol=tolerance, rtol=0)


def test_calibrators_go_through_their_keypoints():
    for seed in range(10):
        ensemble = random_lattices(seed)
        models = ensemble.base_models
        for c in range(models.arrays.n_calibrators):
            points, outputs = lattices._points(models, c)
            missing = models.arrays.missing_value[c]
            plain = (points != missing) | (models.arrays.has_missing[c] == 0)
            found = lattices.calibrate(models, c, points)
            np.testing.assert_array_equal(found[plain], outputs[plain])
            low, high = lattices.calibrator_range(models, c)
            out = lattices.calibrate(models, c, lattice_rows(seed, ensemble)[:, 0])
            assert out.min() >= low
            assert out.max() <= high


def test_sums_on_the_grid_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    for seed in range(8):
        ensemble = random_lattices(seed, n_models=40)
        models = ensemble.base_models
        scores = lattices.lattice_scores(models, lattice_rows(seed, ensemble, n=60))
        full = lattices.lattice_full_score(models, scores)
        base = Fraction(lattices.base(models))
        exact = [float(base + sum(map(Fraction, row.tolist()))) for row in scores]
        np.testing.assert_array_equal(full, exact)
        shuffled = scores[:, rng.permutation(40)].astype(np.float64)
        np.testing.assert_array_equal(np.cumsum(shuffled, axis=1)[:, -1] + float(base), full)
        least, most = lattices.bounds(models)
        assert (scores >= least).all()
        assert (scores <= most).all()
