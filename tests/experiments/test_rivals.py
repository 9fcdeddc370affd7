"""The rules that qwyc is compared with: optimal and Bayesian stopping of votes, LightGBM's margin."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import betabinom, hypergeom

import qwyc
from qwyc_experiments.paper import data, forests, margins, votes
from qwyc_experiments.paper.experiments import EXPERIMENTS
from qwyc_experiments.paper.setting import setting_for
from qwyc_experiments.paper.votes import Limits, Problem, Weights, majority

REDUCED = setting_for(EXPERIMENTS["adult-lightgbm"], quick=True)
PENALTIES = (2.0, 10.0, 50.0, 300.0, 3000.0)


def random_distribution(rng, T):
    """Of K; often with a few values only."""
    share = rng.dirichlet(np.full(T + 1, rng.choice([0.1, 0.3, 1.0])))
    share[share < 1e-9] = 0.0
    return share / share.sum()


def linear_program(T, alpha, notion, distribution):
    """The least number of votes by Kalman & Moscovich's linear program, nothing stopped before a vote."""
    states = [(t, k) for t in range(T + 1) for k in range(t + 1)]
    place = {state: i for i, state in enumerate(states)}
    n = len(states)  # variables: stop in each state, go on from each state, and the worst runtime
    equal, right = [], []
    for t, k in states:
        row = np.zeros(2 * n + 1)
        row[place[t, k]] = row[n + place[t, k]] = 1.0
        for before, share in (((t - 1, k), t - k), ((t - 1, k - 1), k)):
            if t > 0 and share > 0:
                row[n + place[before]] -= share / t
        equal.append(row)
        right.append(float(t == 0))
    never = np.zeros((2, 2 * n + 1))  # stop before the first vote; go on after the last
    never[0, place[0, 0]] = 1.0
    never[1, [n + place[T, k] for k in range(T + 1)]] = 1.0
    equal, right = np.vstack([equal, never]), [*right, 0.0, 0.0]

    runtime, wrong = np.zeros((T + 1, 2 * n + 1)), np.zeros((T + 1, 2 * n + 1))  # by K
    for K, (t, k) in itertools.product(range(T + 1), states):
        reached = hypergeom.pmf(k, T, K, t)
        runtime[K, place[t, k]] = t * reached
        wrong[K, place[t, k]] = reached * ((2 * k > t) != (majority(T) <= K))
    above = wrong if notion != "mean" else distribution[np.newaxis] @ wrong
    bound = np.full(len(above), alpha)
    cost = distribution @ runtime
    if notion == "worst":
        cost = np.zeros(2 * n + 1)
        cost[-1] = 1.0
        slower = runtime.copy()
        slower[:, -1] = -1.0
        above, bound = np.vstack([above, slower]), np.append(bound, np.zeros(T + 1))
    solved = linprog(cost, above, bound, equal, right, method="highs")
    assert solved.status == 0
    return solved.fun


def mixed_value(problem, alpha):
    """Votes of the mix, with alpha disagreements, of the rules on either side of alpha."""
    cautious = problem.penalties(alpha)[0]
    weight = problem.limited[0]
    a, b = (
        problem.solve(log, log).expected(weight)
        for log in (cautious, cautious - 3 * votes.PRECISION)
    )
    assert a[1] <= alpha < b[1]
    part = (alpha - a[1]) / (b[1] - a[1])
    return (1 - part) * a[0] + part * b[0]


@pytest.mark.parametrize("T", [3, 5, 8, 13])
@pytest.mark.parametrize("alpha", [0.001, 0.02, 0.06])
def test_mean_is_the_linear_program(T, alpha):
    rng = np.random.default_rng([T, round(1000 * alpha)])
    compared = 0
    for _ in range(4):
        distribution = random_distribution(rng, T)
        problem = Problem.of(distribution, "mean")
        expected = linear_program(T, alpha, "mean", distribution)
        one_vote = problem.solve(-9.0, -9.0).expected(problem.limited[0])
        if one_vote[1] <= alpha:  # the boldest rule keeps alpha
            assert expected == pytest.approx(1.0, abs=1e-7)
        else:
            assert mixed_value(problem, alpha) == pytest.approx(expected, abs=1e-5)
            compared += 1
    assert compared


@pytest.mark.parametrize("T", [3, 5, 9, 13])
@pytest.mark.parametrize("alpha", [0.001, 0.05])
def test_worst_is_the_linear_program(T, alpha):
    flat = np.full(T + 1, 1.0 / (T + 1))
    expected = linear_program(T, alpha, "worst", flat)
    assert mixed_value(Problem.of(flat, "worst"), alpha) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("T", [5, 9, 13])
@pytest.mark.parametrize("alpha", [0.002, 0.03])
def test_mixed_is_close_to_the_linear_program(T, alpha):
    rng = np.random.default_rng(T)
    for _ in range(3):
        distribution = rng.dirichlet(np.ones(T + 1))
        problem = Problem.of(distribution, "mixed")
        expected = linear_program(T, alpha, "mixed", distribution)
        logs = problem.penalties(alpha)
        rule = problem.solve(*logs)
        wrong = [rule.expected(weight)[1] for weight in problem.limited]
        assert max(wrong) <= alpha
        found = rule.expected(Weights.of(distribution))[0]
        # by duality, no rule that keeps alpha takes fewer votes than this
        bound = found + sum(np.exp(log) * (w - alpha) for log, w in zip(logs, wrong, strict=True))
        assert bound <= expected + 1e-6 <= found + 2e-6
        assert bound >= 0.97 * expected


def test_worst_holds_for_every_count():
    T, alpha = 41, 0.01
    problem = Problem.of(np.full(T + 1, 1.0 / (T + 1)), "worst")
    rule = problem.solve(*problem.penalties(alpha))
    by_count = [rule.expected(Weights.of(point)) for point in np.eye(T + 1)]
    taken, wrong = np.array(by_count).T
    assert wrong.max() <= alpha + 1e-12
    assert wrong.argmax() in (T // 2, T // 2 + 1)
    assert taken.argmax() in (T // 2, T // 2 + 1)


def test_expected_is_the_mean_over_all_orders():
    T = 9
    rng = np.random.default_rng(3)
    distribution = random_distribution(rng, T)
    problem = Problem.of(distribution, "mean")
    rows = np.array(list(itertools.product((0.0, 1.0), repeat=T)))
    counts = rows.sum(axis=1).astype(int)
    share = distribution[counts] / np.bincount(counts)[counts]  # of each order
    scores = qwyc.ScoreMatrix.from_array(rows, threshold=T / 2)
    assert np.array_equal(votes.Votes.of(scores).counts, counts)
    for penalty in PENALTIES:
        rule = problem.solve(np.log(penalty), np.log(penalty))
        decided = rule.policy(1.0, T / 2).apply(scores)
        taken, wrong = rule.expected(Weights.of(distribution))
        assert taken == pytest.approx(share @ decided.steps)
        assert wrong == pytest.approx(share @ (decided.label != scores.positive))


@pytest.mark.parametrize("notion", ["mean", "worst", "mixed"])
def test_rules_are_nested_and_leave_out_no_state_that_is_reached(notion, monkeypatch):
    found = {}
    as_limits = votes.as_limits

    def kept(stops, possible):
        found.update(stops=stops, possible=possible)
        return as_limits(stops, possible)

    monkeypatch.setattr(votes, "as_limits", kept)
    rng = np.random.default_rng(1)
    for T in (5, 11, 21):
        k = np.arange(T + 1)
        for _ in range(12):
            problem = Problem.of(random_distribution(rng, T), notion)
            before = None
            for penalty in sorted(PENALTIES, reverse=True):
                rule = problem.solve(np.log(penalty), np.log(penalty))
                inside = (k > rule.negative[:, np.newaxis]) & (k < rule.positive[:, np.newaxis])
                left_out = found["stops"] & found["possible"] & inside
                reached = np.zeros((T + 2, T + 2), dtype=bool)
                reached[0, 0] = True
                for t in range(T):
                    going = reached[t, : T + 1] & ~(found["stops"][t] & found["possible"][t])
                    reached[t + 1, : T + 1] |= going
                    reached[t + 1, 1:] |= going
                assert not (left_out & reached[: T + 1, : T + 1]).any()
                if notion != "mixed":
                    assert not left_out.any()
                if before is not None:
                    assert (rule.negative >= before.negative).all()
                    assert (rule.positive <= before.positive).all()
                before = rule


def certain(T):
    """Limits that quit where the remaining votes cannot change the majority."""
    t = np.arange(T + 1)
    negative, positive = t - (T - majority(T)) - 1, np.where(t >= majority(T), majority(T), T + 1)
    negative = np.where(negative < 0, -1, negative)
    negative[T], positive[T] = -1, T + 1
    return Limits(negative, positive)


def assert_same(a, b):
    np.testing.assert_array_equal(a.negative, b.negative)
    np.testing.assert_array_equal(a.positive, b.positive)


@pytest.mark.parametrize("T", [7, 8, 41])
def test_without_allowance_only_certain_majorities_quit(T):
    flat = np.full(T + 1, 1.0 / (T + 1))
    for notion in ("mean", "mixed") if T % 2 == 0 else ("mean", "mixed", "worst"):
        problem = Problem.of(flat, notion)
        assert_same(problem.solve(*problem.penalties(0.0)), certain(T))
    assert_same(votes.bayes_limits(T, 1.0), certain(T))


@pytest.mark.parametrize("T", [6, 7, 15])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.99, 0.9999])
def test_bayes_is_the_beta_binomial_tail(T, confidence):
    rule = votes.bayes_limits(T, confidence)
    for t in range(1, T):
        for k in range(t + 1):
            ahead = np.arange(T - t + 1)
            mass = betabinom.pmf(ahead, T - t, k + 1, t - k + 1)
            positive = mass[k + ahead >= majority(T)].sum()
            stays = positive if 2 * k > t else 1.0 - positive
            stops = k <= rule.negative[t] or k >= rule.positive[t]
            assert stops == (stays >= confidence - 1e-12), (t, k)


def test_bayes_with_a_distribution_by_enumeration():
    T, confidence = 9, 0.9
    distribution = np.random.default_rng(5).dirichlet(np.ones(T + 1))
    rule = votes.bayes_limits(T, confidence, distribution)
    orders = np.array(list(itertools.product((0, 1), repeat=T)))
    counts = orders.sum(axis=1)
    share = distribution[counts] / np.bincount(counts)[counts]
    for t in range(1, T):
        seen = orders[:, :t].sum(axis=1)
        for k in range(t + 1):
            here = seen == k
            same = (counts >= majority(T)) == (2 * k > t)
            stays = share[here & same].sum() / share[here].sum()
            assert (k <= rule.negative[t] or k >= rule.positive[t]) == (stays >= confidence)


def test_bayes_is_nested_and_refuses_what_is_no_confidence():
    cautious, bold = (policy for _, policy in votes.bayes_vote_policies(41, [0.9, 0.999]))
    assert (cautious.lower <= bold.lower).all()
    assert (cautious.upper >= bold.upper).all()
    assert (cautious.lower < bold.lower).any()
    with pytest.raises(qwyc.OptionError, match=r"above 0\.5"):
        votes.bayes_limits(41, 0.5)


# ---- forests of votes ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adult():
    return data.load("adult", 3000)


@pytest.fixture(scope="module")
def forest(adult):
    return forests.train(adult, 40, forests.ForestChoice(1, 0.0))


@pytest.fixture(scope="module")
def scores(adult, forest):
    return qwyc.read_model(forest).scores(adult.X_test)


def test_forest_is_a_majority_of_its_trees(adult, forest, scores):
    cast = np.array([tree.predict(adult.X_test) for tree in forest.estimators_]).astype(
        int
    )  # (T, N)
    assert cast.shape[0] == 41
    assert set(np.unique(cast)) == {0, 1}
    np.testing.assert_allclose(forest.predict_proba(adult.X_test)[:, 1], cast.mean(axis=0))
    np.testing.assert_array_equal(forest.predict(adult.X_test), cast.sum(axis=0) > 20)
    found = votes.Votes.of(scores)
    np.testing.assert_array_equal(found.counts, cast.sum(axis=0))
    np.testing.assert_array_equal(scores.positive, forest.predict(adult.X_test) == 1)
    assert (found.T, found.unit) == (41, float(np.float32(1 / 41)))


def test_first_trees_is_the_one_that_training_gives(adult, forest):
    trained = forests.train(adult, 11, forests.ForestChoice(1, 0.0))
    cut = forests.first_trees(forest, 11)
    np.testing.assert_array_equal(
        cut.predict_proba(adult.X_test), trained.predict_proba(adult.X_test)
    )
    assert len(forest.estimators_) == 41


def test_choice_has_the_fewest_validation_errors(adult):
    steps = []
    chosen = forests.choose(adult, 11, lambda: steps.append(1))
    assert len(steps) == len(forests.LEAF_ROWS)
    for leaf in forests.LEAF_ROWS:
        rest = ~adult.validation
        model = forests._voting(adult.X[rest], adult.y[rest], 11, leaf)
        wrong = np.mean(model.predict(adult.X[adult.validation]) != adult.y[adult.validation])
        assert chosen.error <= wrong


def test_policies_count_votes(adult, forest, scores):
    """Thresholds on running sums of float32 say what counts of votes say."""
    cast = np.array([tree.predict(adult.X_test) for tree in forest.estimators_]).astype(int).T
    running = cast.cumsum(axis=1)  # (N, T)
    made = [
        *votes.optimal_vote_policies(scores, PENALTIES),
        *votes.optimal_vote_policies(scores, PENALTIES, notion="mixed"),
        *votes.bayes_vote_policies(41, [0.9, 0.99]),
    ]
    T = 41
    for _, policy in made:
        unit = float(np.float32(1 / T))
        lower, upper = policy.lower / unit, policy.upper / unit
        decided = policy.apply(scores)
        quits = (running < lower) | (running > upper)
        quits[:, -1] = True
        steps = quits.argmax(axis=1)
        np.testing.assert_array_equal(decided.steps, steps + 1)
        at = running[np.arange(len(running)), steps]
        np.testing.assert_array_equal(decided.label == 1, 2 * at > steps + 1)
        assert np.allclose((lower[np.isfinite(lower)] - 0.5) % 1.0 % 0.999999, 0.0, atol=1e-5)


def test_optimal_policy_keeps_alpha_in_the_model_and_is_the_boldest(scores):
    found = votes.Votes.of(scores)
    weight = Weights.of(found.distribution)
    problem = Problem.of(found.distribution, "mean")
    before = 42.0
    for alpha in (0.0, 0.002, 0.01, 0.05):
        logs = problem.penalties(alpha)
        rule = problem.solve(*logs)
        taken, wrong = rule.expected(weight)
        assert wrong <= alpha
        assert taken < before
        before = taken
        if alpha:
            bolder = problem.solve(*(log - 3 * votes.PRECISION for log in logs))
            assert bolder.expected(weight)[1] > alpha
        policy = votes.optimal_vote_policy(scores, alpha)
        np.testing.assert_array_equal(policy.lower, rule.policy(found.unit, scores.threshold).lower)
        if alpha == 0.0:  # in any order of the votes
            assert np.array_equal(policy.apply(scores).label == 1, scores.positive)


def test_what_is_no_vote_is_refused(scores):
    shares = qwyc.ScoreMatrix.from_array(np.array([[0.1, 0.2, 0.0]]), threshold=0.5)
    with pytest.raises(qwyc.InputError, match="expected votes"):
        votes.optimal_vote_policies(shares, [1.0])
    two_of_three = qwyc.ScoreMatrix.from_array(np.array([[1.0, 0, 0], [1, 1, 1]]), threshold=1.0)
    with pytest.raises(qwyc.InputError, match="from 2 of 3 votes on"):
        votes.optimal_vote_policy(two_of_three, 0.01)
    with pytest.raises(qwyc.OptionError, match="notion"):
        votes.optimal_vote_policy(scores, 0.01, notion="best")
    with pytest.raises(qwyc.OptionError, match="odd"):
        Problem.of(np.ones(5) / 5, "worst")


# ---- LightGBM --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def booster(adult):
    return margins.train(adult, 60, REDUCED, margins.LightGBMChoice(0.1, 15, 0.0))


@pytest.mark.parametrize("freq", [1, 3, 10, 59, 60, 200])
def test_margin_is_what_lightgbm_does(adult, booster, freq):
    scores = qwyc.read_model(booster).scores(adult.X_test)
    running = scores.base + np.cumsum(scores.values, axis=1, dtype=np.float64)  # (N, T)
    levels = [0.0, 0.5, 1.5, 3.0, 5.0, 10.0]
    stopped = 0
    for margin, policy in margins.early_stop_policies(scores, levels, freq):
        decided = policy.apply(scores)
        own = booster.predict(
            adult.X_test,
            raw_score=True,
            pred_early_stop=True,
            pred_early_stop_margin=margin,
            pred_early_stop_freq=freq,
        )
        ours = running[np.arange(len(running)), decided.steps - 1]
        np.testing.assert_allclose(own, ours, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(decided.label == 1, own > 0)
        stopped += np.count_nonzero(~decided.complete)
    assert (stopped > 0) == (freq < 60)


def test_margins_go_from_cautious_to_bold(adult, booster):
    scores = qwyc.read_model(booster).scores(adult.X_test)
    made = margins.early_stop_policies(scores, [1.0, 4.0, 2.0], 10)
    assert [margin for margin, _ in made] == [4.0, 2.0, 1.0]
    means = [policy.apply(scores).steps.mean() for _, policy in made]
    assert means[0] > means[1] > means[2]
    with pytest.raises(qwyc.OptionError, match="freq"):
        margins.early_stop_policies(scores, [1.0], 0)


def test_lightgbm_is_chosen_on_validation_rows(adult):
    few = replace(REDUCED, models=20, sizes=(5,), learning_rates=(0.1, 0.3))
    steps = []
    chosen = margins.choose(adult, few, lambda: steps.append(1))
    assert len(steps) == len(few.learning_rates) * len(margins.LEAVES)
    assert set(chosen) == {*few.sizes, few.models}
    best = chosen[few.models]
    assert best.loss <= min(choice.loss for choice in chosen.values())
    rest = ~adult.validation
    model = margins._classifier(few.models, best)
    model.fit(adult.X[rest], adult.y[rest], categorical_feature=margins._categories(adult))
    held_out = model.predict_proba(adult.X[adult.validation])
    loss = -np.mean(np.log(held_out[np.arange(len(held_out)), adult.y[adult.validation]]))
    assert loss == pytest.approx(best.loss, abs=1e-6)
