"""The HTML report: its numbers are the library's, and nothing of the data becomes markup or code."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import qwyc
from many_classes import class_ensemble, rows_of
from qwyc.promise.evaluation import Evaluation
from qwyc.report.html import Settings, report_facts, rivals
from reports import (
    COLUMNS,
    HOSTILE,
    Page,
    callables,
    lattices,
    named_classes,
    several_classes,
    two_classes,
)


@pytest.fixture(scope="module")
def made():
    return two_classes()


@pytest.fixture(scope="module")
def written(made, tmp_path_factory):
    fast, X, y = made
    path = tmp_path_factory.mktemp("report") / "report.html"
    fast.report(path, X, y, slices={"</script>": X["kind"].astype(str)}, progress=False)
    return path.read_bytes()


def certificate_facts(certificate):
    return {
        "models": certificate.mean_models,
        "differ": certificate.disagreements,
        "rows": certificate.rows,
        "upper_bound": certificate.upper_bound,
        "features": certificate.mean_features,
        "losses": [[loss.lost, loss.upper_bound] for loss in certificate.classes],
        "sentence": str(certificate),
    }


def test_every_point_is_what_at_returns(made, written):
    fast, X, y = made
    facts = Page(written).facts
    assert len(facts["points"]) > 8
    assert facts["points"][facts["own"]]["at"] == 0.02
    for point in facts["points"]:
        there = fast.at(alpha=point["at"])
        expected = certificate_facts(there.certificate)
        assert {name: point[name] for name in expected} == expected
        seen = facts["policies"][point["policy"]]
        decided = there.decide(X)
        differs = decided.label != fast.full().predict(X)
        assert seen["on_rows"]["differ"] == differs.sum()
        assert seen["on_rows"]["models"] == decided.steps.mean()
        assert seen["on_rows"]["accuracy"] == np.mean(decided.label == y)
        assert [row[:2] for row in seen["on_rows"]["by_step"]] == [
            [int(here.sum()), int((here & differs).sum())]
            for first, last in facts["bins"]
            for here in [(decided.steps >= first) & (decided.steps <= last)]
        ]
        for column, slices in zip(
            facts["rows"]["columns"], seen["on_rows"]["by_slice"], strict=True
        ):
            assert sum(column["rows"]) == len(X)
            assert sum(row[0] for row in slices) == differs.sum()
        undecided = [np.mean(decided.steps > step) for step in facts["positions"]]
        assert seen["survival"] == pytest.approx(undecided, rel=1e-4)
        assert seen["exits"] == [row[0] for row in seen["on_rows"]["by_step"]]
        assert seen["microseconds"] > 0
    assert facts["rows"]["full_accuracy"] == np.mean(fast.full().predict(X) == y)


def test_intervals_are_those_of_diagnose(made, written):
    fast, X, _ = made
    facts = Page(written).facts
    seen = facts["policies"][facts["points"][facts["own"]]["policy"]]["on_rows"]
    diagnosis = qwyc.diagnose(fast, X, slices={"kind": X["kind"].astype(str)})
    assert seen["interval"] == [diagnosis.overall.low, diagnosis.overall.high]
    shares = {share.name: share for share in diagnosis.by_slice}
    column = facts["rows"]["columns"][0]
    assert column["name"] == "</script>"
    for name, rows, found in zip(
        column["slices"], column["rows"], seen["by_slice"][0], strict=True
    ):
        share = shares[f"kind = {name}"]
        assert (rows, *found) == (share.rows, share.disagreements, share.low, share.high)


def test_slices_are_named_by_values(written):
    columns = {c["name"]: c["slices"] for c in Page(written).facts["rows"]["columns"]}
    assert set(columns["kind"]) == {"<i>a</i>", "b", "c"}
    assert columns["age"][-1] == "missing"
    assert re.fullmatch(r"up to -\d\.\d+", columns["age"][0])


def test_smaller_ensembles_are_the_first_base_models(made):
    fast, X, _ = made
    facts = report_facts(fast, X, settings=None)
    rival = next(r for r in facts["rivals"] if r["name"] == "smaller ensembles")
    scores = fast.ensemble.scores(X)
    rest = np.sort(np.random.default_rng(1).permutation(len(X))[len(X) // 2 :])
    assert rival["rows"] == len(rest)
    for label, differ, models in zip(
        rival["labels"], rival["differ"], rival["models"], strict=True
    ):
        n = int(re.search(r"\d+", label)[0])
        assert models == n
        part = scores.base + scores.values[rest, :n].sum(axis=1, dtype=np.float64)
        assert differ == np.sum((part >= scores.threshold) != scores.positive[rest])


def test_the_paper_is_fitted_on_the_other_rows(made):
    fast, X, _ = made
    facts = report_facts(fast, X)
    paper = next(r for r in facts["rivals"] if r["name"].startswith("QWYC*"))
    order = np.random.default_rng(1).permutation(len(X))
    fit, rest = np.sort(order[: len(X) // 2]), np.sort(order[len(X) // 2 :])
    scores = fast.ensemble.scores(X)
    for alpha, label, differ, models in zip(
        (0.002, 0.005, 0.01, 0.02, 0.05),
        paper["labels"],
        paper["differ"],
        paper["models"],
        strict=True,
    ):
        assert label == f"alpha {100 * alpha:g}%"
        policy = qwyc.fit_policy(scores.take(fit), alpha=alpha, progress=False)
        decided = policy.apply(scores.take(rest))
        assert differ == np.sum(decided.label != scores.positive[rest])
        assert models == decided.steps.mean()


def test_without_rows_the_evidence_is_shown(made, tmp_path):
    fast, _, _ = made
    fast.report(tmp_path / "r.html")
    facts = Page((tmp_path / "r.html").read_bytes()).facts
    assert facts["rows"] is None
    assert facts["rivals"] == []
    assert "times" not in facts
    for point in facts["points"]:
        counts = fast.at(alpha=point["at"]).certificate.counts
        seen = facts["policies"][point["policy"]]
        assert seen["exits"] == list(counts.exits)
        left = 1 - np.cumsum(counts.stops)[np.array(facts["positions"]) - 1] / counts.rows
        assert seen["survival"] == pytest.approx(left, rel=1e-4, abs=1e-9)


def test_the_page_is_complete_by_itself(written):
    page = Page(written)
    assert len(written) < 1_000_000
    assert page.all("html")[0]["lang"] == "en"
    assert [len(page.all(tag)) for tag in ("main", "header", "footer", "h1")] == [1, 1, 1, 1]
    assert not {"img", "link", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert [a["href"] for a in page.all("a")] == ["#main"]
    assert not [a for _, a in page.elements if "src" in a or any(k.startswith("on") for k in a)]
    addresses = set(re.findall(rb"(?:https?:)?//[\w.]+\.[a-z]+[^\s'\"]*", written))
    assert addresses == {b"http://www.w3.org/2000/svg"}  # a name, which nothing is loaded from
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for control in ("alpha", "load", "cores", "column"):
        assert any(a.get("id") == control for _, a in page.elements)
    headings = {a["id"] for a in page.all("h2")}
    assert {a["aria-labelledby"] for a in page.all("section")} == headings


def test_the_certificate_is_there_without_scripts(made, written):
    fast, _, _ = made
    page = Page(written)
    assert "With 95% confidence, at most 2% of new rows are decided differently." in page.text
    assert str(fast.certificate) in page.text
    for point in page.facts["points"]:
        assert f"{point['models']:.1f}" in page.text


def test_nothing_of_the_data_is_markup(written, tmp_path):
    page = Page(written)
    assert len(page.scripts) == 2  # the data, and our own
    assert COLUMNS[1] in page.facts["features"]["names"]
    assert written.count(b"</script") == 2
    assert b"\xe2\x80\xa8" not in written
    fast, X, y = named_classes(alpha=0.02)
    fast.report(tmp_path / "r.html", X, y, progress=False)
    content = (tmp_path / "r.html").read_bytes()
    page = Page(content)
    assert sorted(page.facts["classes"]["names"]) == sorted(HOSTILE)
    assert content.count(b"</script") == 2
    assert b"<img" not in content


KINDS = {
    "filter": lambda: named_classes(alpha=0.02, quit="negative"),
    "several classes": lambda: several_classes(alpha=0.03),
    "several classes, proven": lambda: several_classes(alpha=0),
    "lattices": lattices,
    "callables": callables,
    "proven": lambda: named_classes(alpha=0),
    "the paper's method": lambda: named_classes(alpha=0.02, method="joint"),
    "limits by class": lambda: two_classes(by_class={1: 0.1}),
    "limits by class alone": lambda: two_classes(alpha=None, by_class={0: 0.05, 1: 0.1}),
    "alpha by kind": lambda: two_classes(alpha={"negative": 0.02, "positive": 0.03}),
    "in time": lambda: two_classes(order_by=np.arange(4000)),
    "groups": lambda: two_classes(0.05, groups=np.repeat(np.arange(2000), 2)),
    "features that cost": lambda: two_classes(feature_costs=np.arange(1.0, 7.0)),
    "in full": lambda: two_classes(evaluation="full"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_rows", [True, False], ids=["rows", "alone"])
def test_every_kind_of_classifier(kind, with_rows, tmp_path):
    fast, X, y = KINDS[kind]()
    rows = (X[:1200], None if y is None else y[:1200]) if with_rows else ()
    fast.report(tmp_path / "r.html", *rows, speed=False, progress=False)
    page = Page((tmp_path / "r.html").read_bytes())
    own = page.facts["points"][page.facts["own"]]
    expected = certificate_facts(fast.certificate)
    assert {name: own[name] for name in expected} == expected
    assert all(line in page.text for line in own["lines"])
    assert len(own["lines"]) == 3
    seen, classes = fast.certificate, fast.ensemble.classes
    if seen.how == "held-out" and len(classes) == 2 and seen.disagreements:
        for label, loss in zip(classes, seen.classes, strict=True):
            assert f"{loss.lost:,} of the {loss.rows:,} rows of class {label}" in own["lines"][1]
    several = kind not in ("in full", "proven", "several classes, proven", "the paper's method")
    assert (len(page.facts["points"]) > 1) == several
    assert ("alpha" in {a.get("id") for a in page.all("input")}) == several
    if with_rows:
        seen = page.facts["policies"][own["policy"]]["on_rows"]
        decided = fast.decide(X[:1200])
        assert seen["models"] == decided.steps.mean()
        full = fast.ensemble.classes[fast.policy.target.decide(fast.score_full(X[:1200]))]
        assert seen["differ"] == np.sum(decided.label != full)


def test_points_of_other_budgets_are_what_at_returns():
    fast, _, _ = two_classes(by_class={1: 0.1})
    points = report_facts(fast)["points"]
    assert {p["name"].partition(" of all rows and ")[2] for p in points} == {
        "10% of the rows called class 1"
    }
    assert all("the full ensemble calls class 1 are" in point["lines"][0] for point in points)
    for point in points:
        expected = certificate_facts(fast.at(alpha=point["share"], by_class={1: 0.1}).certificate)
        assert {name: point[name] for name in expected} == expected
    kinds = fast.at(alpha={"negative": 0.02, "positive": 0.03})
    for point in report_facts(kinds)["points"]:
        alpha = {"negative": 0.4 * point["share"], "positive": 0.6 * point["share"]}
        assert point["models"] == fast.at(alpha=alpha).certificate.mean_models


def test_a_classifier_that_is_evaluated_in_full_is_a_point_by_itself(made):
    fast, _, _ = made
    policy = fast.policy.without_quitting()
    full = replace(fast.full(), evaluation=Evaluation(False, "model"), policy=policy)
    facts = report_facts(full)
    assert facts["own"] == 0
    assert facts["points"][0]["name"] == "as it is"
    assert facts["points"][0]["models"] == 40
    assert facts["points"][-1]["models"] < 40


def test_the_same_inputs_give_the_same_bytes(made, tmp_path):
    fast, X, y = made
    for name in ("a", "b"):
        fast.report(tmp_path / name, X, y, speed=False, progress=False)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    facts = Page((tmp_path / "a").read_bytes()).facts
    assert "times" not in facts
    assert "microseconds" not in facts["policies"][0]


def test_many_rows_are_drawn_from(made):
    fast, X, y = made
    facts = report_facts(fast, X, y, settings=Settings(max_rows=700, speed=False))
    assert (facts["rows"]["rows"], facts["rows"]["given"]) == (700, len(X))
    chosen = np.sort(np.random.default_rng(0).choice(len(X), 700, replace=False))
    assert facts["rows"]["full_accuracy"] == np.mean(
        fast.full().predict(X.iloc[chosen]) == y[chosen]
    )


def test_labels_may_be_text(made):
    fast, X, y = made
    as_numbers = report_facts(fast, X[:500], y[:500])
    as_text = report_facts(fast, X[:500], y[:500].astype(str).astype(object))
    assert as_numbers["rows"] == as_text["rows"]
    assert as_numbers["rows"]["full_accuracy"] > 0.8


def test_progress_is_reported(made):
    fast, X, _ = made
    calls = []
    settings = Settings(progress=lambda what, done, total: calls.append((what, done, total)))
    report_facts(fast, X, settings=settings)
    assert {"Fitting others", "Deciding rows", "Timing"} <= {what for what, _, _ in calls}
    assert all(0 <= done <= total for _, done, total in calls)


class Spread:
    """Looks like a data set of Spark."""


Spread.__module__ = "pyspark.sql"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"path": None}, "a path was expected"),
        ({"path": ""}, "a path was expected"),
        ({"path": "no/such/folder/r.html"}, "there is no folder"),
        ({"path": "."}, "it is a folder"),
        ({"X": None}, "y belongs to rows: pass X too"),
        ({"X": None, "y": None, "slices": {"a": [1]}}, "slices belongs to rows"),
        ({"y": [0, 1]}, "there must be 3,000 labels, one per row"),
        ({"y": np.full(3000, 7)}, r"those that the classifier decides \(0, 1\); row 0 has 7"),
        ({"slices": {"a": [1, 2]}}, "slice 'a' must have 3000 values"),
        ({"slices": [1]}, "slices must name columns of X"),
        ({"max_rows": 0}, "max_rows must be"),
        ({"X": Spread()}, "qwyc.distributed.sample"),
    ],
)
def test_refusals(made, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    fast, X, y = made
    (tmp_path / "r.html").write_text("old")
    options = {"path": "r.html", "X": X, "y": y, "progress": False} | change
    with pytest.raises(qwyc.QwycError, match=message):
        fast.report(options.pop("path"), options.pop("X"), options.pop("y"), **options)
    assert (tmp_path / "r.html").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_no_rows_are_refused(made, tmp_path):
    fast, X, _ = made
    with pytest.raises(qwyc.InputError, match="no rows"):
        fast.report(tmp_path / "r.html", X[:0])


def test_files_of_older_versions(tmp_path):
    files = sorted((Path(__file__).parents[1] / "golden" / "0.1.0").glob("*.qwyc"))
    assert len(files) > 8
    for file in files:  # they do not know where rows stopped
        fast = qwyc.load(file)
        fast.report(tmp_path / "r.html")
        facts = Page((tmp_path / "r.html").read_bytes()).facts
        assert facts["points"][facts["own"]]["sentence"] == str(fast.certificate)
        assert {policy["survival"] for policy in facts["policies"]} == {None}


def test_many_classes_with_long_names_stay_small(tmp_path):
    names = [f"class {k} {'<' * 200}" for k in range(60)]
    ensemble = class_ensemble(60, 15, classes=names, vectors=True)
    fast = qwyc.optimize(ensemble, rows_of(6000), alpha=0.1, evaluation="quit", progress=False)
    fast.report(tmp_path / "r.html", rows_of(3000, seed=2), progress=False)
    content = (tmp_path / "r.html").read_bytes()
    assert len(content) < 1_000_000
    classes = Page(content).facts["classes"]
    assert (len(classes["names"]), classes["left_out"]) == (40, 20)
    bounds = sorted((loss.upper_bound for loss in fast.certificate.classes), reverse=True)
    facts = Page(content).facts
    shown = [bound for _, bound in facts["points"][facts["own"]]["losses"]]
    assert sorted(shown, reverse=True) == bounds[:40]


def test_the_paper_is_left_out_where_it_would_take_long(made, monkeypatch):
    fast, X, _ = made
    settings = Settings(speed=False)
    names = [r["name"] for r in report_facts(fast, X, settings=settings)["rivals"]]
    assert names == [
        "this classifier", "QWYC* (the paper)", "natural order", "Fan", "smaller ensembles"
    ]  # fmt: skip
    monkeypatch.setattr(rivals, "MOST_WORK", (1e5, 1e5))
    fewer = [r["name"] for r in report_facts(fast, X, settings=settings)["rivals"]]
    assert fewer == [name for name in names if not name.startswith("QWYC*")]


def test_the_method_has_the_defaults_of_the_settings():
    import inspect

    options = inspect.signature(qwyc.Classifier.report).parameters
    assert options["max_rows"].default == Settings().max_rows
    assert options["speed"].default == Settings().speed


def test_a_filter_for_one_class(tmp_path):
    ensemble = class_ensemble(4, 30, classes=["a", "b", "c", "d"])
    fast = qwyc.optimize(
        ensemble, rows_of(6000), alpha=0.05, only="b", evaluation="quit", progress=False
    )
    fast.report(tmp_path / "r.html", rows_of(5000, seed=2), progress=False)
    facts = Page((tmp_path / "r.html").read_bytes()).facts
    assert facts["labels"] == ["not b", "b"]
    own = facts["policies"][facts["points"][facts["own"]]["policy"]]
    steps = np.array(facts["positions"]) - 1
    lower = [None if np.isinf(gap) else -gap for gap in fast.policy.gap[steps]]
    assert [v is None for v in own["lower"]] == [v is None for v in lower]
    known = [(v, w) for v, w in zip(own["lower"], lower, strict=True) if w is not None]
    np.testing.assert_allclose(*zip(*known, strict=True), rtol=1e-3)
    assert [rival["name"] for rival in facts["rivals"]] == ["this classifier"]
