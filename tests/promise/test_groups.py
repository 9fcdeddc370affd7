"""Groups that count: the tests by betting, the split, the promise, files and the API."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy import stats

import qwyc
from commands import command_line
from forests import random_ensemble, random_rows
from qwyc.files import container
from qwyc.files.classifier_file import from_bytes, to_bytes
from qwyc.policy.counts import Counts
from qwyc.policy.grouped import GroupCounter, GroupCounts, PathPrior, Prior, in_random_order
from qwyc.promise import betting
from qwyc.promise.binomial import tail
from qwyc.promise.budget import budget_of
from qwyc.promise.group_labels import group_numbers
from qwyc.promise.limits import Limit
from qwyc.promise.split import split_sample
from qwyc.target.two_classes import TwoClasses


def prior_of(differ, rows):
    """What groups say about others: their sizes, and how many rows differ together."""
    cap = int(rows.max())
    weight, full = float((rows / cap).mean()), float((rows == cap).mean())
    return Prior(
        (cap, 1, cap),
        (weight, 0.0, weight),
        (full, 0.0, full),
        (int(differ.sum()), 0),
        (int((differ**2).sum()), 0),
    )


def group_counts(differ, rows, prior):
    """Groups of positive rows, some of which are lost."""
    at = np.flatnonzero(differ)
    sizes = np.column_stack([np.zeros_like(rows), rows])
    return GroupCounts(sizes, at, np.column_stack([differ[at], 0 * differ[at]]), prior)


def weighed(differ, rows, prior):
    return group_counts(differ, rows, prior).weighed((0,), None)


def draw(kind, rng, n_groups, cap, share):
    """Rows that differ and rows of each group, at a true share of rows."""
    rows = np.full(n_groups, cap)
    if kind == "alike":  # two points, at the cap
        return rows * (rng.random(n_groups) < share), rows
    if kind == "unlike":
        return rng.binomial(rows, share), rows
    if kind == "rare":  # half of what differs comes in rare whole groups
        few = rng.binomial(rows, share / 2 / (1 - share / 2))
        return np.where(rng.random(n_groups) < share / 2, cap, few), rows
    large = rng.random(n_groups) < 0.2  # only the large groups differ
    rows = np.where(large, cap, 1)
    of_large = share * (0.2 * cap + 0.8) / (0.2 * cap)
    return np.where(large, rows * (rng.random(n_groups) < of_large), 0), rows


@pytest.mark.parametrize("known", ["right", "wrong", "nothing"])
@pytest.mark.parametrize("kind", ["alike", "unlike", "rare", "large"])
def test_the_tests_err_no_more_often_than_the_risk_at_the_boundary(kind, known):
    rng, share, risk, cap, n, repeats = np.random.default_rng(3), 0.05, 0.05, 10, 300, 600
    passed = failed = 0
    for _ in range(repeats):
        groups = draw(kind, rng, n, cap, share)
        other = kind if known == "right" else "unlike" if kind == "alike" else "alike"
        prior = None if known == "nothing" else prior_of(*draw(other, rng, n, cap, 0.7 * share))
        passed += betting.passes(weighed(*groups, prior), share, risk)
        failed += betting.fails(weighed(*groups, prior), share, risk)
    assert stats.binom.sf(passed - 1, repeats, risk) > 1e-4
    assert stats.binom.sf(failed - 1, repeats, risk) > 1e-4


@pytest.mark.parametrize("n", [61, 80, 143])
def test_counting_whole_groups_errs_no_more_than_its_risk_by_enumeration(n):
    share, risk, rows = 0.05, 0.05, np.full(n, 10)
    prior = Prior((10, 1, 10), (1.0, 0.0, 1.0), (1.0, 0.0, 1.0), (0, 0), (0, 0))
    error = 0.0
    for k in range(n + 1):  # the number of groups that differ decides, not their order
        groups = weighed(rows * (np.arange(n) < k), rows, prior)
        if betting._count_below(groups, share, risk):
            error += stats.binom.pmf(k, n, share)
    assert error <= risk


def test_wealth_is_a_supermartingale_by_enumeration():
    # All 3**6 outcomes of six groups at a mean of exactly the share: P(ever 1 / risk) is at most the risk.
    share, risk = 0.3, 0.2
    values, chances = np.array([0, 5, 10]), np.array([0.6, 0.2, 0.2])
    assert values @ chances / 10 == pytest.approx(share)
    outcomes = np.stack(np.meshgrid(*[range(3)] * 6, indexing="ij"), axis=-1).reshape(-1, 6)
    rows = np.full(6, 10)
    for prior in (None, prior_of(np.array([0, 5, 5, 0, 0, 0]), rows), prior_of(rows * 0, rows)):
        passed = failed = 0.0
        for outcome in outcomes:
            chance = float(np.prod(chances[outcome]))
            groups = weighed(values[outcome], rows, prior)
            passed += chance * betting.passes(groups, share, risk)
            failed += chance * betting.fails(groups, share, risk)
        assert passed <= risk
        assert failed <= risk


def test_the_wealth_of_several_bets_is_their_sum():
    z = np.random.default_rng(0).choice([-0.1, 0.6], size=300, p=[0.98, 0.02])
    wealth = np.cumprod(1 - 0.9 * z).max()
    for factor, reached in [(0.999, True), (1.001, False)]:
        risk = 1 / (factor * wealth)
        assert betting._reaches([(-0.9, 1.0)], z, risk) is reached
        assert betting._reaches([(-0.9, 0.1)] * 10, z, risk) is reached  # no bet does by itself
        assert betting._reaches([(-0.9, 0.999), (-0.1, 0.001)], z, risk) is reached


@pytest.mark.parametrize("kind", ["alike", "unlike", "large"])
def test_more_differences_never_help_and_bounds_agree_with_tests(kind):
    rng = np.random.default_rng(8)
    differ, rows = draw(kind, rng, 400, 10, 0.02)
    prior = prior_of(*draw(kind, rng, 400, 10, 0.02))
    groups = weighed(differ, rows, prior)
    bound, low = betting.upper_bound(groups, 0.05), betting.lower_bound(groups, 0.05)
    assert low <= differ.sum() / rows.sum() <= bound
    assert betting.passes(groups, bound * 1.001, 0.05)
    assert not betting.passes(groups, bound * 0.999, 0.05)
    assert not betting.fails(groups, max(low, 1e-9) * 1.001, 0.05)
    before = True
    for more in range(0, 40, 4):  # more and more groups differ whole
        worse = np.where(np.arange(400) % 10 < more / 4, rows, differ)
        now = betting.passes(weighed(worse, rows, prior), 0.06, 0.05)
        assert before or not now
        before = now
    assert not before


def test_power_against_exact_tests():
    rng, n, share = np.random.default_rng(0), 1000, 0.01
    rows = np.full(n, 20)
    # Rows alike: as many groups may differ as in an exact test of groups, but for one.
    prior = prior_of(*draw("alike", rng, n, 20, 0.007))
    allowed = max(k for k in range(n) if tail(k, n, share) <= 0.05)
    differ = np.zeros(n, dtype=int)
    differ[rng.permutation(n)[: allowed - 1]] = 20
    assert betting.passes(weighed(differ, rows, prior), share, 0.05)
    # Rows unlike: what no test could tell from rare whole groups, about 3 / n, is all that is lost.
    prior = prior_of(*draw("unlike", rng, n, 20, 0.007))
    differ, _ = draw("unlike", rng, n, 20, 0.9 * (share - 3 / n))
    assert betting.passes(weighed(differ, rows, prior), share, 0.05)


def test_a_cap_of_one_row_counts_groups_as_rows_are_counted():
    differ = np.repeat([1, 0], [7, 993])
    prior = Prior((1, 1, 1), (1.0, 0.0, 1.0), (1.0, 0.0, 1.0), (0, 0), (0, 0))
    groups = weighed(differ, np.ones(1000, dtype=int), prior)
    for share in (0.005, 0.01, 0.012, 0.0131, 0.02):
        assert betting.passes(groups, share, 0.05) == (tail(7, 1000, share) <= 0.05)
        assert betting.fails(groups, share, 0.05) == (1 - tail(6, 1000, share) <= 0.05)
    # A group of more rows than the cap counts as one row, with its share of differences.
    one = weighed(np.array([3]), np.array([4]), prior)
    assert one.weight.tolist() == [1.0]
    assert one.differ.tolist() == [0.75]


def world(rng, n, T=8):
    return rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, T))


MODELS = [lambda X, t=t: X[:, t] for t in range(8)]


def test_groups_of_one_row_are_as_no_groups():
    X = world(np.random.default_rng(2), 4000)
    plain = qwyc.optimize(MODELS, X, alpha=0.02, progress=False)
    alone = qwyc.optimize(MODELS, X, alpha=0.02, groups=np.arange(4000)[::-1], progress=False)
    np.testing.assert_array_equal(plain.policy.lower, alone.policy.lower)
    assert plain.certificate.counts == alone.certificate.counts
    assert (plain.certificate.groups, alone.certificate.groups) == (0, 2000)
    new = world(np.random.default_rng(3), 3000)
    one, other = qwyc.verify(plain, new), qwyc.verify(plain, new, groups=np.arange(3000))
    assert (one.counts, one.upper_bound) == (other.counts, other.upper_bound)
    assert other.groups == 3000


@pytest.mark.parametrize("noise", [0.0, 0.3, None])
def test_the_promise_holds_for_rows_of_new_groups(noise):
    rng = np.random.default_rng(21)
    truth = world(rng, 40_000)
    if noise:
        truth = truth + noise * rng.normal(size=truth.shape)
    full, shares = truth.sum(axis=1) >= 0, []
    group = np.repeat(np.arange(160), 20)
    for seed in range(30):
        X = world(rng, len(group)) if noise is None else world(rng, 160)[group]
        X = X + noise * rng.normal(size=X.shape) if noise else X
        fast = qwyc.optimize(MODELS, X, alpha=0.1, groups=group, seed=seed, progress=False)
        shares.append(np.mean(fast.policy.apply(truth).label != full))
        assert fast.certificate.groups == 80
    broken = int(np.sum(np.array(shares) > 0.1))
    assert stats.binom.sf(broken - 1, 30, 0.05) > 1e-3
    assert np.mean(shares) > 0.02


def test_the_split_draws_groups_one_after_the_other():
    rng = np.random.default_rng(0)
    units = np.repeat(np.arange(20_000), rng.integers(1, 6, 20_000))
    fit, rest = split_sample(len(units), budget_of(0.01), 0.95, units, 4)
    taken = len(np.unique(units[fit]))
    assert 20_000 <= len(fit) < 20_005  # no more once 20,000 rows are there
    assert taken + len(np.unique(units[rest])) == 20_000
    # Which groups are drawn, and how many, depends on those drawn only.
    larger = units.copy()
    last = np.isin(units, np.unique(units[rest])[:100])
    larger = np.sort(np.concatenate([larger, units[last]]))
    again, _ = split_sample(len(larger), budget_of(0.01), 0.95, larger, 4)
    np.testing.assert_array_equal(np.unique(larger[again]), np.unique(units[fit]))


def test_groups_come_in_an_order_that_depends_on_their_number_only():
    first = in_random_order(np.array([4, 4, 9, 2, 9]), 0)
    assert sorted(set(first.tolist())) == [0, 1, 2]
    assert first[0] == first[1]
    np.testing.assert_array_equal(first, in_random_order(np.array([5, 5, 7, 3, 7]), 0))


def test_blocks_of_rows_are_counted_like_all_at_once():
    rng, target = np.random.default_rng(1), TwoClasses(0.0)
    units = rng.permutation(np.repeat(np.arange(50), 4))
    full, early = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    whole, parts = GroupCounter(units, target), GroupCounter(units, target)
    whole.add(0, early, full)
    for start in range(0, 200, 37):
        parts.add(0, early[start : start + 37], full[start : start + 37], start)
    one, other = whole.groups(), parts.groups()
    assert one[0] == other[0]
    assert one.sizes.sum() == 200
    sums, squares = one.totals()
    np.testing.assert_array_equal(sums[0], target.count_differences(early, full))
    assert (squares >= sums).all()
    assert PathPrior.of(one)[0].caps[0] == 4
    lost = Counts((0, 0), (0, 0), 0.0, 0.0, groups=one[0])
    assert len(Limit(0.1, (0,), 1).groups(lost)) == 50


# ---- the API -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    ensemble = random_ensemble(3, n_trees=30)
    rows = random_rows(3, ensemble, n=3000)
    groups = np.repeat(np.arange(1000), 3)
    return qwyc.optimize(
        ensemble, rows, alpha=0.05, groups=groups, evaluation="quit", progress=False
    ), ensemble


def test_certificates_say_that_groups_were_counted(made):
    fast, _ = made
    said = str(fast.certificate)
    assert "rows in new groups drawn like those of the sample" in said
    assert "(500 of them), not rows; the largest has 3 rows" in said
    assert fast.certificate.groups == 500
    assert fast.certificate.counts.groups.sizes.sum() == fast.certificate.rows == 1500
    assert fast.at(alpha=0.05).certificate == fast.certificate
    bolder = fast.at(alpha=0.2).certificate
    assert bolder.mean_models <= fast.certificate.mean_models
    assert len(bolder.counts.groups) == 500


def test_groups_are_verified_and_recertified(made):
    fast, ensemble = made
    rows, groups = random_rows(7, ensemble, n=6000), np.repeat(np.arange(2000), 3)
    seen = qwyc.verify(fast, rows, alpha=0.2, groups=groups)
    assert seen.outcome == "pass"
    assert seen.groups == seen.as_dict()["groups"] == 2000
    assert "The rows come from 2,000 groups, the largest of 3 rows" in str(seen)
    assert seen.upper_bound >= qwyc.verify(fast, rows, alpha=0.2).upper_bound
    again = qwyc.recertify(fast, rows, groups=groups)
    assert again.certificate.groups == 2000
    assert again.choices.evidence.counts.groups.prior is not None  # from the rows fitted on
    assert qwyc.recertify(fast, rows).certificate.counts.groups is None
    few = qwyc.verify(fast, rows[:60], groups=groups[:60])
    assert few.outcome == "undecided"
    assert few.rows_needed > 60
    assert few.more_rows is None or few.more_rows > 0
    short = qwyc.optimize(ensemble, random_rows(8, ensemble, n=6000), alpha=0.05, progress=False)
    plain = qwyc.verify(short, rows, alpha=0.2, groups=groups)  # nothing is known about groups
    assert plain.outcome == "pass"
    with pytest.raises(qwyc.OptionError, match="one per row"):
        qwyc.verify(fast, rows, groups=groups[:5])


def test_too_few_groups_say_how_many_it_takes(made):
    _, ensemble = made
    rows = random_rows(5, ensemble, n=3000)
    with pytest.raises(qwyc.InfeasibleError, match=r"at least 59 groups .* has 30 groups"):
        qwyc.optimize(ensemble, rows, alpha=0.05, groups=np.arange(3000) % 30, progress=False)
    one_large = np.where(np.arange(3000) < 2500, 0, np.arange(3000))
    units = group_numbers(one_large, 3000)
    seed = (
        next(  # one with which the large group is fitted on, so that the others are small beside it
            seed
            for seed in range(20)
            if 0 in split_sample(3000, budget_of(0.05), 0.95, units, seed)[0]
        )
    )
    with pytest.raises(qwyc.InfeasibleError, match=r"about [\d,]+ certifying groups like these"):
        qwyc.optimize(ensemble, rows, alpha=0.05, groups=one_large, seed=seed, progress=False)
    with pytest.raises(qwyc.OptionError, match=r"headroom=90 is too small.*59 groups"):
        qwyc.optimize(
            ensemble, rows, alpha=0.05, groups=np.arange(3000) // 3, headroom=90, progress=False
        )


# ---- files ---------------------------------------------------------------------------------------


def test_files_keep_groups(made):
    fast, _ = made
    again = from_bytes(to_bytes(fast))
    assert again.certificate == fast.certificate
    assert to_bytes(again) == to_bytes(fast)
    mine, theirs = fast.choices.evidence.counts.groups, again.choices.evidence.counts.groups
    np.testing.assert_array_equal(mine.sizes, theirs.sizes)
    assert mine[3] == theirs[3]
    assert len(mine.at) > 100
    assert mine[3] != theirs[40]


def changed(content, change):
    found = container.unpack(content, (2,))
    change(found.body, found.tensors)
    return container.pack(found)


def tensor(name, change):
    return lambda body, tensors: tensors.__setitem__(name, change(tensors[name]))


def swapped(array):
    array = array.copy()
    array[-2:] = array[-1:-3:-1]
    return array


HOSTILE = {
    "sizes": tensor("path.group_sizes", lambda a: a + 1),
    "huge sizes": tensor("path.group_sizes", lambda a: np.full_like(a, 2**62)),
    "negative sizes": tensor("path.group_sizes", lambda a: -a),
    "fewer groups": tensor("path.group_sizes", lambda a: a[:-1]),
    "another class": tensor("path.group_sizes", lambda a: a[:, :1]),
    "begin": tensor("path.group_begin", lambda a: a[::-1].copy()),
    "begin outside": tensor("path.group_begin", lambda a: a + 5),
    "no group there": tensor("path.group_at", lambda a: a + 10**6),
    "negative group": tensor("path.group_at", lambda a: a - 10**6),
    "order": tensor("path.group_at", swapped),
    "differences": tensor("path.group_differences", lambda a: a + 1),
    "fewer differences": tensor("path.group_differences", lambda a: a[:-1]),
    "huge differences": tensor("path.group_differences", lambda a: np.full_like(a, 2**62)),
    "squares": tensor("path.prior_squares", lambda a: a - 10**6),
    "known policies": tensor("path.prior_differences", lambda a: a[:-1]),
    "type": tensor("path.group_at", lambda a: a.astype(np.int32)),
    "no sizes": lambda body, tensors: tensors.pop("path.group_sizes"),
    "no prior tensors": lambda body, tensors: tensors.pop("path.prior_squares"),
    "no prior": lambda body, tensors: body["evidence"].pop("group_prior"),
    "caps": lambda body, tensors: body["evidence"]["group_prior"].update(caps=[0, 1, 1]),
    "more caps": lambda body, tensors: body["evidence"]["group_prior"].update(caps=[1] * 9),
    "weight": lambda body, tensors: body["evidence"]["group_prior"].update(weight=[2.0, 1.0, 1.0]),
    "number": lambda body, tensors: body["evidence"].update(groups=3),
    "certificate": lambda body, tensors: body["certificate"]["counts"].update(by_class=[750, 750]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_groups_are_refused(made, name):
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(changed(to_bytes(made[0]), HOSTILE[name]))


# ---- the command line ----------------------------------------------------------------------------


def test_the_command_line_counts_groups(tmp_path, toy):
    X, y = toy
    xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, y).save_model(tmp_path / "m.json")
    for seed, name in enumerate(("rows", "new")):
        new = np.random.default_rng(seed + 1).normal(size=(2400, 6)).astype(np.float32)
        rows = pd.DataFrame(new, columns=[f"f{i}" for i in range(6)])
        rows["who"] = np.arange(2400) // 3
        if name == "rows":
            rows.to_csv(tmp_path / "rows.csv", index=False)
        else:
            rows.to_parquet(tmp_path / "new.parquet")

    def run(*arguments):
        done = subprocess.run(
            command_line(*arguments, "--json"), capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode in (0, 1, 3), done.stderr
        return json.loads(done.stdout)

    made = run(
        "optimize", "m.json", "rows.csv", "--alpha", "0.1", "--groups", "who", "-o", "m.qwyc"
    )
    assert made["certificate"]["groups"] == 400
    assert run("verify", "m.qwyc", "new.parquet", "--groups", "who")["groups"] == 800
    options = ["-o", "n.qwyc", "--groups", "who"]
    assert run("recertify", "m.qwyc", "new.parquet", *options)["certificate"]["groups"] == 800
    absent = command_line("verify", "m.qwyc", "new.parquet", "--groups", "whom")
    wrong = subprocess.run(absent, capture_output=True, text=True, cwd=tmp_path)
    assert wrong.returncode == 2
    assert "no column 'whom', which --groups names" in wrong.stderr
