"""The code of docs/distributed.md runs as it stands, in a folder with a model and rows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "distributed.md"

SETTING = """
import numpy as np, pandas as pd, pathlib, qwyc, xgboost
rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=(16000, 4)), columns=list("abcd"))
y = (frame["a"] + frame["b"] * frame["c"] > 0).astype(int)
model = xgboost.XGBClassifier(n_estimators=30, max_depth=3).fit(frame[:4000], y[:4000])
model.save_model("model.json")
qwyc.optimize(model, frame[4000:8000], alpha=0.02, progress=False).save("model.qwyc")
pathlib.Path("today").mkdir()
new = frame[8000:].assign(id=np.arange(8000))
for i in range(4):
    new[2000 * i : 2000 * (i + 1)].to_parquet(f"today/{i}.parquet")
pathlib.Path("yesterday").symlink_to("today")
"""

CHECK = """
want = qwyc.load("model.qwyc")
assert want.certificate.rows == 8000  # certified again
assert labels.filter("fraud = 1").count() == (first := pd.read_parquet("decided"))["label"].sum()
assert work.columns == ["label", "steps", "score", "complete"]
for folder in ("decided-by-ray", "decided-by-dask"):
    there = pd.read_parquet(folder).sort_values("id").reset_index(drop=True)
    assert there.equals(first.sort_values("id").reset_index(drop=True)[list(there.columns)])
assert len(rows) == 1000
own = prices.predict(new[["a", "b", "c"]]).tolist()
assert valued.toPandas().sort_values("id")["value"].tolist() == own
assert values.toPandas().sort_values("id")["price"].tolist() == own
assert shares.columns == ["id", "label", "proba_0", "proba_1"]
print("as one machine")
"""


def test_the_page_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert len(blocks) >= 6
    script = tmp_path / "page.py"
    script.write_text("\n".join([SETTING, *blocks, CHECK]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},  # not whatever is on the path
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "as one machine" in done.stdout
    assert "PASS" in done.stdout or "FAIL" in done.stdout
