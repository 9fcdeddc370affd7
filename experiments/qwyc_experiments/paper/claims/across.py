"""Claims about jointly trained against independently trained ensembles.

Both ensembles of a pair are measured on the same test rows, and the bootstrap draws the same samples of
them, so the intervals are paired. Levels that one of the two does not reach are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..curves import LEVELS, ORDERS, QWYC, Outcome, Results
from . import timing
from .orders import RULES
from .verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Estimate,
    Verdict,
    decisive_level,
    mark_of,
    needed,
    settle,
    show,
)

PAIRS = {"3 and 5": ("rw1-joint", "rw1-independent"), "4 and 6": ("rw2-joint", "rw2-independent")}
BOTH = "3 and 5 against 4 and 6"
LATTICES = timing.LATTICES

Judge = Callable[[Outcome, Outcome], Verdict | None]  # jointly trained, independently trained
Measure = Callable[[Results, float], Estimate | None]  # at a level of test differences


def claims(outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """All of this module."""
    return [
        Claim(
            "The gap between individual MSE and greedy MSE is larger for jointly than for independently "
            "trained ensembles.",
            "discussion",
            by_pair(outcomes, gap_is_larger),
            LATTICES,
        ),
        Claim(
            "QWYC* gives better speed-ups for independently than for jointly trained ensembles: in base "
            "models.",
            "appendix D",
            by_pair(outcomes, better_speed_up),
            LATTICES,
        ),
        Claim(
            "QWYC* gives better speed-ups for independently than for jointly trained ensembles: in time.",
            "appendix D",
            by_pair(outcomes, better_speed_up_in_time),
            LATTICES,
        ),
        Claim(
            "That effect is larger for Real-world 1 than for Real-world 2: in base models.",
            "appendix D",
            _of_both(outcomes, effect_by_level),
            LATTICES,
        ),
        Claim(
            "That effect is larger for Real-world 1 than for Real-world 2: in time.",
            "appendix D",
            _of_both(outcomes, effect_in_time),
            LATTICES,
        ),
        Claim(
            "Base models correlate more with the full score when independently than when jointly trained.",
            "appendix D",
            by_pair(outcomes, correlates_more),
            LATTICES,
        ),
        Claim(
            "The order matters less for independently than for jointly trained ensembles.",
            "appendix D",
            by_pair(outcomes, order_matters_less),
            LATTICES,
        ),
    ]


def by_pair(outcomes: Mapping[str, Outcome], judge: Judge) -> dict[str, Verdict]:
    """The verdicts of the pairs that are there."""
    found = {
        name: judge(outcomes[joint], outcomes[independent])
        for name, (joint, independent) in PAIRS.items()
        if joint in outcomes and independent in outcomes
    }
    return {name: verdict for name, verdict in found.items() if verdict is not None}


@dataclass(frozen=True)
class Contrast:
    """The same measure of both ensembles at a level, and their ratio."""

    level: float
    joint: Estimate
    independent: Estimate

    @property
    def times(self) -> Estimate:
        """Jointly over independently trained."""
        return self.joint / self.independent


def contrasts(joint: Outcome, independent: Outcome, measure: Measure) -> list[Contrast]:
    """At the levels where both measures are finite."""
    found = []
    for level in LEVELS:
        pair = measure(joint.results, level), measure(independent.results, level)
        if (
            pair[0] is not None
            and pair[1] is not None
            and np.isfinite([e.value for e in pair]).all()
        ):
            found.append(Contrast(level, *pair))
    return found


def gap_of(rule: str) -> Measure:
    """Base models along individual MSE over those along greedy MSE, with a rule."""

    def measure(results: Results, level: float) -> Estimate | None:
        keys = (rule, "individual-mse"), (rule, "greedy-mse")
        if not all(key in results.curves for key in keys):
            return None
        return needed(results.curves[keys[0]], level) / needed(results.curves[keys[1]], level)

    return measure


def spread_of(rule: str, orders: Sequence[str]) -> Measure:
    """Most base models along a fixed order over the fewest, with a rule."""

    def measure(results: Results, level: float) -> Estimate | None:
        found = [needed(results.curves[rule, order], level) for order in orders]
        if len(found) < 2:
            return None
        all_of = np.stack([one.replicates for one in found])  # (orders, B)
        values = [one.value for one in found]
        return Estimate(max(values), all_of.max(axis=0)) / Estimate(min(values), all_of.min(axis=0))

    return measure


def models_share(results: Results, level: float) -> Estimate | None:
    """Share of the base models that QWYC* evaluates: small is fast."""
    if QWYC not in results.curves:
        return None
    models = needed(results.curves[QWYC], level)
    return Estimate(models.value / results.n_models, models.replicates / results.n_models)


def gap_is_larger(joint: Outcome, independent: Outcome) -> Verdict | None:
    """With both rules. A mark for the claim also needs that individual MSE is clearly the worse order of
    the jointly trained ensemble; where it is clearly the better one, the mark is against it."""

    def mark(one: Contrast) -> int:
        own = mark_of(one.joint.interval)
        return min(mark_of(one.times.interval), own)

    found = {rule: contrasts(joint, independent, gap_of(rule)) for rule in RULES}
    return _by_rule(
        found,
        mark,
        "base models along individual MSE over those along greedy MSE",
        "; ".join(_missing(found)),
    )


def order_matters_less(joint: Outcome, independent: Outcome) -> Verdict | None:
    """With both rules, over the fixed orders that both ensembles have."""
    found = {}
    for rule in RULES:
        orders = [
            order
            for order in ORDERS
            if all((rule, order) in outcome.results.curves for outcome in (joint, independent))
        ]
        found[rule] = contrasts(joint, independent, spread_of(rule, orders))
    return _by_rule(
        found,
        lambda one: mark_of(one.times.interval),
        "most over fewest base models among the fixed orders",
        "; ".join(_missing(found)),
    )


def _missing(found: Mapping[str, Sequence[Contrast]]) -> list[str]:
    return [RULES[rule] for rule, contrast in found.items() if not contrast]


def _by_rule(
    found: Mapping[str, Sequence[Contrast]],
    mark: Callable[[Contrast], int],
    measure: str,
    missing: str,
) -> Verdict | None:
    """The verdict of both rules together; the decisive marks are those of each at its decisive level."""
    marks, decisive, figures, sentences = [], [], [], []
    for rule, listed in found.items():
        if not listed:
            continue
        at = decisive_level(one.level for one in listed)
        for one in listed:
            marks.append(mark(one))
            text = f"{show(one.joint.interval)} against {show(one.independent.interval)}"
            sentences.append(
                f"{RULES[rule]} at {one.level:.2%}: {text}, ratio {show(one.times.interval)}"
            )
            if one.level == at:
                decisive.append(marks[-1])
                figures.append(
                    f"{RULES[rule]}: {show(one.joint.interval)} against "
                    f"{show(one.independent.interval)}"
                )
    if not marks:
        return Verdict(OPEN, "not reached", f"No level is reached by all methods ({missing}).")
    without = f" No level is reached by all methods with: {missing}." if missing else ""
    return Verdict(
        settle(marks, decisive),
        "; ".join(figures),
        f"Measured by {measure}, jointly against independently trained, with 95% intervals. "
        f"{'; '.join(sentences)}.{without}",
    )


def better_speed_up(joint: Outcome, independent: Outcome) -> Verdict | None:
    """Base models of QWYC*, as a share of the ensemble."""
    if not all(QWYC in outcome.results.curves for outcome in (joint, independent)):
        return None
    found = contrasts(joint, independent, models_share)
    if not found:
        return Verdict(OPEN, "not reached", "QWYC* reaches no level in both experiments.")
    at = decisive_level(one.level for one in found)
    marks = {one.level: mark_of(one.times.interval) for one in found}
    shown = {one.level: one.times.interval for one in found}
    sentences = [
        f"At {one.level:.2%} QWYC* is {show(_inverse(one.independent).interval)} times as fast as the "
        f"full ensemble when independently trained and {show(_inverse(one.joint).interval)} times when "
        f"jointly trained, ratio {show(shown[one.level])}."
        for one in found
    ]
    return Verdict(
        settle(list(marks.values()), [marks[at]]),
        show(shown[at]),
        f"{' '.join(sentences)} In base models, with 95% intervals.",
    )


def _inverse(share: Estimate) -> Estimate:
    return Estimate(1.0, np.ones_like(share.replicates)) / share


def time_share(outcome: Outcome) -> Estimate | None:
    """Time of QWYC* over that of the full ensemble."""
    full, ours = timing.found(outcome, None), timing.found(outcome, QWYC)
    if full is None or ours is None:
        return None
    return timing.mean_time(ours) / timing.mean_time(full)


def better_speed_up_in_time(joint: Outcome, independent: Outcome) -> Verdict | None:
    """As timed at about 0.5% differences."""
    shares = time_share(joint), time_share(independent)
    if shares[0] is None or shares[1] is None:
        return None
    times = (shares[0] / shares[1]).interval
    return Verdict(
        settle([mark_of(times)]),
        show(times),
        f"QWYC* is {show(_inverse(shares[1]).interval)} times as fast as the full ensemble when "
        f"independently trained and {show(_inverse(shares[0]).interval)} times when jointly trained, ratio "
        f"{show(times)}. In time, at about 0.5% differences, with 95% intervals.",
    )


def _of_both(
    outcomes: Mapping[str, Outcome], judge: Callable[[Sequence[Outcome]], Verdict | None]
) -> dict[str, Verdict]:
    """A claim that needs all four experiments."""
    if not all(name in outcomes for name in LATTICES):
        return {}
    verdict = judge([outcomes[name] for pair in PAIRS.values() for name in pair])
    return {} if verdict is None else {BOTH: verdict}


def effect_by_level(four: Sequence[Outcome]) -> Verdict | None:
    """How much faster independently trained ensembles are, Real-world 1 over Real-world 2."""
    if not all(QWYC in outcome.results.curves for outcome in four):
        return None
    first, second = (
        {one.level: one.times for one in contrasts(*pair, models_share)}
        for pair in (four[:2], four[2:])
    )
    common = [level for level in first if level in second]
    if not common:
        return Verdict(OPEN, "not reached", "QWYC* reaches no level in all four experiments.")
    at = decisive_level(common)
    times = {level: (first[level] / second[level]).interval for level in common}
    sentences = [
        f"At {level:.2%}: {show(first[level].interval)} for Real-world 1 and "
        f"{show(second[level].interval)} for Real-world 2, ratio {show(times[level])}."
        for level in common
    ]
    return Verdict(
        settle([mark_of(one) for one in times.values()], [mark_of(times[at])]),
        f"{show(first[at].interval)} against {show(second[at].interval)}",
        f"Speed-up of the independently trained ensemble over that of the jointly trained one, in base "
        f"models, with 95% intervals. {' '.join(sentences)}",
    )


def effect_in_time(four: Sequence[Outcome]) -> Verdict | None:
    """The same in time."""
    shares = [time_share(outcome) for outcome in four]
    if any(share is None for share in shares):
        return None
    first, second = shares[0] / shares[1], shares[2] / shares[3]
    times = (first / second).interval
    return Verdict(
        settle([mark_of(times)]),
        f"{show(first.interval)} against {show(second.interval)}",
        f"Speed-up of the independently trained ensemble over that of the jointly trained one, in time, "
        f"with 95% intervals: {show(first.interval)} for Real-world 1 and {show(second.interval)} for "
        f"Real-world 2, ratio {show(times)}.",
    )


def correlates_more(joint: Outcome, independent: Outcome) -> Verdict | None:
    """By the estimates alone: a correlation over thousands of rows and all base models has no interval
    here. An outcome without a correlation has 0."""
    one, other = joint.correlation, independent.correlation
    if one == 0 and other == 0:
        return None
    return Verdict(
        HOLDS if other > one else FAILS,
        f"{other:.2f} against {one:.2f}",
        f"The mean correlation of a base model's score with the full score is {other:.2f} when "
        f"independently trained and {one:.2f} when jointly trained. Whether this is the reason for better "
        "speed-ups is not tested.",
    )
