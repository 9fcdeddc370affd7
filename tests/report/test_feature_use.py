"""What certificates, files and reports say about the features that rows need."""

import json

import numpy as np
import pytest
import xgboost

import featured
import qwyc
from featured import COSTS, FAST, NAMES, by_hand
from qwyc.build.held_out import HeldOut
from qwyc.files import classifier_file, container
from qwyc.report.inspection import describe, inspect


@pytest.fixture(scope="module")
def made():
    return featured.model_and_rows()


@pytest.fixture(scope="module")
def fast():
    return featured.classifier()


def held_out(fast, X):
    """The rows that certified it: a sample is split in a way that depends on the seed alone."""
    scores = fast.ensemble.scores(X)
    split = HeldOut.of(scores.positive, fast.certificate.budget, 0.95, None, None, 0)
    return X.iloc[split.rows]


def test_the_certificate_has_features_and_their_cost_per_row(made, fast):
    rows = held_out(fast, made[1][2000:6000])
    steps = fast.decide(rows).steps
    counts, paid = by_hand(fast.ensemble, fast.policy.order, steps, COSTS)
    seen = fast.certificate
    assert seen.rows == len(rows)
    assert seen.mean_models == steps.mean()
    assert seen.mean_features == pytest.approx(counts.mean(), rel=1e-12)
    assert seen.mean_feature_cost == pytest.approx(paid.mean(), rel=1e-12)
    assert seen.mean_cost == pytest.approx(steps.mean() + paid.mean(), rel=1e-12)
    assert seen.as_dict()["mean_features"] == seen.mean_features
    assert seen.as_dict()["mean_feature_cost"] == seen.mean_feature_cost


def test_features_are_counted_without_costs_too(made):
    model, X = made
    plain = qwyc.optimize(model, X[2000:6000], **FAST)
    steps = plain.decide(held_out(plain, X[2000:6000])).steps
    counts, _ = by_hand(plain.ensemble, plain.policy.order, steps, COSTS)
    assert plain.certificate.mean_features == pytest.approx(counts.mean(), rel=1e-12)
    assert plain.certificate.mean_feature_cost == 0
    assert "feature_costs" not in describe(plain)
    assert "cost" not in repr(plain)


def test_other_operating_points_have_their_own(made, fast):
    model, X = made
    bold, never = fast.at(alpha=0.1), fast.full()
    assert bold.certificate.mean_features < fast.certificate.mean_features
    assert bold.certificate.mean_feature_cost < fast.certificate.mean_feature_cost
    assert never.certificate.mean_features == 5
    assert never.certificate.mean_feature_cost == COSTS[:5].sum()
    again = qwyc.recertify(fast, X[6000:])
    steps = again.decide(X[6000:]).steps
    counts, paid = by_hand(again.ensemble, again.policy.order, steps, COSTS)
    assert again.certificate.mean_features == pytest.approx(counts.mean(), rel=1e-12)
    assert again.certificate.mean_feature_cost == pytest.approx(paid.mean(), rel=1e-12)
    for method in ("joint", "natural"):
        other = qwyc.optimize(model, X[2000:2500], **FAST, method=method, feature_costs=COSTS)
        steps = other.decide(X[2000:2500]).steps
        counts, _ = by_hand(other.ensemble, other.policy.order, steps, COSTS)
        assert other.certificate.mean_features == pytest.approx(counts.mean(), rel=1e-12)
        assert other.full().certificate.mean_features == 5


@pytest.mark.parametrize("method", ["auto", "joint"])
def test_files_keep_it(made, tmp_path, method):
    model, X = made
    fast = qwyc.optimize(model, X[2000:5000], **FAST, method=method, feature_costs=COSTS)
    fast.save(tmp_path / "f.qwyc")
    again = qwyc.load(tmp_path / "f.qwyc")
    np.testing.assert_array_equal(again.feature_costs, COSTS)
    assert again.cost_kind == "one"
    assert again.certificate.counts.stops == fast.certificate.counts.stops != ()
    assert inspect(again) == inspect(fast)
    assert repr(again) == repr(fast)
    assert [r.features.tolist() for r in again.rounds()] == [
        r.features.tolist() for r in fast.rounds()
    ]
    if method == "auto":
        one, other = (c.at(alpha=0.1).certificate.mean_features for c in (again, fast))
        assert one == other


def rewritten(fast, change):
    found = container.unpack(classifier_file.to_bytes(fast), (2,))
    tensors = {name: np.array(tensor) for name, tensor in found.tensors.items()}
    change(tensors)
    content = container.pack(container.Container(2, found.body, tensors))
    return classifier_file.from_bytes(content)


def test_files_without_it_are_read(made, fast):
    model, X = made
    plain = qwyc.optimize(model, X[2000:5000], **FAST)

    def strip(tensors):
        del tensors["path.stops"]

    old = rewritten(plain, strip)
    assert old.feature_costs is None
    assert old.certificate.mean_features is None
    assert inspect(old)["feature_use"]["features"][0]["share_of_rows"] is None
    assert "how many a row needs is not known" in describe(old)
    assert old.certificate == plain.certificate


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update({"policy.feature_costs": -COSTS}), "at least 0"),
        (lambda t: t.update({"policy.feature_costs": COSTS * np.nan}), "at least 0"),
        (lambda t: t.update({"policy.feature_costs": COSTS[:3]}), "6 numbers, one per feature"),
        (lambda t: t.update({"policy.feature_costs": COSTS + 1}), "does not fit"),
        (lambda t: t.update({"policy.feature_costs": COSTS.astype(np.float32)}), "expected float64"),
        (lambda t: t.pop("policy.feature_costs"), "does not fit"),
        (lambda t: t.update({"path.stops": t["path.stops"] + 1}), "by step are of different rows"),
        (lambda t: t.update({"path.stops": -t["path.stops"]}), "by step are of different rows"),
        (lambda t: t.update({"path.stops": t["path.stops"][:, 1:]}), "differ in length"),
        (lambda t: t.pop("path.exits"), "not in bins"),
        (lambda t: t.update({"certificate.stops": np.ones(60, np.int64)}), "by step are of different rows"),
        (lambda t: t.update({"certificate.stops": np.ones(3, np.int64)}), "a different number of steps"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused(fast, change, message):
    with pytest.raises(qwyc.ArtifactError, match=message):
        rewritten(fast, change)


def test_reports_say_which_features_are_needed_when(fast):
    seen, use = fast.certificate, fast.feature_use
    facts = inspect(fast)["feature_use"]
    json.dumps(facts)
    assert facts["looked_at"] == 5
    assert facts["mean_features"] == seen.mean_features
    assert facts["full_cost"] == COSTS[:5].sum()
    steps = [at["step"] for at in facts["features"]]
    assert steps == sorted(steps)
    assert steps[0] == 1
    first = {at["feature"]: at for at in facts["features"]}
    assert set(first) == set(NAMES[:5])
    stops = np.array(seen.counts.stops)
    for j, name in enumerate(NAMES[:5]):
        assert first[name]["step"] == use.first[j] + 1
        reached = stops[use.first[j] :].sum() / stops.sum()
        assert first[name]["share_of_rows"] == pytest.approx(reached)
        assert first[name]["cost"] == COSTS[j]
    text = describe(fast)
    assert f"{seen.mean_features:.1f} of 5 features needed per row, at a cost of" in text
    assert "1            100.0%  " in text
    assert "unused" not in text
    unit = "each base model counts 1; a feature counts as given where it is first needed"
    assert f"({unit}); {seen.mean_features:.1f} of 5 features needed per row" in repr(fast)
    assert f"\n  costs      {unit}\n" in text
    assert unit in fast._repr_html_()


def test_a_long_table_is_short(made):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 200))
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=3, n_jobs=1)
    model.fit(X[:1000], X[:1000, :150].sum(axis=1) > 0)
    fast = qwyc.optimize(model, X[1000:], **FAST)
    lines = [line for line in describe(fast).splitlines() if line.startswith("    ")]
    assert len(lines) < 20
    assert max(map(len, lines)) < 130
    assert any(" more" in line for line in lines)
