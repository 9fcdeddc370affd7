"""The studies of many classes: what they count is what rows take, and LightGBM's rule is LightGBM's own."""

import io

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import make_classification

import qwyc
from qwyc_experiments import many_classes as study
from qwyc_experiments.validity import many_classes as validity


@pytest.fixture(scope="module")
def case():
    return study.case_of("digits, 10 classes", small=True)


def test_points_are_counted_by_hand(case):
    path = qwyc.fit_path(case.fit, threads=1, progress=False)
    point = study.point_of(case, path[len(path) // 2])
    done = point.policy.apply(case.test)
    assert point.models == done.steps.mean()
    assert point.differ == np.mean(done.label != case.test.full.argmax(axis=1))
    on_fit = point.policy.apply(case.fit).steps
    np.testing.assert_allclose(point.reach, [np.mean(on_fit > r) for r in range(len(point.reach))])


def test_a_filter_counts_the_rows_that_it_loses(case):
    path = qwyc.fit_path(case.fit, only=3, threads=1, progress=False)
    point = study.point_of(case, path[-1])
    label, full = point.policy.apply(case.test).label, case.test.full.argmax(axis=1)
    assert point.differ == np.mean((full == 3) & (label != 3))


def test_the_margin_rule_is_lightgbms_own(case):
    points = list(study.margins(case))
    some = points[:: len(points) // 12 + 1]
    assert len({point.options["pred_early_stop_freq"] for point in some}) > 1
    assert min(point.models for point in some) < 0.7 * case.shape[0]
    for point in some:
        assert study.check_same_rule(case, point) == 1.0


def test_the_cheapest_point_within_a_level_is_taken(case):
    points = list(study.algorithm_2(case))
    found = study.at_level(points, 0.05, lambda point: point.differ)
    assert found.differ <= 0.05
    assert all(p.models >= found.models for p in points if p.differ <= 0.05)
    assert study.at_level(points, -1.0, lambda point: point.differ) is None


def test_tables_have_a_line_for_each_way_and_level(case, monkeypatch):
    monkeypatch.setattr(study, "CALLS", 1)
    text = io.StringIO()
    console = Console(file=text, width=120)
    study.rivals(console, case)
    study.filters(console, case)
    lines = text.getvalue().splitlines()
    assert sum("Algorithm 2, natural order" in line for line in lines) == len(study.LEVELS)
    assert sum(line.strip().startswith(tuple("0123456789")) for line in lines) >= 22
    assert any("is a row of this class?" in line for line in lines)


def test_the_study_of_validity_counts_every_limit(monkeypatch):
    def made_up():
        X, y = make_classification(
            9_000, 8, n_informative=6, n_classes=7, n_clusters_per_class=1, random_state=0
        )
        return X.astype(np.float32), y

    monkeypatch.setattr(validity, "covertype_kinds", made_up)
    for name, value in (
        ("TRAIN_ROWS", 1_500),
        ("POOL_ROWS", 4_500),
        ("ROWS", 3_000),
        ("ROUNDS", 6),
    ):
        monkeypatch.setattr(validity, name, value)
    text = io.StringIO()
    validity.limits(Console(file=text, width=200), 0.01)
    shown = text.getvalue()
    assert "5 classes" in shown
    assert shown.count("of 1 (") == 10  # five limits at two confidences
    assert shown.count("filter") == 5
