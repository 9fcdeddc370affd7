"""Training lattices with TensorFlow Lattice, end to end on a few rows. `make test-all` runs these tests."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from qwyc_experiments.paper import (
    data,
    lattice_crystals,
    lattice_graph,
    lattice_shapes,
    lattice_training,
    stored,
)

pytestmark = pytest.mark.slow

SHAPES = {
    "rw1": lattice_shapes.Shape("rw1", 3, 4, 6, True, 0.95),
    "rw2": lattice_shapes.Shape("rw2", 6, 3, 6, False, None),
}
SIZES = {"rw1": (1, 2), "rw2": (2,)}
PLAN = lattice_training.Plan({"joint": (0.03, 0.1), "independent": (0.1, 0.3)}, 0.02, 10, 100)
FIT = lattice_graph.Fit(0.1, 0.01, 2, 64)


@pytest.fixture(scope="module")
def rows():
    """Made-up rows with a few of the features, by experiment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QWYC_DATA", "there is no such folder")
        return {name: data.load(name, 1500).features([*range(6)]) for name in SHAPES}


@pytest.fixture
def tiny(monkeypatch, rows):
    monkeypatch.setattr(lattice_training, "SHAPES", SHAPES)
    monkeypatch.setattr(lattice_training, "SIZES", SIZES)
    monkeypatch.setattr(lattice_training, "PLANS", dict.fromkeys(SHAPES, PLAN))
    monkeypatch.setattr(lattice_training, "load", lambda name, _: rows[name])


def graph_of(rows, *, joint, lattices=3, inputs=3):
    points = [lattice_shapes.keypoints(column, 6) for column in rows.X.T]
    subsets = np.array([*itertools.combinations(range(6), inputs)][::3][:lattices])
    return lattice_graph.Graph(points, subsets, missing=True, joint=joint, seed=1)


@pytest.mark.usefixtures("tiny")
def test_the_command_trains_stores_and_resumes(rows, tmp_path, capsys):
    keys = [stored.key(*job) for job in lattice_training.jobs()]
    assert keys == [
        "rw1-joint-3",
        "rw1-independent-3",
        "rw1-independent-1",
        "rw1-joint-2",
        "rw1-independent-2",
        "rw2-joint-6",
        "rw2-independent-6",
        "rw2-joint-2",
    ]
    lattice_training.main(["--folder", str(tmp_path), "--only", "rw2"])
    lattice_training.main(["--folder", str(tmp_path)])
    printed = capsys.readouterr().out
    assert [printed.count(f"{key}: training\n") for key in keys] == [1] * len(keys)
    assert printed.count("stored already") == 3
    index = stored.read_index(tmp_path)
    assert sorted(index) == sorted(keys)
    for key, entry in index.items():
        given, ensemble = rows[entry["experiment"]], stored.load(entry, tmp_path)
        scores = stored.check_scores(ensemble, entry["ranges"])
        assert [score.hex() for score in scores] == entry["scores"], key
        assert entry["rows"] == stored.rows_digest(given)
        assert entry["largest_difference_to_tensorflow"] < 1e-5
        assert entry["chosen_rate"] in entry["settings"]["rates"]
        full = ensemble.score_full(given.X)
        assert np.mean(full[given.y == 1][:, None] > full[given.y == 0]) > 0.6, key
        if entry["experiment"] == "rw1":
            assert np.mean(full < ensemble.threshold) == pytest.approx(0.95, abs=0.001)
            assert all(len(set(each)) == 4 for each in entry["subsets"])
        else:
            assert ensemble.threshold == 0
    few = replace(rows["rw2"], X=rows["rw2"].X[:, ::-1])  # other rows: everything is trained again
    shape = replace(SHAPES["rw2"], lattices=2)
    needed = lattice_training.wanted(shape, "joint", few, PLAN)
    assert not lattice_training.is_current(index["rw2-joint-2"], needed)


def test_training_in_one_graph_is_training_one_by_one(rows):
    given = rows["rw1"]
    together = graph_of(given, joint=False)
    kernel = together.initial[-1][1]
    together.fit(given.X, given.y, FIT, seed=2)
    found = together.numbers()
    for t, subset in enumerate(together.subsets):
        alone = lattice_graph.Graph(
            together.points, subset[None], missing=True, joint=False, seed=100 + t
        )
        alone.initial[-1] = (alone.lattice.kernel, kernel[:, t : t + 1])
        alone.fit(given.X, given.y, FIT, seed=2)
        expected = alone.numbers()
        assert np.abs(expected.vertices - kernel[:, t]).max() > 0.1  # it has learned something
        np.testing.assert_allclose(found.vertices[t], expected.vertices[0], atol=1e-5)
        for one, other in zip(found.calibrations[t], expected.calibrations[0], strict=True):
            np.testing.assert_allclose(one.outputs, other.outputs, atol=1e-5)
            assert one.missing == pytest.approx(other.missing, abs=1e-5)


@pytest.mark.parametrize("joint", [True, False])
def test_scores_are_those_of_the_layers_of_tensorflow_lattice(rows, joint):
    """The interpolation of this package against the Lattice layer's own."""
    given = rows["rw1"]
    graph = graph_of(given, joint=joint, inputs=4)
    graph.fit(given.X, given.y, FIT, seed=0)
    tf, _, _ = lattice_graph.tensorflow()
    X = lattice_graph.without_nan(given.X)
    assert (lattice_graph.MISSING == X).any()
    calibrated = tf.concat(
        [layer(X[:, j : j + 1]) for j, layer in graph.calibrators.items()], axis=1
    )
    inputs = tf.reshape(tf.gather(calibrated, graph.gathered, axis=1), (len(X), 3, 4))
    np.testing.assert_allclose(graph.predict(given.X), graph.lattice(inputs), atol=1e-5)
    ensemble = lattice_shapes.assemble(graph.numbers(), given, None)
    own = ensemble.scores(given.X).values * ensemble.n_models
    np.testing.assert_allclose(own, graph.predict(given.X), atol=1e-5)


def test_a_fit_starts_anew(rows):
    given = rows["rw2"]
    graph = graph_of(given, joint=True)
    vertices = []
    for rate in (0.1, 0.3, 0.1):
        graph.fit(given.X, given.y, replace(FIT, rate=rate), seed=0)
        vertices.append(graph.numbers().vertices)
    np.testing.assert_allclose(vertices[0], vertices[2], atol=1e-5)
    assert np.abs(vertices[0] - vertices[1]).max() > 0.1


def test_a_joint_ensemble_fits_better_than_its_base_models(rows):
    given, losses = rows["rw2"], []
    for joint in (True, False):
        graph = graph_of(given, joint=joint, lattices=5)
        graph.fit(given.X, given.y, replace(FIT, epochs=10), seed=0)
        scores = graph.predict(given.X)
        losses.append(lattice_training.validation_loss(scores, given.y, joint=True))
    assert losses[0] < losses[1] < np.log(2)


def test_crystals(rows):
    given = rows["rw1"]
    found = lattice_crystals.crystals(SHAPES["rw1"], given)
    assert found.shape == (3, 4)
    assert set(found.ravel()) == set(range(6))  # every feature is used
    assert (np.diff(found, axis=1) > 0).all()
    one = lattice_crystals.crystals(replace(SHAPES["rw1"], lattices=1), given)
    assert one.shape == (1, 4)
