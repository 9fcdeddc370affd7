"""The code of the page about exact evaluation runs as it stands, and its outputs are the libraries' own."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "exact.md"


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    found = {}
    exec(compile(block, str(PAGE), "exec"), found)
    own = found["prices"].predict(found["X"])
    np.testing.assert_array_equal(found["values"], own)
    np.testing.assert_array_equal(found["again"], own)
    assert found["one"] == own[0]
    np.testing.assert_array_equal(found["probabilities"], found["risk"].predict_proba(found["X"]))
