"""The command line as a user starts it."""

import subprocess
import sys

import pytest

import qwyc


def run(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", "from qwyc.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
    )


def test_help_and_version():
    assert "demo" in run("--help").stdout
    assert run("--version").stdout == f"qwyc {qwyc.__version__}\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return run("demo", cwd=folder), folder


def test_the_demo_compares_on_the_test_rows(demo):
    done, _ = demo
    assert done.returncode == 0, done.stderr
    for words in (
        "16,281 test rows",
        "base models per row, mean",
        "99th percentile",
        "decisions that differ",
        "accuracy",
        "µs per row",
        "on new",
    ):
        assert words in done.stdout


def test_the_demo_writes_a_classifier_and_a_picture(demo):
    _, folder = demo
    fast = qwyc.load(folder / "demo.qwyc")
    assert fast.policy.n_models == 500
    assert fast.certificate.observed <= 0.005
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--alpha", "7"], "alpha is a share"),
        (["demo", "--output", "missing/folder/demo.qwyc"], "missing/folder"),
        (["demo", "--picture", "missing/folder/demo.png"], "missing/folder"),
        (["demo", "--alpha", "lots"], "alpha"),
        (["nothing"], "nothing"),
    ],
)
def test_wrong_input_is_one_message_and_exit_code_2(arguments, message, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
