"""Commands hold a few batches in memory, whatever the size of the file, and at most so many bytes for each
row as docs/cli.md says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from pyarrow import feather, parquet

import qwyc

COLUMNS = 24
ROWS = 300_000  # of the smaller file: more batches than are under way at once
TIMES = 4  # as many rows are in the other files
SLACK = 50_000_000  # bytes by which the peak of a process differs from run to run
BYTES_A_ROW = {"predict": 0, "verify": 50, "recertify": 50}  # as docs/cli.md has them
BYTES_WITH_GROUPS = 100

# Prints the peak memory of a command, in KiB. The command's process starts from this one, which is small:
# a process counts what the one that started it held.
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=sys.stderr)
assert done.returncode in (0, 1, 3), done.returncode  # verify may print FAIL or UNDECIDED
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier, and random rows: few in small.parquet, TIMES as many in the other files."""
    folder = tmp_path_factory.mktemp("memory")
    rng = np.random.default_rng(0)
    names = [f"f{i}" for i in range(COLUMNS)]
    X = pd.DataFrame(rng.normal(size=(8000, COLUMNS)), columns=names)
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=2).fit(X[:500], X["f0"][:500] > 0)
    qwyc.optimize(model, X[500:], alpha=0.1, progress=False).save(folder / "m.qwyc")
    who = {"who": np.arange(ROWS) % 5000}
    parts = [pa.table({name: rng.normal(size=ROWS) for name in names} | who) for _ in range(TIMES)]
    many = pa.concat_tables(parts)
    plain = {"use_dictionary": False, "compression": "none"}
    parquet.write_table(parts[0], folder / "small.parquet", row_group_size=100_000, **plain)
    parquet.write_table(many, folder / "groups.parquet", row_group_size=100_000, **plain)
    parquet.write_table(many, folder / "one_group.parquet", row_group_size=TIMES * ROWS, **plain)
    assert parquet.ParquetFile(folder / "groups.parquet").num_row_groups == 3 * TIMES
    assert parquet.ParquetFile(folder / "one_group.parquet").num_row_groups == 1
    feather.write_feather(many, str(folder / "all.feather"), compression="uncompressed")
    (folder / "parts").mkdir()
    for i, part in enumerate(parts):
        parquet.write_table(part, folder / "parts" / f"{i}.parquet", row_group_size=ROWS, **plain)
    return folder


def peak_bytes(folder, command, name, *options):
    code = "from qwyc.cli import main; main()"
    given = [sys.executable, "-c", code, command, "m.qwyc", name, "--threads", "1"]
    given += options
    if command == "predict":
        given += ["-o", os.devnull, "--to", "arrow"]
    if command == "recertify":
        given += ["-o", f"{name.replace('.', '_')}.qwyc"]
    # Arrow's allocator keeps freed memory for a while by the clock, so that peaks depend on how busy the
    # machine is; with this setting it gives memory back at once.
    environment = os.environ | {"MIMALLOC_PURGE_DELAY": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *given],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return 1024 * int(done.stdout.split()[-1])


@pytest.fixture(scope="module")
def small_peaks(folder):
    return {command: peak_bytes(folder, command, "small.parquet") for command in BYTES_A_ROW}


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize("command", BYTES_A_ROW)
@pytest.mark.parametrize("name", ["groups.parquet", "one_group.parquet", "all.feather", "parts"])
def test_memory_is_bounded(folder, small_peaks, command, name):
    more_rows = (TIMES - 1) * ROWS
    allowed = BYTES_A_ROW[command] * more_rows + SLACK
    assert allowed < 8 * COLUMNS * more_rows  # the rows themselves would not fit
    assert peak_bytes(folder, command, name) - small_peaks[command] < allowed


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize("command", ["verify", "recertify"])
def test_groups_take_more(folder, command):
    options = ["--groups", "who", "--alpha", "0.5"]
    more = peak_bytes(folder, command, "groups.parquet", *options)
    more -= peak_bytes(folder, command, "small.parquet", *options)
    assert more < BYTES_WITH_GROUPS * (TIMES - 1) * ROWS + SLACK


def test_the_bound_is_the_documented_one():
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    stated = re.search(
        r"`verify` and `recertify` keep\s+(\d+) bytes a row, or (\d+) with groups", text
    )
    assert int(stated[1]) == BYTES_A_ROW["verify"] == BYTES_A_ROW["recertify"]
    assert int(stated[2]) == BYTES_WITH_GROUPS
