"""XGBoost model files: their forms, what is refused, and damage of every kind."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import numpy as np
import pytest
import xgboost as xgb

import qwyc
from calls import counting_calls
from qwyc.errors import ModelError
from qwyc.importers import flatten
from qwyc.importers import xgboost as importer
from qwyc.importers.wire import ubjson
from trained import (
    damaged,
    make_data,
    make_frame,
    read_or_refuse,
    written,
    xgboost_document,
)

# ---- files -----------------------------------------------------------------------------------


def test_json_ubjson_and_live_are_the_same(tmp_path, small_xgboost):
    frame, y = make_frame()
    categorical = xgb.XGBClassifier(n_estimators=9, enable_categorical=True, max_cat_to_onehot=1)
    for model in (small_xgboost, categorical.fit(frame, y)):
        digest = qwyc.read_model(model).digest
        assert qwyc.read_model(model.get_booster()).digest == digest
        for name in ("a.json", "a.ubj"):
            model.save_model(tmp_path / name)
            # Told apart by content, whatever the name.
            (tmp_path / name).rename(tmp_path / "model")
            assert qwyc.read_model(tmp_path / "model").digest == digest
        doc = xgboost_document(model)
        (tmp_path / "pretty.json").write_text("\n" + json.dumps(doc, indent=2))
        assert qwyc.read_model(tmp_path / "pretty.json").digest == digest
        assert qwyc.read_model(str(tmp_path / "pretty.json")).source.version == xgb.__version__


def test_files_of_older_versions(tmp_path, small_xgboost):
    digest = qwyc.read_model(small_xgboost).digest
    doc = xgboost_document(small_xgboost)
    learner = doc["learner"]
    learner["learner_model_param"]["base_score"] = learner["learner_model_param"][
        "base_score"
    ].strip("[]")
    del learner["learner_model_param"]["num_target"]
    model = learner["gradient_booster"]["model"]
    for key in ("cats", "iteration_indptr"):
        del model[key]
    for tree in model["trees"]:
        tree["tree_param"]["size_leaf_vector"] = "0"
        for key in [key for key in tree if key.startswith("categories") or key == "split_type"]:
            del tree[key]
    assert qwyc.read_model(written(tmp_path / "old.json", doc)).digest == digest
    learner["attributes"] = {"scikit_learn": "{}", "best_iteration": "2"}
    assert qwyc.read_model(written(tmp_path / "old.json", doc)).n_models == 3


def test_nodes_in_any_order(tmp_path):
    """The same trees with shuffled nodes and a node that nothing leads to."""
    X, y = make_data()
    model = xgb.XGBClassifier(n_estimators=4, max_depth=5).fit(X, y)
    doc = xgboost_document(model)
    rng = np.random.default_rng(0)
    for tree in doc["learner"]["gradient_booster"]["model"]["trees"]:
        n = len(tree["left_children"])
        place = np.concatenate([[0], 1 + rng.permutation(n)])[:n]  # (n,) of n + 1 places
        for key in ("left_children", "right_children"):
            children = np.array(tree[key])
            tree[key] = np.where(children < 0, -1, place[children])
        for key, value in tree.items():
            if isinstance(value, (list, np.ndarray)) and len(value) == n:
                moved = np.full(n + 1, -1 if key.endswith("children") else 0, dtype=object)
                moved[place] = value
                tree[key] = moved.tolist()
    ensemble = importer.read_file(written(tmp_path / "m.json", doc))
    np.testing.assert_array_equal(ensemble.score_full(X), qwyc.read_model(model).score_full(X))
    assert (
        ensemble.base_models.trees.leaf_value.size
        == qwyc.read_model(model).base_models.trees.leaf_value.size
    )


def test_reading_needs_no_xgboost(tmp_path, small_xgboost):
    small_xgboost.save_model(tmp_path / "m.ubj")
    code = (
        "import sys, qwyc; qwyc.read_model(sys.argv[1]);"
        "assert not {'xgboost', 'lightgbm', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.ubj")], check=True)


def test_work_grows_with_the_number_of_trees_only(tmp_path, small_xgboost):
    def calls(n_trees):
        doc = xgboost_document(small_xgboost)
        model = doc["learner"]["gradient_booster"]["model"]
        model["trees"] *= n_trees // 5
        model["gbtree_model_param"]["num_trees"] = str(n_trees)
        model["tree_info"] = [0] * n_trees
        path = written(tmp_path / "m.json", doc)
        ensemble, calls = counting_calls(lambda: importer.read_file(path))
        assert ensemble.n_models == n_trees
        return calls

    assert calls(5000) <= 4.1 * calls(1250)


# ---- what is refused -------------------------------------------------------------------------


def refused():
    X, y = make_data()
    matrix = xgb.DMatrix(X, y)
    yield (
        "gblinear",
        xgb.train({"objective": "binary:logistic", "booster": "gblinear"}, xgb.DMatrix(X, y), 1),
    )
    yield (
        "2 targets",
        xgb.XGBClassifier(n_estimators=1).fit(X, np.column_stack([y, 1 - y])),
    )
    yield (
        "2 targets",
        xgb.XGBClassifier(n_estimators=1, multi_strategy="multi_output_tree").fit(
            X, np.column_stack([y, 1 - y])
        ),
    )
    yield "not fitted", xgb.XGBClassifier()
    yield "no trees", xgb.train({"objective": "binary:logistic"}, matrix, 0)


def test_other_models_are_refused(tmp_path):
    for message, model in refused():
        with pytest.raises(ModelError, match=message):
            qwyc.read_model(model)
        if message != "not fitted":
            booster = model if isinstance(model, xgb.Booster) else model.get_booster()
            booster.save_model(tmp_path / "m.ubj")
            with pytest.raises(ModelError, match=message) as caught:
                qwyc.read_model(tmp_path / "m.ubj")
            assert str(tmp_path / "m.ubj") in str(caught.value)


def change(path, value):
    def apply(doc):
        *parents, last = path
        for key in parents:
            doc = doc[key]
        doc[last] = value

    return apply


MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 0)
DAMAGE = {
    "child out of range": change((*TREE, "left_children", 0), 99),
    "two ways": change((*TREE, "left_children", 0), 0),
    "has 6 features but names 1": change(("learner", "feature_names"), ["a"]),
    "feature out of range": change((*TREE, "split_indices", 0), 6),
    "split's feature is out of range": change((*TREE, "split_indices", 0), 2**40),
    "NaN": change((*TREE, "split_conditions", 0), float("nan")),
    "not finite": change((*TREE, "split_conditions", -1), 1e300),
    "'trees' is missing": lambda doc: doc["learner"]["gradient_booster"]["model"].pop("trees"),
    "should have 7 trees but holds 5": change((*MODEL, "gbtree_model_param", "num_trees"), "7"),
    "one entry per node": change((*TREE, "right_children"), [1, -1]),
    "leaves are vectors": change((*TREE, "tree_param", "size_leaf_vector"), "3"),
    "several outputs": change((*MODEL, "tree_info", 0), 1),
    "damaged": change(("learner", "learner_model_param", "base_score"), "half"),
    "category sets do not fit": change((*TREE, "categories_nodes"), [0]),
    "no nodes": lambda doc: [
        change((*TREE, key), [])(doc)
        for key, value in list(doc["learner"]["gradient_booster"]["model"]["trees"][0].items())
        if isinstance(value, list)
    ],
}


@pytest.mark.parametrize("message", DAMAGE)
def test_damaged_documents(tmp_path, small_xgboost, message):
    doc = xgboost_document(small_xgboost)
    DAMAGE[message](doc)
    path = written(tmp_path / "m.json", doc)
    with pytest.raises(ModelError, match=message) as caught:
        qwyc.read_model(path)
    assert str(caught.value).startswith(str(path))


def test_the_cause_is_kept(tmp_path, small_xgboost, monkeypatch):
    """What looks like a damaged file may be a mistake in an importer."""
    path = written(tmp_path / "m.json", xgboost_document(small_xgboost))
    monkeypatch.setattr(importer, "flatten", None)
    with pytest.raises(ModelError, match="damaged") as caught:
        qwyc.read_model(path)
    assert isinstance(caught.value.__cause__, TypeError)


def test_huge_category_sets_are_refused(tmp_path, monkeypatch):
    frame, y = make_frame()
    model = xgb.XGBClassifier(n_estimators=3, enable_categorical=True).fit(frame, y)
    doc = xgboost_document(model)
    tree = next(t for t in doc["learner"]["gradient_booster"]["model"]["trees"] if t["categories"])
    tree["categories"][0] = 2**24
    with pytest.raises(ModelError, match="outside 0 to 16777215"):
        qwyc.read_model(written(tmp_path / "m.json", doc))
    tree["categories"][0] = 2**24 - 1
    assert qwyc.read_model(written(tmp_path / "m.json", doc)).n_models == 3
    monkeypatch.setattr(flatten, "MAX_CATEGORY_WORDS", 1000)
    with pytest.raises(ModelError, match="at most 4,000 are held"):
        qwyc.read_model(written(tmp_path / "m.json", doc))


FOREIGN = {
    b"": "empty",
    b"\x80\x04\x95 pickle": "expected an XGBoost model",
    b"binf\x00\x00": "expected an XGBoost model",
    b"{}": "'learner' is missing",
    b"[]": "expected an XGBoost model",
    b'{"learner": 3}': "damaged",
    b'{"learner": ' + b"[" * 100_000: "damaged",
    b'{"learner": ' + b"9" * 10_000 + b"}": "damaged",
    b'{"learner": "\xff"}': "damaged",
    b"{L" + struct.pack(">q", 7) + b"learner": "cut off",
    b"{L" + struct.pack(">q", 2**62) + b"learner": "cut off",
    b"{L" + struct.pack(">q", -1) + b"learner": "cut off",
    b"{L" + struct.pack(">q", 7) + b"learner" + b"[" * 100_000: "nested",
    b"{i\x07learner[$d#L" + struct.pack(">q", 2**60): "cut off",
    b"{i\x07learner[$d#L" + struct.pack(">q", 3) + b"\x00" * 11: "cut off",
    b"{i\x07learner[#L" + struct.pack(">q", 2**40) + b"Z": "cut off",
    b"{i\x07learner[$Z#i\x01": "not an array of numbers",
    b"{i\x07learner?": "should start a value",
    b"{d\x00\x00\x00\x00": "should start a length",
    b"{i\x07learnerZ}}": "follow the end",
}


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_files(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelError, match=FOREIGN[content]) as caught:
        importer.read_file(tmp_path / "m")
    assert str(tmp_path / "m") in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ModelError, match="cannot be read"):
        importer.read_file(tmp_path / "none")
    with pytest.raises(ModelError, match="cannot be read"):
        importer.read_file(tmp_path)


def test_ubjson_values():
    def text(value):
        return b"S" + b"U" + bytes([len(value)]) + value

    items = b"[ZTFi\xffU\xffI\xff\xfel\xff\xff\xff\xfdd" + struct.pack(">f", 0.5)
    items += b"D" + struct.pack(">d", 0.1) + text("é".encode()) + b"[]{}]"
    assert ubjson.decode(items) == [
        *(None, True, False, -1, 255, -2, -3, 0.5, 0.1, "é", [], {}),
    ]
    array = ubjson.decode(b"[$I#i\x02\x00\x01\x01\x00")
    assert array.tolist() == [1, 256]
    assert array.dtype == np.int16
    assert array.dtype.isnative


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("kind", ["plain", "categorical", "dart"])
def test_damaged_files_are_errors_or_sound_models(tmp_path, form, kind):
    frame, y = make_frame()
    options = {"n_estimators": 2, "max_depth": 2, "enable_categorical": True}
    if kind == "plain":
        frame = frame[["a", "count"]]
    if kind == "dart":
        options["booster"] = "dart"
    path = tmp_path / f"m.{form}"
    xgb.XGBClassifier(**options).fit(frame, y).save_model(path)
    copies = damaged(path.read_bytes(), np.random.default_rng(0))
    outcomes = {read_or_refuse(importer, path, copy) for copy in copies}
    assert outcomes == {"refused", "read"}


def test_sniffing(tmp_path, small_xgboost):
    for name in ("m.json", "m.ubj"):
        small_xgboost.save_model(tmp_path / name)
        assert importer.looks_like((tmp_path / name).read_bytes()[:512])
    for head in (b"", b"tree\nversion=v4\n", b"{}", b"learner", b"\x80\x04learner"):
        assert not importer.looks_like(head)
    assert importer.is_live(small_xgboost)
    assert importer.is_live(small_xgboost.get_booster())
    assert not importer.is_live("model.json")
    assert not importer.is_live(np.zeros(3))
