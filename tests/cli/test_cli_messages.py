"""Messages on the command line name its options, and name a file once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import qwyc
from commands import one_line, run
from qwyc.cli.printing import as_commands
from qwyc.runtime.wording import number_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("messages")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6000, 3)), columns=list("abc"))
    y = (X.sum(axis=1) > 0.5).to_numpy()
    model = xgb.XGBClassifier(n_estimators=20, max_depth=2, n_jobs=1).fit(X[:2000], y[:2000])
    qwyc.optimize(model, X[2000:4000], alpha=0.03).save(made / "m.qwyc")
    model.save_model(made / "m.json")
    X[4000:].round(0).assign(g=1).to_csv(made / "rows.csv", index=False)
    return made


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("pass repeats='independent'", "pass --repeats independent"),
        ('or use unseen="flag".', "or use --unseen flag."),
        ("none: decide(X, unseen='flag') says why", "none: qwyc predict --unseen flag says why"),
        ("pass by_class={label: share}", "pass --by-class LABEL=SHARE"),
        ("alpha=0 proves; leave out by_class", "--alpha 0 proves; leave out --by-class"),
        ("Pass max_rows=5000 to draw", "Pass --max-rows 5000 to draw"),
        ("it is 0.3; pass threshold=", "it is 0.3; pass --threshold"),
        ("leave model out, or", "leave out --model, or"),
        ("are measured on rows: pass X", "are measured on rows: pass DATA"),
        ("row 3 of X, which", "row 3 of DATA, which"),
        ("order_by must be known for every row", "--order-by must be known for every row"),
        # Names of files and columns stay as they are.
        ("column 'X' holds 'by_class'", "column 'X' holds 'by_class'"),
        ("cannot read order_by.csv: no such file", "cannot read order_by.csv: no such file"),
        ("cannot read /data/by_class/X: none", "cannot read /data/by_class/X: none"),
        ("cannot read day/alpha=0.csv", "cannot read day/alpha=0.csv"),
        ("the groups of X.csv", "the groups of X.csv"),
        ("a model of 3 groups", "a model of 3 groups"),
    ],
)  # fmt: skip
def test_options_are_those_of_commands(message, expected):
    assert as_commands(message) == expected


def test_rows_that_are_all_refused(folder, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("a,b,c\nold,1,2\n")
    message = one_line(run("verify", folder / "m.qwyc", path, "--unseen", "flag"))
    assert "refuses a value in the only row, so none is left to verify" in message
    assert message.endswith(": qwyc predict --unseen flag says why\n")


def test_notes_name_options(folder):
    done = run("verify", folder / "m.qwyc", folder / "rows.csv")
    assert "pass --repeats independent" in done.stderr.decode()


@pytest.mark.parametrize("command", ["predict", "verify", "recertify", "optimize"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"PAR1...."])
def test_a_file_is_named_once(folder, tmp_path, command, content):
    path = tmp_path / "zero.csv"
    path.write_bytes(content)
    model = "m.json" if command == "optimize" else "m.qwyc"
    more = [] if command in ("predict", "verify") else ["-o", tmp_path / "new.qwyc"]
    message = one_line(run(command, folder / model, path, *more))
    assert message.startswith("qwyc: cannot read ")
    assert message.count("zero.csv") == 1


def test_one_is_singular(folder):
    assert number_of(1, "group") == "1 group"
    assert number_of(0, "group") == "0 groups"
    assert number_of(2000, "more row") == "2,000 more rows"
    done = run("verify", folder / "m.qwyc", folder / "rows.csv", "--groups", "g")
    assert "The rows come from 1 group, the largest of 2,000 rows" in " ".join(
        done.stdout.decode().split()
    )
