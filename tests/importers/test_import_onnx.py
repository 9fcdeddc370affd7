"""ONNX tree ensembles as qwyc reads them against ONNX Runtime on one thread."""

from __future__ import annotations

import catboost
import numpy as np
import onnx
import onnxruntime
import pytest
from skl2onnx import to_onnx
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import qwyc
from onnx_graphs import N_COLUMNS, classifier, ensemble_5
from qwyc.errors import ModelError
from qwyc.importers import onnx as importer
from trained import damaged, make_data, read_or_refuse


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(model, rows):
    runner = session(model)
    return runner.run(None, {runner.get_inputs()[0].name: rows})


def rows_for(seed, n=400, dtype=np.float32):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, N_COLUMNS)).round(1)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40]
    return np.where(rng.random(rows.shape) < 0.15, rng.choice(odd, rows.shape), rows).astype(dtype)


def check(model, rows, raw=None):
    ensemble = qwyc.read_model(model)
    score = ensemble.score_full(rows)
    outputs = run(model, rows)
    labels = ensemble.classes[(score >= ensemble.threshold).astype(int)]
    np.testing.assert_array_equal(labels, outputs[0])
    if raw is not None:
        np.testing.assert_array_equal(score.astype(np.float32), outputs[1][:, 1])
    return ensemble


ALL = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize(("which", "base"), [(0, ()), (0, (0.3,)), (0, (-0.3,)), (1, ())])
def test_one_class_of_weights(seed, positive, which, base):
    model = classifier(seed, positive=positive, base=base, modes=ALL, classes=(which,))
    check(model, rows_for(seed), raw=True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_weights_of_both_classes(seed, transform):
    model = classifier(seed, classes=(0, 1), transform=transform, modes=ALL)
    check(model, rows_for(seed), raw=transform == "NONE" or None)


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_float64(seed):
    for classes, positive in (((1,), True), ((0,), False), ((0, 1), False)):
        model = classifier(seed, classes=classes, positive=positive, wide=True, base=())
        check(model, rows_for(seed, dtype=np.float64), raw=True)


def test_labels_of_text_and_other_numbers():
    for labels in (("no", "yes"), (3, 7)):
        ensemble = check(classifier(1, labels=labels, transform="LOGISTIC"), rows_for(1))
        assert ensemble.classes.tolist() == list(labels)


def test_a_single_leaf_one_tree_and_many_trees():
    assert check(classifier(0, n_trees=1), rows_for(0), raw=True).n_models == 1
    leaf = classifier(3, n_trees=3, depth=0)
    assert check(leaf, rows_for(0), raw=True).base_models.trees.feature.size == 0
    assert check(classifier(0, n_trees=500, depth=3), rows_for(0), raw=True).n_models == 500


CONVERTED = {
    "random forest": RandomForestClassifier(12, random_state=0),
    "extra trees": ExtraTreesClassifier(12, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=12),
    "decision tree": DecisionTreeClassifier(max_depth=4),
}


@pytest.fixture(scope="module")
def data():
    X, y = make_data(missing=0.0)
    return X.astype(np.float32), y


@pytest.mark.parametrize("name", CONVERTED)
@pytest.mark.parametrize("zipmap", [True, False])
def test_converted_models(name, zipmap, data, tmp_path):
    X, y = data
    trained = CONVERTED[name].fit(X, np.where(y, "yes", "no"))
    model = to_onnx(trained, X[:1], options={"zipmap": zipmap})
    ensemble = check(model, X)
    onnx.save(model, tmp_path / "m.onnx")
    assert qwyc.read_model(tmp_path / "m.onnx").digest == ensemble.digest
    fast = qwyc.optimize(model, X, alpha=0)
    found = qwyc.verify(fast, X, model=tmp_path / "m.onnx")
    assert "as onnx itself gives them" in found.parity


def test_catboost_s_own_export(data, tmp_path):
    X, y = data
    trained = catboost.CatBoostClassifier(iterations=20, verbose=0, allow_writing_files=False)
    trained.fit(X, y).save_model(str(tmp_path / "m.onnx"), format="onnx")
    check(onnx.load(tmp_path / "m.onnx"), X)
    runner = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert qwyc.read_model(runner).digest == qwyc.read_model(tmp_path / "m.onnx").digest


def test_a_wrong_score_is_found(data):
    X, y = data
    model = to_onnx(CONVERTED["gradient boosting"].fit(X, y), X[:1])
    ensemble = qwyc.read_model(model)
    from proving import prove_parity

    full = ensemble.score_full(X)
    assert prove_parity(model, X, ensemble, full, ensemble.threshold)
    with pytest.raises(qwyc.ParityError, match="row "):
        prove_parity(model, X, ensemble, full + 0.01, ensemble.threshold + 0.01)


# ---- regressors ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_tree_ensembles_of_version_5(seed):
    rows = rows_for(seed)
    ensemble = qwyc.read_model(ensemble_5(seed))
    raw = run(ensemble_5(seed, sigmoid=False), rows)[0][:, 0]
    np.testing.assert_array_equal(ensemble.score_full(rows), raw)
    p = run(ensemble_5(seed), rows)[0][:, 0]
    np.testing.assert_array_equal(ensemble.score_full(rows) >= ensemble.threshold, p > 0.5)
    assert qwyc.optimize(ensemble_5(seed), rows, alpha=0).policy.n_models == 7


def test_what_is_refused(data):
    X, y = data
    scaled = make_pipeline(StandardScaler(), RandomForestClassifier(2)).fit(X, y)
    for model, message in (
        (to_onnx(scaled, X[:1]), r"transforms its rows \(Scaler\)"),
        (to_onnx(BaggingClassifier(n_estimators=2).fit(X, y), X[:1]), "2 tree ensembles"),
        (to_onnx(AdaBoostClassifier(n_estimators=3).fit(X, y), X[:1]), "3 tree ensembles"),
        (to_onnx(StandardScaler().fit(X), X[:1]), "0 tree ensembles"),
        (classifier(0, classes=(0, 1), base=(0.1, 0.2)), "base values that ONNX does not define"),
        (classifier(0, classes=(1,), base=(0.1,)), "base values that ONNX does not define"),
        (classifier(0, modes=("BRANCH_EQ",)), "'=='"),
        (ensemble_5(0, modes=(4,)), "'=='"),
        (ensemble_5(0, aggregate=0), "not added up"),
        (ensemble_5(0, root=-1), "begins at a node that is not there"),
        (ensemble_5(0, root=99), "begins at a node that is not there"),
    ):
        with pytest.raises(qwyc.ModelError, match=message):
            qwyc.read_model(model)


def test_damaged_files_are_refused_or_sound(tmp_path):
    path = tmp_path / "m.onnx"
    rng = np.random.default_rng(0)
    for model in (classifier(0, n_trees=3), ensemble_5(0)):
        content = model.SerializeToString()
        outcomes = {read_or_refuse(importer, path, bad) for bad in damaged(content, rng)}
        assert outcomes <= {"read", "refused"}


def field(number, content):
    """A field of a serialised message, whose content has fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def node(kind, source, target):
    return field(1, field(1, source) + field(2, target) + field(4, kind))


def model_of(*parts):
    return b"\x08\x08" + field(7, b"".join(parts))


TREES = b"TreeEnsembleClassifier"
CYCLES = {
    "itself": [node(TREES, b"l", b"o"), node(b"Identity", b"l", b"l"), field(2, b"g")],
    "two": [node(TREES, b"a", b"o"), node(b"Identity", b"b", b"a"), node(b"Cast", b"a", b"b")],
    "trees": [node(TREES, b"a", b"o"), node(b"Identity", b"o", b"a")],
    "after": [
        node(TREES, b"X", b"o"),
        node(b"Identity", b"b", b"a"),
        node(b"Identity", b"a", b"b"),
        field(11, field(1, b"X") + field(2, field(1, b"\x08\x01"))),
        field(12, field(1, b"a")),
    ],
}


@pytest.mark.parametrize("parts", CYCLES.values(), ids=CYCLES.keys())
def test_a_graph_with_a_cycle_is_refused(tmp_path, parts):
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(*parts))
    with pytest.raises(ModelError, match="the graph has a cycle"):
        qwyc.read_model(path)


def test_the_smallest_cycle_has_57_bytes():
    assert len(model_of(*CYCLES["itself"])) == 57
