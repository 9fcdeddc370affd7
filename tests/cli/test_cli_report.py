"""`qwyc report`: what it writes, from which columns, and what it refuses."""

import numpy as np
import pytest

import qwyc
from commands import one_line, run
from reports import Page, two_classes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    fast, X, y = two_classes()
    fast.save(folder / "m.qwyc")
    table = X.assign(truth=y, region=np.where(np.arange(len(X)) % 3 == 0, "<north>", "south"))
    table.to_parquet(folder / "new.parquet")
    table.to_csv(folder / "new.csv", index=False)
    return folder


def test_it_writes_what_python_writes(folder):
    done = run("report", "m.qwyc", "--data", "new.parquet", "--labels", "truth", "--slice", "region",
               "--no-speed", "-o", "r.html", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"Wrote r.html.\n"
    _, X, y = two_classes()
    region = np.where(np.arange(len(X)) % 3 == 0, "<north>", "south")
    qwyc.load(folder / "m.qwyc").report(
        folder / "p.html", X, y, slices={"region": region}, speed=False, progress=False
    )
    assert (folder / "r.html").read_bytes() == (folder / "p.html").read_bytes()


def test_rows_are_an_argument_as_in_other_commands(folder):
    for given, name in ((("new.parquet",), "a.html"), (("--data", "new.parquet"), "b.html")):
        done = run("report", "m.qwyc", *given, "--no-speed", "-o", name, cwd=folder)
        assert done.returncode == 0, done.stderr
    assert (folder / "a.html").read_bytes() == (folder / "b.html").read_bytes()
    assert Page((folder / "a.html").read_bytes()).facts["rows"]["given"] == 3000


def test_labels_of_a_csv_are_text(folder):
    done = run("report", "m.qwyc", "--data", "new.csv", "--labels", "truth", "--max-rows", "500",
               "--no-speed", "-o", "csv.html", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = Page((folder / "csv.html").read_bytes()).facts["rows"]
    assert (rows["rows"], rows["given"]) == (500, 3000)
    assert rows["full_accuracy"] > 0.8


def test_the_default_name(folder):
    (folder / "m.html").unlink(missing_ok=True)
    for _ in range(2):  # a report may be replaced
        done = run("report", "m.qwyc", cwd=folder)
        assert (done.returncode, done.stdout) == (0, b"Wrote m.html.\n")
    assert Page((folder / "m.html").read_bytes()).facts["rows"] is None
    (folder / "m.html").write_text("<p>my own page</p>")
    message = one_line(run("report", "m.qwyc", cwd=folder))
    assert "m.html exists and is not a report of qwyc" in message
    assert (folder / "m.html").read_text() == "<p>my own page</p>"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--labels", "truth"), "--labels names a column of DATA, but there is no DATA"),
        (("--slice", "region"), "--slice names a column of DATA, but there is no DATA"),
        (("--data", "new.parquet", "--labels", "trut"), "no column 'trut', which --labels names"),
        (
            ("--data", "new.parquet", "--labels", "truth", "--slice", "regio"),
            "no column 'regio', which --labels or --slice names",
        ),
        (("--data", "new.parquet", "--labels", "region"), "new.parquet: labels must be those"),
        (("--data", "new.parquet", "-o", "new.parquet"), "the command reads this file"),
        (("-o", "m.qwyc"), "the command reads this file"),
        (("-o", "no/r.html"), "there is no folder no"),
        (("-o", "-"), "a file is needed"),
        (("--data", "absent.csv"), "absent.csv"),
        (("--data", "new.parquet", "--max-rows", "0"), "--max-rows must be"),
    ],
)
def test_refusals_are_one_line(folder, arguments, message):
    options = () if "-o" in arguments else ("-o", "refused.html")
    assert message in one_line(run("report", "m.qwyc", *arguments, *options, cwd=folder))
    assert not (folder / "refused.html").exists()
