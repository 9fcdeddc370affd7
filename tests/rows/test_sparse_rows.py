"""Sparse rows: every form of scipy gives what the dense rows give, and a matrix that is not valid is an
error.
Parity with the libraries on their own sparse input is in tests/importers/test_sparse_parity.py."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import scipy.sparse
import xgboost

import qwyc
from qwyc import _native
from qwyc.errors import ArtifactError, RowsError
from qwyc.files.parts import read_schema, schema_facts
from qwyc.rows.identity import row_hashes, sparse_column_hashes, sparse_hashes
from qwyc.rows.schema import ABSENT, REFUSED, Schema
from qwyc.rows.sparse import dense_rows, sparse_rows
from sparse_matrices import dense_of, matrix, target

N, WIDTH = 700, 90
SCHEMAS = {
    "missing": Schema(WIDTH, None, "float32", absent="missing"),
    "zero": Schema(WIDTH, None, "float64", absent="zero"),
}


@pytest.fixture(scope="module")
def rows():
    return matrix(N, WIDTH, seed=1)


@pytest.fixture(scope="module")
def models(rows):
    y = target(rows)
    return {
        "xgboost": xgboost.XGBClassifier(n_estimators=25, max_depth=4, n_jobs=1).fit(rows, y),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=25, n_jobs=1, verbose=-1).fit(rows, y),
        "classes": lightgbm.LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1).fit(
            rows, target(rows, 4)
        ),
    }


def forms(rows):
    """The same matrix in every form that is taken."""
    shuffled = rows.copy()
    for i in range(shuffled.shape[0]):  # indices of a row in another order
        part = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1].copy()
        shuffled.data[part] = shuffled.data[part][::-1].copy()
    shuffled.has_sorted_indices = False
    wide = rows.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "csr_matrix", rows
    yield "csr_array", scipy.sparse.csr_array(rows)
    yield "csc", rows.tocsc()
    yield "coo", scipy.sparse.coo_array(rows)
    yield "lil", rows.tolil()
    yield "bsr", rows.tobsr((1, 1))
    yield "unsorted", shuffled
    yield "int64 indices", wide
    yield "float64", rows.astype(np.float64)
    yield "entries that no row has", _with_spare_entries(rows)


def _with_spare_entries(rows):
    """indptr starts after some entries, and ends before others."""
    spare = rows.copy()
    spare.data = np.concatenate([[7, 7], rows.data, [7]]).astype(rows.dtype)
    spare.indices = np.concatenate([[0, 1], rows.indices, [0]]).astype(rows.indices.dtype)
    spare.indptr = rows.indptr + 2
    return spare


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "classes"])
def test_every_form_gives_what_dense_rows_give(name, models, rows):
    model = qwyc.read_model(models[name])
    dense = dense_of(rows, np.nan if name == "xgboost" else 0.0)
    fast = qwyc.optimize(models[name], matrix(3000, WIDTH, seed=2), alpha=0.1, evaluation="quit")
    full, values, decided = model.score_full(dense), model.scores(dense).values, fast.decide(dense)
    assert decided.steps.min() < fast.policy.n_models  # some quit
    for form, X in forms(rows):
        for threads in (1, 3):
            np.testing.assert_array_equal(model.score_full(X, threads=threads), full, form)
        np.testing.assert_array_equal(model.scores(X).values, values, form)
        found = fast.decide(X)
        for field in ("label", "steps", "score", "complete"):
            np.testing.assert_array_equal(getattr(found, field), getattr(decided, field), form)


def test_entries_of_the_same_place_are_added_up(models, rows):
    twice = scipy.sparse.csr_matrix(
        (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr), shape=rows.shape
    )
    assert not twice.has_canonical_format
    for model in models.values():
        read = qwyc.read_model(model)
        np.testing.assert_array_equal(read.score_full(twice), read.score_full(rows))
        assert twice.nnz == 2 * rows.nnz  # not changed


def test_rows_without_entries_no_rows_and_one_row(models, rows):
    for model in models.values():
        read = qwyc.read_model(model)
        empty = scipy.sparse.csr_matrix((3, WIDTH), dtype=np.float32)
        dense = dense_of(empty, np.nan if model is models["xgboost"] else 0.0)
        np.testing.assert_array_equal(read.score_full(empty), read.score_full(dense))
        assert len(read.predict(rows[:0])) == 0
        own = model.predict(rows[:4])
        assert [read.predict_one(rows[i]) for i in range(4)] == own.tolist()
        one = scipy.sparse.csr_array(rows)[2]  # of one dimension in new versions of scipy
        assert read.predict_one(one) == own[2]
    with pytest.raises(qwyc.QwycError, match="of shape"):
        read.predict_one(rows[:2])


def broken(rows, **arrays):
    """A matrix with other arrays, which scipy does not look at again."""
    X = rows.copy()
    for name, array in arrays.items():
        setattr(X, name, array)
    return X


@pytest.mark.parametrize("wide", [False, True])
def test_what_is_no_valid_matrix_is_an_error(wide, models, rows):
    rows = rows.astype(np.float64 if wide else np.float32)
    index = np.int64 if wide else np.int32
    begin, column = rows.indptr.astype(index), rows.indices.astype(index)

    def changed(array, at, value):
        array = array.copy()
        array[at] = value
        return array

    cases = {
        "no column": {"indices": changed(column, 5, WIDTH)},
        "is no column": {"indices": changed(column, -1, -1)},
        "indptr falls": {"indptr": changed(begin, 3, begin[-1])},
        "negative": {"indptr": changed(begin, 0, -1)},
        "beyond the entries": {"indptr": changed(begin, -1, begin[-1] + 1)},
        "beyond": {"data": rows.data[:-1]},
        "beyond the": {"indices": column[:-2]},
        "numbers for": {"indptr": begin[:-1]},
        "for 700 rows": {"indptr": begin[:0]},
        "indptr must hold whole numbers": {"indptr": begin + 0.5},
        "indptr must": {"indptr": begin.reshape(1, -1)},
        "indices must hold whole numbers": {"indices": column + 0.5},
        "indices must": {"indices": column.astype(object)},
        "data must": {"data": rows.data.reshape(-1, 1)},
    }
    for words, arrays in cases.items():
        for model in models.values():
            with pytest.raises(RowsError, match=f"not a valid sparse matrix.*{words}"):
                qwyc.read_model(model).score_full(broken(rows, **arrays))


@pytest.mark.parametrize(
    ("kind", "name", "place", "value"),
    [
        ("csc", "indices", 0, 10**9),
        ("csc", "indices", 0, -5),
        ("csc", "indptr", 1, 10**6),
        ("csc", "indptr", 0, -(10**6)),
        ("bsr", "indices", 0, 10**9),
        ("bsr", "indptr", -1, 10**6),
        ("coo", "row", 0, 10**9),
        ("coo", "col", 0, -1),
    ],
)
def test_scipy_does_not_convert_what_leads_out_of_its_arrays(models, kind, name, place, value):
    """SciPy trusts the indices of what it converts, and ends the process."""
    wrong = scipy.sparse.eye(WIDTH, format=kind)
    indices = np.array(getattr(wrong, name))
    indices[place] = value
    setattr(wrong, name, indices)
    model = qwyc.read_model(next(iter(models.values())))
    with pytest.raises(RowsError, match="not a valid sparse matrix"):
        model.score_full(wrong)


def test_the_native_class_checks_what_it_is_given():
    data, column = np.ones(2, np.float32), np.array([0, 1], np.int32)
    begin = np.array([0, 1, 2])
    rows = _native.SparseRows(data, column, begin, 3, 0.0)
    assert (len(rows), rows.shape) == (2, (2, 3))
    with pytest.raises(ValueError, match="indptr is empty"):
        _native.SparseRows(data, column, begin[:0], 3, 0.0)
    for places in ([2], [-1]):
        with pytest.raises(ValueError, match="places"):
            rows[np.array(places)]
    with pytest.raises(ValueError, match="steps of 1"):
        rows[::2]
    for used in ([1, 0], [3], [-1], [1, 1]):
        with pytest.raises(ValueError, match="ascending"):
            _native.ColumnSlots(3, np.array(used, np.int32))
    with pytest.raises(ValueError, match="one column per feature"):
        qwyc_forest().score_full_sparse(rows, _native.ColumnSlots(4, np.zeros(1, np.int32)), 1)
    with pytest.raises(ValueError, match="columns in use"):
        qwyc_forest().score_full_sparse(rows, _native.ColumnSlots(3, column), 1)


def qwyc_forest():
    X = matrix(200, 3, seed=0, density=0.8)
    model = lightgbm.LGBMClassifier(n_estimators=1, verbose=-1, n_jobs=1).fit(X, target(X))
    return qwyc.read_model(model).base_models.native


@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_rows_are_sliced_taken_and_hashed_as_dense_ones(absent, rows):
    schema = SCHEMAS[absent]
    held, dense = sparse_rows(rows, schema), dense_of(rows, np.nan if absent == "missing" else 0.0)
    dtype = schema.dtype
    for part in (slice(None), slice(100, 300), slice(650, 900), slice(5, 5)):
        np.testing.assert_array_equal(dense_rows(held[part], dtype), dense[part].astype(dtype))
    chosen = np.array([5, 3, 3, 699])
    np.testing.assert_array_equal(dense_rows(held[chosen], dtype), dense[chosen].astype(dtype))
    columns = [0, 7, 8, 40]
    np.testing.assert_array_equal(
        sparse_column_hashes(held, columns, dtype), row_hashes(dense[:, columns], dtype)
    )
    # Equal rows have equal hashes, however their entries lie, and others have others.
    doubled = scipy.sparse.vstack([rows, rows[::-1]]).tocsr()
    stored = doubled.copy()
    stored.data[:] = np.where(doubled.data == 0, -0.0, doubled.data)
    hashes = sparse_hashes(sparse_rows(stored, schema), dtype)
    np.testing.assert_array_equal(hashes[:N], hashes[N:][::-1])
    assert len(np.unique(hashes)) == len(np.unique(dense, axis=0))
    if absent == "zero":  # an entry of 0 is as one that is absent
        plain = rows.copy()
        plain.eliminate_zeros()
        assert plain.nnz < rows.nnz
        np.testing.assert_array_equal(
            sparse_hashes(sparse_rows(plain, schema), dtype), sparse_hashes(held, dtype)
        )


def test_wrong_columns_dimensions_and_types_are_named(models, rows):
    read = qwyc.read_model(models["lightgbm"])
    with pytest.raises(RowsError, match="X has 89 columns; the model was trained on 90"):
        read.predict(rows[:, :89])
    with pytest.raises(RowsError, match="must hold numbers; it is a sparse matrix of complex128"):
        read.predict(rows.astype(complex))
    if scipy.sparse.coo_array([1.0]).ndim == 1:
        with pytest.raises(RowsError, match="two dimensions"):
            read.predict(scipy.sparse.coo_array(np.ones(WIDTH)))


def test_files_keep_what_absent_entries_mean(models, rows, tmp_path):
    for name, model in models.items():
        read = qwyc.read_model(model)
        read.save(tmp_path / name)
        again = qwyc.load(tmp_path / name)
        assert again.schema.absent == read.schema.absent
        assert again.digest == read.digest
        np.testing.assert_array_equal(again.score_full(rows), read.score_full(rows))
    for absent in ABSENT:
        schema = replace(SCHEMAS["zero"], absent=absent)
        assert read_schema(schema_facts(schema)).absent == absent
    facts = schema_facts(SCHEMAS["zero"])
    with pytest.raises(ArtifactError):
        read_schema(facts | {"absent": "perhaps"})
    del facts["absent"]  # as in files of earlier versions
    old = read_schema(facts)
    assert old.absent == REFUSED
    assert str(old.digest_facts()) == str(SCHEMAS["zero"].digest_facts())  # it is the same model
    with pytest.raises(RowsError, match="save it again"):
        sparse_rows(rows, old)


def test_categories_are_refused(rows):
    schema = replace(SCHEMAS["zero"], categories={0: ("a", "b")})
    with pytest.raises(RowsError, match=r"sparse.*categories: pass a data frame"):
        sparse_rows(rows, schema)
