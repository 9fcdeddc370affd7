"""Spark Connect, where the session is a client of a server: in a process of its own, since a process
has Spark in one of the two ways."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import numpy as np, pandas as pd, xgboost, qwyc
from pyspark.sql import SparkSession
from qwyc import distributed

rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=(6000, 4)), columns=list("abcd"))
y = (frame["a"] + frame["b"] * frame["c"] > 0).astype(int)
model = xgboost.XGBClassifier(n_estimators=30, max_depth=3).fit(frame[:2000], y[:2000])
fast = qwyc.optimize(model, frame[2000:4000], alpha=0.03, progress=False)
new = frame[4000:].assign(id=np.arange(2000)).reset_index(drop=True)
want = fast.decide(new)

spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__
data = spark.createDataFrame(new).repartition(3)
found = distributed.decide(fast, data, keep=["id"]).toPandas().sort_values("id")
for name in ("label", "steps", "score", "complete"):
    assert found[name].tolist() == getattr(want, name).tolist()
label = data.select("id", distributed.column(fast).alias("label")).toPandas().sort_values("id")
assert label["label"].tolist() == want.label.tolist()
assert qwyc.verify(fast, data) == qwyc.verify(fast, new)
here = qwyc.recertify(fast, new)
digest = here.certificate.recertified[:8]  # of rows in memory
assert str(qwyc.recertify(fast, data)) == str(here).replace(f", digest {digest}", "")
assert qwyc.optimize(model, data, alpha=0.03, progress=False).certificate.how == "held-out"
spark.createDataFrame(new).write.parquet("in")
stream = spark.readStream.schema(data.schema).parquet("in")
streamed = distributed.decide(fast, stream, keep=["id"])
writer = streamed.writeStream.format("parquet").option("checkpointLocation", "checkpoint")
writer.trigger(availableNow=True).start("out").awaitTermination(120)
found = pd.read_parquet("out").sort_values("id")
assert found["score"].tolist() == want.score.tolist()
print("connected")
"""


def test_a_client_decides_and_verifies_as_one_machine_does(tmp_path):
    script = Path(tmp_path / "client.py")
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},  # not whatever is on the path
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "connected" in done.stdout
