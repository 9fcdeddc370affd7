"""A monitor's numbers as other programs read them."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

import qwyc
from monitored import bold, rows_for

NASTY = 'a "quoted"\\ class\nof two lines'


@pytest.fixture(scope="module")
def monitor():
    fast = bold(alpha=0.01, by_class={1: 0.3})
    classes = np.array(["plain", NASTY], dtype=object)
    made = qwyc.Monitor(replace(fast, ensemble=replace(fast.ensemble, classes=classes)), rate=1)
    made.predict(rows_for(fast))
    return made


def values(monitor, **options):
    """name -> {labels: value} of every sample."""
    found = {}
    for family in text_string_to_metric_families(monitor.metrics(**options)):
        assert family.documentation
        for sample in family.samples:
            labels = tuple(sample.labels.values())
            assert labels not in found.setdefault(sample.name, {})
            found[sample.name][labels] = sample.value
    return found


def test_the_text_of_prometheus(monitor):
    found, counts = values(monitor), monitor.counts
    assert found["qwyc_rows_total"] == {(): 4000}
    assert found["qwyc_checked_rows_total"] == {
        ("plain",): counts.by_class[0],
        (NASTY,): counts.by_class[1],
    }
    assert found["qwyc_disagreements_total"] == {
        ("plain",): counts.differences[1],
        (NASTY,): counts.differences[0],
    }
    bounds = tuple(
        found[f"qwyc_disagreement_{name}"][()] for name in ("lower_bound", "ratio", "upper_bound")
    )
    assert bounds == (monitor.interval[0], counts.observed, monitor.interval[1])
    assert found["qwyc_class_disagreement_upper_bound"][(NASTY,)] == monitor.by_class[NASTY][1]
    assert found["qwyc_alarm"] == {(): 1}
    assert sorted(found["qwyc_limit_share"].values()) == [0.01, 0.3]
    assert len(found["qwyc_limit_alarm"]) == len(found["qwyc_limit_evidence"]) == 2
    assert found["qwyc_alarm_evidence"][()] == pytest.approx(2 / 0.05)


def test_the_exit_profile_is_a_histogram(monitor):
    found = values(monitor)
    buckets = found["qwyc_base_models_bucket"]
    assert list(buckets) == [("1",), ("2",), ("4",), ("8",), ("11",), ("12",), ("+Inf",)]
    assert np.diff([0, *buckets.values()]).tolist() == [*monitor.exits.values(), 0]
    assert found["qwyc_base_models_count"] == {(): 4000}
    assert found["qwyc_base_models_sum"][()] == pytest.approx(4000 * monitor.mean_models)


def test_types(monitor):
    kinds = {f.name: f.type for f in text_string_to_metric_families(monitor.metrics(prefix="a_b"))}
    assert kinds["a_b_rows"] == kinds["a_b_disagreements"] == "counter"
    assert kinds["a_b_alarm"] == "gauge"
    assert kinds["a_b_base_models"] == "histogram"


def test_before_the_first_row_and_after_a_contradicted_proof():
    assert math.isnan(values(qwyc.Monitor(bold()))["qwyc_disagreement_ratio"][()])
    fast = bold(alpha=0, how="proven")
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(rows_for(fast))
    assert set(values(monitor)["qwyc_limit_evidence"].values()) == {math.inf}


@pytest.mark.parametrize("prefix", ["", "1a", "a-b", "a b", None])
def test_prefixes_that_prometheus_refuses(monitor, prefix):
    with pytest.raises(qwyc.OptionError, match="prefix must be"):
        monitor.metrics(prefix=prefix)


def test_open_telemetry(monitor):
    reader = InMemoryMetricReader()
    monitor.instrument(MeterProvider([reader]).get_meter("test"))
    (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
    points = {m.name: {tuple(p.attributes.values()): p.value for p in m.data.data_points}
              for m in scope.metrics}  # fmt: skip
    text = values(monitor)
    assert points["qwyc_rows"] == {(): 4000}
    assert points["qwyc_disagreements"] == text["qwyc_disagreements_total"]
    assert points["qwyc_disagreement_upper_bound"] == text["qwyc_disagreement_upper_bound"]
    assert points["qwyc_limit_alarm"] == text["qwyc_limit_alarm"]
    assert list(points["qwyc_base_models"]) == [
        ("1",),
        ("2",),
        ("3-4",),
        ("5-8",),
        ("9-11",),
        ("12",),
    ]
    assert list(points["qwyc_base_models"].values()) == list(monitor.exits.values())


def test_open_telemetry_sees_the_numbers_of_the_moment():
    fast = bold()
    monitor, reader = qwyc.Monitor(fast, rate=1), InMemoryMetricReader()
    monitor.instrument(MeterProvider([reader]).get_meter("test"), prefix="mine")
    seen = []
    for _ in range(2):
        monitor.predict(rows_for(fast, n=30))
        (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
        (rows,) = (m for m in scope.metrics if m.name == "mine_rows")
        seen.append(rows.data.data_points[0].value)
    assert seen == [30, 60]


def test_open_telemetry_is_not_loaded_with_the_package():
    code = "import sys, qwyc; qwyc.Monitor; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_text_for_people(monitor):
    lines = repr(monitor).splitlines()
    assert lines[0] == "qwyc.Monitor: 4,000 rows seen, 4,000 of them checked in full (rate 100%)"
    assert sum("ALARM" in line for line in lines) == len(monitor.alarms) >= 1
    (whole,) = (line for line in lines if "all rows" in line)
    assert f"{monitor.disagreements:,} of 4,000" in whole
    assert whole.endswith("allowed: 1%")
    (steps,) = (i for i, line in enumerate(lines) if line.startswith("  steps"))
    assert lines[steps].split()[1:] == ["1", "2", "3-4", "5-8", "9-11", "12"]
    shares = [float(cell.rstrip("%")) for cell in lines[steps + 1].split()[1:]]
    assert sum(shares) == pytest.approx(100, abs=0.5)
