"""Claims about the bins of Fan's rule, and about the histogram of base models by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..curves import FAN_STAR, LEVEL, ORDERS, QWYC, Curve, Outcome, Point
from .verdicts import (
    AGAINST,
    FAILS,
    FOR,
    HOLDS,
    IN_PART,
    UNDECIDED,
    Claim,
    Verdict,
    by_experiment,
    digits,
    excess,
    mark_of,
    needs_fewer,
    points_of,
    settle,
)

BEST_WIDTH = 0.01  # the paper's, for scores of order 1; here in deviations of the full score
THRESHOLDS = 20  # per base model at least, two a bin
FEW_UNKNOWN = 30  # test rows that still count as "around 10"
ROUGH_LINE = 0.9  # a histogram falls exponentially where a line explains so much of its logarithm


def claims(outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """All of this module."""
    return [
        Claim(
            "A bin width of 0.01 is the best trade-off for Fan* in most experiments (here: 0.01 deviations "
            "of the full score).",
            "appendix C",
            by_experiment(outcomes, best_width),
        ),
        Claim(
            "Fan's rule generalises badly with many narrow bins.",
            "appendix C",
            by_experiment(outcomes, narrow_bins_overfit),
        ),
        Claim(
            f"Fan's rule has at least {THRESHOLDS} thresholds per base model, two for each bin.",
            "discussion",
            by_experiment(outcomes, many_thresholds),
        ),
        Claim(
            "Only about 10 test rows fall into a bin of Fan* that no training row fell into (here: up to "
            f"{FEW_UNKNOWN}).",
            "appendix C",
            by_experiment(outcomes, unknown_bins),
        ),
        Claim(
            "The histogram of base models by row tapers off among the smoothest for QWYC*, and "
            "exponentially.",
            "appendix D",
            by_experiment(outcomes, histogram_falls_off),
            ("adult", "nomao"),
        ),
    ]


def by_width(outcome: Outcome) -> dict[float, list[Point]]:
    """The points of Fan* by bin width, narrow first."""
    widths = sorted({p.bin_width for p in outcome.widths if p.bin_width is not None})
    return {w: [p for p in outcome.widths if p.bin_width == w] for w in widths}


def best_width(outcome: Outcome) -> Verdict | None:
    """A width of 0.01 against the others, in base models at equal test differences."""
    results = outcome.results
    curves = {w: Curve(ps, results.replicates(ps)) for w, ps in by_width(outcome).items()}
    ours = next((w for w in curves if np.isclose(w, BEST_WIDTH)), None)
    if ours is None:
        return None
    rivals = {f"width {w:g}": curve for w, curve in curves.items() if w != ours}
    verdict = needs_fewer(curves[ours], rivals, f"width {ours:g}")
    if verdict is None:
        return None
    bins = ", ".join(f"{digits(count)} at width {w:g}" for w, count in sorted(outcome.bins.items()))
    listed = f" Mean bins per base model: {bins}. The paper had 10 to 400." if bins else ""
    return Verdict(verdict.verdict, verdict.figure, verdict.evidence + listed)


def narrow_bins_overfit(outcome: Outcome) -> Verdict | None:
    """Test differences less those on the fitted rows, mean over gamma: narrowest less widest bins."""
    groups = by_width(outcome)
    if len(groups) < 2:
        return None
    found = {width: excess(outcome.results, points) for width, points in groups.items()}
    narrow, wide = min(groups), max(groups)
    more = (found[narrow] - found[wide]).interval
    text = points_of(more.value, more.low, more.high)
    listed = "; ".join(
        f"width {width:g}, {100 * by.value:+.2f} points, at most "
        f"{max(point.unknown for point in groups[width]):,} rows in unknown bins"
        for width, by in found.items()
    )
    return Verdict(
        settle([mark_of(more, 0.0)]),
        f"{text} points",
        "How far the test differences of Fan* exceed those on the fitted rows, mean over gamma: "
        f"{listed}. Width {narrow:g} exceeds them by {text} points more than width {wide:g} (in brackets: "
        "95% interval). Rows in unknown bins are evaluated in full, so they cost base models and do not "
        "differ.",
    )


def many_thresholds(outcome: Outcome) -> Verdict | None:
    """Bins per base model at each width. It holds where all widths have enough, in part where some do."""
    if not outcome.bins:
        return None
    enough = [2 * bins >= THRESHOLDS for bins in outcome.bins.values()]
    low, high = 2 * min(outcome.bins.values()), 2 * max(outcome.bins.values())
    return Verdict(
        HOLDS if all(enough) else IN_PART if any(enough) else FAILS,
        f"{digits(low)} to {digits(high)}",
        f"Fan* has {digits(low)} thresholds per base model with the widest bins and {digits(high)} with "
        "the narrowest, mean over base models. QWYC* has at most 2.",
    )


def unknown_bins(outcome: Outcome) -> Verdict | None:
    """Of Fan* at about 0.5% differences."""
    results = outcome.results
    if FAN_STAR not in results.curves:
        return None
    curve = results.curves[FAN_STAR]
    point = curve.nearest("differ", LEVEL)
    most = max(p.unknown for group in curve.points for p in group)
    width = "" if point.bin_width is None else f", at bin width {point.bin_width:g}"
    return Verdict(
        HOLDS if point.unknown <= FEW_UNKNOWN else FAILS,
        f"{point.unknown:,} of {results.n_test:,}",
        f"Fan* evaluates {point.unknown:,} of {results.n_test:,} test rows in full because their bin is "
        f"unknown, at {point.test.differ:.2%} test differences{width}. The most at any gamma is {most:,}.",
    )


def histogram_falls_off(outcome: Outcome) -> Verdict | None:
    """Shape of the histogram at about 0.5% differences. Both parts are decisive: it is among the smoothest
    where it ranks in the first half, and exponential where a line explains the logarithm of the counts."""
    results = outcome.results
    keys = [QWYC, *((rule, order) for rule in ("algorithm-2", "fan") for order in ORDERS)]
    curves = {key: results.curves[key] for key in keys if key in results.curves}
    if QWYC not in curves or len(curves) < 2:
        return None
    shapes = {
        key: shape(curve.nearest("differ", LEVEL), results.n_models)
        for key, curve in curves.items()
    }
    line, rises = shapes[QWYC]
    late = np.mean(curves[QWYC].nearest("differ", LEVEL).steps > results.n_models / 2)
    rank = 1 + sum(other < rises for _, other in shapes.values())
    smooth = FOR if rank <= 0.5 * len(shapes) else AGAINST
    falls = UNDECIDED if line is None else FOR if line >= ROUGH_LINE else AGAINST
    explained = (
        "Its rows that quit are in fewer than three bins, too few to tell a line"
        if line is None
        else f"A line explains {line:.2f} of the logarithm of its counts ({ROUGH_LINE} or more counts as "
        "exponential)"
    )
    others = "; ".join(
        f"{curves[key].title} {'too few bins' if line_ is None else f'{line_:.2f}'} and {rises_:.1%}"
        for key, (line_, rises_) in shapes.items()
        if key != QWYC
    )
    few = (
        f" With {results.n_models} base models the histogram has {results.n_models - 1} bins."
        if results.n_models < 20
        else ""
    )
    return Verdict(
        settle([smooth, falls]),
        f"rank {rank} of {len(shapes)}, R² {'unknown' if line is None else f'{line:.2f}'}",
        f"{explained}. After its peak the histogram rises again by {rises:.1%} of the rows in all, rank "
        f"{rank} of {len(shapes)} from the smoothest. {late:.1%} of the rows take more than half of the "
        f"base models.{few} The same two figures for the others: {others}.",
    )


def shape(point: Point, n_models: int) -> tuple[float | None, float]:
    """Of the histogram of steps of rows that quit: R^2 of a falling line through the logarithm of the
    counts (0 where it does not fall, None with fewer than three bins that have rows), and the share of
    rows by which it rises again after its peak."""
    counts = histogram(point.steps, n_models)[:-1]
    if not len(counts):
        return None, 0.0
    rises = float(np.maximum(np.diff(counts[np.argmax(counts) :]), 0).sum() / len(point.steps))
    at = np.flatnonzero(counts)
    if len(at) < 3:
        return None, rises
    log = np.log(counts[at])
    slope = np.polyfit(at, log, 1)[0]
    correlation = np.corrcoef(at, log)[0, 1] if np.ptp(log) > 0 else 0.0
    return (float(correlation**2) if slope < 0 else 0.0), rises


def histogram(
    steps: npt.NDArray[np.integer[Any]] | Sequence[int], n_models: int
) -> npt.NDArray[np.int64]:
    """Rows by base models, in about 50 bins from 1 to T - 1, and in the last those that took all."""
    width = max(1, n_models // 50)
    edges = np.append(np.arange(1, n_models, width), [n_models, n_models + 1])
    return np.histogram(steps, edges)[0]
