"""The code of the page about sparse rows runs as it stands, and its outputs are the library's own."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "sparse.md"


def test_the_page_runs():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    found = {}
    exec(compile(block, str(PAGE), "exec"), found)
    np.testing.assert_array_equal(found["exact"], found["model"].predict_proba(found["X"]))
    np.testing.assert_array_equal(found["of_texts"], found["labels"])
    assert np.mean(found["labels"] != found["model"].predict(found["X"])) < 0.03
