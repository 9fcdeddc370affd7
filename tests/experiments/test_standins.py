"""The stand-ins for the paper's Real-world 1 and 2: rows, stored models and quick ensembles.

Nothing here needs TensorFlow or the data files; test_lattice_training.py trains."""

import json
from dataclasses import replace

import numpy as np
import pytest

import qwyc
from qwyc_experiments.paper import (
    data,
    lattice_graph,
    lattice_quick,
    lattice_shapes,
    lattice_training,
    lattices,
    standins,
    stored,
)

NAMES = ("rw1", "rw2")
INDEX = stored.read_index()


@pytest.fixture(autouse=True)
def _no_data_files(monkeypatch, tmp_path):
    monkeypatch.setenv("QWYC_DATA", str(tmp_path))


@pytest.fixture
def no_tensorflow(monkeypatch):
    def missing():
        raise qwyc.MissingDependencyError("the experiments need qwyc[lattice]; install it")

    monkeypatch.setattr(lattice_training, "tensorflow", missing)


@pytest.fixture
def empty_cache():
    lattices._stored_or_trained.cache_clear()
    yield
    lattices._stored_or_trained.cache_clear()


# --- rows -------------------------------------------------------------------------------------


def write(path, columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


def small(monkeypatch, name, **changes):
    """The stand-in with other features or fewer rows."""
    monkeypatch.setitem(standins.STAND_INS, name, replace(standins.STAND_INS[name], **changes))


def write_census(folder, n=60, n_test=40, **columns):
    """Files with a number and a text column; "c" is always positive, "a" never, "b" now and then."""
    for name, count in (("train", n), ("test", n_test)):
        kind = np.array(["a", "b", "c"])[np.arange(count) % 3]
        label = (kind == "c") | ((kind == "b") & (np.arange(count) % 2 == 0))
        table = {
            "age": np.arange(count) % 7,
            "kind": kind,
            "rest": np.zeros(count),
            "label": label.astype(np.int8),
            **columns,
        }
        write(folder / f"census_income_kdd_{name}.parquet", table)


def test_census_is_drawn_from_its_predefined_split(monkeypatch, tmp_path):
    small(monkeypatch, "rw1", kept=("age", "kind"), training_rows=50, test_rows=30)
    write_census(tmp_path)
    loaded = data.load("rw1", None)
    assert (loaded.X.shape, loaded.X_test.shape) == ((50, 2), (30, 2))
    assert loaded.names == ("age", "kind")
    assert loaded.types == ("q", "q")
    assert loaded.validation.sum() == 10
    assert loaded.source == "UCI Census-Income (KDD)"
    # "a", "b", "c" by their share of positives
    shares = [loaded.y[loaded.X[:, 1] == code].mean() for code in range(3)]
    assert shares[0] == 0 < shares[1] < shares[2] == 1
    again = data.load("rw1", None)
    np.testing.assert_array_equal(again.X, loaded.X)
    np.testing.assert_array_equal(again.y_test, loaded.y_test)
    few = data.load("rw1", 20)
    assert (few.X.shape, few.X_test.shape) == ((20, 2), (20, 2))
    assert data.load("rw1", None, every=True).names == ("age", "kind", "rest")


def test_covertype_rows_are_drawn_without_overlap(monkeypatch, tmp_path):
    small(monkeypatch, "rw2", kept=("Elevation",), training_rows=70, test_rows=30)
    number = np.arange(100)
    columns = {"Elevation": number, "aux_cover_type": number % 7, "label": number % 2}
    write(tmp_path / "covertype.parquet", columns)
    loaded = data.load("rw2", None)
    drawn = np.concatenate([loaded.X, loaded.X_test]).ravel()
    np.testing.assert_array_equal(np.sort(drawn), number)
    np.testing.assert_array_equal(loaded.y, loaded.X[:, 0] % 2)
    assert not np.array_equal(drawn, number)
    assert data.load("rw2", None, every=True).names == ("Elevation",)


def test_codes_are_ordered_by_the_positives_of_the_used_rows_only():
    X = np.array([[0, 5], [0, 6], [1, 7], [1, 8], [2, 9], [np.nan, 1]], dtype=np.float32)
    y = np.array([1, 1, 0, 0, 1, 0])
    used = np.array([True, True, True, True, False, True])
    X_test = np.array([[2, 0], [1, 0], [3, 0], [np.nan, 0]], dtype=np.float32)
    ordered, ordered_test = standins.order_by_positives(X, y, X_test, ["c", "q"], used)
    np.testing.assert_array_equal(ordered[:, 0], [1, 1, 0, 0, np.nan, np.nan])
    np.testing.assert_array_equal(ordered_test[:, 0], [np.nan, 0, np.nan, np.nan])
    np.testing.assert_array_equal(ordered[:, 1], X[:, 1])
    assert X[0, 0] == 0  # the given rows are not changed


def test_features_have_the_numbers_of_the_paper():
    assert len(set(standins.CENSUS_FEATURES)) == 16
    assert len(set(standins.COVERTYPE_FEATURES)) == 30


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_not_there(name, monkeypatch, tmp_path):
    file = standins.STAND_INS[name].files[-1]
    with pytest.raises(qwyc.InputError, match=f"QWYC_DATA names .*no {file}.*UCI") as found:
        data.load(name, None)
    assert f"{standins.STAND_INS[name].columns} feature columns" in str(found.value)
    monkeypatch.delenv("QWYC_DATA")
    monkeypatch.setattr(data, "BESIDE", tmp_path)
    with pytest.raises(qwyc.InputError, match=r"^there is no .*QWYC_DATA"):
        data.load(name, None)


def test_files_that_are_wrong(monkeypatch, tmp_path):
    small(monkeypatch, "rw1", kept=("age", "colour"), training_rows=50, test_rows=30)
    write_census(tmp_path)
    with pytest.raises(qwyc.InputError, match=r"census_income_kdd_train.*no column colour"):
        data.load("rw1", None)
    small(monkeypatch, "rw1", kept=("age",), training_rows=61)
    with pytest.raises(qwyc.InputError, match=r"61 training and 30 test rows.*have 60 and 40"):
        data.load("rw1", None)


@pytest.mark.parametrize("name", NAMES)
def test_made_up_rows_where_there_are_no_files(name):
    loaded, again = data.load(name, 500), data.load(name, 500)
    assert loaded.source.startswith("made-up rows")
    assert loaded.X.shape == loaded.X_test.shape == (500, len(standins.STAND_INS[name].kept))
    assert loaded.X.dtype == np.float32
    np.testing.assert_array_equal(loaded.X, again.X)
    assert not np.array_equal(loaded.X, loaded.X_test, equal_nan=True)
    positive = np.concatenate([loaded.y, loaded.y_test]).mean()
    assert positive == pytest.approx(standins.STAND_INS[name].positive, abs=0.01)
    assert np.isnan(loaded.X).any() == (name == "rw1")


# --- shapes -----------------------------------------------------------------------------------


def test_keypoints():
    few = np.array([3, 1, np.nan, 1, 2], dtype=np.float32)
    np.testing.assert_array_equal(lattice_shapes.keypoints(few, 4), [1, 2, 3])
    mostly_zero = np.concatenate([np.zeros(10_000), np.arange(1, 200)]).astype(np.float32)
    points = lattice_shapes.keypoints(mostly_zero, 10)
    assert 4 <= len(points) <= 10
    assert (points[0], points[-1]) == (0, 199)
    assert (np.diff(points) > 0).all()
    for constant in ([7.0, 7.0], [np.nan], [1e9]):
        points = lattice_shapes.keypoints(np.array(constant, dtype=np.float32), 4)
        assert len(points) == 2
        assert points[0] < points[1]


def test_threshold_that_calls_a_share_negative():
    scores = np.random.default_rng(0).normal(size=1000)
    threshold = lattice_shapes.threshold_for(scores, 0.95)
    assert np.mean(scores < threshold) == 0.95
    assert threshold in scores


# --- quick ensembles --------------------------------------------------------------------------


@pytest.mark.parametrize("training", lattices.TRAININGS)
@pytest.mark.parametrize("name", NAMES)
def test_quick_ensembles(name, training):
    rows = data.load(name, 2000)
    ensemble = lattices.full(name, training, rows, quick=True)
    shape = lattice_shapes.QUICK[name]
    assert ensemble.n_models == shape.lattices
    scores = ensemble.scores(rows.X)
    assert scores.average
    assert scores.threshold == ensemble.threshold
    negative = np.mean(scores.full < scores.threshold)
    if name == "rw1":
        assert negative == 0.95
    else:
        assert ensemble.threshold == 0
        assert 0.3 < negative < 0.7
    full = ensemble.score_full(rows.X_test)
    positive, rest = full[rows.y_test == 1], full[rows.y_test == 0]
    assert np.mean(positive[:, None] > rest) > 0.6  # the area under the ROC curve
    for size in lattices.sizes(name, quick=True):
        assert lattices.smaller(name, training, size, rows, quick=True).n_models == size


def test_quick_joint_training_has_the_least_squared_error():
    rows = data.load("rw2", 2000)
    joint, independent = (
        lattices.full("rw2", training, rows, quick=True).score_full(rows.X)
        for training in lattices.TRAININGS
    )
    target = lattice_quick.centred(rows.y)
    assert np.mean((joint - target) ** 2) < np.mean((independent - target) ** 2)


def test_quick_regression_is_what_the_ensemble_computes():
    rows = data.load("rw1", 500)
    shape = replace(lattice_shapes.QUICK["rw1"], lattices=1)
    ensemble = lattice_quick.fit(shape, "independent", rows)
    calibrations = [lattice_quick.calibration(column, shape) for column in rows.X.T]
    subset = np.sort(np.random.default_rng(0).choice(16, shape.inputs, replace=False))
    inputs = [lattice_quick.apply(calibrations[j], rows.X[:, j]) for j in subset]
    weights = lattice_quick.corner_weights(np.stack(inputs, axis=1))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    vertices = lattice_quick.ridge(weights, lattice_quick.centred(rows.y))
    np.testing.assert_allclose(ensemble.score_full(rows.X), weights @ vertices, atol=1e-5)


def test_unknown_ensembles():
    with pytest.raises(qwyc.OptionError, match="rw1 and rw2, joint and independent; got 'rw3'"):
        lattices.full("rw3", "joint", data.load("rw1", 100), quick=True)


# --- stored models ----------------------------------------------------------------------------


def test_the_index_has_every_model():
    assert sorted(INDEX) == sorted(stored.key(*job) for job in lattice_training.jobs())
    files = {entry["file"] for entry in INDEX.values()}
    assert files == {path.name for path in stored.FOLDER.glob("*.qwyc")}


@pytest.mark.parametrize("key", sorted(INDEX))
def test_stored_models_score_as_recorded(key):
    entry = INDEX[key]
    ensemble = stored.load(entry)
    assert key == stored.key(entry["experiment"], entry["training"], entry["size"])
    assert ensemble.n_models == entry["size"]
    assert ensemble.threshold == entry["threshold"]
    assert ensemble.base_models.average
    scores = stored.check_scores(ensemble, entry["ranges"])
    assert np.isfinite(scores).all()
    assert len(set(scores)) == stored.CHECK_ROWS
    assert [score.hex() for score in scores] == entry["scores"]


def with_rows_of(monkeypatch, key):
    """Made-up rows that pass for those that a stored model was trained on."""
    monkeypatch.setattr(stored, "rows_digest", lambda _: INDEX[key]["rows"])
    return data.load(INDEX[key]["experiment"], 50)


@pytest.mark.usefixtures("no_tensorflow", "empty_cache")
@pytest.mark.parametrize("training", lattices.TRAININGS)
@pytest.mark.parametrize("name", NAMES)
def test_stored_models_are_used_with_their_rows(name, training, monkeypatch):
    size = lattice_shapes.SHAPES[name].lattices
    rows = with_rows_of(monkeypatch, stored.key(name, training, size))
    ensemble = lattices.full(name, training, rows, quick=False)
    assert ensemble.n_models == size
    for fewer in lattices.SIZES[name]:
        part = lattices.smaller(name, training, fewer, rows, quick=False)
        assert part.n_models == fewer
        assert (part.threshold == 0) == (name == "rw2")
        if (name, training) == ("rw2", "independent"):  # the first of the large ensemble
            mean = ensemble.scores(rows.X).values[:, :fewer].sum(axis=1) * size / fewer
            np.testing.assert_allclose(part.score_full(rows.X), mean, atol=1e-6)
    if name == "rw1":
        one = [lattices.smaller(name, each, 1, rows, quick=False) for each in lattices.TRAININGS]
        assert one[0].digest == one[1].digest


@pytest.mark.usefixtures("no_tensorflow", "empty_cache")
def test_stored_models_are_not_used_with_other_rows(monkeypatch, tmp_path):
    rows = data.load("rw1", 50)
    with pytest.raises(qwyc.MissingDependencyError, match=r"rw1-joint-5 was trained on other rows"):
        lattices.full("rw1", "joint", rows, quick=False)
    with pytest.raises(qwyc.MissingDependencyError, match=r"rw1-independent-1 was .*QWYC_DATA"):
        lattices.smaller("rw1", "joint", 1, rows, quick=False)
    monkeypatch.setattr(stored.read_index, "__defaults__", (tmp_path,))
    with pytest.raises(
        qwyc.MissingDependencyError, match=r"no stored model rw2-joint-500.*lattice"
    ):
        lattices.full("rw2", "joint", rows, quick=False)


@pytest.mark.usefixtures("empty_cache")
def test_other_rows_are_trained_on_where_tensorflow_is_installed(monkeypatch):
    rows = data.load("rw1", 200)
    made = []

    def train(shape, training, given, plan):
        made.append((shape.lattices, training, given is rows, plan))
        return lattice_quick.fit(replace(lattice_shapes.QUICK["rw1"]), training, given), {}

    monkeypatch.setattr(lattice_training, "tensorflow", lambda: None)
    monkeypatch.setattr(lattice_training, "train", train)
    with pytest.warns(qwyc.QwycWarning, match="other rows.*trained anew"):
        first = lattices.full("rw1", "joint", rows, quick=False)
    assert lattices.full("rw1", "joint", rows, quick=False) is first
    assert made == [(5, "joint", True, lattice_training.PLANS["rw1"])]


def test_digests_tell_rows_apart():
    rows = data.load("rw2", 100)
    assert stored.rows_digest(rows) == stored.rows_digest(data.load("rw2", 100))
    moved = rows.X.copy()
    moved[3, 4] = np.nextafter(moved[3, 4], np.float32(np.inf))
    assert stored.rows_digest(replace(rows, X=moved)) != stored.rows_digest(rows)
    assert stored.rows_digest(replace(rows, y=1 - rows.y)) != stored.rows_digest(rows)


def test_saving_adds_to_the_index(tmp_path):
    rows = data.load("rw1", 200)
    ensemble = lattices.full("rw1", "joint", rows, quick=True)
    ranges = [[0.0, 1.0]] * 16
    for key in ("b", "a"):
        stored.save(key, ensemble, {"ranges": ranges, "rows": key}, tmp_path / "new")
    index = stored.read_index(tmp_path / "new")
    assert list(index) == ["a", "b"]
    loaded = stored.load(index["a"], tmp_path / "new")
    assert loaded.digest == ensemble.digest
    np.testing.assert_array_equal(loaded.score_full(rows.X), ensemble.score_full(rows.X))
    (tmp_path / "new" / "index.json").write_text("{")
    with pytest.raises(qwyc.ArtifactError, match=r"index\.json is not an index"):
        stored.read_index(tmp_path / "new")


def test_what_the_index_says():
    found = lattices.describe("rw2", "joint")
    assert found["seconds"] > 0
    assert set(found["versions"]) == {"qwyc", "tensorflow", "tensorflow-lattice", "tf_keras"}
    assert found["chosen_rate"] in found["settings"]["rates"]
    losses = found["validation_losses"]
    assert losses[f"{found['chosen_rate']:g}"] == min(losses.values())
    assert "scores" not in found
    assert lattices.describe("rw1", "joint", 1)["training"] == "independent"
    json.dumps(found)


# --- the training command, as far as it goes without TensorFlow -------------------------------


def test_stored_models_are_skipped(monkeypatch, capsys):
    def train(*_, **__):
        raise AssertionError("a stored model was trained again")

    rows = with_rows_of(monkeypatch, "rw1-joint-5")
    monkeypatch.setattr(lattice_training, "load", lambda name, _: rows)
    monkeypatch.setattr(lattice_training, "train", train)
    lattice_training.main(["--only", "rw1-joint"])
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"rw1-joint-{size}: stored already" for size in (5, 2, 3, 4)]


@pytest.mark.usefixtures("no_tensorflow")
def test_training_without_tensorflow(monkeypatch, tmp_path):
    monkeypatch.setattr(lattice_training, "load", lambda name, _: data.load(name, 50))
    with pytest.raises(qwyc.MissingDependencyError, match=r"qwyc\[lattice\]"):
        lattice_training.main(["--folder", str(tmp_path), "--only", "rw2-joint-5"])
    assert list(tmp_path.iterdir()) == []


def test_training_a_model_that_does_not_exist(capsys):
    with pytest.raises(SystemExit):
        lattice_training.main(["--only", "rw3"])
    assert "there is no model 'rw3'; there are rw1-joint-5" in capsys.readouterr().err


def test_nan_is_replaced_for_tensorflow():
    rows = np.array([[1, np.nan]], dtype=np.float32)
    replaced = lattice_graph.without_nan(rows)
    assert replaced.dtype == np.float32
    assert replaced.tolist() == [[1, lattice_graph.MISSING]]
