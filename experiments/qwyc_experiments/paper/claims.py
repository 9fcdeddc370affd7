"""What the paper says about an experiment, and whether it holds here. Every verdict and number is
computed from the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .curves import FAN_STAR, LEVEL, ORDERS, QWYC, SMALLER, Curve, Point, Results

LEVELS = (0.0025, 0.005, 0.01, 0.02)  # shares of test differences at which methods are compared
HOLDS, IN_PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "undecided"
ROUGH_LINE = 0.9  # a histogram falls exponentially where a line explains so much of its logarithm
SIZE = 40  # base models at which the paper compares with ensembles trained that small


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, in our words, and what these results say to it."""

    paper: str
    verdict: str
    evidence: str


def claims(results: Results) -> list[Claim]:
    """The paper's claims one by one."""
    return [
        fewer_than_fixed_orders(results),
        fewer_than_fan(results),
        factor_to_fan_star(results),
        speed_up(results),
        accuracy_of_fixed_orders(results),
        pruned_against_trained(results),
        fan_star_against_smaller(results),
        fan_against_algorithm_2(results),
        histogram_falls_off(results),
    ]


def fewer_than_fixed_orders(results: Results) -> Claim:
    """QWYC* against Algorithm 2."""
    verdict, evidence = compare(results.curves[QWYC], results.family("algorithm-2"))
    return Claim(
        "QWYC* needs fewer base models than Algorithm 2 with any fixed order, at equal test differences.",
        verdict,
        evidence,
    )


def fewer_than_fan(results: Results) -> Claim:
    """QWYC* against Fan's rule."""
    verdict, evidence = compare(results.curves[QWYC], results.family("fan"))
    return Claim(
        "QWYC* needs fewer base models than Fan's rule with any fixed order, at equal test differences.",
        verdict,
        evidence,
    )


def compare(ours: Curve, rivals: Sequence[Curve]) -> tuple[str, str]:
    """Whether a curve needs fewer base models than every rival, level by level. A level that only
    rivals reach counts against it."""
    won, lost, sentences = 0, 0, []
    for level in LEVELS:
        mine = ours.models_at(level)
        reached = [(m, rival) for rival in rivals if (m := rival.models_at(level)) is not None]
        if not reached:
            continue
        theirs, best = min(reached, key=lambda pair: pair[0])
        if mine is None:
            lost += 1
            sentences.append(
                f"{level:.2%} is not reached by {ours.title}, whose least is {ours.differ.min():.2%}, but "
                f"by {best.title} with {theirs:.1f}"
            )
            continue
        won, lost = won + (mine < theirs), lost + (mine >= theirs)
        sentences.append(
            f"at {level:.2%} {ours.title} needs {mine:.1f} and the best other, {best.title}, "
            f"{theirs:.1f}, {theirs / mine:.2f} times as many"
        )
    verdict = OPEN if not won + lost else FAILS if not won else IN_PART if lost else HOLDS
    if verdict == OPEN:
        return verdict, "No share of test differences is reached."
    return verdict, "In mean base models, by test differences: " + "; ".join(sentences) + "."


def factor_to_fan_star(results: Results) -> Claim:
    """How many times as many base models Fan* takes."""
    paper = "QWYC* is about 1.5 times as fast as prior work, Fan* (here: in base models)."
    factors = {}
    for level in LEVELS:
        mine = results.curves[QWYC].models_at(level)
        theirs = results.curves[FAN_STAR].models_at(level)
        if mine is not None and theirs is not None:
            factors[level] = theirs / mine
    if not factors:
        return Claim(paper, OPEN, "No share of test differences is reached by both.")
    at = LEVEL if LEVEL in factors else min(factors)
    verdict = HOLDS if factors[at] >= 1.4 else FAILS
    listed = ", ".join(f"{factor:.2f} at {level:.2%}" for level, factor in factors.items())
    return Claim(
        paper,
        verdict,
        f"Fan* takes {factors[at]:.2f} times the base models of QWYC* at {at:.2%} test differences "
        f"(all levels that both reach: {listed}); judged at {at:.2%}, where 1.4 or more counts as about "
        "1.5 or better.",
    )


def speed_up(results: Results) -> Claim:
    """T over the base models of QWYC* at about 0.5% differences."""
    paper = (
        "QWYC* is 2 to 4 times as fast as the full ensemble at about 0.5% differences (here: in base "
        "models)."
    )
    ours = results.curves[QWYC]
    models = ours.models_at(LEVEL)
    if models is None:
        point = ours.nearest("differ", LEVEL).test
        return Claim(
            paper,
            FAILS,
            f"{LEVEL:.1%} is not reached; the nearest is {point.differ:.2%}, with {point.models:.1f} of "
            f"{results.n_models} base models, {results.n_models / point.models:.1f} times fewer.",
        )
    factor = results.n_models / models
    beyond = ", which is beyond the paper's range" if factor > 4 else ""
    return Claim(
        paper,
        HOLDS if factor >= 2 else FAILS,
        f"{models:.1f} of {results.n_models} base models at {LEVEL:.1%} test differences: {factor:.1f} "
        f"times fewer{beyond}.",
    )


def accuracy_of_fixed_orders(results: Results) -> Claim:
    """Accuracy at equal base models, over the range of QWYC*."""
    paper = (
        "QWYC* is also more accurate than either rule with any fixed order, at equal base models."
    )
    ours = results.curves[QWYC]
    rivals = results.family("algorithm-2") + results.family("fan")
    gaps, sentences = [], []
    low, high = ours.models.min(), ours.models.max()
    for models in np.geomspace(low, high, 5)[1:]:  # at the boldest end almost nothing is evaluated
        there = [r for r in rivals if r.at_models("accuracy", models) is not None]
        if not there:
            continue
        best = max(there, key=lambda r: r.at_models("accuracy", models) or 0.0)
        gap, error = accuracy_gap(ours, best, models)
        gaps.append((gap, error))
        sentences.append(f"at {models:.1f} {signed(gap, error)} ({best.title})")
    if not gaps:
        return Claim(paper, OPEN, "No fixed order has points in the range of QWYC*.")
    return Claim(
        paper,
        judge(gaps),
        "Test accuracy of QWYC* less that of the best other, in points with two standard errors, by mean "
        "base models: " + "; ".join(sentences) + ".",
    )


def pruned_against_trained(results: Results) -> Claim:
    """QWYC* at about 40 base models against ensembles trained with so many."""
    ours, small = results.curves[QWYC], results.curves[SMALLER]
    size = float(small.knob[np.argmin(np.abs(np.log(small.knob / SIZE)))])
    paper = (
        f"A large ensemble that QWYC* cuts to about {size:.0f} base models a row is more accurate than an "
        f"ensemble trained with {size:.0f}."
    )
    least, most = float(ours.models.min()), float(ours.models.max())
    at = min(max(size, least), most)
    gap, error = accuracy_gap(ours, small, at, size)
    listed = [
        f"{models:.0f}: {signed(*accuracy_gap(ours, small, models))}"
        for models in sorted(small.knob)
        if ours.at_models("accuracy", models) is not None
    ]
    reach = (
        ""
        if at == size
        else f"QWYC* takes {least:.1f} to {most:.1f} base models: {at:.1f} are compared with {size:.0f}. "
    )
    return Claim(
        paper,
        judge([(gap, error)]),
        f"{reach}The difference in test accuracy is {signed(gap, error)} points (with two standard "
        f"errors). By trained size, as far as QWYC* reaches: {'; '.join(listed) or 'none'}.",
    )


def fan_star_against_smaller(results: Results) -> Claim:
    """Fan* against ensembles trained small, in accuracy and in differences."""
    paper = "Fan* does worse than smaller ensembles alone, in accuracy and in differences."
    if results.name != "adult":
        paper += " (The paper says so of Experiment 1 only.)"
    star, small = results.curves[FAN_STAR], results.curves[SMALLER]
    worse, sentences = [], []
    for models in sorted(small.knob):
        accuracy, differ = (star.at_models(what, models) for what in ("accuracy", "differ"))
        if accuracy is None or differ is None:
            continue
        gap, error = accuracy_gap(star, small, models)
        more = differ - (small.at_models("differ", models) or 0.0)
        worse.append((gap < -2 * error, more > 0))
        sentences.append(f"{models:.0f}: {signed(gap, error)} and {100 * more:+.2f}")
    if not worse:
        return Claim(paper, OPEN, "Fan* has no points at the sizes trained.")
    flags = np.array(worse)
    verdict = HOLDS if flags.all() else IN_PART if flags.any() else FAILS
    return Claim(
        paper,
        verdict,
        f"Of {len(flags)} sizes, Fan* is less accurate at {flags[:, 0].sum()} (beyond two standard errors) "
        f"and differs more at {flags[:, 1].sum()}. Fan* less smaller ensemble, by size, in accuracy and in "
        f"differences, in points: {'; '.join(sentences)}.",
    )


def fan_against_algorithm_2(results: Results) -> Claim:
    """The two rules along the same order."""
    paper = "Along many fixed orders, Fan's rule does better than Algorithm 2."
    better, sentences = [], []
    for order, name in ORDERS.items():
        fan, plain = (
            results.curves[rule, order].models_at(LEVEL) for rule in ("fan", "algorithm-2")
        )
        sentences.append(f"{name} {number(fan)} against {number(plain)}")
        if fan is not None or plain is not None:
            better.append((fan or np.inf) < (plain or np.inf))
    if not better:
        return Claim(paper, OPEN, f"No order reaches {LEVEL:.1%}.")
    share = float(np.mean(better))
    return Claim(
        paper,
        HOLDS if share >= 0.5 else IN_PART if share > 0 else FAILS,
        f"Fan's rule needs fewer base models at {LEVEL:.1%} test differences along {sum(better)} of "
        f"{len(better)} orders: {'; '.join(sentences)}.",
    )


def histogram_falls_off(results: Results) -> Claim:
    """Shape of the histogram of base models by row, at about 0.5% differences."""
    shapes = {
        curve.title: shape(curve.nearest("differ", LEVEL), results.n_models)
        for key, curve in results.curves.items()
        if key != SMALLER
    }
    line, rises = shapes["QWYC*"]
    late = np.mean(results.curves[QWYC].nearest("differ", LEVEL).steps > results.n_models / 2)
    rank = 1 + sum(other < rises for _, other in shapes.values())
    smooth, exponential = rank <= 0.5 * len(shapes), line >= ROUGH_LINE
    verdict = HOLDS if smooth and exponential else IN_PART if smooth or exponential else FAILS
    others = "; ".join(
        f"{title} {line_:.2f} and {rises_:.1%}"
        for title, (line_, rises_) in shapes.items()
        if title != "QWYC*"
    )
    return Claim(
        "The histogram of base models by row tapers off among the smoothest for QWYC*, and exponentially.",
        verdict,
        f"A line explains {line:.2f} of the logarithm of its counts ({ROUGH_LINE} or more counts as "
        f"exponential), and after its peak the histogram rises again by {rises:.1%} of the rows in all, "
        f"rank {rank} of {len(shapes)} from the smoothest; {late:.1%} of the rows take more than half of "
        f"the base models. The same two figures for the others: {others}.",
    )


def shape(point: Point, n_models: int) -> tuple[float, float]:
    """Of the histogram of steps of rows that quit: R^2 of a falling line through the logarithm of the
    counts (0 where it does not fall), and the share of rows by which it rises again after its peak."""
    counts = histogram(point.steps, n_models)[:-1]
    at = np.flatnonzero(counts)
    if len(at) < 3:
        return 0.0, 0.0
    log = np.log(counts[at])
    slope = np.polyfit(at, log, 1)[0]
    correlation = np.corrcoef(at, log)[0, 1] if np.ptp(log) > 0 else 0.0
    rises = np.maximum(np.diff(counts[np.argmax(counts) :]), 0).sum() / len(point.steps)
    return (float(correlation**2) if slope < 0 else 0.0), float(rises)


def histogram(steps: npt.NDArray[np.int32], n_models: int) -> npt.NDArray[np.int64]:
    """Rows by base models, in about 50 bins from 1 to T - 1, and in the last those that took all."""
    width = max(1, n_models // 50)
    edges = np.append(np.arange(1, n_models, width), [n_models, n_models + 1])
    return np.histogram(steps, edges)[0]


def accuracy_gap(
    a: Curve, b: Curve, models: float, models_b: float | None = None
) -> tuple[float, float]:
    """Test accuracy of a less that of b at a number of base models, and its standard error: paired,
    from the decisions of the nearest points."""
    models_b = models if models_b is None else models_b
    mine, theirs = a.at_models("accuracy", models), b.at_models("accuracy", models_b)
    if mine is None or theirs is None:
        raise ValueError(f"{models:g} or {models_b:g} base models are beyond a curve's range")
    gap = mine - theirs
    one, other = a.nearest("models", models), b.nearest("models", models_b)
    apart = float(np.mean(one.label != other.label))  # rows where one is right and the other wrong
    return gap, float(np.sqrt(max(apart - gap**2, 0.0) / len(one.label)))


def judge(gaps: Sequence[tuple[float, float]]) -> str:
    """Of gaps and their standard errors: whether they are all positive beyond two errors."""
    above = [gap > 2 * error for gap, error in gaps]
    below = [gap < -2 * error for gap, error in gaps]
    if all(above):
        return HOLDS
    if any(above):
        return IN_PART
    return FAILS if any(below) else OPEN


def signed(gap: float, error: float) -> str:
    """A gap in percentage points, with two standard errors."""
    return f"{100 * gap:+.2f} ± {200 * error:.2f}"


def number(models: float | None) -> str:
    """Base models for a table."""
    return "not reached" if models is None else f"{models:.1f}"
