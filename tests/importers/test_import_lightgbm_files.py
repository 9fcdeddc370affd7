"""LightGBM model files: their form, what is refused, and damage of every kind."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

import qwyc
from calls import counting_calls
from qwyc.errors import ModelError
from qwyc.importers import lightgbm as importer
from trained import QUIET, damaged, make_data, make_frame, read_or_refuse, written

# ---- files -----------------------------------------------------------------------------------


def test_files_and_live_are_the_same(tmp_path, small_lightgbm):
    frame, y = make_frame()
    for model in (small_lightgbm, lgb.LGBMClassifier(n_estimators=9, **QUIET).fit(frame, y)):
        digest = qwyc.read_model(model).digest
        assert qwyc.read_model(model.booster_).digest == digest
        model.booster_.save_model(tmp_path / "m.txt")
        assert qwyc.read_model(tmp_path / "m.txt").digest == digest
        assert qwyc.read_model(str(tmp_path / "m.txt")).source.library == "lightgbm"
        text = model.booster_.model_to_string()
        windows = written(tmp_path / "windows.txt", text.replace("\n", "\r\n"))
        assert qwyc.read_model(windows).digest == digest
        # What the command line tool writes: no pandas, sometimes no parameters.
        bare = text.split("\nfeature_importances")[0]
        plain = qwyc.read_model(written(tmp_path / "bare.txt", bare))
        assert plain.schema.categories == {}
        assert np.array_equal(
            plain.base_models.trees.leaf_value, qwyc.read_model(model).base_models.trees.leaf_value
        )


def test_names(data):
    X, y = data
    assert (
        qwyc.read_model(lgb.LGBMClassifier(n_estimators=1, **QUIET).fit(X, y)).schema.names is None
    )
    frame = pd.DataFrame(X, columns=["Column_0", "Column_1", "x", "y", "z", "the end"])
    model = lgb.LGBMClassifier(n_estimators=3, **QUIET).fit(frame, y)
    assert qwyc.read_model(model).schema.names == (*frame.columns[:5], "the_end")


def test_work_grows_with_the_number_of_trees_only(tmp_path, data):
    X, y = data
    model = lgb.LGBMClassifier(n_estimators=5, num_leaves=31, min_child_samples=2, **QUIET)
    text = model.fit(X, y).booster_.model_to_string()
    head, rest = text.split("\nTree=", 1)
    trees, tail = rest.split("\nend of trees")
    sizes = next(line for line in head.split("\n") if line.startswith("tree_sizes="))

    def calls(n_trees):
        start = head.replace(sizes, "tree_sizes=" + " ".join(["9"] * n_trees))
        repeated = "\nTree=".join([trees] * (n_trees // 5))
        path = written(tmp_path / "m.txt", f"{start}\nTree={repeated}\nend of trees{tail}")
        ensemble, calls = counting_calls(lambda: qwyc.read_model(path))
        assert ensemble.n_models == n_trees
        return calls

    assert calls(5000) <= 4.1 * calls(1250)


# ---- what is refused -------------------------------------------------------------------------


def refused():
    X, y = make_data()
    small = {"n_estimators": 2, **QUIET}
    yield (
        "_lambda makes no decision",
        lgb.LGBMClassifier(objective="cross_entropy_lambda", **small).fit(X, y),
    )
    yield "linear_tree", lgb.LGBMClassifier(linear_tree=True, **small).fit(X[:, :1], y)
    yield (
        "of custom makes no decision",
        lgb.LGBMClassifier(objective=lambda t, p: (p - t, np.ones_like(p)), **small).fit(X, y),
    )
    yield "not fitted", lgb.LGBMClassifier()
    yield "pred_early_stop", lgb.LGBMClassifier(pred_early_stop=True, **small).fit(X, y)
    yield "no trees", lgb.Booster({"objective": "binary", **QUIET}, lgb.Dataset(X, y))


def test_other_models_are_refused(tmp_path):
    for message, model in refused():
        with pytest.raises(ModelError, match=message):
            qwyc.read_model(model)
        only_live = ("not fitted", "pred_early_stop")
        if message not in only_live and "makes no decision" not in message:
            booster = model if isinstance(model, lgb.Booster) else model.booster_
            booster.save_model(tmp_path / "m.txt")
            with pytest.raises(ModelError, match=message) as caught:
                qwyc.read_model(tmp_path / "m.txt")
            assert str(tmp_path / "m.txt") in str(caught.value)


def replaced_line(key, value):
    def apply(text):
        line = next(line for line in text.split("\n") if line.startswith(f"{key}="))
        return text.replace(line, f"{key}={value}", 1)

    return apply


DAMAGE = {
    "cut off": lambda text: text.split("\nend of trees")[0],
    "is cut off": lambda text: text.split("\nend of parameters")[0],
    "should have 2 trees but holds 5": replaced_line("tree_sizes", "1 2"),
    "has 6 features but names 1": replaced_line("feature_names", "a"),
    "'max_feature_idx' is missing": lambda text: text.replace("max_feature_idx=", "other="),
    "threshold has too many or too few": replaced_line("threshold", "1 2"),
    "leaf_value has too many or too few": replaced_line("leaf_value", "1 2"),
    "no leaves": replaced_line("num_leaves", "0"),
    "child out of range": replaced_line("left_child", "0 0 0 0 0 0"),
    "a child is out of range": replaced_line("left_child", "9999999999 0 0 0 0 0"),
    "feature out of range": replaced_line("split_feature", "6 6 6 6 6 6"),
    "NaN": replaced_line("threshold", "nan nan nan nan nan nan"),
    "not finite": replaced_line("leaf_value", "1 1 1 inf 1 1 1"),
    "decision_type is not known": replaced_line("decision_type", "14 14 14 14 14 14"),
    "category sets do not fit": replaced_line("cat_boundaries", "0 99"),
    "damaged": replaced_line("cat_threshold", "99999999999"),
    "sigmoid's factor": replaced_line("objective", "binary sigmoid:-1"),
    "is damaged": replaced_line("num_class", "one"),
    "the LightGBM model is damaged": lambda text: text + "pandas_categorical:[[\n",
    "something else than categories": lambda text: text.replace(
        "pandas_categorical:", "pandas_categorical:[[[1]]] x"
    ).replace(" xnull", ""),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_damaged_documents(tmp_path, small_lightgbm, message):
    text = small_lightgbm.booster_.model_to_string()
    changed = DAMAGE[message](text)
    assert changed != text
    path = written(tmp_path / "m.txt", changed)
    with pytest.raises(ModelError, match=message) as caught:
        qwyc.read_model(path)
    assert str(caught.value).startswith(str(path))


def test_category_codes_past_2_to_24_are_refused():
    rng = np.random.default_rng(0)
    codes = rng.choice([1, 2, 3, 2**24 + 5], 500)
    model = lgb.LGBMClassifier(n_estimators=2, max_cat_to_onehot=100, **QUIET)
    model.fit(codes[:, None], (codes > 9) ^ (rng.random(500) < 0.1), categorical_feature=[0])
    with pytest.raises(ModelError, match="16777216"):
        qwyc.read_model(model)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\x80\x04\x95 pickle", "expected a LightGBM model"),
        (b'{"name": "tree"}', "expected a LightGBM model"),
        (b"tree\n", "cut off"),
        (b"tree\nversion=v4\n\nend of trees\n", "'num_class' is missing"),
        (b"tree\n\xff\xfe=\x00\nend of trees\n", "missing"),
    ],
)
def test_foreign_files(tmp_path, content, message):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelError, match=message) as caught:
        importer.read_file(tmp_path / "m")
    assert str(tmp_path / "m") in str(caught.value)


def test_damaged_files_are_errors_or_sound_models(tmp_path):
    frame, y = make_frame()
    model = lgb.LGBMClassifier(n_estimators=2, num_leaves=5, min_data_per_group=5, **QUIET)
    content = model.fit(frame, y).booster_.model_to_string().encode()
    end = content.index(b"parameters:")
    copies = damaged(content, np.random.default_rng(0), end, changed=600)
    outcomes = {read_or_refuse(importer, tmp_path / "m.txt", copy) for copy in copies}
    assert outcomes == {"refused", "read"}


def test_sniffing(small_lightgbm):
    assert importer.looks_like(small_lightgbm.booster_.model_to_string().encode()[:512])
    for head in (b"", b"tree", b"treeline=3", b'{"learner": {}}', b"\x80\x04tree"):
        assert not importer.looks_like(head)
    assert importer.is_live(small_lightgbm)
    assert importer.is_live(small_lightgbm.booster_)
    assert not importer.is_live("model.txt")
