"""Lattices in .qwyc files: round trips bit for bit, and hostile files."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_classifier_file import entry, from_bytes, resealed, set_in, set_tensor, to_bytes

import qwyc
from forests import classifier_of
from lattices import lattice_rows, random_lattices
from qwyc.files.families import FAMILIES
from qwyc.model.ensemble import Source
from qwyc.model.lattices.models import Interpolation, LatticeArrays


def make(seed=0, **options):
    ensemble = random_lattices(seed, **options)
    rows = lattice_rows(seed, ensemble)
    return classifier_of(ensemble, qwyc.fit_policy(ensemble.scores(rows), alpha=0.05)), rows


@pytest.mark.parametrize("seed", range(8))
def test_round_trip(seed, tmp_path):
    fast, rows = make(seed)
    path = tmp_path / "model.qwyc"
    fast.save(path)
    again = qwyc.load(path)
    a, b = fast.decide(rows), again.decide(rows)
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(fast.score_full(rows), again.score_full(rows))
    assert again.ensemble.digest == fast.ensemble.digest
    assert again.ensemble.source is None
    assert repr(again) == repr(fast)
    again.save(tmp_path / "again.qwyc")
    assert (tmp_path / "again.qwyc").read_bytes() == path.read_bytes()
    copied = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(copied.predict(rows), a.label)


def test_the_file_has_every_array():
    names = {f"lattices.{name}" for name in LatticeArrays.__dataclass_fields__}
    assert set(FAMILIES["lattices"].tensors) == names


def test_source_mean_and_schema_survive():
    fast, _ = make(1, mean=True, source=Source("tests", "1", "lattices"))
    schema = replace(fast.ensemble.schema, names=tuple("abcde"), must_have=(1, 3), by_name=True)
    ensemble = replace(fast.ensemble, schema=schema)
    again = from_bytes(to_bytes(replace(fast, ensemble=ensemble))).ensemble
    assert replace(again.schema, missing=0.0) == replace(schema, missing=0.0)  # it is NaN
    assert again.source == ensemble.source
    assert again.base_models.average
    assert again.digest == ensemble.digest != fast.ensemble.digest


def test_the_digest_knows_every_number():
    fast, _ = make(2, kind=Interpolation.HYPERCUBE, dtype="float64")
    ensemble = fast.ensemble
    models, digests = ensemble.base_models, {ensemble.digest}
    for name in LatticeArrays.__dataclass_fields__:
        array = getattr(models.arrays, name)
        changed = array.copy()
        changed[-1] = changed[-1] + 1 if np.isfinite(changed[-1]) else 0
        arrays = replace(models.arrays, **{name: changed})
        digests.add(replace(ensemble, base_models=replace(models, arrays=arrays)).digest)
    digests.add(replace(ensemble, base_models=replace(models, start=9.0)).digest)
    digests.add(replace(ensemble, schema=replace(ensemble.schema, must_have=(0,))).digest)
    assert len(digests) == len(LatticeArrays.__dataclass_fields__) + 3


CONTENT = to_bytes(make(0, kind=Interpolation.HYPERCUBE, dtype="float32")[0])


@pytest.mark.parametrize(
    "change",
    [
        set_in("model", "kind", to="trees"),
        set_in("model", "kind", to="forests"),
        set_in("model", "source", to=7),
        set_in("model", "source", to={}),
        set_in("model", "base_models", to={}),
        set_in("model", "base_models", "base", to=float("nan")),
        set_in("model", "base_models", "base", to="0"),
        set_in("model", "base_models", "mean", to=1),
        set_in("model", "schema", "dtype", to="float64"),
        set_in("model", "schema", "n_features", to=1),
        set_in("model", "schema", "must_have", to=[99]),
        set_in("model", "schema", "must_have", to=[-1]),
        set_in("model", "schema", "must_have", to=[0.5]),
        set_in("model", "schema", "must_have", to=7),
        set_in("model", "schema", "must_have", to=None),
        set_in("model", "schema", "by_name", to=1),
        set_in("model", "schema", "by_name", to=True),  # there are no names
        set_tensor("lattices.calibrator_kind", entry(0, 9)),
        set_tensor("lattices.calibrator_feature", entry(0, 10**6)),
        set_tensor("lattices.calibrator_feature", entry(0, -1)),
        set_tensor("lattices.point_begin", entry(1, 2**60)),
        set_tensor("lattices.point_begin", entry(-1, -1)),
        set_tensor("lattices.point", lambda a: a[::-1].copy()),
        set_tensor("lattices.point", lambda a: a.astype(np.float64)),
        set_tensor("lattices.output", entry(0, np.nan)),
        set_tensor("lattices.has_missing", lambda a: a[:0]),
        set_tensor("lattices.missing_output", entry(0, np.inf)),
        set_tensor("lattices.other_output", lambda a: a[None]),
        set_tensor("lattices.interpolation", entry(0, 3)),
        set_tensor("lattices.interpolation", entry(0, 2)),  # sizes that are not 0
        set_tensor("lattices.weight", entry(0, np.inf)),
        set_tensor("lattices.input_begin", entry(1, 2**60)),
        set_tensor("lattices.input", entry(0, 10**6)),
        set_tensor("lattices.size", entry(0, 2**30)),
        set_tensor("lattices.size", entry(0, 0)),
        set_tensor("lattices.vertex_begin", entry(1, 2**60)),
        set_tensor("lattices.vertex", entry(0, np.nan)),
        set_tensor("lattices.vertex", lambda a: a[:-1]),
        set_tensor("lattices.vertex", lambda a: a.astype(np.int32)),
        set_tensor("policy.order", lambda a: a[:-1]),
        lambda body, tensors: tensors.pop("lattices.weight") is None,
        lambda body, tensors: tensors.update({"trees.left": tensors["lattices.size"]}),
    ],
)
def test_hostile_files_are_refused(change):
    with pytest.raises(qwyc.ArtifactError) as caught:
        from_bytes(resealed(change, CONTENT))
    assert "does not match its digest" not in str(caught.value)  # a hostile writer computes it anew


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(FAMILIES["lattices"].tensors)),
    place=st.integers(0, 10**6),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_bytes_in_a_tensor_never_crash(name, place, seed):
    """A changed tensor is refused by its digest at the latest; before that, the native core checks it."""

    def change(body, tensors):
        array = tensors[name].copy()
        view = array.view(np.uint8)
        view[place % len(view)] = np.random.default_rng(seed).integers(256)
        tensors[name] = array

    try:
        again = from_bytes(resealed(change, CONTENT))
    except qwyc.ArtifactError:
        return
    assert to_bytes(again) == CONTENT
