"""Verdicts on the paper's claims about single experiments, on made-up outcomes."""

import re

import numpy as np
import pytest

from outcomes import (
    SHARES,
    N,
    Spec,
    base_specs,
    check,
    labels,
    made,
    rows,
    timed,
    timings,
)
from qwyc_experiments.paper.claims import (
    FAILS,
    HOLDS,
    IN_PART,
    OPEN,
    accuracy,
    fewer,
    orders,
    timing,
)
from qwyc_experiments.paper.claims.verdicts import UNDECIDED
from qwyc_experiments.paper.curves import FAN_JOINT, FAN_STAR, JOINT_FAN, QWYC, Interval


def verdict(judge, specs=None, **more):
    return check(judge(made(specs=specs, **more))).verdict


def all_orders(rule, spec):
    return {key: spec for key in base_specs() if key[0] == rule}


# --- the made-up outcomes are what they say ------------------------------------------------------


def test_made_up_rows_have_the_wanted_figures():
    positive, truth, _, _ = rows()
    assert np.mean(positive == truth) == pytest.approx(0.87)
    for share in SHARES:
        label = labels(share, gain=1.0)
        assert np.mean(label != positive) == pytest.approx(share)
        assert np.mean(label == truth) == pytest.approx(0.87 + share)
        assert np.mean(labels(share, gain=0.0) == truth) == pytest.approx(0.87 - share)
    curve = made().results.curves[QWYC]
    assert curve.models_at(0.005) == pytest.approx(40)
    assert curve.models_at(0.02) == pytest.approx(20)


# --- base models ------------------------------------------------------------------------------


@pytest.mark.parametrize("judge", [fewer.fewer_than_fixed_orders, fewer.fewer_than_fan])
def test_fewer_base_models(judge):
    assert verdict(judge) == HOLDS
    assert verdict(judge, {QWYC: Spec(200.0)}) == FAILS
    found = check(judge(made(specs={QWYC: Spec(40.0, least=0.004)})))  # 0.25% is out of its reach
    assert found.verdict == IN_PART
    assert "does not reach 0.25%" in found.evidence
    assert "Its least differences are 0.40%" in found.evidence
    nothing = {key: Spec(spec.models, least=0.05) for key, spec in base_specs().items()}
    assert verdict(judge, nothing) == OPEN
    assert judge(made(specs={QWYC: None})) is None


def test_one_rival_decides_about_the_claim():
    same = {("fan", "greedy-mse"): base_specs()[QWYC]}
    found = check(fewer.fewer_than_fan(made(specs=same)))
    assert (found.verdict, found.figure) == (OPEN, "1.00 (1.00 to 1.00), Fan, greedy MSE")
    assert "4 undecided: not won against Fan, greedy MSE at 0.25%" in found.evidence
    better = {("fan", "greedy-mse"): Spec(30.0, gain=1.0)}
    assert verdict(fewer.fewer_than_fan, better) == FAILS


def test_equal_curves_that_differ_on_other_rows_are_undecided():
    specs = {key: Spec(40.0, noise=i) for i, key in enumerate(base_specs())}
    for judge in (fewer.fewer_than_fan, fewer.fewer_than_fixed_orders):
        assert verdict(judge, specs) == OPEN


def test_a_level_reached_in_some_bootstrap_samples_only_is_undecided():
    specs = {QWYC: Spec(40.0, least=0.0101), **all_orders("fan", Spec(40.0, least=0.0099))}
    found = check(fewer.fewer_than_fan(made(specs=specs)))
    assert found.verdict == OPEN
    assert "not in every bootstrap sample" in found.evidence
    swapped = {QWYC: Spec(40.0, least=0.0099), **all_orders("fan", Spec(40.0, least=0.0101))}
    assert "except in some bootstrap samples" in fewer.fewer_than_fan(made(specs=swapped)).evidence


def test_a_level_that_is_almost_reached_counts_against_where_rivals_reach_it_for_sure():
    found = check(fewer.fewer_than_fan(made(specs={QWYC: Spec(20.0, least=0.0028)})))
    assert found.verdict == IN_PART
    assert "12 are won, 4 lost" in found.evidence
    fan = all_orders("fan", Spec(20.0, least=0.0028))
    assert "4 are won, 12 lost" in fewer.fewer_than_fan(made(specs=fan)).evidence


def test_the_decisive_level_is_one_that_is_reached_for_sure():
    specs = {QWYC: Spec(40.0, least=0.0048), **all_orders("fan", Spec(90.0, least=0.0048))}
    found = check(fewer.fewer_than_fan(made(specs=specs)))
    assert found.verdict == HOLDS
    assert "Decisive at 1.00%" in found.evidence
    assert re.search(r"at 0\.50% \(reached in \d\d% of the bootstrap samples\)", found.evidence)


def test_a_level_that_only_one_side_reaches():
    only_rivals = {QWYC: Spec(10.0, least=0.03)}
    found = check(fewer.fewer_than_fan(made(specs=only_rivals)))
    assert (found.verdict, found.figure) == (FAILS, "0.50% not reached")
    only_ours = {**all_orders("fan", Spec(10.0, least=0.03))}
    found = check(fewer.fewer_than_fan(made(specs=only_ours)))
    assert (found.verdict, found.figure) == (HOLDS, "only one to reach 0.50%")


def test_speed_up():
    found = check(fewer.speed_up(made()))
    assert (found.verdict, found.figure[:4]) == (HOLDS, "12.5")
    assert "beyond the paper's range" in found.evidence
    assert verdict(fewer.speed_up, {QWYC: Spec(400.0)}) == FAILS
    assert verdict(fewer.speed_up, {QWYC: Spec(250.0, noise=3)}) == OPEN
    assert verdict(fewer.speed_up, {QWYC: Spec(40.0, least=0.0055)}) == HOLDS  # about 0.5%
    found = check(fewer.speed_up(made(specs={QWYC: Spec(40.0, least=0.007)})))
    assert (found.verdict, found.figure) == (FAILS, "least differences 0.70%")
    assert "only quit as negative" not in fewer.speed_up(made()).evidence
    assert "only quit as negative" in fewer.speed_up(made("rw2-joint")).evidence


def test_factor_to_fan_star():
    found = check(fewer.factor_to_fan_star(made()))
    assert (found.verdict, found.figure[:4]) == (HOLDS, "1.50")

    def star(models, **more):
        return verdict(fewer.factor_to_fan_star, {FAN_STAR: Spec(models, gain=1.0, **more)})

    assert star(48.0) == IN_PART  # 1.2 times, clearly more than 1
    assert star(40.0) == FAILS
    assert star(48.0, noise=5) == IN_PART  # not clear at 0.5%, but at 1 and 2%
    assert star(30.0, least=0.004) == IN_PART  # wins at 0.25% only
    assert star(60.0, least=0.03) == HOLDS
    assert verdict(fewer.factor_to_fan_star, {QWYC: Spec(40.0, least=0.007)}) == IN_PART
    found = check(fewer.factor_to_fan_star(made(specs={QWYC: Spec(40.0, least=0.03)})))
    assert (found.verdict, found.figure) == (FAILS, "only Fan* gets there")
    assert fewer.factor_verdict(Interval(1.2, 0.9, 1.6), UNDECIDED) == OPEN
    neither = {QWYC: Spec(40.0, least=0.03), FAN_STAR: Spec(60.0, least=0.03)}
    assert verdict(fewer.factor_to_fan_star, neither) == OPEN


def test_order_of_training_and_fans_thresholds():
    assert verdict(fewer.fewer_than_trained_order) == HOLDS
    assert verdict(fewer.fewer_than_trained_order, {("fan", "natural"): Spec(20.0)}) == FAILS
    for key, judge in (
        (FAN_JOINT, fewer.fan_along_joint_order),
        (JOINT_FAN, fewer.fan_inside_search),
    ):
        assert judge(made()) is None
        assert verdict(judge, {key: Spec(20.0, gain=1.0)}) == HOLDS
        assert verdict(judge, {key: Spec(80.0, gain=1.0)}) == FAILS
        assert verdict(judge, {key: Spec(40.0, gain=1.0)}) == OPEN
        assert verdict(judge, {key: Spec(30.0, gain=1.0, least=0.004)}) == IN_PART


# --- accuracy ---------------------------------------------------------------------------------


def test_accuracy_is_judged_beyond_two_standard_errors():
    same = {key: Spec(40.0, gain=0.0) for key in base_specs()}
    judge = accuracy.accuracy_of_fixed_orders
    assert verdict(judge, {**same, QWYC: Spec(40.0, gain=1.0)}) == HOLDS
    assert verdict(judge, same) == OPEN
    worse = {key: Spec(40.0, gain=1.0) for key in base_specs()}
    assert verdict(judge, {**worse, QWYC: Spec(40.0, gain=0.0)}) == FAILS
    assert verdict(judge, {QWYC: Spec(4.0)}) == OPEN  # no common range
    cautious = {**same, QWYC: Spec(40.0, gain=0.3), FAN_STAR: Spec(16.0, gain=1.0)}
    assert verdict(judge, cautious) == IN_PART  # Fan* is better, but has bold points only
    assert judge(made(specs={QWYC: None})) is None


def test_accuracy_of_the_full_ensemble():
    assert verdict(accuracy.keeps_accuracy) == HOLDS
    assert verdict(accuracy.keeps_accuracy, {QWYC: Spec(40.0, gain=0.0)}) == FAILS
    assert verdict(accuracy.keeps_accuracy, {QWYC: Spec(40.0, gain=0.3)}) == OPEN


def test_faster_and_more_accurate():
    judge = accuracy.faster_and_more_accurate_than_fan
    assert verdict(judge) == HOLDS
    assert verdict(judge, {QWYC: Spec(100.0, gain=0.0)}) == FAILS
    assert verdict(judge, {QWYC: Spec(40.0, gain=0.0), **all_orders("fan", Spec(50.0))}) == IN_PART
    assert verdict(judge, {key: Spec(40.0) for key in base_specs()}) == OPEN


def test_fan_star_against_smaller_ensembles():
    judge = accuracy.fan_star_against_smaller
    assert verdict(judge) == FAILS  # smaller ensembles differ on 5% and are wrong there
    assert verdict(judge, small_gain=1.0) == IN_PART  # more accurate, but they differ more
    much = {FAN_STAR: Spec(300.0, gain=0.0)}
    assert verdict(judge, {FAN_STAR: Spec(60.0, gain=0.0, least=0.2)}) == HOLDS
    assert verdict(judge, much, sizes=(5,)) == OPEN  # no common range


def test_pruned_against_trained():
    judge = accuracy.pruned_against_trained
    assert verdict(judge) == HOLDS
    assert verdict(judge, {QWYC: Spec(40.0, gain=0.0)}, small_gain=1.0) == FAILS
    found = check(judge(made(specs={QWYC: Spec(4.0, gain=1.0)})))
    assert "8.94 are compared with 40" in found.evidence
    equal = {QWYC: Spec(40.0, gain=0.5)}
    assert verdict(judge, equal, small_gain=0.5) == OPEN
    small = made("rw1-joint", 5, {QWYC: Spec(1.3, gain=1.0)}, sizes=(1, 2, 3, 4))
    assert "Compared at 2." in check(judge(small)).evidence


# --- time -------------------------------------------------------------------------------------


def test_times():
    assert verdict(timing.speed_up, timed=timings()) == HOLDS
    assert verdict(timing.speed_up, timed=timings(qwyc=80.0)) == FAILS
    assert verdict(timing.speed_up, timed=timings(qwyc=30.0)[:2]) == HOLDS
    assert timing.speed_up(made()) is None
    assert verdict(timing.factor_to_fan_star, timed=timings()) == HOLDS
    assert verdict(timing.factor_to_fan_star, timed=timings(star=36.0)) == IN_PART
    assert verdict(timing.factor_to_fan_star, timed=timings(star=20.0)) == FAILS
    assert verdict(timing.faster_than_fan_star, timed=timings()) == HOLDS
    assert verdict(timing.faster_than_fan_star, timed=timings(star=20.0)) == FAILS
    assert verdict(timing.faster_than_fan_star, timed=timings(star=30.0)) == OPEN


def test_a_single_run_decides_nothing():
    once = [timed(key, 30.0, runs=1) for key in (None, QWYC, FAN_STAR)]
    for judge in (timing.speed_up, timing.factor_to_fan_star, timing.cost_of_fans_rule):
        found = check(judge(made(timed=once)))
        assert found.verdict == OPEN
        assert "interval not known" in found.figure


def test_cost_of_fans_rule():
    judge = timing.cost_of_fans_rule
    assert verdict(judge, timed=timings(star=60.0)) == HOLDS  # 1 against 0.75 a base model
    assert verdict(judge, timed=timings(star=30.0)) == FAILS
    assert verdict(judge, timed=timings(star=45.0)) == OPEN
    found = check(judge(made(timed=timings(star=60.0, FAN_JOINT=20.0))))
    assert (found.verdict, "Along the order of QWYC*" in found.evidence) == (IN_PART, True)


def test_the_timing_nearest_to_half_a_percent_counts():
    several = [*timings(), timed(QWYC, 90.0, differ=0.02)]
    assert verdict(timing.speed_up, timed=several) == HOLDS
    assert verdict(timing.speed_up, timed=several[::-1]) == HOLDS


# --- orders -----------------------------------------------------------------------------------


def test_fan_against_algorithm_2():
    judge = orders.fan_against_algorithm_2
    assert verdict(judge) == HOLDS
    assert verdict(judge, all_orders("fan", Spec(120.0, gain=0.0))) == FAILS
    assert verdict(judge, all_orders("fan", Spec(90.0, gain=0.0))) == OPEN
    one = {**all_orders("fan", Spec(120.0, gain=0.0)), FAN_STAR: Spec(60.0, gain=0.0)}
    assert verdict(judge, one) == IN_PART
    two = {**one, ("fan", "natural"): Spec(60.0, gain=0.0)}
    assert verdict(judge, two) == HOLDS  # half of the orders
    assert verdict(judge, {key: Spec(9.0, least=0.05) for key in base_specs()}) == OPEN
    out_of_reach = check(judge(made(specs=all_orders("fan", Spec(60.0, least=0.03)))))
    assert "90.0 against not reached" in out_of_reach.evidence


def greedy(models, **more):
    return {(rule, "greedy-mse"): Spec(models, gain=0.0, **more) for rule in ("algorithm-2", "fan")}


def randomly(models, **more):
    return {
        (rule, "random"): Spec(models, gain=0.0, seeds=(0, 1), **more)
        for rule in ("algorithm-2", "fan")
    }


def test_greedy_against_individual_mse():
    judge = orders.greedy_against_individual
    assert verdict(judge, greedy(20.0)) == HOLDS
    assert verdict(judge, greedy(200.0)) == FAILS
    assert verdict(judge, greedy(75.0)) == IN_PART  # better with Algorithm 2, worse with Fan's rule
    assert verdict(judge) == OPEN


def test_individual_accuracy():
    judge, key = orders.mse_against_accuracy, ("algorithm-2", "accuracy")
    assert judge(made()) is None
    assert verdict(judge, {key: Spec(150.0, gain=0.0)}) == HOLDS
    assert verdict(judge, {key: Spec(50.0, gain=0.0)}) == FAILS
    assert verdict(judge, {key: Spec(90.0, gain=0.0)}) == OPEN


@pytest.mark.parametrize("rule", ["algorithm-2", "fan"])
def test_random_order_beats_all(rule):
    def judge(outcome):
        return orders.random_beats_all(outcome, rule)

    assert verdict(judge) == FAILS
    found = check(judge(made(specs=randomly(20.0))))
    assert (found.verdict, "mean over seeds" in found.evidence) == (HOLDS, True)
    assert verdict(judge, {**randomly(50.0), QWYC: Spec(30.0)}) == FAILS
    assert judge(made(specs={(rule, "random"): None})) is None


def test_random_order_against_the_mse_orders():
    strict, sometimes = orders.random_beats_mse_orders, orders.random_sometimes_better
    for judge in (strict, sometimes):
        assert verdict(judge, randomly(20.0)) == HOLDS
        assert verdict(judge, randomly(200.0)) == FAILS
        assert verdict(judge) == OPEN
    assert verdict(strict, randomly(75.0)) == IN_PART
    assert verdict(sometimes, randomly(75.0)) == HOLDS
    flat = randomly(1.0, steps=np.full(N, 100))  # better at 0.25% only, with Algorithm 2
    assert verdict(strict, flat) == IN_PART
    assert verdict(sometimes, flat) == IN_PART


def test_qwyc_is_similar_to_the_best_random_order():
    judge = orders.similar_to_best_random
    assert verdict(judge) == HOLDS
    assert verdict(judge, {**randomly(40.0), QWYC: Spec(40.0, gain=0.0)}) == HOLDS
    assert verdict(judge, randomly(20.0)) == FAILS
    assert verdict(judge, {QWYC: Spec(40.0, least=0.004)}) == IN_PART
    assert judge(made(specs=dict.fromkeys(randomly(1.0)))) is None


def test_random_order_overfits_less():
    judge = orders.random_overfits_less
    overfit = {key: Spec(60.0, gain=0.0, fitted=0.5) for key in base_specs()}
    assert verdict(judge, {**overfit, **randomly(60.0, fitted=1.0)}) == HOLDS
    assert verdict(judge, randomly(60.0, fitted=0.5)) == FAILS
    assert verdict(judge) == OPEN
    some = {QWYC: Spec(40.0, gain=0.0, fitted=0.5)}
    assert verdict(judge, some) == IN_PART
