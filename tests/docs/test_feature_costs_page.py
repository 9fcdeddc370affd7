"""The code of the page about feature costs runs as it stands, and prints what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "feature-costs.md"


def test_the_page_runs(tmp_path):
    page = PAGE.read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    assert len(blocks) >= 3
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d+\.\d values per row, \d calls of fetch$", done.stdout, flags=re.M)
    assert re.search(r"features needed per row, at a cost of \d+", done.stdout)
    (table,) = re.findall(r"```text\n(.*?)```", page, flags=re.S)
    shown = [re.sub(r"[\d.%]+", "0", line) for line in table.strip("\n").splitlines()]
    printed = [re.sub(r"[\d.%]+", "0", line) for line in done.stdout.splitlines()]
    assert len(shown) > 3
    assert shown[0] in printed  # numbers and names depend on the version of XGBoost
