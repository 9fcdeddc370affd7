"""--unseen of predict, verify and recertify: values in files that the model refuses."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import xgboost as xgb

import qwyc
from commands import one_line, run
from qwyc.rows.files import csv_reader
from qwyc.rows.files.reader import TableFiles

JOBS = ("clerk", "cook", "pilot")


def make_rows(seed, rows=5000):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows).astype(float),
            "job": pd.Categorical(rng.choice(JOBS, rows), categories=list(JOBS)),
            "pay": rng.normal(size=rows).round(3),
            "own": rng.random(rows) < 0.5,
        }
    )
    label = (frame["age"] / 30 + frame["pay"] + (frame["job"] == "cook") > 2.2).to_numpy()
    return frame, label.astype(int)


def make_odd(seed, rows=5000, odd=60):
    """Rows as CSV holds them, and which of them are odd: an unknown job, or text for a number."""
    frame = make_rows(seed, rows)[0].astype({"job": object})
    frame["own"] = frame["own"].map({True: "true", False: "false"})
    chosen = np.random.default_rng(seed).permutation(np.arange(100, rows))[:odd]
    frame["age"] = frame["age"].astype(object)
    for k, i in enumerate(chosen):
        if k % 3 == 0:
            frame.loc[i, "job"] = "astro, naut"
        elif k % 3 == 1:
            frame.loc[i, "age"] = ["old", 'a "quoted" age', "12 years", "1,5"][k % 4]
        else:
            frame.loc[i, "own"] = "maybe"
    wrong = np.zeros(rows, bool)
    wrong[chosen] = True
    return frame.assign(id=np.arange(rows)), wrong


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("unseen")
    model = xgb.XGBClassifier(n_estimators=30, max_depth=3, enable_categorical=True, n_jobs=1)
    fast = qwyc.optimize(model.fit(*make_rows(0)), make_rows(1)[0], alpha=0.03)
    fast.save(made / "m.qwyc")
    frame, wrong = make_odd(2)
    frame.to_csv(made / "odd.csv", index=False)
    frame[~wrong].to_csv(made / "good.csv", index=False)
    return made


WRONG = make_odd(2)[1]


@pytest.fixture(params=[None, 2000])
def blocks(request, monkeypatch):
    """Files in one batch, and in many."""
    if request.param:
        monkeypatch.setattr(csv_reader, "BLOCK", request.param)
        monkeypatch.setattr(csv_reader, "HEAD", request.param)


def table_of(done):
    assert done.returncode == 0, done.stderr.decode()
    return pd.read_csv(io.BytesIO(done.stdout))


def test_predict_stops_at_the_first_odd_value_by_default(folder, blocks):
    for more in ([], ["--unseen", "error"]):
        done = run("predict", folder / "m.qwyc", folder / "odd.csv", *more)
        assert done.returncode == 2
        assert f"{folder / 'odd.csv'}: row " in done.stderr.decode()


def test_predict_flag(folder, blocks):
    done = run("predict", folder / "m.qwyc", folder / "odd.csv", "--keep", "id", "--unseen", "flag")
    found = table_of(done)
    assert list(found) == ["id", "label", "steps", "score", "complete", "reason"]
    assert found["reason"].notna().tolist() == WRONG.tolist()
    for name in ("label", "steps", "score", "complete"):
        assert found[name].isna().tolist() == WRONG.tolist()
    good = table_of(run("predict", folder / "m.qwyc", folder / "good.csv", "--keep", "id"))
    left = found[~WRONG].reset_index(drop=True)
    assert left["id"].tolist() == good["id"].tolist()
    for name in ("label", "steps", "score"):
        assert left[name].tolist() == good[name].tolist()
    reasons = set(found["reason"].dropna())
    assert "column 'job': 'astro, naut' is not a category that the model knows" in reasons
    assert "column 'age': 'old' is not a number" in reasons
    assert "column 'age': 'a \"quoted\" age' is not a number" in reasons
    assert "column 'own': 'maybe' is neither true nor false, as the first rows are" in reasons


@pytest.mark.parametrize("unseen", ["flag", "missing"])
def test_predict_keeps_the_text_of_odd_values(folder, blocks, unseen, tmp_path):
    keep = ["--keep", "age", "--keep", "id", "--keep", "own", "--unseen", unseen]
    done = run("predict", folder / "m.qwyc", folder / "odd.csv", *keep)
    assert done.returncode == 0, done.stderr.decode()
    found = pd.read_csv(io.BytesIO(done.stdout), dtype=str)
    given = pd.read_csv(folder / "odd.csv", dtype=str)
    for name in ("age", "id", "own"):
        assert found[name].tolist() == given[name].tolist()
    empty = run("predict", folder / "m.qwyc", "-", *keep, stdin=b"age,job,pay,own,id\n")
    assert empty.stdout.decode().splitlines() == [done.stdout.decode().splitlines()[0]]
    out = tmp_path / "kept.parquet"
    assert run("predict", folder / "m.qwyc", "-", *keep, "-o", out, stdin=b"age,job,pay,own,id\n")
    assert pa.parquet.read_schema(out).field("age").type == pa.string()


def test_predict_flag_with_a_prefix_and_json(folder):
    out = folder / "flagged.parquet"
    arguments = ["--unseen", "flag", "--prefix", "q_", "-o", out, "--json"]
    done = run("predict", folder / "m.qwyc", folder / "odd.csv", *arguments)
    facts = json.loads(done.stdout)
    assert facts["rows"] == 5000
    assert facts["not_decided"] == WRONG.sum()
    found = pa.parquet.read_table(out)
    assert found.column_names == ["q_label", "q_steps", "q_score", "q_complete", "q_reason"]
    assert found["q_label"].null_count == found["q_score"].null_count == WRONG.sum()
    assert found["q_reason"].type == pa.string()
    steps = np.array(found["q_steps"].drop_null())
    assert facts["mean_models"] == pytest.approx(steps.mean())
    clash = one_line(
        run(
            "predict", folder / "m.qwyc", folder / "odd.csv", "--keep", "reason", "--unseen", "flag"
        )
    )
    assert "--keep reason: predict adds a column of the same name" in clash


def test_predict_missing(folder, blocks, tmp_path):
    frame, _ = make_odd(2)
    frame.loc[~frame["job"].isin(JOBS), "job"] = None
    frame["age"] = pd.to_numeric(frame["age"], errors="coerce")
    frame.loc[frame["own"] == "maybe", "own"] = None
    frame.to_csv(tmp_path / "replaced.csv", index=False)
    done = run("predict", folder / "m.qwyc", folder / "odd.csv", "--unseen", "missing")
    expected = run("predict", folder / "m.qwyc", tmp_path / "replaced.csv")
    assert done.returncode == expected.returncode == 0, done.stderr.decode()
    assert done.stdout == expected.stdout


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_other_formats(folder, tmp_path, kind):
    frame = make_odd(2)[0].drop(columns=["own", "age"])
    frame = frame.assign(age=make_rows(2)[0]["age"], own=make_rows(2)[0]["own"])
    path = tmp_path / f"odd.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(pa.Table.from_pandas(frame), path, row_group_size=700)
    else:
        pa.feather.write_feather(pa.Table.from_pandas(frame), str(path), chunksize=700)
    found = table_of(run("predict", folder / "m.qwyc", path, "--unseen", "flag"))
    assert found["reason"].notna().tolist() == (frame["job"] == "astro, naut").tolist()


def test_a_wrong_row_stays_an_error(folder, tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("age,job,pay,own\n30,cook,1,true\nold,cook,2,true\n40,cook\n")
    message = one_line(run("predict", folder / "m.qwyc", path, "--unseen", "flag"))
    assert "short.csv: row 2 has 2 values, but the header has 4" in message
    path.write_text("age,job,own\nold,cook,true\n")
    message = one_line(run("predict", folder / "m.qwyc", path, "--unseen", "flag"))
    assert "has no column 'pay'" in message


def test_files_of_odd_rows_alone(folder, tmp_path):
    path = tmp_path / "all.csv"
    path.write_text("age,job,pay,own\nold,cook,1,true\n30,nobody,x,true\n")
    found = table_of(run("predict", folder / "m.qwyc", path, "--unseen", "flag"))
    assert found["reason"].tolist() == [
        "column 'age': 'old' is not a number",
        "column 'job': 'nobody' is not a category that the model knows; "
        "column 'pay': 'x' is not a number",
    ]
    assert found["label"].isna().all()
    message = one_line(run("verify", folder / "m.qwyc", path, "--unseen", "flag"))
    assert "in each of the 2 rows" in message


def test_verify(folder, blocks):
    one_line(run("verify", folder / "m.qwyc", folder / "odd.csv"))
    found = run("verify", folder / "m.qwyc", folder / "odd.csv", "--unseen", "flag", "--json")
    alone = run("verify", folder / "m.qwyc", folder / "good.csv", "--json")
    assert found.returncode == alone.returncode != 2, found.stderr.decode()
    facts = json.loads(found.stdout)
    assert facts["left_out"] == WRONG.sum()
    assert facts == json.loads(alone.stdout) | {"left_out": int(WRONG.sum())}
    text = run("verify", folder / "m.qwyc", folder / "odd.csv", "--unseen", "flag").stdout.decode()
    assert f"Left out, and not part of this result: {WRONG.sum()} rows" in text


def test_verify_by_groups_of_a_column(folder, tmp_path, blocks):
    frame, wrong = make_odd(2)
    frame["id"] //= 3
    frame.to_csv(tmp_path / "odd.csv", index=False)
    frame[~wrong].to_csv(tmp_path / "good.csv", index=False)
    options = ["--groups", "id", "--json"]
    found = run("verify", folder / "m.qwyc", tmp_path / "odd.csv", "--unseen", "flag", *options)
    alone = run("verify", folder / "m.qwyc", tmp_path / "good.csv", *options)
    assert json.loads(found.stdout) == json.loads(alone.stdout) | {"left_out": int(WRONG.sum())}


def test_recertify(folder, tmp_path, blocks):
    one_line(run("recertify", folder / "m.qwyc", folder / "odd.csv", "-o", tmp_path / "a.qwyc"))
    arguments = ["-o", tmp_path / "a.qwyc", "--unseen", "flag"]
    done = run("recertify", folder / "m.qwyc", folder / "odd.csv", *arguments)
    assert done.returncode == 0, done.stderr.decode()
    assert f"{WRONG.sum()} rows with refused values left out" in " ".join(
        done.stdout.decode().split()
    )
    assert run("recertify", folder / "m.qwyc", folder / "good.csv", "-o", tmp_path / "b.qwyc")
    found, alone = (qwyc.load(tmp_path / name).certificate for name in ("a.qwyc", "b.qwyc"))
    assert found.as_dict() == alone.as_dict() | {"left_out": WRONG.sum()}


def test_blocks_of_a_stream_keep_their_odd_values(folder, monkeypatch):
    monkeypatch.setattr(csv_reader, "BLOCK", 3000)
    monkeypatch.setattr(csv_reader, "HEAD", 3000)
    fast = qwyc.load(folder / "m.qwyc")
    for size in (1, 37, 128, 5000, 9000):
        rows = TableFiles([str(folder / "odd.csv")], fast.ensemble.schema, odd=True).blocks(size)
        found = []
        for block in rows:
            found += fast.decide(block, unseen="flag").reason.tolist()
            if size == 1 and len(found) == 400:
                break
        assert [reason is not None for reason in found] == WRONG[: len(found)].tolist()
