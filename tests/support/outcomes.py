"""Made-up outcomes of the paper's experiments, with the trade-offs that a test wants.

Decisions and steps of every test row are made first, and all figures are computed from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from qwyc_experiments.paper import claims, curves
from qwyc_experiments.paper.curves import FAN_STAR, OURS, QWYC, SMALLER

N, T = 8_000, 500
SHARES = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04)  # of test differences, one for each point
SIZES = (5, 10, 20, 40, 80, 160)
FULL_ACCURACY = 0.87
LESS = {"default": 30.0, "qwyc": 40.0, "fan": 60.0, "algorithm-2": 90.0}  # see Spec.models
NOT_WORDS = re.compile(r"\b(nan|inf|none)\b|\de[+-]\d", re.IGNORECASE)  # numbers gone wrong


def check(verdict):
    """What holds of every verdict."""
    assert verdict.verdict in (claims.HOLDS, claims.IN_PART, claims.FAILS, claims.OPEN)
    for text in (verdict.figure, verdict.evidence):
        assert text
        assert not NOT_WORDS.search(text), text
    assert re.match("[A-Z0-9]|qwyc", verdict.evidence), verdict.evidence
    assert verdict.evidence.endswith("."), verdict.evidence
    return verdict


@dataclass(frozen=True)
class Spec:
    """A method's curve."""

    models: float  # base models at 0.5% differences; half as many at 2%
    least: float = 0.0  # differences are never fewer
    gain: float = 0.5  # share of the differences that correct the full ensemble
    fitted: float = 1.0  # differences on the fitted rows, as a share of those on test rows
    noise: int | None = None  # seed of the rows that differ; None: the same rows for all methods
    steps: np.ndarray | None = None  # (N,) instead of steps that are nearly equal
    seeds: tuple[int | None, ...] = (None,)
    unknown: int = 0


def base_specs():
    """The paper's methods: QWYC* needs the fewest, then Fan's rule, then Algorithm 2."""
    specs = {QWYC: Spec(40.0, gain=1.0)}
    for rule in ("algorithm-2", "fan"):
        for order in curves.ORDERS:
            seeds = (0, 1) if order == "random" else (None,)
            specs[rule, order] = Spec(LESS[rule], gain=0.0, seeds=seeds)
    return specs


@cache
def rows():
    """Full decisions and truth, (N,) each; the rows where the full ensemble is right and wrong."""
    rng = np.random.default_rng(0)
    positive = rng.random(N) < 0.3
    wrong = np.zeros(N, dtype=bool)
    wrong[rng.permutation(N)[: round((1 - FULL_ACCURACY) * N)]] = True
    return positive, positive ^ wrong, np.flatnonzero(~wrong), np.flatnonzero(wrong)


def labels(share, gain=0.5, noise=None):
    """Decisions that differ from the full ensemble's on a share of the rows."""
    positive, _, right, wrong = rows()
    rng = np.random.default_rng(noise if noise is not None else 12345)
    count = round(share * N)
    better = min(round(gain * count), len(wrong))
    label = positive.copy()
    label[rng.permutation(wrong)[:better]] ^= True
    label[rng.permutation(right)[: count - better]] ^= True
    return label


def steps_of(models):
    """Steps with this mean, (N,)."""
    low = int(np.floor(models))
    return (low + (np.arange(N) < round((models - low) * N))).astype(np.int32)


def point(key, knob, label, steps, *, fitted=1.0, seed=None, width=None, unknown=0):
    positive, truth, _, _ = rows()
    test = curves.Measured(
        float(np.mean(steps)), float(np.mean(label != positive)), float(np.mean(label == truth))
    )
    seen = replace(test, differ=fitted * test.differ)
    if key[0] == "fan" and width is None:
        width = 0.01
    return curves.Point(*key, knob, seed, width, seen, test, steps, label, unknown=unknown)


def points_of(key, spec, n_models=T, width=None):
    """The points of a method."""
    points = []
    for seed in spec.seeds:
        for share in SHARES:
            models = np.clip(spec.models * (0.005 / share) ** 0.5, 1, n_models)
            points.append(
                point(
                    key,
                    share if key[0] in curves.BOLD_WHEN_LARGE else 1 / share,
                    labels(max(share, spec.least), spec.gain, spec.noise),
                    steps_of(models) if spec.steps is None else spec.steps,
                    fitted=spec.fitted,
                    seed=seed,
                    width=width,
                    unknown=spec.unknown,
                )
            )
    return points


def made(name="adult", n_models=T, specs=None, *, sizes=SIZES, small_gain=0.0, **more):
    """An outcome. `specs` replaces or adds methods; None removes one. Smaller ensembles differ on
    0.3 / sqrt(size) of the rows, of which a share `small_gain` corrects the full ensemble."""
    every = {**base_specs(), **(specs or {})}
    points = [
        p for key, spec in every.items() if spec is not None for p in points_of(key, spec, n_models)
    ]
    for size in sizes:
        label = labels(0.3 / size**0.5, small_gain)
        points.append(point(SMALLER, size, label, np.full(N, size, dtype=np.int32)))
    positive, truth, _, _ = rows()
    full = curves.Measured(n_models, 0.0, float(np.mean(positive == truth)))
    results = curves.Results(name, n_models, N, N, full, full, positive, truth, tuple(points))
    return curves.Outcome(results, **more)


def timed(key, microseconds, *, models=40.0, differ=0.005, runs=20):
    """Runs within 1% of a time."""
    noise = np.random.default_rng(1).uniform(0.99, 1.01, runs)
    measured = curves.Measured(models, differ, FULL_ACCURACY)
    return curves.Timed(key, measured, microseconds * noise)


def timings(full=100.0, qwyc=30.0, star=50.0, **others):
    """The full ensemble, QWYC* and Fan*; `others` by name of a key in `curves`."""
    found = [
        timed(None, full, models=float(T), differ=0.0),
        timed(QWYC, qwyc),
        timed(FAN_STAR, star, models=60.0),
    ]
    return (*found, *(timed(getattr(curves, name), time) for name, time in others.items()))


def promised(alpha=0.005, broken=0, splits=20, differ=0.003):
    return curves.Promised(alpha, 50.0, differ, 2 * differ, broken, broken, splits)


def widths(models, fitted=(1.0, 1.0, 1.0)):
    """Points of Fan* at widths 0.001, 0.01 and 0.1, by base models at 0.5% differences."""
    return tuple(
        p
        for width, needs, share in zip((0.001, 0.01, 0.1), models, fitted, strict=True)
        for p in points_of(FAN_STAR, Spec(needs, fitted=share, unknown=7), width=width)
    )


def all_six():
    """All experiments of the paper, with everything that can be measured."""
    found = {}
    for name in ("adult", "nomao", "rw1-joint", "rw2-joint", "rw1-independent", "rw2-independent"):
        few = name.startswith("rw1")
        more = {
            "timed": timings(FAN_JOINT=28.0, JOINT_FAN=27.0, OURS=25.0),
            "promised": (promised(),),
            "widths": widths((90.0, 60.0, 70.0)),
            "bins": {0.001: 400.0, 0.01: 90.0, 0.1: 12.0},
            "correlation": 0.8 if name.endswith("independent") else 0.3,
        }
        specs = {
            OURS: Spec(30.0, gain=1.0),
            curves.FAN_JOINT: Spec(35.0),
            curves.JOINT_FAN: Spec(33.0),
            ("algorithm-2", "accuracy"): Spec(110.0),
        }
        if few:
            factor = 1.3 / 40
            specs = {
                key: replace(spec, models=spec.models * factor)
                for key, spec in {**base_specs(), **specs}.items()
            }
        found[name] = made(
            name, 5 if few else T, specs, sizes=(1, 2, 3, 4) if few else SIZES, **more
        )
    return found
