"""Claims about fixed orders among themselves, and about random orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..curves import LEVEL, ORDERS, QWYC, Curve, Outcome, Results, title
from ..experiments import EXPERIMENTS
from .verdicts import (
    AGAINST,
    FAILS,
    FOR,
    HOLDS,
    IN_PART,
    OPEN,
    Claim,
    Verdict,
    against,
    against_all,
    by_experiment,
    compare,
    decisive_for,
    decisive_level,
    excess,
    mark_of,
    named,
    needs_fewer,
    number,
    points_of,
    settle,
    show,
)

RULES = {"algorithm-2": "Algorithm 2", "fan": "Fan's rule"}
INDEPENDENT = ("rw1-independent", "rw2-independent")
SIX = ("rw2-independent",)


def claims(outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """All of this module."""
    independent = [n for n, e in EXPERIMENTS.items() if e.family in ("independent", "forest")]
    return [
        Claim(
            "Along many fixed orders, Fan's rule does better than Algorithm 2.",
            "discussion",
            by_experiment(outcomes, fan_against_algorithm_2),
        ),
        Claim(
            "Greedy MSE is a better order than individual MSE, with either rule.",
            "appendix B",
            by_experiment(outcomes, greedy_against_individual),
        ),
        Claim(
            "Individual MSE is a more useful order than individual accuracy.",
            "appendix B",
            by_experiment(outcomes, mse_against_accuracy),
        ),
        Claim(
            "A random order with Algorithm 2 beats all orders, also that of QWYC*.",
            "discussion",
            by_experiment(outcomes, lambda o: random_beats_all(o, "algorithm-2"), SIX),
            SIX,
        ),
        Claim(
            "A random order with Fan's rule beats all orders, also that of QWYC*.",
            "discussion",
            by_experiment(outcomes, lambda o: random_beats_all(o, "fan"), SIX),
            SIX,
        ),
        Claim(
            "A random order overfits less than individual MSE, greedy MSE and QWYC*.",
            "discussion",
            by_experiment(outcomes, random_overfits_less, independent),
            SIX,
        ),
        Claim(
            "QWYC* is at least statistically similar to the best random order.",
            "appendix D",
            by_experiment(outcomes, similar_to_best_random, independent),
            INDEPENDENT,
        ),
        Claim(
            "For independently trained ensembles a random order sometimes needs fewer base models than "
            "individual MSE or greedy MSE.",
            "appendix D",
            by_experiment(outcomes, random_sometimes_better, independent),
            INDEPENDENT,
        ),
        Claim(
            "A random order is significantly better than both individual MSE and greedy MSE.",
            "appendix D",
            by_experiment(outcomes, random_beats_mse_orders, SIX),
            SIX,
        ),
    ]


def fan_against_algorithm_2(outcome: Outcome) -> Verdict | None:
    """The two rules along the same order, at the decisive level. It holds where Fan's rule needs fewer
    base models along half of the orders or more, and in part where it does along some."""
    curves = outcome.results.curves
    both = [o for o in ORDERS if all((rule, o) in curves for rule in RULES)]
    every = {
        order: compare(curves["fan", order], {ORDERS[order]: curves["algorithm-2", order]})
        for order in both
    }
    reached = {one.level for found in every.values() for one in found}
    if not both:
        return None
    if not reached:
        return Verdict(OPEN, "not reached", "No order gets within 2% test differences.")
    at = decisive_level(reached)
    there = {order: one for order, found in every.items() for one in found if one.level == at}
    marks = [one.mark for one in there.values()]
    better = marks.count(FOR)
    if 2 * better >= len(marks):
        verdict = HOLDS
    else:
        verdict = IN_PART if better else FAILS if AGAINST in marks else OPEN
    sentences = []
    for order, one in there.items():
        fan, plain = (curves[rule, order].models_at(at) for rule in ("fan", "algorithm-2"))
        finite = 0 < one.times.value < np.inf
        sentences.append(
            f"{ORDERS[order]}, {number(plain)} against {number(fan)}"
            + (f", factor {show(one.times)}" if finite else "")
        )
    return Verdict(
        verdict,
        f"{better} of {len(marks)} orders",
        f"At {at:.2%} test differences Fan's rule needs fewer base models along {better} of {len(marks)} "
        f"orders, more along {marks.count(AGAINST)}, and the interval does not decide for the others. "
        f"Algorithm 2 against Fan's rule, with 95% intervals: {'; '.join(sentences)}.",
    )


def greedy_against_individual(outcome: Outcome) -> Verdict | None:
    """With both rules."""
    return one_order_against(outcome.results, "greedy-mse", ("individual-mse",))


def random_beats_mse_orders(outcome: Outcome) -> Verdict | None:
    """With both rules."""
    return one_order_against(outcome.results, "random", ("individual-mse", "greedy-mse"))


def random_sometimes_better(outcome: Outcome) -> Verdict | None:
    """It holds where a random order clearly beats one of the two at the decisive level with either rule,
    and in part where it does at other levels only."""
    rivals = ("individual-mse", "greedy-mse")
    strict = one_order_against(outcome.results, "random", rivals)
    if strict is None:
        return None
    marks, decisive = [], []
    for rival in rivals:
        all_of, some = _marks(outcome.results, "random", (rival,))
        marks += all_of
        decisive += some
    won = HOLDS if FOR in decisive else IN_PART
    return Verdict(won if FOR in marks else settle(marks), strict.figure, strict.evidence)


def one_order_against(results: Results, order: str, others: Sequence[str]) -> Verdict | None:
    """An order against others, each rule for itself; the decisive marks are those of both rules."""
    found = {
        name: needs_fewer(
            results.curves.get((rule, order)), named(results.family(rule, others)), ORDERS[order]
        )
        for rule, name in RULES.items()
    }
    verdicts = {name: verdict for name, verdict in found.items() if verdict is not None}
    if not verdicts:
        return None
    return Verdict(
        settle(*_marks(results, order, others)),
        "; ".join(f"{name}: {verdict.figure}" for name, verdict in verdicts.items()),
        " ".join(f"With {name}: {verdict.evidence}" for name, verdict in verdicts.items()),
    )


def _marks(results: Results, order: str, others: Sequence[str]) -> tuple[list[int], list[int]]:
    """The marks of an order against others with the same rule, one a level, and the decisive ones."""
    marks, decisive = [], []
    for rule in RULES:
        ours = results.curves.get((rule, order))
        found = [] if ours is None else compare(ours, named(results.family(rule, others)))
        at = decisive_for(ours, [one.level for one in found]) if ours and found else None
        by_level = against_all(found)
        marks += by_level.values()
        decisive += [mark for level, mark in by_level.items() if level == at]
    return marks, decisive


def mse_against_accuracy(outcome: Outcome) -> Verdict | None:
    """Both with Algorithm 2."""
    return against(outcome, ("algorithm-2", "individual-mse"), [("algorithm-2", "accuracy")])


def random_beats_all(outcome: Outcome, rule: str) -> Verdict | None:
    """Random orders with a rule, against the other fixed orders with it and against QWYC*."""
    others = [(rule, order) for order in ORDERS if order != "random"]
    verdict = against(outcome, (rule, "random"), [*others, QWYC])
    if verdict is None:
        return None
    seeds_text = _seeds_text(outcome.results, rule)
    return Verdict(verdict.verdict, verdict.figure, verdict.evidence + seeds_text)


def _seeds_text(results: Results, rule: str) -> str:
    """How far the random orders are apart."""
    at = LEVEL
    found = [curve.models_at(at) for curve in seeds(results, rule).values()]
    known = [models for models in found if models is not None]
    if len(known) < 2:
        return ""
    return (
        f" The random order is a mean over seeds: at {at:.2%} they need {number(min(known))} to "
        f"{number(max(known))} base models."
    )


def seeds(results: Results, rule: str) -> dict[str, Curve]:
    """The curve of each random order by itself."""
    points = [p for p in results.points if p.key == (rule, "random")]
    groups = {
        seed: [p for p in points if p.seed == seed]
        for seed in dict.fromkeys(p.seed for p in points)
    }
    return {
        f"{title((rule, 'random'))}, seed {seed}": Curve(group, results.replicates(group))
        for seed, group in groups.items()
    }


def similar_to_best_random(outcome: Outcome) -> Verdict | None:
    """QWYC* against each random order with either rule. It holds where no interval at any level shows
    QWYC* to need more than the best, and in part where none does at some levels. The best order is picked
    on the test rows, which favours it."""
    results = outcome.results
    rivals = seeds(results, "algorithm-2") | seeds(results, "fan")
    shown = needs_fewer(results.curves.get(QWYC), rivals)
    if shown is None:
        return None
    found = compare(results.curves[QWYC], rivals)
    levels = {one.level for one in found}
    lost = sorted({one.level for one in found if one.mark == AGAINST})
    if not levels:
        return shown
    where = ", ".join(f"{level:.2%}" for level in lost) or "no level"
    return Verdict(
        HOLDS if not lost else FAILS if len(lost) == len(levels) else IN_PART,
        shown.figure,
        f"{shown.evidence} A random order is clearly better than QWYC* at {where}.",
    )


def random_overfits_less(outcome: Outcome) -> Verdict | None:
    """Test differences less those on the fitted rows, mean over alpha, with Algorithm 2's thresholds:
    other orders less random orders."""
    results = outcome.results
    groups = {
        key: [p for p in results.points if p.key == key]
        for key in (QWYC, ("algorithm-2", "individual-mse"), ("algorithm-2", "greedy-mse"))
    }
    randomly = [p for p in results.points if p.key == ("algorithm-2", "random")]
    if not randomly or not groups[QWYC]:
        return None
    base = excess(results, randomly)
    marks, sentences = [], []
    for key, points in groups.items():
        if points:
            more = (excess(results, points) - base).interval
            marks.append(mark_of(more, 0.0))
            sentences.append(f"{title(key)} {points_of(more.value, more.low, more.high)}")
    return Verdict(
        settle(marks),
        f"overfits less than {marks.count(FOR)} of {len(marks)}",
        f"With a random order the test differences exceed those on the fitted rows by "
        f"{100 * base.value:+.2f} points on average over alpha. How many points more the others exceed "
        f"theirs, with 95% intervals: {'; '.join(sentences)}.",
    )
