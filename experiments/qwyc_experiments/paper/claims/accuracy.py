"""Claims about test accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..curves import FAN_STAR, LEVEL, LEVELS, QWYC, SMALLER, Curve, Outcome
from .fewer import fewer_than_fan
from .verdicts import (
    AGAINST,
    FAILS,
    FOR,
    HOLDS,
    IN_PART,
    OPEN,
    UNDECIDED,
    Claim,
    Verdict,
    by_experiment,
    number,
    settle,
)

WITH_ACCURACY = ("adult", "nomao")  # the paper reports no accuracies of the others
SIZE, SMALL_SIZE = 40, 2  # sizes at which ensembles are compared that were trained so small
FEW_MODELS = 10  # SMALL_SIZE is for full ensembles with fewer base models than this
MARGIN = 0.0025  # a loss of accuracy that is half of 0.5% differences


def claims(outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """All of this module."""
    return [
        Claim(
            "QWYC* keeps the accuracy of the full ensemble (here: within a quarter of a point at about "
            "0.5% differences).",
            "abstract",
            by_experiment(outcomes, keeps_accuracy),
            WITH_ACCURACY,
        ),
        Claim(
            "QWYC* is more accurate than Algorithm 2 and Fan's rule with any fixed order, at equal base "
            "models.",
            "discussion",
            by_experiment(outcomes, accuracy_of_fixed_orders),
            WITH_ACCURACY,
        ),
        Claim(
            "QWYC* is both faster (here: in base models) and more accurate than Fan's rule with any fixed "
            "order.",
            "discussion",
            by_experiment(outcomes, faster_and_more_accurate_than_fan),
            WITH_ACCURACY,
        ),
        Claim(
            "Fan* does worse than smaller ensembles alone, in accuracy and in differences.",
            "discussion",
            by_experiment(outcomes, fan_star_against_smaller),
            ("adult",),
        ),
        Claim(
            f"A large ensemble that QWYC* cuts to about {SIZE} base models a row is more accurate than one "
            f"trained with {SIZE} (with {SMALL_SIZE} where the full ensemble has 5).",
            "appendix D",
            by_experiment(outcomes, pruned_against_trained),
            WITH_ACCURACY,
        ),
    ]


@dataclass(frozen=True)
class Gap:
    """A difference between two shares of the same test rows, and its paired standard error."""

    value: float
    error: float

    @property
    def mark(self) -> int:
        """Whether it is positive or negative beyond two standard errors."""
        if abs(self.value) <= 2 * self.error:
            return UNDECIDED
        return FOR if self.value > 0 else AGAINST

    @property
    def text(self) -> str:
        """In percentage points, with two standard errors."""
        return f"{100 * self.value:+.2f} ± {200 * self.error:.2f}"


def gap(what: str, a: Curve, b: Curve, models: float, models_b: float | None = None) -> Gap:
    """Test accuracy ("accuracy") or differences ("differ") of a less those of b at a number of base
    models. The standard error is from the decisions of the nearest points: the two shares differ only on
    rows that the two methods decide differently."""
    models_b = models if models_b is None else models_b
    mine, theirs = a.at_models(what, models), b.at_models(what, models_b)
    if mine is None or theirs is None:
        raise ValueError(f"{models:g} or {models_b:g} base models are beyond a curve's range")
    one, other = a.nearest("models", models), b.nearest("models", models_b)
    return _paired(mine - theirs, float(np.mean(one.label != other.label)), len(one.label))


def _paired(value: float, apart: float, n: int) -> Gap:
    return Gap(value, float(np.sqrt(max(apart - value**2, 0.0) / n)))


def keeps_accuracy(outcome: Outcome) -> Verdict | None:
    """QWYC* at about 0.5% differences against the full ensemble. It holds where the interval excludes a
    loss of more than a quarter of a point, and does not where it excludes a smaller loss."""
    results = outcome.results
    if QWYC not in results.curves:
        return None
    point = results.curves[QWYC].nearest("differ", LEVEL)
    found = _paired(point.test.accuracy - results.full.accuracy, point.test.differ, results.n_test)
    low, high = found.value - 2 * found.error, found.value + 2 * found.error
    return Verdict(
        HOLDS if low > -MARGIN else FAILS if high < -MARGIN else OPEN,
        f"{found.text} points",
        f"At {point.test.differ:.2%} test differences, with {number(point.test.models)} base models, the "
        f"test accuracy of QWYC* is {point.test.accuracy:.2%}. That of the full ensemble is "
        f"{results.full.accuracy:.2%}. The difference is {found.text} points (two paired standard errors).",
    )


def accuracy_of_fixed_orders(outcome: Outcome) -> Verdict | None:
    """Against the better of the two rules with any fixed order."""
    rivals = outcome.results.family("algorithm-2") + outcome.results.family("fan")
    return more_accurate(outcome.results.curves.get(QWYC), rivals)


def more_accurate(ours: Curve | None, rivals: Sequence[Curve]) -> Verdict | None:
    """Accuracy at equal base models, at four places between the base models that a method needs at 2 and
    at 0.25% differences, or as far as it gets, against the best rival at each. All four are decisive.
    Further out, nearly nothing or nearly everything is evaluated, and methods hardly differ."""
    if ours is None or not rivals:
        return None
    gaps, sentences = [], []
    low = ours.models_at(max(LEVELS)) or ours.models.min()
    high = ours.models_at(min(LEVELS)) or ours.models.max()
    for models in np.geomspace(low, high, 4):
        there = [(a, r) for r in rivals if (a := r.at_models("accuracy", models)) is not None]
        if not there:
            continue
        best = max(there, key=lambda pair: pair[0])[1]
        gaps.append(gap("accuracy", ours, best, models))
        sentences.append(f"at {number(models)} {gaps[-1].text} ({best.title})")
    if not gaps:
        return Verdict(
            OPEN, "no common range", f"No rival has points in the range of {ours.title}."
        )
    values = [g.value for g in gaps]
    return Verdict(
        settle([g.mark for g in gaps]),
        f"{100 * min(values):+.2f} to {100 * max(values):+.2f} points",
        f"Test accuracy of {ours.title} less that of the best rival, in points with two paired standard "
        f"errors, by mean base models: {'; '.join(sentences)}.",
    )


def faster_and_more_accurate_than_fan(outcome: Outcome) -> Verdict | None:
    """Two verdicts in one. It holds where both hold; it does not hold where neither holds even in part
    and one of them does not; it is undecided where both are."""
    faster = fewer_than_fan(outcome)
    better = more_accurate(outcome.results.curves.get(QWYC), outcome.results.family("fan"))
    if faster is None or better is None:
        return None
    both = (faster.verdict, better.verdict)
    if both == (HOLDS, HOLDS):
        verdict = HOLDS
    elif HOLDS in both or IN_PART in both:
        verdict = IN_PART
    else:
        verdict = FAILS if FAILS in both else OPEN
    return Verdict(
        verdict,
        f"faster: {faster.verdict}; more accurate: {better.verdict}",
        f"Fewer base models: {faster.verdict}, {faster.figure}. Accuracy: {better.verdict}. "
        f"{better.evidence}",
    )


def fan_star_against_smaller(outcome: Outcome) -> Verdict | None:
    """Fan* against ensembles trained small, at every size in its range. All are decisive, in accuracy and
    in differences."""
    curves = outcome.results.curves
    star, small = curves.get(FAN_STAR), curves.get(SMALLER)
    if star is None or small is None:
        return None
    sizes = [size for size in sorted(small.knob) if star.at_models("accuracy", size) is not None]
    if not sizes:
        return Verdict(OPEN, "no common range", "Fan* has no points at the sizes trained.")
    accuracy = [gap("accuracy", star, small, size) for size in sizes]
    differ = [gap("differ", star, small, size) for size in sizes]
    worse = [-g.mark for g in accuracy], [g.mark for g in differ]
    less, more = (marks.count(FOR) for marks in worse)
    listed = "; ".join(
        f"{size:.0f}: {a.text} and {d.text}"
        for size, a, d in zip(sizes, accuracy, differ, strict=True)
    )
    return Verdict(
        settle(worse[0] + worse[1]),
        f"sizes: {len(sizes)}; less accurate at {less}, differs more at {more}",
        f"Sizes compared: {len(sizes)}. Fan* is less accurate at {less} and more accurate at "
        f"{worse[0].count(AGAINST)}; it differs more at {more} and less at {worse[1].count(AGAINST)}, each "
        f"beyond two paired standard errors. Fan* less smaller ensemble by size, accuracy and differences, "
        f"in points: {listed}.",
    )


def pruned_against_trained(outcome: Outcome) -> Verdict | None:
    """QWYC* at about 40 base models against ensembles trained with so many."""
    results = outcome.results
    ours, small = results.curves.get(QWYC), results.curves.get(SMALLER)
    if ours is None or small is None:
        return None
    wanted = SIZE if results.n_models >= FEW_MODELS else SMALL_SIZE
    size = float(small.knob[np.argmin(np.abs(np.log(small.knob / wanted)))])
    least, most = float(ours.models.min()), float(ours.models.max())
    at = min(max(size, least), most)
    found = gap("accuracy", ours, small, at, size)
    listed = [
        f"{models:.0f}: {gap('accuracy', ours, small, models).text}"
        for models in sorted(small.knob)
        if ours.at_models("accuracy", models) is not None
    ]
    reach = (
        f"Compared at {size:.0f}. "
        if at == size
        else f"QWYC* takes {number(least)} to {number(most)} base models: {number(at)} are compared with "
        f"{size:.0f} trained. "
    )
    every = f" At all trained sizes in its range: {'; '.join(listed)}." if listed else ""
    return Verdict(
        settle([found.mark]),
        f"{found.text} points",
        f"{reach}The difference in test accuracy is {found.text} points (two paired standard errors)."
        f"{every}",
    )
