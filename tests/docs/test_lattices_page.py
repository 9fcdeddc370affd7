"""The code of docs/lattices.md runs as it stands, in an empty folder."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "lattices.md"


def test_the_code_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert len(blocks) >= 3
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "3 lattices and linear terms, 3 features" in done.stdout
    difference = float(re.search(r"largest difference: (\S+)", done.stdout).group(1))
    assert difference < 1e-4  # NumPy computes in float64, and adds up in another order
    assert "qwyc.Classifier: 60 lattices, 14 features" in done.stdout
    accuracy = float(re.search(r"accuracy: (\S+)", done.stdout).group(1))
    assert accuracy > 0.83  # always the larger class: 0.764
    assert (tmp_path / "adult.qwyc").stat().st_size > 1000
