"""Claims about evaluation time in the native engine, on one thread.

The interval of a ratio of times is a bootstrap over runs. All methods use the same resampled run numbers,
so methods that were timed in turns are paired. It covers the noise of the runs, not another machine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..curves import (
    FAN_JOINT,
    FAN_STAR,
    JOINT_FAN,
    LEVEL,
    QWYC,
    REPLICATES,
    Interval,
    Key,
    Outcome,
    Timed,
    title,
)
from .fewer import FACTOR, factor_verdict, range_verdict
from .verdicts import (
    HOLDS,
    IN_PART,
    Claim,
    Estimate,
    Verdict,
    by_experiment,
    digits,
    mark_of,
    number,
    settle,
    show,
)

LATTICES = ("rw1-joint", "rw2-joint", "rw1-independent", "rw2-independent")


def claims(outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """All of this module."""
    return [
        Claim(
            "QWYC* is 2 to 4 times as fast as the full ensemble at about 0.5% differences: in time.",
            "abstract",
            by_experiment(outcomes, speed_up),
            LATTICES,
        ),
        Claim(
            "QWYC* is about 1.5 times as fast as prior work, Fan*: in time.",
            "abstract",
            by_experiment(outcomes, factor_to_fan_star),
            LATTICES,
        ),
        Claim(
            "QWYC* takes less time than Fan* at about 0.5% differences.",
            "discussion",
            by_experiment(outcomes, faster_than_fan_star),
            LATTICES,
        ),
        Claim(
            "Fan's rule has an evaluation cost of its own: time per base model evaluated, Fan* over QWYC*.",
            "discussion",
            by_experiment(outcomes, cost_of_fans_rule),
        ),
        Claim(
            "QWYC may gain from Fan's more flexible thresholds, although they cost time: Fan's rule along "
            "the order of QWYC* takes less time than QWYC*.",
            "discussion",
            by_experiment(outcomes, lambda outcome: takes_less(outcome, FAN_JOINT, QWYC)),
        ),
        Claim(
            "QWYC may gain from Fan's more flexible thresholds, although they cost time: the order search "
            "with Fan's rule takes less time than QWYC*.",
            "discussion",
            by_experiment(outcomes, lambda outcome: takes_less(outcome, JOINT_FAN, QWYC)),
        ),
    ]


def found(outcome: Outcome, key: Key | None) -> Timed | None:
    """What was timed of a method, nearest to 0.5% differences; None for the full ensemble's key."""
    there = [timed for timed in outcome.timed if timed.key == key and len(timed.microseconds)]
    return min(there, key=lambda timed: abs(timed.test.differ - LEVEL), default=None)


def mean_time(timed: Timed) -> Estimate:
    """Microseconds per row; replicates from resampled runs, unknown with a single run."""
    runs = np.asarray(timed.microseconds, dtype=np.float64)
    if len(runs) < 2:
        return Estimate(float(runs.mean()), np.full(REPLICATES, np.nan))
    chosen = np.random.default_rng(0).integers(0, len(runs), (REPLICATES, len(runs)))
    return Estimate(float(runs.mean()), runs[chosen].mean(axis=1))


def describe(timed: Timed) -> str:
    """What a method takes, in words."""
    time = f"{digits(float(np.mean(timed.microseconds)))} microseconds a row"
    if timed.key is None:
        return f"The full ensemble takes {time}"
    return (
        f"{title(timed.key)} takes {time} with {number(timed.test.models)} base models and "
        f"{timed.test.differ:.2%} test differences"
    )


def speed_up(outcome: Outcome) -> Verdict | None:
    """The full ensemble's time over that of QWYC*."""
    full, ours = found(outcome, None), found(outcome, QWYC)
    if full is None or ours is None:
        return None
    times = (mean_time(full) / mean_time(ours)).interval
    beyond = " That is beyond the paper's range." if times.low > 4 else ""
    return Verdict(
        range_verdict(times),
        show(times),
        f"{describe(full)}. {describe(ours)}: {show(times)} times as fast (in brackets: 95% interval)."
        f"{beyond} In base models the factor is {digits(outcome.results.n_models / ours.test.models)}.",
    )


def factor_to_fan_star(outcome: Outcome) -> Verdict | None:
    """The time of Fan* over that of QWYC*, judged as the factor in base models is."""
    pair = _ratio(outcome, FAN_STAR, QWYC)
    if pair is None:
        return None
    times, sentence = pair
    return Verdict(
        factor_verdict(times, mark_of(times)),
        show(times),
        f"{sentence} {FACTOR} or more counts as about 1.5 or better.",
    )


def faster_than_fan_star(outcome: Outcome) -> Verdict | None:
    """Whether QWYC* takes less time at all."""
    return takes_less(outcome, QWYC, FAN_STAR)


def takes_less(outcome: Outcome, ours: Key, rival: Key) -> Verdict | None:
    """Whether a method takes less time than another, each at about 0.5% differences."""
    pair = _ratio(outcome, rival, ours)
    if pair is None:
        return None
    times, sentence = pair
    return Verdict(settle([mark_of(times)]), show(times), sentence)


def cost_of_fans_rule(outcome: Outcome) -> Verdict | None:
    """Microseconds per base model evaluated. Along the order of QWYC* the base models are the same, so
    that comparison is the cleaner one; where it was timed and contradicts, the claim holds in part."""
    ours, star, same = (found(outcome, key) for key in (QWYC, FAN_STAR, FAN_JOINT))
    if ours is None or star is None:
        return None
    times = (_per_model(star) / _per_model(ours)).interval
    verdict = settle([mark_of(times)])
    evidence = (
        f"{describe(star)}. {describe(ours)}. Per base model evaluated, Fan* takes {show(times)} times as "
        "long (in brackets: 95% interval). What a row costs besides its base models is included, which "
        "favours the method that evaluates more of them."
    )
    if same is not None:
        along = (_per_model(same) / _per_model(ours)).interval
        evidence += f" Along the order of QWYC*, Fan's rule takes {show(along)} times as long."
        if verdict == HOLDS and mark_of(along) < 0:
            verdict = IN_PART
    return Verdict(verdict, show(times), evidence)


def _per_model(timed: Timed) -> Estimate:
    time = mean_time(timed)
    return Estimate(time.value / timed.test.models, time.replicates / timed.test.models)


def _ratio(outcome: Outcome, above: Key, below: Key) -> tuple[Interval, str] | None:
    """The time of one method over that of another, and a sentence about both."""
    one, other = found(outcome, above), found(outcome, below)
    if one is None or other is None:
        return None
    times = (mean_time(one) / mean_time(other)).interval
    return times, (
        f"{describe(one)}. {describe(other)}. The first takes {show(times)} times as long (in brackets: "
        "95% interval)."
    )
