"""How claims are judged. Every verdict and number is computed from the outcomes.

Marks. Each comparison gives a mark: for the claim, against it, or undecided. Base models are compared by
the ratio of what two methods need at equal test differences, with a 95% bootstrap interval over the test
rows. It is paired: all methods see the same samples. The mark is undecided where 1 is inside the interval.
Accuracy is compared at equal base models, and the mark is undecided within two paired standard errors.
Times are compared by the ratio of means over runs, with a bootstrap interval over the runs.

Levels. Methods are compared at 0.25, 0.5, 1 and 2% test differences. A level that one of two methods does
not reach counts for the other one, if that reaches it for sure: in 97.5% of the bootstrap samples. In a
sample where a method does not reach a level its base models are infinite. The decisive level is 0.5%, the
paper's, or the nearest one that the method reaches for sure; if there is none, the nearest that is reached.

Several rivals. A claim is about all of its rivals, so they give one mark together at each level: for the
claim where all are beaten, against it where one of them is clearly better, undecided otherwise.

Verdicts. "holds": no mark is against the claim, and all decisive marks are for it. "holds in part":
some marks are for the claim, but it does not hold. "does not hold": marks are against the claim and none is
for it. "undecided": no mark is for or against it. Functions that use another rule say so.

Limits. An interval covers the sample of test rows, not another training run nor, for the mean of random
orders, other orders. Intervals are not widened for the number of comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..curves import LEVEL, LEVELS, Curve, Interval, Key, Outcome, Point, Results, ratio
from ..experiments import ALL

HOLDS, IN_PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "undecided"
FOR, UNDECIDED, AGAINST = 1, 0, -1  # marks
SURE = 0.975  # share of the bootstrap samples in which a level is reached
PAPER = tuple(experiment.name for experiment in ALL if experiment.number is not None)


@dataclass(frozen=True)
class Verdict:
    """What one experiment, or one pair of experiments, says to a claim."""

    verdict: str  # HOLDS, IN_PART, FAILS or OPEN
    figure: str  # for a table cell
    evidence: str  # in sentences


@dataclass(frozen=True)
class Claim:
    """A claim in our words, and the verdicts on it."""

    paper: str
    where: str  # in the paper; "ours" for what the paper does not claim
    verdicts: dict[str, Verdict]  # by experiment, or by pair of experiments such as "3 and 5"
    said_of: tuple[str, ...] = PAPER  # the experiments that the paper says it of


Judge = Callable[[Outcome], Verdict | None]  # None: the outcome does not have what is needed


def by_experiment(
    outcomes: Mapping[str, Outcome], judge: Judge, names: Iterable[str] | None = None
) -> dict[str, Verdict]:
    """The verdicts of all experiments, or of those named, that have what is needed."""
    wanted = outcomes if names is None else [name for name in names if name in outcomes]
    found = ((name, judge(outcomes[name])) for name in wanted)
    return {name: verdict for name, verdict in found if verdict is not None}


def settle(marks: Sequence[int], decisive: Sequence[int] | None = None) -> str:
    """The verdict of marks, all of which are decisive unless some are given."""
    decisive = marks if decisive is None else decisive
    if FOR in marks and AGAINST not in marks and all(mark == FOR for mark in decisive):
        return HOLDS
    if FOR in marks:
        return IN_PART
    return FAILS if AGAINST in marks else OPEN


def mark_of(times: Interval, than: float = 1.0) -> int:
    """Whether the whole interval is above a number, below it, or neither."""
    return FOR if times.low > than else AGAINST if times.high < than else UNDECIDED


def decisive_level(levels: Iterable[float]) -> float:
    """The level nearest to 0.5%, as a ratio."""
    return min(levels, key=lambda level: abs(np.log(level / LEVEL)))


def decisive_for(ours: Curve, levels: Sequence[float]) -> float:
    """The level nearest to 0.5% that a method reaches for sure, else the nearest of all."""
    return decisive_level([x for x in levels if reach(ours, x) >= SURE] or levels)


def reach(curve: Curve, level: float) -> float:
    """Share of the bootstrap samples in which a curve gets within a level of test differences."""
    return float(np.isfinite(curve.replicates_at(level)).mean())


# --- estimates with bootstrap replicates ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number and its bootstrap replicates, (B,); infinite where something is not reached."""

    value: float
    replicates: npt.NDArray[np.float64]

    def __truediv__(self, other: Estimate) -> Estimate:
        """Not a number where both are infinite."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return Estimate(
                float(np.float64(self.value) / other.value), self.replicates / other.replicates
            )

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.value - other.value, self.replicates - other.replicates)

    @property
    def interval(self) -> Interval:
        """95%, over the replicates that are numbers."""
        known = self.replicates[~np.isnan(self.replicates)]
        if not len(known):
            return Interval(self.value, -np.inf, np.inf)
        low, high = np.quantile(known, (0.025, 0.975), method="nearest")
        return Interval(self.value, float(low), float(high))


def needed(curve: Curve, level: float) -> Estimate:
    """Base models within `level` test differences."""
    models = curve.models_at(level)
    return Estimate(np.inf if models is None else models, curve.replicates_at(level))


def excess(results: Results, points: Sequence[Point]) -> Estimate:
    """Test differences less differences on the fitted rows, mean over points."""
    fitted = float(np.mean([point.fitted.differ for point in points]))
    test = float(np.mean([point.test.differ for point in points]))
    return Estimate(test - fitted, results.replicates(points)[1].mean(axis=0) - fitted)


# --- one method against others, in base models ------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """A method against one rival at one level of test differences."""

    level: float
    rival: str
    times: Interval  # base models of the rival over those of the method
    mark: int  # for the method where the rival needs more


def named(curves: Iterable[Curve]) -> dict[str, Curve]:
    """By the names that readers know."""
    return {curve.title: curve for curve in curves}


def compare(ours: Curve, rivals: Mapping[str, Curve]) -> list[Comparison]:
    """At every level that the method or the rival reaches."""
    return [
        Comparison(level, name, times, _mark(ours, rival, level, times))
        for level in LEVELS
        for name, rival in rivals.items()
        if (times := ratio(rival, ours, level)) is not None
    ]


def against_all(found: Iterable[Comparison]) -> dict[float, int]:
    """The mark of all rivals together at each level: that of the rival that does best."""
    marks: dict[float, int] = {}
    for one in found:
        marks[one.level] = min(one.mark, marks.get(one.level, FOR))
    return marks


def _mark(ours: Curve, rival: Curve, level: float, times: Interval) -> int:
    if times.value == 0 and reach(rival, level) >= SURE:
        return AGAINST
    if np.isinf(times.value) and reach(ours, level) >= SURE:
        return FOR
    return mark_of(times)


def needs_fewer(
    ours: Curve | None, rivals: Mapping[str, Curve], name: str | None = None
) -> Verdict | None:
    """Whether a method needs fewer base models than every rival, at equal test differences."""
    if ours is None or not rivals:
        return None
    name = name or ours.title
    found = compare(ours, rivals)
    if not found:
        return Verdict(OPEN, "not reached", f"{_levels_text()} are not reached by any method.")
    at = decisive_for(ours, [one.level for one in found])
    marks = against_all(found)
    closest = {
        level: min(
            (one for one in found if one.level == level),
            key=lambda one: needed(rivals[one.rival], one.level).value,
        )
        for level in sorted({one.level for one in found})
    }
    return Verdict(
        settle(list(marks.values()), [marks[at]]),
        _figure(closest[at], len(rivals)),
        f"{_by_level(ours, name, closest)} {_summary(found, at)}",
    )


def against(outcome: Outcome, ours: Key, rivals: Iterable[Key]) -> Verdict | None:
    """Whether a method needs fewer base models than those of the rivals that are there."""
    curves = outcome.results.curves
    return needs_fewer(curves.get(ours), named(curves[key] for key in rivals if key in curves))


def _figure(closest: Comparison, n_rivals: int) -> str:
    value = closest.times.value
    if value == 0:
        return f"{closest.level:.2%} not reached"
    if np.isinf(value):
        return f"only one to reach {closest.level:.2%}"
    rival = f", {closest.rival}" if n_rivals > 1 else ""
    return show(closest.times) + rival + at_level(closest.level)


def at_level(level: float) -> str:
    """The level that a figure is for, where it is not the paper's."""
    return "" if level == LEVEL else f", at {level:.2%}"


def _by_level(ours: Curve, name: str, closest: Mapping[float, Comparison]) -> str:
    listed, out_of_reach = [], []
    for level, rival in closest.items():
        models, times = ours.models_at(level), rival.times
        if models is None:
            unsure = "" if rival.mark else " (not in every bootstrap sample)"
            out_of_reach.append(f"{level:.2%}, which {rival.rival} reaches{unsure}")
        elif np.isinf(times.value):
            unsure = "" if rival.mark else ", except in some bootstrap samples"
            listed.append(f"{number(models)} at {level:.2%}, which nothing else reaches{unsure}")
        else:
            share = reach(ours, level)
            unsure = "" if share >= SURE else f" (reached in {share:.0%} of the bootstrap samples)"
            listed.append(
                f"{number(models)} at {level:.2%}{unsure}, and {rival.rival} {show(times)} times as many"
            )
    text = f"By test differences, {name} needs {'; '.join(listed)}." if listed else ""
    if out_of_reach:
        text += (
            f" {name} does not reach {'; '.join(out_of_reach)}. Its least differences are "
            f"{ours.differ.min():.2%}."
        )
    return text.strip()


def _summary(found: Sequence[Comparison], at: float) -> str:
    """How many comparisons went which way, where there are several rivals."""
    if len({one.rival for one in found}) < 2:
        return f"In brackets: 95% interval. Decisive at {at:.2%}."
    marks = [one.mark for one in found]
    text = (
        f"Given is the best rival; in brackets: 95% interval. Decisive at {at:.2%}. Of {len(found)} "
        f"comparisons over rivals and levels, {marks.count(FOR)} are won, {marks.count(AGAINST)} lost "
        f"and {marks.count(UNDECIDED)} undecided"
    )
    rest = [
        f"{one.rival} at {one.level:.2%}{' (lost)' if one.mark == AGAINST else ''}"
        for one in found
        if one.mark != FOR
    ]
    return f"{text}: not won against {'; '.join(rest)}." if 0 < len(rest) <= 4 else f"{text}."


def _levels_text() -> str:
    return ", ".join(f"{level:.2%}" for level in LEVELS[:-1]) + f" and {LEVELS[-1]:.2%}"


# --- text -------------------------------------------------------------------------------------


def digits(value: float) -> str:
    """Three significant digits or so, without an exponent."""
    size = abs(value)
    return f"{value:.2f}" if size < 9.995 else f"{value:.1f}" if size < 99.95 else f"{value:,.0f}"


def number(models: float | None) -> str:
    """Base models for a table."""
    return "not reached" if models is None or np.isinf(models) else digits(models)


def show(times: Interval) -> str:
    """A ratio that is finite, with its interval, an end of which may be infinite."""
    low_known, high_known = np.isfinite(times.low) and times.low > 0, np.isfinite(times.high)
    if low_known and high_known:
        inside = f"{digits(times.low)} to {digits(times.high)}"
    elif low_known:
        inside = f"{digits(times.low)} or more"
    elif high_known:
        inside = f"{digits(times.high)} or less"
    else:
        inside = "interval not known"
    return f"{digits(times.value)} ({inside})"


def points_of(gap: float, low: float, high: float) -> str:
    """A difference of shares in percentage points, with its interval."""
    return f"{100 * gap:+.2f} ({100 * low:+.2f} to {100 * high:+.2f})"


def capital(text: str) -> str:
    """With a capital letter at the start."""
    return text[:1].upper() + text[1:]
