"""`qwyc predict` holds a few batches in memory, whatever the size of the file."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import xgboost
from pyarrow import parquet

import qwyc

COLUMNS = 4
ROWS = 400_000  # of the smaller file: more batches than are under way at once

# Prints the peak memory of a command, in KiB. The command's process starts from this one, which is small:
# a process counts what the one that started it held.
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier, and random rows in Parquet: few in small.parquet, eight times as many in the others."""
    folder = tmp_path_factory.mktemp("memory")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, COLUMNS))
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(X, X[:, 0] > 0)
    qwyc.optimize(model, alpha=0).save(folder / "m.qwyc")
    few = pa.table({f"f{i}": rng.normal(size=ROWS) for i in range(COLUMNS)})
    many = pa.concat_tables([few] * 8)
    plain = {"use_dictionary": False, "compression": "none"}
    parquet.write_table(few, folder / "small.parquet", row_group_size=100_000, **plain)
    parquet.write_table(many, folder / "groups.parquet", row_group_size=100_000, **plain)
    parquet.write_table(many, folder / "one_group.parquet", row_group_size=8 * ROWS, **plain)
    assert parquet.ParquetFile(folder / "groups.parquet").num_row_groups == 32
    assert parquet.ParquetFile(folder / "one_group.parquet").num_row_groups == 1
    return folder


def peak_bytes(folder, name):
    code = "from qwyc.cli import main; main()"
    command = [sys.executable, "-c", code, "predict", "m.qwyc", name, "-o", os.devnull]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *command, "--to", "arrow", "--threads", "1"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return 1024 * int(done.stdout.split()[-1])


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize("name", ["groups.parquet", "one_group.parquet"])
def test_memory_does_not_grow_with_a_parquet_file(folder, name):
    small = (folder / "small.parquet").stat().st_size
    more_file = (folder / name).stat().st_size - small
    assert more_file > 80_000_000
    more_memory = peak_bytes(folder, name) - peak_bytes(folder, "small.parquet")
    assert more_memory < more_file / 3
