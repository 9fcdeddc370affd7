"""Batches that claim rows without data: nulls need none, so only their number can be refused."""

import io
import struct

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from matrices import NAMED
from qwyc.errors import InputError
from qwyc.rows.files.reader import read_table
from qwyc.rows.files.validation import MAX_ROWS_WITHOUT_DATA
from qwyc.rows.matrix import to_matrix

CLAIM = 777  # rows of a batch; no other number in the metadata of the file


def arrow_file(new, n):
    """Two batches of three columns of type null, as bytes; the second batch claims `n` rows."""
    out = io.BytesIO()
    first, second = (
        pa.RecordBatch.from_pydict({name: pa.nulls(k) for name in "abc"}) for k in (5, CLAIM)
    )
    with new(out, first.schema) as writer:
        writer.write(first)
        writer.write(second)
    parts = out.getvalue().split(struct.pack("<q", CLAIM))
    assert (
        len(parts) == 1 + 1 + 2 * 3
    )  # the rows of the batch, the rows and the nulls of each column
    return struct.pack("<q", n).join(parts)


@pytest.mark.parametrize("new", [ipc.new_file, ipc.new_stream], ids=["file", "stream"])
@pytest.mark.parametrize("n", [MAX_ROWS_WITHOUT_DATA + 1, 10**9, 2**40, 2**62])
def test_many_rows_without_data_are_refused(tmp_path, new, n):
    (tmp_path / "rows.arrow").write_bytes(arrow_file(new, n))
    with pytest.raises(
        InputError,
        match=rf"batch 1, which starts at row 5, is damaged \(length {n}, but only 0 bytes",
    ):
        read_table(tmp_path / "rows.arrow", NAMED)


@pytest.mark.parametrize("new", [ipc.new_file, ipc.new_stream], ids=["file", "stream"])
@pytest.mark.parametrize("n", [0, 1, CLAIM, MAX_ROWS_WITHOUT_DATA])
def test_some_rows_without_data_are_read(tmp_path, new, n):
    (tmp_path / "rows.arrow").write_bytes(arrow_file(new, n))
    rows, _ = read_table(tmp_path / "rows.arrow", NAMED)
    assert to_matrix(rows, NAMED).shape == (5 + n, 3)


def test_other_columns_are_data(tmp_path):
    """One bit for each row is enough, in a column that is not even read."""
    n = 4 * MAX_ROWS_WITHOUT_DATA
    table = pa.table({**{name: pa.nulls(n) for name in "abc"}, "flag": pa.array([True] * n)})
    with ipc.new_file(tmp_path / "rows.arrow", table.schema) as writer:
        writer.write_table(table)
    rows, _ = read_table(tmp_path / "rows.arrow", NAMED)
    assert rows.num_rows == n


def test_parquet_files_of_nulls_come_in_small_batches(tmp_path):
    n = 4 * MAX_ROWS_WITHOUT_DATA
    parquet.write_table(pa.table({name: pa.nulls(n) for name in "abc"}), tmp_path / "rows.parquet")
    rows, _ = read_table(tmp_path / "rows.parquet", NAMED)
    assert rows.num_rows == n
