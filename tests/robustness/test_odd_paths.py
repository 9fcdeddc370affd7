"""Paths that cannot be ones, and things that are no files: errors of qwyc for every reader and writer."""

import os
import threading

import pytest

import qwyc
from commands import run
from fuzz.corpus import classifier

WRONG = ["a\0b", "\ud800", "x" * 5000, "y" * 300, ".", "/", "/dev/null", "/dev/full"]


@pytest.mark.parametrize("path", WRONG, ids=[ascii(path)[:12] for path in WRONG])
def test_wrong_paths(path):
    for read in (
        qwyc.load,
        qwyc.read_model,
        lambda path: qwyc.Monitor.load(path, classifier()),
        lambda path: qwyc.optimize(path, [[0.0]]),
        classifier().save,
        qwyc.Monitor(classifier()).save,
    ):
        with pytest.raises(qwyc.QwycError):
            read(path)


def test_a_pipe_is_no_file(tmp_path):
    """Readers do not wait for more than is written, and writers leave a pipe alone."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(qwyc.ArtifactError, match="device"):
        classifier().save(path)
    for read in (qwyc.load, qwyc.read_model):

        def write(content=b"x" * 1000):
            with path.open("wb") as file:
                file.write(content)

        writer = threading.Thread(target=write)
        writer.start()
        with pytest.raises(qwyc.QwycError):
            read(path)
        writer.join(30)
        assert not writer.is_alive()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_device_as_an_output(tmp_path):
    classifier().save(tmp_path / "fast.qwyc")
    (tmp_path / "rows.csv").write_text("f0,f1,f2\n1,2,3\n")
    done = run("predict", tmp_path / "fast.qwyc", tmp_path / "rows.csv", "-o", "/dev/full")
    assert done.returncode == 2
    assert b"cannot write /dev/full: No space left on device" in done.stderr


def test_a_link_to_an_output_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.qwyc"
    link.symlink_to("folder/real.qwyc")
    classifier().save(link)
    assert link.is_symlink()
    assert qwyc.load(tmp_path / "folder" / "real.qwyc").policy.n_models == 8
    assert os.listdir(tmp_path / "folder") == ["real.qwyc"]
