"""`qwyc optimize --feature-costs`."""

import json

import numpy as np
import pandas as pd
import pytest
import xgboost

import featured
import qwyc
from commands import run
from featured import COSTS, NAMES


@pytest.fixture(scope="module")
def made():
    return featured.model_and_rows()


@pytest.fixture(scope="module")
def fast():
    return featured.classifier()


def test_the_command_takes_them(made, fast, tmp_path):
    model, X = made
    model.save_model(tmp_path / "m.json")
    X[2000:6000].to_parquet(tmp_path / "x.parquet")
    by_name = dict(zip(NAMES, COSTS.tolist(), strict=True))
    for content in (by_name, COSTS.tolist()):
        (tmp_path / "costs.json").write_text(json.dumps(content))
        done = run(
            "optimize", "m.json", "x.parquet", "-o", "f.qwyc", "--alpha", "0.02", "--evaluation",
            "quit", "--feature-costs", "costs.json", cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        made_here = qwyc.load(tmp_path / "f.qwyc")
        np.testing.assert_array_equal(made_here.policy.order, fast.policy.order)
        np.testing.assert_array_equal(made_here.feature_costs, COSTS)
    shown = run("inspect", "f.qwyc", cwd=tmp_path).stdout.decode()
    assert "of 5 features needed per row, at a cost of" in shown
    facts = json.loads(run("inspect", "f.qwyc", "--json", cwd=tmp_path).stdout)
    assert facts["feature_use"]["looked_at"] == 5
    for content, message in (
        ("{", b"is not JSON"),
        ("5", b"must hold an object of column names"),
        ('{"salary": 1}', b"names 'salary'"),
    ):
        (tmp_path / "costs.json").write_text(content)
        wrong = run(
            "optimize", "m.json", "x.parquet", "-o", "g.qwyc", "--feature-costs", "costs.json",
            cwd=tmp_path,
        )  # fmt: skip
        assert wrong.returncode == 2
        assert message in wrong.stderr
        assert wrong.stderr.count(b"\n") == 1
    gone = run("optimize", "m.json", "x.parquet", "--feature-costs", "no.json", cwd=tmp_path)
    assert gone.returncode == 2
    assert b"cannot read no.json" in gone.stderr


def test_the_command_counts_columns_without_names(made, tmp_path):
    rows = made[1].to_numpy()
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=2, n_jobs=1)
    model.fit(rows[:2000], rows[:2000, 0] + rows[:2000, 3] > 0).save_model(tmp_path / "m.json")
    pd.DataFrame(rows[2000:]).to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "costs.json").write_text('{"3": 7}')
    done = run(
        "optimize", "m.json", "x.csv", "-o", "f.qwyc", "--alpha", "0.02", "--feature-costs",
        "costs.json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert qwyc.load(tmp_path / "f.qwyc").feature_costs.tolist() == [0, 0, 0, 7, 0, 0]
