"""Verdicts on claims across experiments and beyond the paper, and all claims together."""

from dataclasses import replace

import numpy as np
import pytest

from outcomes import (
    SHARES,
    N,
    Spec,
    T,
    all_six,
    base_specs,
    check,
    made,
    point,
    promised,
    rows,
    steps_of,
    timings,
)
from qwyc_experiments.paper import claims, curves
from qwyc_experiments.paper.claims import FAILS, HOLDS, IN_PART, OPEN, across, ours, verdicts
from qwyc_experiments.paper.curves import FAN_STAR, OURS, QWYC, Interval
from qwyc_experiments.paper.experiments import EXPERIMENTS

RULES = ("algorithm-2", "fan")
FIXED = [key for key in base_specs() if key != QWYC]


def with_mse(individual, greedy):
    """Base models along the two orders, with both rules."""
    return {
        (rule, order): Spec(models, gain=0.0)
        for rule in RULES
        for order, models in (("individual-mse", individual), ("greedy-mse", greedy))
    }


def pair(judge, joint=None, independent=None):
    """The verdict on a jointly and an independently trained ensemble."""
    return check(judge(made("rw2-joint", specs=joint), made("rw2-independent", specs=independent)))


# --- jointly against independently trained -----------------------------------------------------


def test_gap_between_the_mse_orders():
    judge = across.gap_is_larger
    assert pair(judge, with_mse(90.0, 45.0), with_mse(90.0, 80.0)).verdict == HOLDS
    assert pair(judge, with_mse(90.0, 80.0), with_mse(90.0, 45.0)).verdict == FAILS
    assert pair(judge, with_mse(45.0, 90.0), with_mse(20.0, 90.0)).verdict == FAILS  # wrong way
    assert pair(judge).verdict == OPEN
    mixed = {**with_mse(90.0, 80.0), ("fan", "greedy-mse"): Spec(20.0, gain=0.0)}
    assert pair(judge, mixed, with_mse(90.0, 45.0)).verdict == IN_PART
    nothing = dict.fromkeys(FIXED, Spec(9.0, least=0.05))
    found = pair(judge, nothing)
    assert (found.verdict, found.figure) == (OPEN, "not reached")
    some = {key: Spec(9.0, least=0.05) for key in FIXED if key[0] == "fan"}
    assert "No level is reached by all methods with: Fan's rule" in pair(judge, some).evidence


def test_the_order_matters_less():
    judge = across.order_matters_less
    apart = {(rule, "natural"): Spec(300.0, gain=0.0) for rule in RULES}
    assert pair(judge, apart).verdict == HOLDS
    assert pair(judge, None, apart).verdict == FAILS
    assert pair(judge).verdict == OPEN
    one_rule = {("fan", "natural"): Spec(300.0, gain=0.0)}
    assert pair(judge, one_rule).verdict == IN_PART
    assert pair(judge, dict.fromkeys(FIXED)).verdict == OPEN  # no fixed orders at all


def test_better_speed_ups():
    judge = across.better_speed_up
    slow, fast = {QWYC: Spec(80.0, gain=1.0)}, {QWYC: Spec(20.0, gain=1.0)}
    found = pair(judge, slow, fast)
    assert (found.verdict, found.figure) == (HOLDS, "4.00 (4.00 to 4.00)")
    assert "25.0 (" in found.evidence
    assert pair(judge, fast, slow).verdict == FAILS
    assert pair(judge).verdict == OPEN
    bent = {QWYC: Spec(20.0, gain=1.0, steps=np.full(len(rows()[0]), 40))}  # the same at all levels
    assert pair(judge, bent, None).verdict == IN_PART
    assert pair(judge, {QWYC: Spec(20.0, least=0.05)}).verdict == OPEN
    assert judge(made(specs={QWYC: None}), made()) is None


def test_better_speed_ups_in_time():
    judge = across.better_speed_up_in_time
    slow, fast = made(timed=timings(qwyc=60.0)), made(timed=timings(qwyc=20.0))
    assert check(judge(slow, fast)).verdict == HOLDS
    assert check(judge(fast, slow)).verdict == FAILS
    assert check(judge(fast, fast)).verdict == OPEN
    assert judge(made(), fast) is None


def four(rw1, rw2):
    """Base models of QWYC*, jointly and independently trained, of both data sets."""
    return [made(specs={QWYC: Spec(m, gain=1.0)}) for m in (*rw1, *rw2)]


def four_timed(rw1, rw2):
    return [made(timed=timings(qwyc=m)) for m in (*rw1, *rw2)]


def test_the_effect_by_data_set():
    for judge, outcomes in (
        (across.effect_by_level, four),
        (across.effect_in_time, four_timed),
    ):
        assert check(judge(outcomes((80.0, 20.0), (40.0, 38.0)))).verdict == HOLDS
        assert check(judge(outcomes((40.0, 38.0), (80.0, 20.0)))).verdict == FAILS
        assert check(judge(outcomes((40.0, 20.0), (40.0, 20.0)))).verdict == OPEN
    missing = [made(specs={QWYC: None}) for _ in range(4)]
    assert across.effect_by_level(missing) is None
    assert across.effect_in_time(missing) is None
    out_of_reach = [made(specs={QWYC: Spec(9.0, least=0.05)}) for _ in range(4)]
    assert check(across.effect_by_level(out_of_reach)).verdict == OPEN


def test_correlation():
    low, high = made(correlation=0.2), made(correlation=0.7)
    assert check(across.correlates_more(low, high)).verdict == HOLDS
    assert check(across.correlates_more(high, low)).verdict == FAILS
    assert across.correlates_more(made(), made()) is None


# --- beyond the paper -------------------------------------------------------------------------


def of(outcome, start):
    """Our claims that start so, judged on one outcome."""
    found = [c for c in claims.beyond({"adult": outcome}) if c.paper.startswith(start)]
    assert len(found) <= 1
    return check(found[0].verdicts["adult"]).verdict if found else None


@pytest.mark.parametrize(
    ("start", "method", "rivals"),
    [
        ("The default method needs fewer base models than QWYC*", OURS, [QWYC]),
        ("The default method needs fewer base models than every published", OURS, [QWYC, FAN_STAR]),
        ("The default method needs fewer base models than LightGBM", OURS, [curves.MARGIN]),
        ("QWYC* needs fewer base models than LightGBM", QWYC, [curves.MARGIN, curves.MARGIN_10]),
        ("The default method needs fewer base models than the stop", OURS, [curves.BEST_VOTES]),
        ("QWYC* needs fewer", QWYC, [curves.BEST_VOTES, curves.BAYES_VOTES]),
    ],
)
def test_against_rivals(start, method, rivals):
    def judged(mine, theirs, **more):
        specs = {method: Spec(mine, **more), **{key: Spec(theirs) for key in rivals}}
        if "published" in start:
            specs = {**dict.fromkeys(FIXED, Spec(theirs)), **specs}
        return of(made(specs=specs), start)

    assert judged(20.0, 60.0) == HOLDS
    assert judged(60.0, 20.0) == FAILS
    assert judged(40.0, 40.0) == OPEN
    assert judged(20.0, 60.0, least=0.004) == IN_PART
    assert of(made(specs={OURS: None, QWYC: None}), start) is None


def test_the_best_published_method_is_named():
    specs = {OURS: Spec(30.0), curves.MARGIN: Spec(33.0), curves.FAN_JOINT: Spec(5.0)}
    found = check(ours.against_published(made(specs=specs)))
    assert found.figure.endswith(", pred_early_stop, every tree")
    assert "pred_early_stop, every tree 1.10" in found.evidence
    assert "order of QWYC*" not in found.evidence  # a combination of ours is not published


def test_default_method_in_accuracy_and_time():
    worse = {**dict.fromkeys(FIXED, Spec(40.0, gain=0.0)), QWYC: Spec(40.0, gain=0.0)}
    start = "The default method is more accurate"
    assert of(made(specs={**worse, OURS: Spec(40.0, gain=1.0)}), start) == HOLDS
    assert of(made(specs={**worse, OURS: Spec(40.0, gain=0.0)}), start) == OPEN
    assert of(made(specs={OURS: Spec(40.0, gain=0.0)}), start) == FAILS
    start = "The default method takes less time"
    assert of(made(timed=timings(OURS=20.0)), start) == HOLDS
    assert of(made(timed=timings(OURS=40.0)), start) == FAILS
    assert of(made(timed=timings()), start) is None


def test_alpha_on_new_rows():
    start = "QWYC* makes more differences"
    assert of(made(), start) == OPEN
    outcome = made(specs={QWYC: Spec(40.0, least=0.01)})
    assert of(outcome, start) == HOLDS
    assert "by +0.36 points" in ours.exceeds_alpha(outcome).figure
    assert of(made(specs={QWYC: Spec(40.0, least=0.0035)}), start) == IN_PART
    cautious = made()
    lower = [replace(p, knob=3 * p.knob) if p.key == QWYC else p for p in cautious.results.points]
    cautious = replace(cautious, results=replace(cautious.results, points=lower))
    assert of(cautious, start) == FAILS


def test_promises():
    start = "The classifier that"
    assert of(made(promised=[promised(), promised(0.01)]), start) == HOLDS
    assert of(made(promised=[promised(broken=1)]), start) == HOLDS  # 1 of 20
    assert of(made(promised=[promised(broken=2), promised(0.01)]), start) == IN_PART
    assert of(made(promised=[promised(broken=20)]), start) == FAILS
    assert of(made(), start) is None


# --- all together -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def six():
    return all_six()


def test_every_claim_has_verdicts_and_words(six):
    found = claims.claims(six)
    assert len(found) == len({claim.paper for claim in found}) == 39
    pairs = [c for c in found if any(key not in EXPERIMENTS for key in c.verdicts)]
    assert len(pairs) == 7
    for claim in found + claims.beyond(six):
        assert claim.verdicts
        assert claim.where
        assert set(claim.said_of) <= set(EXPERIMENTS)
        for name, verdict in claim.verdicts.items():
            assert name in EXPERIMENTS or name in across.PAIRS or name == across.BOTH
            check(verdict)
    assert all(claim.where == "ours" for claim in claims.beyond(six))


def test_claims_are_said_of_the_experiments_that_the_paper_names(six):
    found = {claim.paper: claim for claim in claims.claims(six)}
    only_six = [c for c in found.values() if c.said_of == ("rw2-independent",)]
    assert len(only_six) == 4
    for claim in found.values():
        judged = set(claim.verdicts) & set(EXPERIMENTS)
        assert not judged or set(claim.said_of) <= judged


def test_any_experiment_may_be_missing(six):
    assert claims.claims({}) == claims.beyond({}) == []
    for name in six:
        for claim in claims.claims({name: six[name]}):
            assert set(claim.verdicts) == {name}
    some = claims.claims({name: six[name] for name in ("rw1-joint", "rw1-independent")})
    keys = {key for claim in some for key in claim.verdicts}
    assert keys == {"rw1-joint", "rw1-independent", "3 and 5"}


def test_nothing_but_qwyc_or_no_level_reached():
    alone = made("rw2-joint", specs=dict.fromkeys(FIXED), sizes=())
    nowhere = {key: Spec(9.0, least=0.05) for key in (*base_specs(), OURS)}
    same = made("rw2-independent", specs=nowhere)
    for outcomes in ({"rw2-joint": alone}, {"rw2-joint": alone, "rw2-independent": same}):
        for claim in claims.claims(outcomes) + claims.beyond(outcomes):
            for verdict in claim.verdicts.values():
                check(verdict)


def test_every_reason_for_not_testing_is_given():
    for sentence, reason in claims.NOT_TESTED:
        assert sentence.endswith(".")
        assert reason.endswith(".")
    assert "4.0 (independently trained)" in claims.NOT_TESTED[0][1]


# --- rules ------------------------------------------------------------------------------------


def test_settle():
    assert verdicts.settle([1, 1]) == HOLDS
    assert verdicts.settle([1, 0]) == IN_PART
    assert verdicts.settle([1, 0], decisive=[1]) == HOLDS
    assert verdicts.settle([1, -1], decisive=[1]) == IN_PART
    assert verdicts.settle([0, -1]) == FAILS
    assert verdicts.settle([0, 0]) == verdicts.settle([]) == OPEN


def test_estimates_with_infinite_and_unknown_replicates():
    reached = verdicts.Estimate(10.0, np.array([9.0, 10.0, 11.0, np.inf]))
    never = verdicts.Estimate(np.inf, np.full(4, np.inf))
    assert (never / reached).value == np.inf
    assert (reached / never).interval == Interval(0.0, 0.0, 0.0)  # the unknown one is left out
    assert np.isnan((never / never).value)
    both = (never / never).interval
    assert (both.low, both.high) == (-np.inf, np.inf)
    assert verdicts.mark_of(both) == verdicts.UNDECIDED
    assert (reached / reached).interval == Interval(1.0, 1.0, 1.0)


def test_ratios_as_text():
    assert verdicts.show(Interval(1.5, 1.25, 12.34)) == "1.50 (1.25 to 12.3)"
    assert verdicts.show(Interval(1.5, 1.25, np.inf)) == "1.50 (1.25 or more)"
    assert verdicts.show(Interval(1.5, 0.0, 2.0)) == "1.50 (2.00 or less)"
    assert verdicts.show(Interval(1.5, -np.inf, np.inf)) == "1.50 (interval not known)"
    assert [verdicts.digits(x) for x in (0.123, 9.996, 99.96, 12345)] == [
        "0.12",
        "10.0",
        "100",
        "12,345",
    ]
    assert verdicts.number(None) == verdicts.number(np.inf) == "not reached"


def drawn(key, models, differs):
    """Points of a method that differs on a row at shares above the row's own number, (N,)."""
    knobs = SHARES if key == QWYC else [1 / share for share in SHARES]
    return [
        point(key, knob, rows()[0] ^ (differs < share), steps_of(models * (0.005 / share) ** 0.5))
        for knob, share in zip(knobs, SHARES, strict=True)
    ]


def test_intervals_cover_the_true_ratio():
    """Many test sets are drawn, on which two methods need 30 and 40 base models and differ on rows most of
    which they share. About 95% of the intervals contain the ratio."""
    covered = 0
    full = curves.Measured(T, 0.0, 0.87)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        one, own = rng.random((2, N))
        other = np.where(rng.random(N) < 0.7, one, own)
        points = [*drawn(QWYC, 30.0, one), *drawn(FAN_STAR, 40.0, other)]
        found = curves.Results("adult", T, N, N, full, full, *rows()[:2], points).curves
        times = curves.ratio(found[FAN_STAR], found[QWYC], 0.005)
        covered += times.low <= 40 / 30 <= times.high
    assert 34 <= covered < 40


def test_curves_interpolate_in_log_base_models():
    def plain(knob, models, differ):
        measured = curves.Measured(models, differ, 0.87)
        steps, label = np.full(10, models), np.ones(10, dtype=bool)
        return curves.Point("qwyc", "joint", knob, None, None, measured, measured, steps, label)

    curve = curves.Curve([plain(0.0, 100, 0.002), plain(0.1, 25, 0.006)])
    assert curve.models_at(0.004) == pytest.approx(50)
    assert curve.models_at(0.001) is None
    assert curve.models_at(0.02) == pytest.approx(25)
    assert curve.at_models("differ", 50) == pytest.approx(0.004)
    assert curve.at_models("differ", 101) is None
