"""verify and recertify on files give what they give on a table in memory, to the last digit."""

import io
import json
import subprocess
import sys
import warnings
from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from pyarrow import ipc

import qwyc
from commands import command_line, one_line, run
from qwyc.promise import compare
from qwyc.rows.files import arrow_reader, csv_reader, parquet_reader

TRAINED, SAMPLE, FRESH = 4000, 9000, 5000  # rows
COSTS = np.linspace(0.1, 0.9, 30)  # sums of them depend on the order in their last bits


def draw(n, seed):
    """Rows with text, and a column that the model does not use."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    frame["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], n))
    frame["unused"] = 1.0
    signal = frame["a"] * frame["b"] + (frame["colour"] == "red") + rng.normal(size=n) / 2
    return frame, (signal > 0.3).astype(int)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exact")
    X, y = draw(TRAINED, 0)
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=3, enable_categorical=True).fit(X, y)
    model.save_model(folder / "model.json")
    fast = qwyc.optimize(model, draw(SAMPLE, 1)[0], alpha=0.02, costs=COSTS, progress=False)
    fast.save(folder / "m.qwyc")
    return folder


@pytest.fixture(autouse=True)
def _odd_sizes(monkeypatch):
    """Many blocks and batches, of sizes that do not divide each other."""
    monkeypatch.setattr(compare, "BLOCK", 700)
    monkeypatch.setattr(csv_reader, "HEAD", 5000)
    monkeypatch.setattr(csv_reader, "BLOCK", 9001)
    monkeypatch.setattr(parquet_reader, "BATCH_ROWS", 97)
    monkeypatch.setattr(arrow_reader, "BATCH_ROWS", 61)


def arrow_stream(frame, path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=331)


WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False, float_format="%.17g"),
    "csv.gz": lambda frame, path: frame.to_csv(path, index=False, float_format="%.17g"),
    "parquet": lambda frame, path: frame.to_parquet(path, row_group_size=1234),
    "feather": lambda frame, path: frame.to_feather(path, chunksize=331),
    "arrow": arrow_stream,
}


def parts(frame, folder, kind):
    """The rows in files of several sizes."""
    folder.mkdir()
    for i, rows in enumerate(np.split(np.arange(len(frame)), [1, 1500, 1500, 4013])):
        if len(rows):
            WRITERS[kind](frame.iloc[rows], folder / f"part-{i}.{kind}")
    return folder


def in_memory(folder, frame, **options):
    """What `qwyc verify --json` prints, by the functions that take tables."""
    fast = qwyc.load(folder / "m.qwyc")
    verification = qwyc.verify(fast, frame, **options)
    return json.loads(
        json.dumps(
            verification.as_dict() | {"diagnosis": asdict(qwyc.diagnose(fast, frame))},
            default=lambda value: value.item(),
        )
    )


def on_files(folder, data, *options):
    done = run("verify", "m.qwyc", data, *options, "--json", cwd=folder)
    assert done.returncode in (0, 1, 3), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", WRITERS)
def test_verify_equals_a_table_in_memory(made, tmp_path, kind):
    X = draw(FRESH, 2)[0]
    data = parts(X, tmp_path / "parts", kind)
    expected = in_memory(made, X)
    assert expected["diagnosis"]["overall"]["rows"] == FRESH
    assert on_files(made, data) == expected
    assert on_files(made, data, "--alpha", "0.5") == in_memory(made, X, alpha=0.5)


@pytest.mark.parametrize("kind", WRITERS)
def test_recertify_writes_the_same_file(made, tmp_path, kind):
    X = draw(FRESH, 2)[0]
    data = parts(X, tmp_path / "parts", kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qwyc.QwycWarning)
        qwyc.recertify(qwyc.load(made / "m.qwyc"), X).save(tmp_path / "memory.qwyc")
    done = run("recertify", "m.qwyc", data, "-o", tmp_path / "files.qwyc", cwd=made)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "files.qwyc").read_bytes() == (tmp_path / "memory.qwyc").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_groups_that_come_with_the_rows(made, tmp_path, kind):
    X = draw(FRESH, 2)[0]
    who = np.random.default_rng(5).integers(0, 800, FRESH)
    data = parts(X.assign(who=who), tmp_path / "parts", kind)
    expected = in_memory(made, X, groups=who.astype(str))
    assert expected["groups"] == len(set(who))
    assert on_files(made, data, "--groups", "who") == expected
    fast = qwyc.load(made / "m.qwyc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qwyc.QwycWarning)
        qwyc.recertify(fast, X, alpha=0.2, groups=who).save(tmp_path / "memory.qwyc")
    options = ["--alpha", "0.2", "--groups", "who", "-o", tmp_path / "files.qwyc"]
    assert run("recertify", "m.qwyc", data, *options, cwd=made).returncode == 0
    assert (tmp_path / "files.qwyc").read_bytes() == (tmp_path / "memory.qwyc").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_row_without_a_group(made, tmp_path, kind):
    X = draw(FRESH, 2)[0]
    who = pd.Series([f"group {i // 3}" for i in range(FRESH)], dtype=object)
    who[[4321, 4400]] = None
    data = parts(X.assign(who=who), tmp_path / "parts", kind)
    message = one_line(run("verify", "m.qwyc", data, "--groups", "who", cwd=made))
    assert "groups must be known for every row; row 4321 has none: None" in message


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_copies_in_other_files_are_found(made, tmp_path, kind):
    X = pd.concat([draw(2000, 2)[0]] * 3, ignore_index=True)
    data = parts(X, tmp_path / "parts", kind)
    with pytest.warns(qwyc.QwycWarning, match="6,000 of 6,000 rows equal another row"):
        expected = in_memory(made, X)
    assert expected["groups"] == 2000
    done = run("verify", "m.qwyc", data, "--json", cwd=made)
    assert json.loads(done.stdout) == expected
    assert (
        b"warning: 6,000 of 6,000 rows equal another row; there are 2,000 distinct" in done.stderr
    )
    with pytest.warns(qwyc.QwycWarning, match="6,000 of 6,000 rows equal another row"):
        again = qwyc.recertify(qwyc.load(made / "m.qwyc"), X, alpha=0.1)
    again.save(tmp_path / "memory.qwyc")
    options = ["--alpha", "0.1", "-o", tmp_path / "files.qwyc"]
    assert run("recertify", "m.qwyc", data, *options, cwd=made).returncode == 0
    assert (tmp_path / "files.qwyc").read_bytes() == (tmp_path / "memory.qwyc").read_bytes()
    expected = in_memory(made, X, repeats="independent")
    assert on_files(made, data, "--repeats", "independent") == expected


@pytest.mark.parametrize("command", ["verify", "recertify"])
def test_rows_that_a_classifier_was_made_from(made, tmp_path, command):
    X = pd.concat([draw(FRESH, 2)[0], draw(SAMPLE, 1)[0][:1500]], ignore_index=True)
    data = parts(X, tmp_path / "parts", "csv")
    with pytest.raises(qwyc.InputError) as expected:
        getattr(qwyc, command)(qwyc.load(made / "m.qwyc"), X)
    out = ["-o", tmp_path / "n.qwyc"] if command == "recertify" else []
    message = one_line(run(command, "m.qwyc", data, *out, cwd=made))
    first = data / "part-0.csv"
    assert message == f"qwyc: {first} and 3 more files: {expected.value}\n"
    assert not (tmp_path / "n.qwyc").exists()


@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_a_pipe(made, tmp_path, kind):
    """In a process of its own, where standard input is a pipe."""
    X = draw(FRESH, 2)[0]
    path = tmp_path / f"all.{kind}"
    WRITERS[kind](X, path)
    done = subprocess.run(
        command_line("verify", "m.qwyc", "-", "--format", kind, "--json"),
        input=path.read_bytes(),
        capture_output=True,
        cwd=made,
    )
    assert json.loads(done.stdout) == in_memory(made, X)
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
def test_a_named_pipe(made, tmp_path):
    X = draw(FRESH, 2)[0]
    WRITERS["csv"](X, tmp_path / "all.csv")
    shell = f"exec {' '.join(map(repr, command_line('verify', 'm.qwyc')))}"
    done = subprocess.run(
        ["bash", "-c", f"{shell} <(cat {tmp_path}/all.csv) --format csv --json"],
        capture_output=True,
        cwd=made,
    )
    assert json.loads(done.stdout) == in_memory(made, X), done.stderr


def test_with_the_model_itself(made, tmp_path):
    X = draw(FRESH, 2)[0]
    data = parts(X, tmp_path / "parts", "parquet")
    expected = in_memory(made, X, model=made / "model.json")
    assert expected["parity"].startswith("All 5,000 full decisions and scores equal those of")
    assert on_files(made, data, "--model", made / "model.json") == expected


@pytest.mark.parametrize("change", ["start", "tree"])
def test_a_model_that_differs_is_named_alike(made, tmp_path, change):
    """The row, the numbers and the reason, whichever file the rows are in."""
    X = draw(FRESH, 2)[0]
    document = json.loads((made / "model.json").read_text())
    learner = document["learner"]
    if change == "start":
        start = learner["learner_model_param"]["base_score"].strip("[]")
        learner["learner_model_param"]["base_score"] = f"[{0.9 * float(start):.6E}]"
    else:  # a leaf that few rows reach
        tree = learner["gradient_booster"]["model"]["trees"][20]
        tree["base_weights"][-1] += 0.5
        tree["split_conditions"][-1] += 0.5
    (tmp_path / "other.json").write_text(json.dumps(document))
    data = parts(X, tmp_path / "parts", "parquet")
    with pytest.raises(qwyc.ParityError) as expected:
        qwyc.verify(qwyc.load(made / "m.qwyc"), X, model=tmp_path / "other.json")
    done = run("verify", "m.qwyc", data, "--model", tmp_path / "other.json", cwd=made)
    assert done.returncode == 1
    assert done.stdout.decode() == f"FAIL: {expected.value}\n"


def test_text_equals_too(made, tmp_path):
    X = draw(FRESH, 2)[0]
    fast = qwyc.load(made / "m.qwyc")
    data = parts(X, tmp_path / "parts", "feather")
    done = run("verify", "m.qwyc", data, cwd=made)
    assert done.stdout.decode() == f"{qwyc.verify(fast, X)}\n{qwyc.diagnose(fast, X)}\n"


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("command", ["verify", "recertify"])
def test_files_without_rows(made, tmp_path, kind, command):
    data = tmp_path / f"none.{kind}"
    WRITERS[kind](draw(10, 2)[0][:0], data)
    out = ["-o", tmp_path / "n.qwyc"] if command == "recertify" else []
    message = one_line(run(command, "m.qwyc", data, *out, cwd=made))
    assert f"{data} has no rows; rows like those to come are needed" in message


def test_standard_input(made):
    X = draw(FRESH, 2)[0]
    text = io.BytesIO()
    X.to_csv(text, index=False, float_format="%.17g")
    done = run("verify", "m.qwyc", "-", "--json", cwd=made, stdin=text.getvalue())
    assert json.loads(done.stdout) == in_memory(made, X)
