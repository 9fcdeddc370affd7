"""The command line as a user starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest

import qwyc
from commands import command_line
from qwyc.cli import demo as demo_command


def run(*arguments, cwd=None):
    return subprocess.run(
        command_line(*arguments),
        capture_output=True,
        text=True,
        cwd=cwd,
    )


def test_help_and_version():
    for arguments in ([], ["--help"]):
        page = run(*arguments)
        assert page.returncode == 0
        assert "demo" in page.stdout
        assert "Exit codes" in page.stdout
    assert run("--version").stdout == f"qwyc {qwyc.__version__}\n"


def test_python_runs_it_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "qwyc", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"qwyc {qwyc.__version__}\n")
    wrong = subprocess.run([sys.executable, "-m", "qwyc", "no"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_every_page_has_the_exit_codes_and_shells_complete():
    for command in (
        "optimize",
        "recertify",
        "predict",
        "inspect",
        "verify",
        "bench",
        "demo",
        "reproduce",
    ):
        page = run(command, "--help").stdout
        assert "Exit codes" in page
        assert "--json" in page
        assert "bool" not in page  # a flag takes no value
    page = run("--help").stdout
    assert "--install-completion" in page
    assert "bool" not in page


def test_the_shell_completes_it():
    # The shell that runs the tests does not matter.
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = subprocess.run(
        command_line("--show-completion", "bash"), env=environment, capture_output=True, text=True
    )
    assert "complete -o default -F _qwyc_completion qwyc" in script.stdout


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
        "With 95% confidence",
    ):
        assert words in done.stdout


def test_the_demo_writes_a_classifier_and_a_picture(demo):
    _, folder = demo
    fast = qwyc.load(folder / "demo.qwyc")
    assert fast.policy.n_models == 500
    assert fast.certificate.how == "held-out"
    assert fast.certificate.upper_bound <= 0.005
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--alpha", "7"], "alpha is a share"),
        (["demo", "--output", "missing/folder/demo.qwyc"], "missing/folder"),
        (["demo", "--picture", "missing/folder/demo.png"], "missing/folder"),
        (["demo", "--picture", "demo.xyz"], "must be a .png"),
        (["demo", "--alpha", "lots"], "alpha"),
        (["nothing"], "No such command 'nothing'. See: qwyc --help"),
        (["predict"], "Missing argument 'FILE'. See: qwyc predict --help"),
        (["predict", "a", "b", "--colour"], "--colour"),
    ],
)
def test_wrong_input_is_one_message_and_exit_code_2(arguments, message, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_demo_names_the_packages_that_are_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_command, "find_spec", lambda name: None)
    with pytest.raises(
        qwyc.MissingDependencyError, match=r"xgboost, sklearn, matplotlib: pip install "
    ):
        demo_command.run_demo(None, 0.005, 0.95, tmp_path / "a.qwyc", tmp_path / "a.png")


def test_nothing_is_said_to_be_on_a_package_index_that_is_not():
    """qwyc is installed from a clone. A package index may have a package of the same name."""
    for path in Path(qwyc.__file__).parent.rglob("*.py"):
        assert "install qwyc" not in path.read_text(), path
        assert "install 'qwyc" not in path.read_text(), path


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(9000, 5)), columns=list("abcde"))
    X["f"] = np.where(rng.random(9000) < 0.1, None, rng.choice(["x", "y"], 9000))
    frame = X.assign(f=X["f"].astype("category"))
    y = (X["a"] + X["b"] * X["c"] + (X["f"] == "x") > 0).to_numpy()
    model = lightgbm.LGBMClassifier(n_estimators=60, verbose=-1).fit(frame[:3000], y[:3000])
    qwyc.optimize(model, frame[3000:6000], alpha=0.02).save(folder / "m.qwyc")
    X[6000:].to_csv(folder / "new.csv", index=False)
    X[6000:6010].to_csv(folder / "few.csv", index=False)
    frame[6000:].to_parquet(folder / "new.parquet")
    frame[6000:].reset_index(drop=True).to_feather(folder / "new.feather")
    X[6000:].drop(columns="c").to_csv(folder / "short.csv", index=False)
    model.booster_.save_model(folder / "m.txt")
    model.booster_.save_model(folder / "short.txt", num_iteration=50)
    (folder / "junk.parquet").write_bytes(b"junk")
    return folder


@pytest.mark.parametrize("name", ["new.csv", "new.parquet", "new.feather"])
def test_verify_passes_on_fresh_rows(saved, name):
    done = run("verify", "m.qwyc", name, cwd=saved)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("PASS: ")
    assert "by base models taken" in done.stdout
    assert "For comparison" in done.stdout


def test_verify_compares_with_the_model_file(saved):
    done = run("verify", "m.qwyc", "new.csv", "--model", "m.txt", cwd=saved)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equal those of m.txt, as lightgbm itself gives them" in done.stdout
    done = run("verify", "m.qwyc", "new.csv", "--model", "short.txt", cwd=saved)
    assert done.returncode == 1
    assert done.stdout.startswith("FAIL: row ")
    assert "was not made from short.txt" in done.stdout


def test_verify_fails_where_it_must(saved):
    done = run("verify", "m.qwyc", "new.csv", "--alpha", "0.0001", cwd=saved)
    assert done.returncode == 1
    assert done.stdout.startswith("FAIL: ")
    done = run("verify", "m.qwyc", "few.csv", "--alpha", "0.0001", cwd=saved)
    assert done.returncode == 3
    assert done.stdout.startswith("UNDECIDED: ")
    assert "at least 29,956 are needed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.qwyc", "new.csv"], "none.qwyc: No such file"),
        (["m.qwyc", "none.csv"], "none.csv: no such file"),
        (["m.qwyc", "."], "give files of one format"),
        (["new.csv", "new.csv"], "new.csv is a CSV file; a .qwyc file was expected"),
        (["m.qwyc", "m.qwyc"], "m.qwyc is a .qwyc file; rows were expected"),
        (["m.qwyc", "junk.parquet"], "cannot read junk.parquet as parquet"),
        (["m.qwyc", "short.csv"], "'c'"),
        (["m.qwyc", "new.csv", "--alpha", "3"], "alpha is a share"),
    ],
)
def test_verify_says_what_is_wrong(saved, arguments, message):
    done = run("verify", *arguments, cwd=saved)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_reproduce_runs_from_the_command_line(tmp_path):
    done = run("reproduce", "adult", "--reduced", "-o", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "here").iterdir()}
    assert {"points.csv", "report.md", "accuracy.png", "differences-adult.png"} <= names
    unknown = run("reproduce", "iris", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "iris" in unknown.stderr


def test_recertify_writes_a_classifier_for_other_rows(saved, tmp_path):
    target = tmp_path / "again.qwyc"
    done = run("recertify", "m.qwyc", "new.csv", "-o", target, "--alpha", "0.01", cwd=saved)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Wrote {target}." in done.stdout
    again = qwyc.load(target)
    rows = pd.read_parquet(saved / "new.parquet")
    here = qwyc.recertify(qwyc.load(saved / "m.qwyc"), rows, alpha=0.01)
    assert again.certificate == here.certificate
    assert again.certificate.rows == 3000
    np.testing.assert_array_equal(again.predict(rows), here.predict(rows))
    done = run("recertify", "m.qwyc", "new.csv", "-o", target, "--json", cwd=saved)
    assert json.loads(done.stdout)["certificate"]["alpha"] == 0.02  # the alpha of the file


def test_recertify_may_write_to_the_file_it_reads(saved, tmp_path):
    target = tmp_path / "m.qwyc"
    target.write_bytes((saved / "m.qwyc").read_bytes())
    done = run("recertify", target, saved / "new.csv", "-o", target)
    assert done.returncode == 0, done.stderr
    assert qwyc.load(target).certificate.rows == 3000


def test_recertify_leaves_the_file_where_it_cannot(saved, tmp_path):
    target = tmp_path / "again.qwyc"
    target.write_bytes(b"before")
    done = run("recertify", "m.qwyc", "new.csv", "-o", target, "--alpha", "0.0001", cwd=saved)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "needs at least 29,956 certifying rows; there are 3,000" in done.stderr
    assert target.read_bytes() == b"before"


def test_a_rare_class_is_noted_in_one_line(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6000, 3)), columns=list("abc"))
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(X[:3000], X["a"][:3000] > 2.6)
    model.booster_.save_model(tmp_path / "m.txt")
    X[3000:].to_csv(tmp_path / "rows.csv", index=False)
    done = run("optimize", "m.txt", "rows.csv", "--alpha", "0.02", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "qwyc: warning: up to 100% of the rows that the full ensemble puts in class 1 (the positive one)"
    )
    assert "Wrote m.qwyc." in done.stdout


def test_what_comes_on_standard_input_is_not_replaced(saved, tmp_path):
    mine = tmp_path / "rows.csv"
    mine.write_bytes((saved / "new.csv").read_bytes())
    before = mine.read_bytes()
    with mine.open("rb") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "qwyc", "predict", saved / "m.qwyc", "-", "-o", mine],
            stdin=stream,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2
    assert "the command reads this file" in done.stderr
    assert mine.read_bytes() == before


@pytest.mark.parametrize("evaluation", ["quit", "full"])
def test_whether_rows_quit_can_be_requested(evaluation, tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 3))
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    model.fit(X[:1000], X[:1000, 0] > 0).booster_.save_model(str(tmp_path / "m.txt"))
    pd.DataFrame(X[1000:], columns=["a", "b", "c"]).to_csv(tmp_path / "s.csv", index=False)
    arguments = ("m.txt", "s.csv", "--alpha", "0.02", "--evaluation", evaluation)
    done = run("optimize", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(run("inspect", "m.qwyc", "--json", cwd=tmp_path).stdout)
    assert facts["evaluation_decided_by"] == "request"
    assert (facts["quits"] == "never") == (evaluation == "full")
    assert ("as requested" in facts["why"]) == (evaluation == "full")


@pytest.mark.parametrize(("trees", "quits"), [(40, "both"), (2, "never")])
def test_whether_rows_quit_follows_from_the_cost_model(trees, quits, tmp_path):
    X = np.random.default_rng(0).normal(size=(4000, 3))
    model = lightgbm.LGBMClassifier(n_estimators=trees, num_leaves=3, verbose=-1, n_jobs=1)
    model.fit(X[:1000], X[:1000, 0] + X[:1000, 1] > 0)
    model.booster_.save_model(str(tmp_path / "m.txt"))
    pd.DataFrame(X[1000:], columns=["a", "b", "c"]).to_csv(tmp_path / "s.csv", index=False)
    arguments = ("optimize", "m.txt", "s.csv", "--alpha", "0.02")
    for options in (("-o", "0.qwyc"), ("-o", "1.qwyc", "--evaluation", "model")):
        done = run(*arguments, *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "0.qwyc").read_bytes() == (tmp_path / "1.qwyc").read_bytes()
    facts = json.loads(run("inspect", "0.qwyc", "--json", cwd=tmp_path).stdout)
    assert facts["evaluation_decided_by"] == "model"
    assert facts["quits"] == quits
    assert ("by the cost model" in facts["why"]) == (quits == "never")


def test_times_decide_only_where_that_is_requested(tmp_path):
    X = np.random.default_rng(0).normal(size=(4000, 3))
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    model.fit(X[:1000], X[:1000, 0] > 0).booster_.save_model(str(tmp_path / "m.txt"))
    pd.DataFrame(X[1000:], columns=["a", "b", "c"]).to_csv(tmp_path / "s.csv", index=False)
    arguments = ("m.txt", "s.csv", "--alpha", "0.02", "--evaluation", "measured")
    done = run("optimize", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(run("inspect", "m.qwyc", "--json", cwd=tmp_path).stdout)
    assert facts["evaluation_decided_by"] == "measurement"


def test_limits_by_class_add_up(saved):
    done = run("verify", "m.qwyc", "new.csv", "--by-class", "True=0.9", "--by-class", "False=0.0001",
               "--json", cwd=saved)  # fmt: skip
    assert json.loads(done.stdout)["by_class"] == {"negative": 0.0001, "positive": 0.9}
    for given, said in (
        (["True=0.1", "True=0.2"], "names 'True' twice"),
        (["True"], "must be a label and a share"),
        (["maybe=0.1"], "the classes are False, True"),
    ):
        options = [part for text in given for part in ("--by-class", text)]
        done = run("verify", "m.qwyc", "new.csv", *options, cwd=saved)
        assert done.returncode == 2
        assert said in done.stderr
