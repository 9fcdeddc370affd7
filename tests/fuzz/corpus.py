"""The files that are mutated: tiny models of each library, a classifier, and tables of a few rows."""

import io
import json
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

N = 300


@cache
def tables():
    """Rows with two numeric columns and one of categories, rows of numbers alone, and labels."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(N, 3)).astype(np.float32)
    frame = pd.DataFrame(
        {"a": numbers[:, 0], "b": numbers[:, 1], "c": pd.Categorical(rng.choice(list("xyz"), N))}
    )
    label = (numbers[:, 0] + (frame["c"] == "x") > 0.3).astype(int).to_numpy()
    return frame, numbers, label


def _saved(save, suffix):
    """What a library writes to a file of this name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{suffix}"
        save(str(path))
        return path.read_bytes()


def xgboost_files(suffix):
    """Two classes with categories, three classes, and values by the dart booster."""
    import xgboost as xgb

    frame, numbers, y = tables()
    small = {"n_estimators": 3, "max_depth": 2}
    binary = xgb.XGBClassifier(enable_categorical=True, max_cat_to_onehot=1, **small)
    many = xgb.XGBClassifier(**small).fit(numbers, y + (numbers[:, 1] > 1))
    dart = xgb.XGBRegressor(booster="dart", **small).fit(numbers, numbers[:, 0])
    models = [binary.fit(frame, y), many, dart]
    return [_saved(model.save_model, suffix) for model in models]


def lightgbm_files():
    """The same by LightGBM."""
    import lightgbm as lgb

    frame, numbers, y = tables()
    small = {"n_estimators": 3, "num_leaves": 4, "min_child_samples": 5, "verbose": -1}
    models = [
        lgb.LGBMClassifier(**small, min_data_per_group=1, cat_smooth=0).fit(frame, y),
        lgb.LGBMClassifier(**small).fit(numbers, y + (numbers[:, 1] > 1)),
        lgb.LGBMRegressor(**small).fit(numbers, numbers[:, 0]),
    ]
    return [_saved(model.booster_.save_model, ".txt") for model in models]


def catboost_files(kind):
    """The same by CatBoost: statistics, combinations, and trees of any shape."""
    import catboost as cb

    frame, numbers, y = tables()
    frame = frame.assign(c=frame["c"].astype(str), d=np.resize(list("pqrst"), N))
    small = {"iterations": 3, "depth": 2, "verbose": 0, "thread_count": 1, "random_seed": 0}
    small["allow_writing_files"] = False
    combined = {"cat_features": ["c", "d"], "one_hot_max_size": 1}
    models = [
        cb.CatBoostClassifier(**small, **combined).fit(frame, y),
        cb.CatBoostClassifier(**small, loss_function="MultiClass").fit(
            numbers, y + (numbers[:, 1] > 1)
        ),
        cb.CatBoostRegressor(**small, grow_policy="Lossguide").fit(numbers, numbers[:, 0]),
    ]
    if kind == "json":
        models.pop()  # CatBoost does not write trees of any shape as JSON
    return [_saved(lambda path, m=m: m.save_model(path, format=kind), f".{kind}") for m in models]


def treelite_files():
    """Checkpoints of XGBoost's models."""
    import treelite
    import xgboost as xgb

    _, numbers, y = tables()
    small = {"n_estimators": 3, "max_depth": 2}
    models = [
        xgb.XGBClassifier(**small).fit(numbers, y),
        xgb.XGBClassifier(**small).fit(numbers, y + (numbers[:, 1] > 1)),
    ]
    return [
        _saved(treelite.frontend.from_xgboost(model.get_booster()).serialize, ".tl")
        for model in models
    ]


def onnx_files():
    """Scikit-learn's models, converted."""
    import skl2onnx
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

    _, numbers, y = tables()
    small = {"n_estimators": 3, "max_depth": 2, "random_state": 0}
    models = [
        RandomForestClassifier(**small).fit(numbers, y),
        RandomForestClassifier(**small).fit(numbers, y + (numbers[:, 1] > 1)),
        GradientBoostingRegressor(**small).fit(numbers, numbers[:, 0]),
    ]
    return [skl2onnx.to_onnx(model, numbers[:1]).SerializeToString() for model in models]


@cache
def classifier():
    """A classifier that quits early, with the evidence for other alphas."""
    import xgboost as xgb

    import qwyc

    rng = np.random.default_rng(1)
    X = rng.normal(size=(2500, 3)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = xgb.XGBClassifier(n_estimators=8, max_depth=2).fit(X[:500], y[:500])
    return qwyc.optimize(model, X[500:], alpha=0.05)


def qwyc_files():
    """A classifier, and models of two classes, of three and with combinations of categories."""
    import qwyc

    made = [_saved(classifier().save, ".qwyc")]
    for content in (xgboost_files(".json")[0], xgboost_files(".json")[1], catboost_files("cbm")[0]):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(content)
            made.append(_saved(qwyc.read_model(path).save, ".qwyc"))
    return made


def monitor_files():
    """A monitor that has seen rows."""
    import qwyc

    monitor = qwyc.Monitor(classifier(), rate=0.5)
    monitor.predict(np.random.default_rng(2).normal(size=(2000, 3)).astype(np.float32))
    return [_saved(monitor.save, ".json")]


def table_files(kind):
    """A table with columns of numbers, text, dictionaries and nulls."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    _, numbers, _ = tables()
    rows = 40
    columns = {f"f{j}": pa.array(numbers[:rows, j]) for j in range(3)}
    columns["f1"] = pa.array([None if i % 7 == 0 else float(i) for i in range(rows)])
    columns["kept"] = pa.array([f"text {i}" * (i % 3) for i in range(rows)])
    columns["coded"] = pa.array(list("xyxz") * (rows // 4)).dictionary_encode()
    table = pa.table(columns)
    sink = io.BytesIO()
    if kind == "csv":
        return [table.to_pandas().to_csv(index=False).encode()]
    if kind == "parquet":
        parquet.write_table(table, sink, row_group_size=16)
        return [sink.getvalue()]
    found = []
    for new in (ipc.new_file, ipc.new_stream):
        sink = io.BytesIO()
        with new(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=16)
        found.append(sink.getvalue())
    return found


def json_of(content):
    """A JSON file without spaces, as mutations of its values are small then."""
    return json.dumps(json.loads(content), separators=(",", ":")).encode()


MAKERS = {
    "xgboost-json": lambda: [json_of(c) for c in xgboost_files(".json")],
    "xgboost-ubjson": lambda: xgboost_files(".ubj"),
    "lightgbm": lightgbm_files,
    "catboost-cbm": lambda: catboost_files("cbm"),
    "catboost-json": lambda: [json_of(c) for c in catboost_files("json")],
    "treelite": treelite_files,
    "onnx": onnx_files,
    "qwyc": qwyc_files,
    "qwyc-resealed": qwyc_files,
    "monitor": monitor_files,
    "csv": lambda: table_files("csv"),
    "parquet": lambda: table_files("parquet"),
    "arrow": lambda: table_files("arrow"),
}


@cache
def corpus(target):
    """The files that the mutations of a target start from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MAKERS[target]()
