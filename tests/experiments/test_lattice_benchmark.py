"""The lattice benchmark: its data, counts and checks, and a tiny run (which needs TensorFlow)."""

import itertools
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import qwyc
from qwyc import lattice
from qwyc.check.benchmark import FULL, QUITTING

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.contest import WrongAnswer  # noqa: E402
from benchmarks.lattices import bound, page, prepare, shapes  # noqa: E402
from benchmarks.lattices.contest import Found, contest, fastest  # noqa: E402
from benchmarks.lattices.contestants import LARGE, Evaluator, call_rows, ours, ways  # noqa: E402
from benchmarks.lattices.data import make_data  # noqa: E402
from benchmarks.lattices.models import LAYERS, RTL, Weights  # noqa: E402
from benchmarks.peers import LeftOut, run_limited  # noqa: E402

SHAPE = shapes.TINY.shapes[0]


def random_weights(shape):
    random = np.random.default_rng(0)
    keypoints = np.sort(random.normal(size=(shape.features, shapes.KEYPOINTS)), axis=1)
    outputs = random.uniform(size=(shape.features, shapes.KEYPOINTS))
    inputs = [random.permutation(shape.features)[: shape.inputs] for _ in range(shape.lattices)]
    return Weights(
        keypoints.astype(np.float32),
        np.diff(outputs, axis=1, prepend=0).astype(np.float32),
        np.array(inputs),
        random.normal(size=(shape.lattices, 2**shape.inputs)).astype(np.float32),
    )


def reference_scores(weights, rows, interpolation):
    """The mean of the lattices in float64, written as directly as possible."""
    outputs = weights.outputs.astype(np.float64)
    columns = [
        np.interp(rows[:, i], points, outputs[i]) for i, points in enumerate(weights.keypoints)
    ]
    total = np.zeros(len(rows))
    for inputs, vertices in zip(weights.inputs, weights.vertices, strict=True):
        z = np.stack([columns[i] for i in inputs], axis=1)  # (N, d)
        d = len(inputs)
        if interpolation == "hypercube":
            for vertex, corner in zip(vertices, itertools.product((0, 1), repeat=d), strict=True):
                total += vertex * np.prod(np.where(corner, z, 1 - z), axis=1)
            continue
        order = np.argsort(-z, axis=1)
        falling = np.take_along_axis(z, order, axis=1)
        edges = np.hstack([np.ones((len(z), 1)), falling, np.zeros((len(z), 1))])
        strides = 2 ** (d - 1 - order)
        corners = np.hstack([np.zeros((len(z), 1), int), np.cumsum(strides, axis=1)])
        total += (vertices[corners] * -np.diff(edges, axis=1)).sum(axis=1)
    return total / len(weights.inputs)


def classifier(weights, rows, interpolation):
    members = [
        lattice.Lattice(inputs.tolist(), vertices, interpolation=interpolation)
        for inputs, vertices in zip(weights.inputs, weights.vertices, strict=True)
    ]
    calibrators = [
        lattice.PiecewiseLinear(points, outputs)
        for points, outputs in zip(weights.keypoints, weights.outputs, strict=True)
    ]
    model = lattice.ensemble(
        members, calibrators=calibrators, features=len(calibrators), average=True
    )
    return qwyc.optimize(model, rows, alpha=0.01, threads=1, progress=False)


def empty(interpolation):
    return Found("A", "A", "NumPy", shape=SHAPE, interpolation=interpolation)


@pytest.mark.parametrize("interpolation", shapes.INTERPOLATIONS)
def test_qwyc_takes_part_and_agrees(interpolation):
    weights, rows = random_weights(SHAPE), make_data(SHAPE)
    fast = classifier(weights, rows.policy, interpolation)
    scores = reference_scores(weights, rows.test, interpolation)
    found = contest(empty(interpolation), ours(fast), rows.test, scores, shapes.TINY)
    assert {(each.contestant, each.batch) for each in found.lines[1]} == {
        (name, batch) for name in (FULL, QUITTING) for batch in shapes.TINY.batches
    }
    assert found.score_error[FULL] < 1e-5
    assert found.differ[FULL] == 0
    early = fast.predict(rows.test).astype(bool)
    assert found.positives == (scores >= 0).sum()
    assert found.missed == ((scores >= 0) & ~early).sum()
    assert found.differ[QUITTING] == ((scores >= 0) != early).sum()
    text = page.page(["about"], {"A": found}, bound.Peak("AVX2", 5e10), shapes.TINY)
    assert "## A\n\nµs per row, 1 thread" in text
    assert "50.0 billion float32 multiply-adds per second with AVX2" in text
    figures = {each.what: each for each in page.figures([found], shapes.TINY)}
    single = figures[f"A, single row from Python: {FULL}, median"]
    assert (single.target, single.met) == ("under 5 µs", found.line(FULL, 1).p50 < 5)
    assert figures[f"A, batch of 1,000: {FULL}, against tf.function"].found == "not measured"


def constant(name, scores, rows, most_rows=None):
    """An evaluator that looks scores up by the first value of a row."""
    by_value = dict(zip(rows[:, 0].tolist(), scores.tolist(), strict=True))

    def look_up(x):
        return np.array([by_value[value] for value in np.atleast_2d(x)[:, 0].tolist()])

    return Evaluator(name, "1", look_up, look_up, most_rows)


def test_wrong_scores_stop_the_run():
    rows = make_data(SHAPE).test
    scores = np.linspace(-1, 1, len(rows))
    off = scores.copy()
    off[3] += 1e-4
    with pytest.raises(WrongAnswer, match=r"off by 0\.0001"):
        contest(empty("simplex"), [constant("x", off, rows)], rows, scores, shapes.TINY)


def test_decisions_next_to_the_threshold_are_counted_and_others_stop_the_run():
    rows = make_data(SHAPE).test
    scores = np.linspace(-1, 1, len(rows))
    scores[7], other = 0.0, scores.copy()
    other[7] = -5e-7
    found = contest(empty("simplex"), [constant("x", other, rows)], rows, scores, shapes.TINY)
    assert (found.near["x"], found.differ["x"]) == (1, 0)
    scores[7], other[7] = (
        3e-6,
        -3e-6,
    )  # within the tolerance of scores, but not next to the threshold
    with pytest.raises(WrongAnswer, match="decides 1 test rows unlike"):
        contest(empty("simplex"), [constant("x", other, rows)], rows, scores, shapes.TINY)


def test_the_fastest_is_taken_over_all_batch_sizes_and_limits_of_rows_are_noted():
    rows = make_data(SHAPE).test
    scores = np.linspace(-1, 1, len(rows))
    two = [constant(f"tf.function, {i}", scores, rows, most_rows=100) for i in range(2)]
    found = contest(empty("simplex"), two, rows, scores, shapes.TINY)
    least = min(each.microseconds for each in found.lines[1])
    assert fastest(found, "tf.function,").microseconds == least
    assert fastest(found, "XLA,") is None
    assert found.notes["tf.function, 0"] == "100 rows in a call for 1,000"


def test_who_is_for_large_batches_only_is_not_timed_with_small_ones():
    rows = make_data(SHAPE).test
    scores = np.linspace(-1, 1, len(rows))

    def refuses(x):
        raise AssertionError("called with a single row")

    large = replace(constant("x", scores, rows), single=refuses, batches=LARGE)
    found = contest(empty("simplex"), [large], rows, scores, shapes.TINY)
    assert [each.batch for each in found.lines[1]] == [1000]
    assert found.score_error["x"] == 0


def test_tensors_of_one_rtl_layer_stay_small():
    assert call_rows(shapes.A, "hypercube", RTL) == 2048  # 40,960 vertices in a row of the tensor
    assert call_rows(shapes.B, "hypercube", RTL) == 1024  # 128,000
    assert call_rows(shapes.B, "hypercube", LAYERS) == 4096
    assert call_rows(shapes.B, "simplex", RTL) == 4096


def tiny_job(kind):
    return prepare.Job(kind, SHAPE, random_weights(SHAPE), "simplex", LAYERS)


def test_what_takes_too_long_is_a_line_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setenv("QWYC_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(prepare, "tensorflow", lambda: (None, None, None, "1"))
    monkeypatch.setattr(prepare, "MANY", 1)
    monkeypatch.setattr(prepare, "_in_child", lambda job, target: False)
    with pytest.raises(LeftOut, match="to convert 3 lattices took more than 240 s") as stopped:
        prepare.prepared(tiny_job("convert"))
    monkeypatch.setattr(prepare, "_in_child", lambda job, target: pytest.fail("tried again"))
    with pytest.raises(LeftOut, match="was stopped"):  # the next run does not try it again
        prepare.prepared(tiny_job("convert"))
    rows = make_data(SHAPE).test
    scores = np.linspace(-1, 1, len(rows))
    found = contest(empty("simplex"), [constant("x", scores, rows)], rows, scores, shapes.TINY)
    found.left_out["TFLite, one RTL layer"] = str(stopped.value)
    text = page.page([], {"A": found}, None, shapes.TINY)
    assert "| TFLite, one RTL layer (left out: to convert 3 lattices took more than 240 s" in text


def test_what_was_made_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("QWYC_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(prepare, "tensorflow", lambda: (None, None, None, "1"))
    monkeypatch.setitem(prepare.WAYS, "convert", lambda job, target: target.write_bytes(b"it"))
    path = prepare.prepared(tiny_job("convert"))
    assert path.read_bytes() == b"it"
    monkeypatch.setitem(prepare.WAYS, "convert", lambda job, target: pytest.fail("made again"))
    assert prepare.prepared(tiny_job("convert")) == path
    monkeypatch.setitem(prepare.WAYS, "freeze", lambda job, target: 1 / 0)
    with pytest.raises(LeftOut, match="it does not freeze: division by zero"):
        prepare.prepared(tiny_job("freeze"))


def test_a_process_is_stopped_at_its_limit_and_a_failure_is_told(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        run_limited(["while True: pass"], 0.1)
    assert run_limited(["import sys; sys.exit('why')"], 60) == (1, "why\n")
    with pytest.raises(LeftOut, match="it does not nothing: KeyError"):
        prepare._in_child(tiny_job("nothing"), tmp_path / "x.bin")


@pytest.mark.slow
def test_the_limit_is_of_processor_time(tmp_path):
    pytest.importorskip("tensorflow_lattice")
    target = tmp_path / "x.bin"
    assert not prepare._in_child(tiny_job("freeze"), target, limit=1)  # TensorFlow's import is more
    assert not target.exists()
    assert prepare._in_child(tiny_job("freeze"), target)
    assert target.stat().st_size > 0


def test_rows_are_the_same_every_time_and_in_one_part_only():
    data, again = make_data(SHAPE), make_data(SHAPE)
    assert np.array_equal(data.training, again.training)
    assert np.array_equal(data.label, again.label)
    parts = [{row.tobytes() for row in part} for part in (data.training, data.policy, data.test)]
    assert len(set.union(*parts)) == sum(map(len, parts)) == 4512
    assert 0.03 < data.label.mean() < 0.07
    other = make_data(replace(SHAPE, seed=99))
    assert not np.array_equal(data.training, other.training)


def test_counts_of_the_bound():
    assert bound.work(shapes.A, "hypercube").multiply_adds == 40_960
    assert bound.work(shapes.B, "hypercube").multiply_adds == 128_000
    assert bound.work(shapes.A, "simplex").look_ups == 5 * 14
    assert bound.work(shapes.B, "simplex").comparisons == 500 * 16 + 30 * 4  # 8! < 2**16
    peak = bound.Peak("", 1e9)
    assert bound.work(shapes.A, "hypercube").microseconds(peak) == pytest.approx(40.96)


def test_where_vertices_come_from():
    kernel = bound.KERNELS["AVX-512"]
    assert kernel.halving(shapes.B) == 500 * 2 * 31
    assert kernel.most_share(shapes.B) == pytest.approx(256 / 318)
    assert kernel.between(shapes.A) == 256 * 32 * 4
    caches = {1: 48 * 1024, 2: 2048 * 1024}
    assert bound.source(shapes.A, kernel, caches) == "level 1 in part, then 2"  # 32 KB, twice
    assert bound.source(shapes.B, kernel, caches) == "level 1"
    assert bound.source(shapes.A, kernel, {1: 16 * 1024, 2: 2048 * 1024}) == "level 2"
    assert bound.source(shapes.A, kernel, {}) == "unknown"


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler")
def test_the_peak_is_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("QWYC_BENCH_CACHE", str(tmp_path))
    peak = bound.measure_peak(0.01)
    assert peak.instructions in ("AVX-512", "AVX2", "generic")
    assert peak.per_second > 1e6


@pytest.mark.slow
def test_a_tiny_run(tmp_path):
    pytest.importorskip("tensorflow_lattice")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.lattices", "--tiny", "--page", str(tmp_path / "x.md")],
        env=os.environ | {"QWYC_BENCH_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "x.md").read_text()
    for shape in shapes.TINY.shapes:
        for interpolation in shapes.INTERPOLATIONS:
            part = text.split(f"## {shape.title}, {interpolation} interpolation\n")[1]
            part = part.split("\n## ")[0]
            for way in ways(shape, interpolation):
                assert f"| {way.name} " in part
            assert f"| {FULL}" in part
            assert f"| {QUITTING}" in part
            assert "left out" not in part
