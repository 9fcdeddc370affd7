"""The code of docs/duckdb.md runs as it stands, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "duckdb.md"

CHECK = """
want = fast.decide(test)
first = decided.order("id").fetchall()
assert [row[1:] for row in first] == list(
    zip(*(getattr(want, name).tolist() for name in ("label", "steps", "score", "complete")))
)
assert [label for _, label in found.order("id").fetchall()] == want.label.tolist()
assert len(rows.fetchall()) == (test["age"] > 40).sum()
assert len(pd.read_parquet("decided.parquet")) == 16281
found = shares.order("id").df()
assert found["proba_1"].tolist() == full.predict_proba(test)[:, 1].tolist()
assert sure.certificate.rows == 16281 and len(some) == 1000
print("as in memory")
"""


def test_the_code_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert len(blocks) >= 4
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join([*blocks, CHECK])],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[:3000]
    assert "as in memory" in done.stdout
    assert "rows are decided differently from the full ensemble" in done.stdout
