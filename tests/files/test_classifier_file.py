"""The .qwyc file: round trips, determinism, atomic writes, and files that are damaged or hostile."""

import errno
import json
import os
import stat
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import qwyc
from forests import random_ensemble, random_rows, with_inputs
from qwyc.classifier import from_certified
from qwyc.files import classifier_file, container
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate


def make(seed=0, **changes):
    ensemble = replace(random_ensemble(seed, n_trees=8), **changes)
    rows = random_rows(seed, ensemble)
    scores = ensemble.scores(rows)
    policy = qwyc.fit_policy(scores, alpha=0.05)
    certificate = observed_certificate("in-sample", budget_of(0.05), policy, scores)
    return qwyc.Classifier(ensemble, policy, certificate), rows


def to_bytes(fast):
    return classifier_file.to_bytes(fast)


def from_bytes(content):
    return from_certified(classifier_file.from_bytes(content))


@pytest.mark.parametrize("seed", range(12))
def test_round_trip(seed, tmp_path):
    fast, rows = make(seed)
    path = tmp_path / "model.qwyc"
    fast.save(path)
    again = qwyc.load(path)
    a, b = fast.decide(rows), again.decide(rows)
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(fast.score_full(rows), again.score_full(rows))
    assert again.certificate == fast.certificate
    assert again.ensemble.source == fast.ensemble.source
    assert again.ensemble.digest == fast.ensemble.digest
    assert repr(again) == repr(fast)
    again.save(tmp_path / "again.qwyc")
    assert (tmp_path / "again.qwyc").read_bytes() == path.read_bytes()


def test_everything_about_the_inputs_survives():
    fast, _ = make()
    ensemble = with_inputs(
        fast.ensemble,
        names=("a", "b b", "ç", "d", "e"),
        categories={1: ("x", "ÿ", ""), 3: (10, 20), 4: (0.5,)},
        arrays_hold_values=True,
        unseen="error",
        missing=-999.0,
        accepts_missing=False,
        accepts_infinity=False,
    )
    again = from_bytes(to_bytes(replace(fast, ensemble=ensemble)))
    assert again.ensemble.schema == ensemble.schema
    nan = from_bytes(to_bytes(fast)).ensemble.schema.missing
    assert np.isnan(nan)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([0, 1]),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([-1.0, 1.0]),
        np.array([3, 7], dtype=np.int8),
    ],
)
def test_classes_keep_their_type(classes):
    fast, rows = make(classes=classes)
    again = from_bytes(to_bytes(fast))
    assert again.ensemble.classes.dtype == classes.dtype
    np.testing.assert_array_equal(again.predict(rows), fast.predict(rows))


def test_it_is_plain_safetensors(tmp_path):
    fast, _ = make()
    fast.save(tmp_path / "m.qwyc")
    tensors = safetensors.numpy.load_file(tmp_path / "m.qwyc")
    np.testing.assert_array_equal(tensors["policy.order"], fast.policy.order)


@given(
    st.dictionaries(
        st.text(max_size=8).filter(lambda name: name != "__metadata__"),
        st.tuples(
            st.sampled_from(sorted(container.DTYPES.values())),
            st.lists(st.integers(0, 3), max_size=3),
        ),
        max_size=8,
    ),
    st.text(max_size=20),
)
def test_it_is_laid_out_as_safetensors_does_it(tensors, text):
    arrays = {
        name: np.arange(np.prod(shape, dtype=int), dtype=kind).reshape(shape)
        for name, (kind, shape) in tensors.items()
    }
    expected = safetensors.numpy.save(arrays, metadata={"qwyc": text})
    assert container.laid_out(arrays, {"qwyc": text}) == expected


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    fast, _ = make(0)
    path = tmp_path / "m.qwyc"
    fast.save(path)
    before = path.read_bytes()

    def full_disk(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(qwyc.ArtifactError, match="No space left"):
        make(1)[0].save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.qwyc"]


def test_files_get_ordinary_permissions(tmp_path):
    fast, _ = make()
    fast.save(tmp_path / "m.qwyc")
    (tmp_path / "other").write_bytes(b"")
    modes = {stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("m.qwyc", "other")}
    assert len(modes) == 1


def test_paths_that_do_not_work(tmp_path):
    fast, _ = make()
    with pytest.raises(qwyc.ArtifactError, match=r"missing/m\.qwyc: No such file"):
        fast.save(tmp_path / "missing" / "m.qwyc")
    with pytest.raises(qwyc.ArtifactError, match=r"cannot read .*No such file"):
        qwyc.load(tmp_path / "none.qwyc")
    with pytest.raises(OSError, match="directory"):
        qwyc.load(tmp_path)
    with pytest.raises(qwyc.ArtifactError, match="directory"):
        fast.save(tmp_path)


CONTENT = to_bytes(make()[0])


def test_a_file_may_be_truncated_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "model.qwyc"
    fast, rows = make()
    fast.save(path)
    unpack = container.unpack

    def truncated(content, formats):
        os.truncate(path, 0)  # what an in-place copy does first
        return unpack(content, formats)

    monkeypatch.setattr(container, "unpack", truncated)
    np.testing.assert_array_equal(qwyc.load(path).predict(rows), fast.predict(rows))


def test_a_foreign_file_is_not_read_whole(tmp_path):
    path = tmp_path / "large.parquet"
    with open(path, "wb") as file:
        file.write(b"PAR1")
        file.truncate(1 << 40)  # a file with a hole: more than memory holds
    with pytest.raises(qwyc.ArtifactError, match="not a qwyc file"):
        qwyc.load(path)


def test_a_pipe_is_refused(tmp_path):
    path = tmp_path / "model.qwyc"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)  # somebody writes to it: opening it does not wait
    with pytest.raises(qwyc.ArtifactError, match=r"cannot read .*pipe"):
        qwyc.load(path)
    os.close(writer)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(CONTENT) - 1))
def test_truncated_files_are_refused(length):
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(CONTENT[:length])


@settings(max_examples=500, deadline=None)
@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_a_changed_byte_is_noticed(position, change):
    damaged = bytearray(CONTENT)
    damaged[position] ^= change
    try:
        again = from_bytes(bytes(damaged))
    except qwyc.ArtifactError:
        return
    # Only bytes without meaning, such as padding in the header, may change.
    assert to_bytes(again) == CONTENT


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_noise_is_refused(content):
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(content)


def resealed(change, content=CONTENT):
    """A file with valid checksums whose contents were changed: a hostile writer can do that."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["qwyc"])
    tensors = safetensors.numpy.load(content)
    body = change(header["body"], tensors) or header["body"]
    header |= {"body": body, "sha256": container._digest(body, tensors)}
    return safetensors.numpy.save(tensors, metadata={"qwyc": json.dumps(header)})


def test_resealing_itself_is_harmless():
    assert from_bytes(resealed(lambda body, tensors: None)).policy.n_models == 8


def set_in(*path, to):
    def change(body, tensors):
        *parents, last = path
        target = body
        for key in parents:
            target = target[key]
        target[last] = to

    return change


def set_tensor(name, make_new):
    def change(body, tensors):
        tensors[name] = make_new(tensors[name])

    return change


def entry(index, value):
    def make_new(array):
        array = array.copy()
        array[index] = value
        return array

    return make_new


@pytest.mark.parametrize(
    "change",
    [
        set_in("model", "schema", "n_features", to=10**12),
        set_in("model", "schema", "n_features", to=-1),
        set_in("model", "schema", "n_features", to="5"),
        set_in("model", "schema", "names", to=["a"]),
        set_in("model", "schema", "names", to=7),
        set_in("model", "schema", "dtype", to="object"),
        set_in("model", "schema", "categories", to=[[99, ["x"]]]),
        set_in("model", "schema", "categories", to=[[0, [["x"]]]]),
        set_in("model", "base_models", "summation", to="fast"),
        set_in("model", "base_models", "base", to=float("nan")),
        set_in("model", "base_models", "divisor", to=0.0),
        set_in("model", "threshold", to="0"),
        set_in("model", "classes", "dtype", to="V8"),
        set_in("model", "classes", "dtype", to="<U999999999"),
        set_in("model", "classes", "dtype", to="__import__('os')"),
        set_in("model", "classes", "values", to=[0, 1, 2]),
        set_in("model", "classes", "values", to=[{}, []]),
        set_in("target", to=None),
        set_in("target", "threshold", to=None),
        set_in("model", to=None),
        set_in("model", "base_models", to=None),
        set_in("evaluation", to=None),
        set_in("evaluation", "quits", to=1),
        set_in("certificate", to=[]),
        set_in("certificate", "counts", to=7),
        set_in("certificate", "counts", "by_class", to=[1.5, 1]),
        set_in("certificate", "counts", "by_class", to=[1]),
        set_in("certificate", "counts", "differences", to=[1, 1, 1]),
        set_in("certificate", "counts", "mean_models", to=-1.0),
        set_in("model", "digest", to="0"),
        set_in("model", "source", to={}),
        set_tensor("trees.left", entry(0, 10**6)),
        set_tensor("trees.feature", entry(0, 10**6)),
        set_tensor("trees.node_begin", entry(1, 2**60)),
        set_tensor("trees.category_begin", entry(-1, 2**60)),
        set_tensor("trees.threshold", lambda a: a.astype(np.int64)),
        set_tensor("trees.flags", lambda a: a[:0]),
        set_tensor("policy.order", entry(0, 99)),
        set_tensor("policy.order", lambda a: a[:-1]),
        set_tensor("policy.lower", entry(0, np.nan)),
        set_tensor("policy.costs", entry(0, -1.0)),
        set_tensor("trees.left", lambda a: a[None]),
    ],
)
def test_hostile_files_are_refused(change):
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(resealed(change))


def test_a_newer_format_says_so():
    size = int.from_bytes(CONTENT[:8], "little")
    header = json.loads(json.loads(CONTENT[8 : 8 + size])["__metadata__"]["qwyc"]) | {"format": 3}
    content = safetensors.numpy.save(
        safetensors.numpy.load(CONTENT), metadata={"qwyc": json.dumps(header)}
    )
    with pytest.raises(
        qwyc.ArtifactError, match="format 3; this version of qwyc reads formats 1 and 2"
    ):
        from_bytes(content)


def test_a_tensor_name_that_is_no_text_is_refused():
    metadata = {"qwyc": json.dumps({"format": 2, "body": {}, "sha256": "x"})}
    header = json.dumps(
        {"__metadata__": metadata, "\ud800": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}
    ).encode()
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(len(header).to_bytes(8, "little") + header + b"x")


def test_messages_do_not_repeat_values_at_any_length():
    for value in ("x" * 5000, 10**400, ["y"] * 999):
        with pytest.raises(qwyc.ArtifactError) as caught:
            from_bytes(resealed(set_in("model", "threshold", to=value)))
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("part", ["evidence", "certificate"])
def test_evidence_of_more_rows_than_there_are_atoms(with_path, part):
    path = (part, "counts", "by_class") if part == "certificate" else (part, "by_class")
    content = resealed(set_in(*path, to=[5, 2**62 - 10]), to_bytes(with_path[0]))
    with pytest.raises(qwyc.ArtifactError, match="more than 1,099,511,627,776 rows are counted"):
        from_bytes(content)


def relaid(change):
    """A file whose tensors' places were changed."""
    size = int.from_bytes(CONTENT[:8], "little")
    layout = json.loads(CONTENT[8 : 8 + size])
    change(layout)
    header = json.dumps(layout).encode()
    return len(header).to_bytes(8, "little") + header + CONTENT[8 + size :]


def repeat(layout):
    facts = next(facts for name, facts in layout.items() if name != "__metadata__")
    layout |= {f"copy{i}": facts for i in range(200)}


def leave_out(layout):
    del layout["policy.costs"]


def move_beyond(layout):
    layout["policy.costs"]["data_offsets"] = [2**40, 2**40 + 64]


@pytest.mark.parametrize("change", [repeat, leave_out, move_beyond])
def test_tensors_fill_the_file_without_overlap(change):
    with pytest.raises(qwyc.ArtifactError, match="overlap, leave gaps or do not fill the file"):
        from_bytes(relaid(change))


@pytest.mark.parametrize("depth", [100, 500, 900, 950, 990, 1500, 20_000])
def test_headers_of_many_levels_are_refused(depth):
    nested = {"body": json.loads("0"), "format": 2, "sha256": "0"}
    text = json.dumps(nested).replace('"body": 0', '"body": ' + "[" * depth + "]" * depth)
    content = safetensors.numpy.save({"a": np.zeros(1)}, metadata={"qwyc": text})
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(content)


def test_another_safetensors_file_is_not_one_of_ours(tmp_path):
    safetensors.numpy.save_file({"a": np.zeros(3)}, tmp_path / "x.safetensors")
    with pytest.raises(qwyc.ArtifactError, match="not a qwyc file"):
        qwyc.load(tmp_path / "x.safetensors")


@pytest.fixture(scope="module")
def with_path():
    ensemble = random_ensemble(2, n_trees=8)
    rows = random_rows(2, ensemble, n=1500)
    return qwyc.optimize(ensemble, rows, alpha=0.05), rows


def test_the_path_and_its_evidence_survive(with_path):
    fast, rows = with_path
    again = from_bytes(to_bytes(fast))
    was, now = fast.choices, again.choices
    np.testing.assert_array_equal(now.path.lower, was.path.lower)
    np.testing.assert_array_equal(now.evidence.counts.differences, was.evidence.counts.differences)
    assert again.certificate == fast.certificate
    assert again.at(alpha=0.1).certificate == fast.at(alpha=0.1).certificate
    np.testing.assert_array_equal(again.predict(rows), fast.predict(rows))
    assert to_bytes(again) == to_bytes(fast)


@pytest.mark.parametrize(
    "change",
    [
        set_tensor("path.lower", lambda a: a[:-1]),
        set_tensor("path.lower", lambda a: np.full_like(a, np.nan)),
        set_tensor("path.penalty", lambda a: a[:0]),
        set_tensor("path.differences", lambda a: a + 10**6),
        set_tensor("path.differences", lambda a: -a - 1),
        set_in("evidence", to=None),
        set_in("evidence", "by_class", to=[-1, 1]),
        set_in("evidence", "seed", to="0"),
        set_in("certificate", "how", to="trust me"),
        set_in("certificate", "confidence", to=None),
        set_in("certificate", "alpha", to=2),
        set_in("certificate", "counts", "differences", to=[10**9, 0]),
        set_in("certificate", "counts", "by_class", to=[0, -1]),
        set_in("evidence", "by_class", to=[10**9]),
        set_in("evidence", "fit_rows", to=0),
        set_tensor("path.differences", lambda a: np.full_like(a, 2**62)),
        set_tensor("policy.lower", lambda a: np.full_like(a, -50.0)),  # not of the path
    ],
)
def test_hostile_paths_are_refused(change, with_path):
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(resealed(change, to_bytes(with_path[0])))


@pytest.mark.parametrize(
    "change",
    [
        set_tensor("origin.sample", lambda a: a[::-1].copy()),
        set_tensor("origin.sample", lambda a: np.append(a, a[-1])),
        set_tensor("origin.sample", lambda a: np.arange(9000, dtype=np.uint64)),
        set_tensor("origin.sample", lambda a: a[:0]),
        set_tensor("origin.sample", lambda a: a.astype(np.int64)),
        lambda body, tensors: tensors.update({"origin.recertified": tensors["origin.sample"]}),
        set_in("origins", "sample", "rows", to=3),
        set_in("origins", "sample", "rows", to=-1),
        set_in("origins", "sample", "chance", to=1.5),
        set_in("origins", "sample", "chance", to=float("nan")),
        set_in("origins", to={}),
        set_in("origins", to=[]),
        set_in("origins", "elsewhere", to={"rows": 1, "chance": 0.0}),
    ],
)
def test_hostile_sketches_of_rows_are_refused(change, with_path):
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(resealed(change, to_bytes(with_path[0])))


def test_the_sketch_of_the_sample_survives(with_path):
    fast, rows = with_path
    again = from_bytes(to_bytes(fast))
    np.testing.assert_array_equal(again.origins.sample.hashes, fast.origins.sample.hashes)
    assert again.origins.sample.rows == 1500
    assert again.origins.sample.chance == fast.origins.sample.chance
    assert again.origins.recertified is None
    with pytest.raises(qwyc.InputError, match="among the 1,500 rows"):
        qwyc.verify(again, rows[700:])


def test_a_policy_from_elsewhere_is_refused_before_it_is_saved(with_path):
    fast, _ = with_path
    other = replace(fast.policy, lower=np.full(8, -50.0))
    with pytest.raises(qwyc.OptionError, match="not on this path"):
        replace(fast, policy=other)
    with pytest.raises(ValueError, match="read-only"):
        fast.choices.path.lower[1] = -99.0
