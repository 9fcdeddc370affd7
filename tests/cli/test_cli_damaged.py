"""Data files that say something untrue of themselves: one sentence and exit code 2, whatever they hold."""

import io
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import xgboost
from pyarrow import ipc, parquet

import qwyc
from commands import one_line, run

ROWS = 777  # in a batch; no other number of the files' metadata
NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = xgboost.XGBClassifier(n_estimators=10).fit(X, X[:, 0] > 0)
    model.get_booster().feature_names = NAMES
    qwyc.optimize(model, alpha=0).save(folder / "m.qwyc")
    sample = np.random.default_rng(1).normal(size=(1000, 3))
    qwyc.optimize(model.get_booster(), sample, alpha=0.1, progress=False).save(folder / "s.qwyc")
    return folder


def batch(seed=0, **more):
    rng = np.random.default_rng(seed)
    names = pa.array([f"row {i}" for i in range(ROWS)])
    columns = {name: rng.normal(size=ROWS) for name in NAMES}
    return pa.RecordBatch.from_pydict({**columns, "id": names, **more})


def written(*batches, stream):
    """An IPC file or stream, as bytes."""
    out = io.BytesIO()
    with (ipc.new_stream if stream else ipc.new_file)(out, batches[0].schema) as writer:
        for rows in batches:
            writer.write(rows)
    return out.getvalue()


def claiming(rows, *batches, stream, after=0):
    """Content whose metadata claim so many rows, of each batch after the first `after` and of each of its
    columns: they are the only int64 that are ROWS."""
    batches = batches or (batch(),)
    parts = written(*batches, stream=stream).split(struct.pack("<q", ROWS))
    each = 1 + len(batches[0].schema)
    assert len(parts) == 1 + len(batches) * each
    first = parts[: after * each + 1]
    return struct.pack("<q", rows).join(
        [struct.pack("<q", ROWS).join(first), *parts[after * each + 1 :]]
    )


def in_file(folder, content, *more, name="rows.arrow"):
    (folder / name).write_bytes(content)
    return run("predict", "m.qwyc", name, *more, cwd=folder)


def on_standard_input(folder, content, *more):
    """In a process of its own, since standard input is a pipe there."""
    code = [sys.executable, "-c", "from qwyc.cli import main; main()"]
    command = [*code, "predict", "m.qwyc", "-", "--format", "arrow", *more]
    return subprocess.run(command, cwd=folder, input=content, capture_output=True, check=False)


def test_what_is_not_damaged_is_read(folder):
    """The files that the other tests damage."""
    expected = in_file(folder, written(batch(), stream=False), "--keep", "id").stdout
    assert expected.count(b"\n") == 1 + ROWS
    for stream in (False, True):
        content = written(batch(), stream=stream)
        assert in_file(folder, content, "--keep", "id").stdout == expected
        assert on_standard_input(folder, content, "--keep", "id").stdout == expected
        assert claiming(ROWS, stream=stream) == content


@pytest.mark.parametrize("rows", [4_000, 50_000, 2**40])
@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_more_rows_than_there_are(folder, stream, rows):
    content = claiming(rows, stream=stream)
    said = "as arrow: batch 0, which starts at row 0, is damaged"
    for name in ("rows.arrow", "rows.feather", "rows.ipc"):
        text = one_line(in_file(folder, content, name=name))
        assert text.startswith(f"qwyc: cannot read {name} {said}")
        assert f"length {rows}: expected at least" in text
    assert f"cannot read standard input {said}" in one_line(on_standard_input(folder, content))


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_a_batch_and_its_columns_that_claim_different_lengths(folder, stream):
    content = written(batch(), stream=stream)
    at = content.index(struct.pack("<q", ROWS))
    for rows in (776, 778, 4_000, -1):
        changed = bytearray(content)
        changed[at : at + 8] = struct.pack("<q", rows)
        text = one_line(in_file(folder, bytes(changed)))
        assert "batch 0, which starts at row 0, is damaged" in text


def test_a_later_batch_is_named_and_nothing_is_left(folder):
    for stream in (False, True):
        content = claiming(4_000, batch(), batch(1), batch(2), stream=stream, after=1)
        text = one_line(in_file(folder, content, "-o", "out.csv"))
        assert "batch 1, which starts at row 777, is damaged" in text
        assert not (folder / "out.csv").exists()


def offsets_changed(content, kind, change):
    """Content whose text column "id" has other offsets: those of its first five rows are found by value."""
    old = np.arange(0, 30, 5, dtype=kind)  # "row 0", "row 1" and so on
    assert content.count(old.tobytes()) == 1
    return content.replace(old.tobytes(), change(old.copy()).astype(kind).tobytes())


@pytest.mark.parametrize("kind", [np.int32, np.int64], ids=["string", "large string"])
@pytest.mark.parametrize("offset", [2**30, -5, 1])
@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_text_that_starts_and_ends_somewhere_else(folder, stream, offset, kind):
    rows = batch()
    if kind == np.int64:
        rows = batch(id=rows["id"].cast(pa.large_string()))

    def change(offsets):
        offsets[3] = offset
        return offsets

    content = offsets_changed(written(rows, stream=stream), kind, change)
    refused = one_line(in_file(folder, content, "--keep", "id"))
    assert "batch 0, which starts at row 0, is damaged" in refused
    decided = in_file(folder, written(rows, stream=stream)).stdout
    assert in_file(folder, content).stdout == decided  # the column is not read
    if offset > 0 and kind == np.int32:
        assert "damaged" in one_line(on_standard_input(folder, content, "--keep", "id"))


def test_codes_past_the_end_of_their_dictionary(folder):
    codes = pa.array(np.tile([0, 1, 0], 259), pa.int16())
    colours = pa.DictionaryArray.from_arrays(codes, pa.array(["red", "green"]))
    old, new = (np.tile([0, code, 0], 259).astype(np.int16).tobytes() for code in (1, 9_999))
    for stream in (False, True):
        content = written(batch(colour=colours), stream=stream)
        assert content.count(old) == 1
        text = one_line(in_file(folder, content.replace(old, new), "--keep", "colour"))
        assert "is damaged" in text


def test_text_in_parquet_that_is_not_utf8(folder):
    lengths = pa.py_buffer(np.arange(0, 2 * ROWS + 2, 2, dtype=np.int32).tobytes())
    text = pa.py_buffer(b"ab" * (ROWS - 1) + b"\xff\xfe")
    rows = batch(id=pa.Array.from_buffers(pa.string(), ROWS, [None, lengths, text]))
    parquet.write_table(pa.Table.from_batches([rows]), folder / "rows.parquet")
    text = one_line(run("predict", "m.qwyc", "rows.parquet", "--keep", "id", cwd=folder))
    assert "cannot read rows.parquet as parquet: batch 0" in text
    assert "UTF8" in text
    assert run("predict", "m.qwyc", "rows.parquet", cwd=folder).returncode == 0  # not read


def test_other_commands_refuse_them_too(folder):
    (folder / "rows.arrow").write_bytes(claiming(50_000, stream=False))
    for command in (["verify"], ["recertify", "-o", "n.qwyc"], ["bench"]):
        text = one_line(run(*command, "s.qwyc", "rows.arrow", cwd=folder))
        assert not (folder / "n.qwyc").exists()
        assert "batch 0, which starts at row 0, is damaged" in text
