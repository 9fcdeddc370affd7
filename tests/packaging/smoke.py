"""An installed qwyc decides as it should: python smoke.py, with nothing but qwyc and what it needs.

Loads files of tests/golden/, decides rows of UCI Adult, which the package ships, and compares labels and
steps with those that were kept. `make wheel` and cibuildwheel run it on a wheel in a fresh environment."""

import json
import sys
from pathlib import Path

import numpy as np

import qwyc
from qwyc.datasets import load_adult

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0"
KINDS = ("xgboost", "onnx", "random-forest", "gradient-boosting-paper")  # rows are plain arrays


def check(kind, codes):
    """Raise AssertionError where a file decides differently; returns the mean number of steps."""
    kept = json.loads((GOLDEN / f"{kind}.json").read_text())
    rows = codes if kept["rows"] == "codes" else np.nan_to_num(codes, nan=-1.0)
    fast = qwyc.load(GOLDEN / f"{kind}.qwyc")
    decisions = fast.decide(rows)
    assert decisions.label.tolist() == kept["label"], f"{kind}: labels differ"
    assert decisions.steps.tolist() == kept["steps"], f"{kind}: steps differ"
    assert np.array_equal(fast.predict(rows), decisions.label)
    assert fast.predict_one(rows[0]) == decisions.label[0]
    return decisions.steps.mean()


def main():
    codes = load_adult("test").codes(like=load_adult("train"))[:300]
    means = [f"{kind} {check(kind, codes):.1f}" for kind in KINDS]
    python = sys.version.split()[0]
    print(f"qwyc {qwyc.__version__} on Python {python} decides as it should; steps: {means}")


if __name__ == "__main__":
    main()
