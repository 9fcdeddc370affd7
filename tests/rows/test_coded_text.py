"""Text of Parquet files that is stored as codes is read as dictionaries, and decided as text is."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from pyarrow import parquet

import qwyc
from commands import run
from qwyc.rows.files import parquet_reader
from qwyc.rows.files.reader import TableFiles, read_table

N = 5000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A classifier, and the same rows in files that store text in different ways."""
    folder = tmp_path_factory.mktemp("coded")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=N), "c": rng.choice(["red", "green", "blue"], N)})
    y = (X["x"] + (X["c"] == "red") > 0.5).astype(int)
    known = X.astype({"c": "category"})
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, enable_categorical=True)
    qwyc.optimize(model.fit(known[:1000], y[:1000]), known[1000:], alpha=0.1).save(
        folder / "m.qwyc"
    )
    table = pa.table({"x": X["x"].to_numpy(), "c": X["c"].tolist(), "id": np.arange(N)})
    parquet.write_table(table, folder / "coded.parquet", row_group_size=2000)
    parquet.write_table(table, folder / "plain.parquet", use_dictionary=False)
    large = table.set_column(1, "c", table["c"].cast(pa.large_string()))
    parquet.write_table(large, folder / "large.parquet")
    return folder, table


def features(folder, *names, keep=()):
    schema = qwyc.load(folder / "m.qwyc").ensemble.schema
    return read_table([str(folder / name) for name in names], schema, keep=keep)


def test_only_text_that_is_stored_as_codes_is_a_dictionary(made):
    folder, table = made
    for name, coded in (("coded", True), ("large", True), ("plain", False)):
        rows, _ = features(folder, f"{name}.parquet")
        assert pa.types.is_dictionary(rows["c"].type) == coded
        assert rows["c"].to_pylist() == table["c"].to_pylist()
        assert rows["x"].equals(table["x"])


def test_kept_columns_are_as_they_are_in_the_file(made):
    folder, table = made
    rows, kept = features(folder, "coded.parquet", keep=["c", "id"])
    assert kept["c"].type == rows["c"].type == pa.string()
    assert kept["c"].equals(table["c"])


@pytest.mark.parametrize("names", [("coded", "plain"), ("plain", "coded")])
def test_files_that_store_text_in_different_ways(made, names):
    folder, table = made
    rows, _ = features(folder, *(f"{name}.parquet" for name in names))
    assert rows["c"].to_pylist() == table["c"].to_pylist() * 2


def test_decisions_are_the_same(made, monkeypatch):
    monkeypatch.setattr(parquet_reader, "BATCH_ROWS", 777)
    folder, table = made
    expected = qwyc.load(folder / "m.qwyc").decide(table)
    for name in ("coded", "plain", "large"):
        out = folder / f"{name}-out.parquet"
        run("predict", folder / "m.qwyc", folder / f"{name}.parquet", "-o", out, "--keep", "id")
        found = parquet.read_table(out)
        np.testing.assert_array_equal(found["label"].to_numpy(), expected.label)
        np.testing.assert_array_equal(found["steps"].to_numpy(), expected.steps)
        np.testing.assert_array_equal(found["score"].to_numpy(), expected.score)
        assert found["complete"].to_pylist() == expected.complete.tolist()
        assert found.schema.types[1:] == [pa.int64(), pa.int32(), pa.float64(), pa.bool_()]


def test_an_unknown_text_is_found_in_its_row(made):
    folder, table = made
    strange = pa.array([*table["c"].to_pylist()[:-1], "pink"])
    changed = table.set_column(1, "c", strange)
    parquet.write_table(changed, folder / "strange.parquet", row_group_size=2000)
    fast = qwyc.load(folder / "m.qwyc")
    files = TableFiles([str(folder / "strange.parquet")], fast.ensemble.schema)
    rows = pa.Table.from_batches([batch.features for batch in files.batches()])
    assert pa.types.is_dictionary(rows["c"].type)
    with pytest.raises(qwyc.InputError, match=rf"row {N - 1:,}.*'pink'"):
        fast.decide(rows)
    reason = fast.decide(rows, unseen="flag").reason
    assert "pink" in reason[-1]
    assert reason[:-1].tolist() == [None] * (N - 1)


def test_predict_does_not_import_pandas(made):
    folder, _ = made
    code = """
import sys
from qwyc.cli import main
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
assert "pandas" not in sys.modules
"""
    given = ["predict", "m.qwyc", "coded.parquet", "-o", "out.parquet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *given], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
