"""The code of the page about tolerances runs as it stands, and does what it says."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "tolerance.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    found = {}
    exec(compile(block, str(PAGE), "exec"), found)
    new, own = found["new"], found["prices"].predict(found["new"])
    assert np.mean(np.abs(found["values"] - own) > 0.5) < 0.02
    assert found["d"].steps.mean() < 90
    assert found["one"] == found["values"][0]
    probability = found["risk"].predict_proba(new)
    assert np.mean(np.abs(found["probabilities"] - probability)[:, 1] > 0.05) < 0.02
    assert np.mean(found["labels"] == found["risk"].predict(new)) > 0.95
    np.testing.assert_array_equal(found["exact"].predict_proba(new), probability)
    printed = capsys.readouterr().out
    assert "off by more than 0.5" in printed
    assert "PASS" in printed
