"""Verdicts on claims about bins and histograms, on made-up outcomes."""

import numpy as np

from outcomes import N, Spec, T, base_specs, check, labels, made, point, widths
from qwyc_experiments.paper.claims import FAILS, HOLDS, IN_PART, OPEN, shape
from qwyc_experiments.paper.curves import FAN_STAR, QWYC

RNG = np.random.default_rng(0)


def verdict(judge, specs=None, **more):
    return check(judge(made(specs=specs, **more))).verdict


def test_bin_widths():
    judge = shape.best_width
    assert judge(made()) is None
    assert verdict(judge, widths=widths((90.0, 60.0, 70.0))) == HOLDS
    assert verdict(judge, widths=widths((90.0, 60.0, 50.0))) == FAILS
    assert verdict(judge, widths=widths((50.0, 60.0, 50.0))) == FAILS
    assert verdict(judge, widths=widths((60.0, 60.0, 60.0))) == OPEN
    bins = {0.001: 400.0, 0.1: 10.0}
    found = check(judge(made(widths=widths((90.0, 60.0, 70.0)), bins=bins)))
    assert "400 at width 0.001" in found.evidence
    judge = shape.narrow_bins_overfit
    assert judge(made()) is None
    assert verdict(judge, widths=widths((60.0,) * 3, (0.3, 1.0, 1.0))) == HOLDS
    assert verdict(judge, widths=widths((60.0,) * 3, (1.0, 1.0, 0.3))) == FAILS
    assert verdict(judge, widths=widths((60.0,) * 3)) == OPEN


def test_thresholds_and_unknown_bins():
    assert verdict(shape.many_thresholds, bins={0.001: 400.0, 0.1: 10.0}) == HOLDS
    assert verdict(shape.many_thresholds, bins={0.001: 400.0, 0.1: 9.0}) == IN_PART
    assert verdict(shape.many_thresholds, bins={0.1: 3.0}) == FAILS
    assert shape.many_thresholds(made()) is None
    found = check(shape.unknown_bins(made(specs={FAN_STAR: Spec(60.0, unknown=12)})))
    assert (found.verdict, found.figure) == (HOLDS, "12 of 8,000")
    assert verdict(shape.unknown_bins, {FAN_STAR: Spec(60.0, unknown=500)}) == FAILS


def test_histogram():
    judge = shape.histogram_falls_off
    falling = np.minimum(RNG.geometric(0.02, N), T).astype(np.int32)
    even = RNG.integers(1, T + 1, N).astype(np.int32)
    others = {key: Spec(60.0, steps=even) for key in base_specs()}
    assert verdict(judge, {**others, QWYC: Spec(40.0, steps=np.sort(falling)[::-1])}) == HOLDS
    assert verdict(judge, {QWYC: Spec(40.0, steps=even)}) == FAILS
    assert verdict(judge, {QWYC: Spec(40.0, steps=falling)}) == IN_PART  # the others rise less
    line, _ = shape.shape(point(QWYC, 0.1, labels(0.1), falling), T)
    assert line > 0.9
    line, _ = shape.shape(point(QWYC, 0.1, labels(0.1), even), T)
    assert line < 0.3


def test_histogram_of_five_base_models():
    few = np.minimum(RNG.geometric(0.6, N), 5).astype(np.int32)
    line, rises = shape.shape(point(QWYC, 0.1, labels(0.1), few), 5)
    assert (line > 0.9, rises) == (True, 0.0)
    assert shape.histogram(few, 5).tolist() == np.bincount(few, minlength=6)[1:].tolist()
    assert shape.shape(point(QWYC, 0.1, labels(0.1), np.ones(N, dtype=int)), 5) == (None, 0.0)
    assert shape.shape(point(QWYC, 0.1, labels(0.1), np.ones(N, dtype=int)), 1) == (None, 0.0)
    small = made("rw1-joint", 5, {QWYC: Spec(1.3)}, sizes=())
    assert "4 bins" in check(shape.histogram_falls_off(small)).evidence
