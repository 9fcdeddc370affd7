"""What files can do to the command line: odd columns, escapes in names, links in circles, long messages."""

import json
import os
import random
import stat
import subprocess

import numpy as np
import pyarrow
import pytest

import qwyc
from commands import command_line, run
from fuzz.corpus import classifier
from fuzz.mutate import container
from qwyc.cli.printing import printable
from qwyc.limits import MAX_CSV_HEADER, MAX_MESSAGE
from qwyc.rows.files.csv_blocks import first_row_end
from qwyc.rows.files.csv_dialect import CsvDialect
from qwyc.runtime import output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    classifier().save(folder / "fast.qwyc")
    return folder


def arrow_columns(n):
    import pyarrow as pa

    return {
        "decimal256": pa.array([1] * n, pa.decimal256(50, 2)),
        "map": pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int32())),
        "fixed_binary": pa.array([b"abcd"] * n, pa.binary(4)),
        "interval": pa.array([pa.MonthDayNano([1, 2, 3])] * n, pa.month_day_nano_interval()),
        "union": pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array([1.0] * n)]),
        "struct": pa.array([{"a": 1}] * n),
        "run_ends": pa.RunEndEncodedArray.from_arrays([n], [1.0]),
        "text_view": pa.array(["a"] * n, pa.string_view()),
        "duration": pa.array([1] * n, pa.duration("s")),
    }


@pytest.mark.parametrize("name", arrow_columns(1))
def test_columns_of_odd_types(folder, name):
    import pyarrow as pa
    from pyarrow import ipc

    odd, numbers = arrow_columns(5)[name], pa.array(np.zeros(5))
    path = folder / f"{name}.arrow"
    for columns, options in (
        ({"f0": odd, "f1": numbers, "f2": numbers}, []),
        ({"k": odd, "f0": numbers, "f1": numbers, "f2": numbers}, ["--keep", "k"]),
    ):
        with ipc.new_file(path, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns))
        for out in ("out.csv", "out.parquet"):
            command = ["predict", folder / "fast.qwyc", path, *options, "-o", folder / out]
            done = run(*command)
            assert done.returncode in (0, 2), done.stderr
            assert b"should not happen" not in done.stderr
            assert done.stderr.count(b"\n") == (done.returncode != 0)


def changed(change):
    """The classifier's file with another header, sealed again."""
    import safetensors.numpy

    from qwyc.files.classifier_file import to_bytes

    content = to_bytes(classifier())
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["qwyc"])
    tensors = safetensors.numpy.load(content)
    change(header["body"])
    header["sha256"] = container._digest(header["body"], tensors)
    return safetensors.numpy.save(tensors, metadata={"qwyc": json.dumps(header)})


def test_names_in_files_do_not_reach_the_terminal_as_they_are(folder):
    def change(body):
        body["model"]["source"]["library"] = "\x1b[2J\x1b]0;title\x07\u202exgboost\r\x9b"

    path = folder / "escapes.qwyc"
    path.write_bytes(changed(change))
    done = run("inspect", path)
    assert done.returncode == 0
    assert b"\\x1b[2J" in done.stdout
    text = done.stdout.decode()
    assert not any(mark in text for mark in ("\x1b", "\x07", "\u202e", "\r", "\x9b"))
    missing = run("inspect", folder / "no\x1b[2Jfile\nhere.qwyc")
    assert missing.returncode == 2
    assert b"\x1b" not in missing.stderr
    assert missing.stderr.count(b"\n") == 1


def test_printable_text_keeps_its_lines():
    assert printable("a\n\tb\x00\x7fé") == "a\n\tb\\x00\\x7fé"
    assert printable("\ud800") == "\\ud800"


def test_messages_have_a_length(folder):
    path = folder / "long.csv"
    path.write_text(",".join(f"{'x' * 3000}{i}" for i in range(20)) + "\n")
    done = run("predict", folder / "fast.qwyc", path)
    assert done.returncode == 2
    assert len(done.stderr) < MAX_MESSAGE + 100


def test_a_csv_header_of_more_than_a_megabyte(folder):
    path = folder / "header.csv"
    path.write_text(",".join(f"column{i}" for i in range(120_000)) + "\n1,2,3\n")
    assert path.stat().st_size > MAX_CSV_HEADER
    done = run("predict", folder / "fast.qwyc", path)
    assert done.returncode == 2
    assert b"its header has more than 1,048,576 bytes" in done.stderr


def test_links_in_a_circle(folder):
    (folder / "a.qwyc").symlink_to("b.qwyc")
    (folder / "b.qwyc").symlink_to("a.qwyc")
    for command in (["inspect", "a.qwyc"], ["predict", "fast.qwyc", "a.qwyc"]):
        done = run(*command, cwd=folder)
        assert done.returncode == 2
        assert b"should not happen" not in done.stderr
    with pytest.raises(qwyc.ArtifactError):
        classifier().save(folder / "a.qwyc")


def test_an_unexpected_error_is_no_failed_check(folder, monkeypatch):
    monkeypatch.setattr("qwyc.report.inspection.describe", lambda classifier: 1 // 0)
    done = run("inspect", folder / "fast.qwyc")
    assert done.returncode == 2
    assert b"should not happen (ZeroDivisionError" in done.stderr


def test_too_little_memory_is_one_line(folder, monkeypatch):
    def refuse(classifier):
        raise MemoryError

    monkeypatch.setattr("qwyc.report.inspection.describe", refuse)
    done = run("inspect", folder / "fast.qwyc")
    assert done.returncode == 2
    assert b"not enough memory" in done.stderr


@pytest.mark.parametrize("labels", [[0, float("nan")], ["a\x1b[2J", "b\nc"], ["", "\ud800"]])
def test_odd_class_labels(folder, labels):
    def change(body):
        kind = "<U16" if isinstance(labels[0], str) else "<f8"
        body["model"]["classes"] = {"dtype": kind, "values": labels}

    path = folder / "labels.qwyc"
    path.write_bytes(changed(change))
    (folder / "rows.csv").write_text("f0,f1,f2\n1,2,3\n-1,-2,-3\n")
    for command in (
        ["inspect", path],
        ["predict", path, folder / "rows.csv", "-o", folder / "o.csv"],
    ):
        done = run(*command)
        assert done.returncode in (0, 2)
        assert b"should not happen" not in done.stderr, done.stderr
        assert b"\x1b" not in done.stdout + done.stderr


def test_a_certificate_agrees_with_its_evidence(folder):
    def change(body):
        body["certificate"]["counts"]["differences"] = [0, 0]

    path = folder / "better.qwyc"
    differences = classifier().certificate.counts.differences
    assert sum(differences) > 0
    path.write_bytes(changed(change))
    with pytest.raises(qwyc.ArtifactError, match="count different rows"):
        qwyc.load(path)


@pytest.mark.parametrize("mode", [0o600, 0o640])
@pytest.mark.parametrize("has_name", [False, True])
def test_a_temporary_is_as_private_as_what_it_replaces(tmp_path, monkeypatch, has_name, mode):
    path = tmp_path / "private.qwyc"
    path.write_bytes(b"old")
    path.chmod(mode)
    seen = []
    change = os.fchmod

    def watched(number, to):
        seen.append((stat.S_IMODE(os.fstat(number).st_mode), to))
        return change(number, to)

    monkeypatch.setattr(os, "fchmod", watched)
    if has_name:  # as where files without a name cannot be had
        monkeypatch.setattr(output, "_OPEN_FILES", str(tmp_path / "nowhere"))
    umask = os.umask(0)
    try:
        classifier().save(path)
    finally:
        os.umask(umask)
    assert seen == [(0o600, mode)]  # only its owner could read it while it was written
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert qwyc.load(path).policy.n_models == 8
    assert [p.name for p in tmp_path.iterdir()] == ["private.qwyc"]


def test_long_names_of_outputs(tmp_path):
    path = tmp_path / ("x" * 245 + ".qwyc")
    classifier().save(path)
    assert qwyc.load(path).policy.n_models == 8


def test_a_model_file_that_crashes_its_library(folder, tmp_path, monkeypatch):
    """A file that qwyc reads and whose library dies is one error; the process goes on."""
    from qwyc.importers import probe, xgboost

    path = tmp_path / "model.json"
    path.write_text("{}")
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr(probe, "_CODE", crash)
    with pytest.raises(qwyc.ModelError, match="crashes while it loads the file \\(SIGSEGV\\)"):
        probe.refuse_if_loading_crashes(xgboost.__name__, path)


def test_the_process_ends_with_two(folder):
    """The same in a process of its own, as the exit code is what scripts see."""
    path = folder / "union.arrow"
    done = subprocess.run(
        command_line("verify", folder / "fast.qwyc", folder / "no.csv"), capture_output=True
    )
    assert done.returncode == 2, path


def test_saving_does_not_change_the_umask_of_other_threads(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was set"))
        with output.replacing(tmp_path / "new") as file:
            file.write(b"x")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_header_of_many_columns_is_read_without_looking_for_types(folder, monkeypatch):
    """Arrow takes seconds and 800 MB for the types of 100,000 columns that nobody asked for."""
    path = folder / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(100_000)) + "\n" + "1," * 99_999 + "1\n")
    refused = lambda *_, **__: pytest.fail("Arrow was asked")  # noqa: E731
    monkeypatch.setattr(CsvDialect, "read", refused)
    done = run("predict", folder / "fast.qwyc", path)
    assert done.returncode == 2
    assert b"has 100000 columns; the model was trained on 3" in done.stderr


def test_names_of_columns_are_those_that_arrow_reads():
    dialect, rng = CsvDialect(",", ()), random.Random(1)
    compared = 0
    for _ in range(400):
        text = "".join(rng.choices("ab,,\" \n\r'é\t", k=rng.randrange(1, 14))).encode() + b"\n"
        header = text[: first_row_end(text, ",") or len(text)]
        try:
            expected = dialect.read(header).schema.names
        except pyarrow.ArrowInvalid:
            with pytest.raises(pyarrow.ArrowInvalid):
                dialect.names(header)
            continue
        assert dialect.names(header) == expected, header
        compared += 1
    assert compared > 100
