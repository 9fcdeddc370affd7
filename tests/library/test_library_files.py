"""libqwyc and damaged or hostile files: refused with a message, as Python refuses them; never a crash."""

import json
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import qwyc
from class_forests import random_classes, random_policy
from exported import with_random_policy
from forests import random_ensemble, random_rows
from lattices import lattice_rows, random_lattices
from library import ARGUMENT, FILE, OK, READ, UNSUPPORTED, LibraryError, Loaded, library
from qwyc.classifier import Classifier
from qwyc.errors import QwycError
from qwyc.files import classifier_file, container
from qwyc.files.container import Container
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import observed_certificate


def made(kind="trees", seed=3):
    """The content of a file."""
    if kind == "classes":
        ensemble = random_classes(seed)
        policy = random_policy(seed, ensemble, rules_out=True)
        budget = budget_of(0.0, target=policy.target)
        seen = observed_certificate("in-sample", budget, policy, None)
        return classifier_file.to_bytes(Classifier(ensemble, policy, seen))
    if kind == "lattices":
        ensemble = random_lattices(seed)
        return classifier_file.to_bytes(
            with_random_policy(ensemble, lattice_rows(seed, ensemble), seed)
        )
    ensemble = random_ensemble(seed, n_trees=8)
    rows = random_rows(seed, ensemble)
    return classifier_file.to_bytes(with_random_policy(ensemble, rows, seed))


CONTENTS = {kind: made(kind) for kind in ("trees", "classes", "lattices")}
kinds = pytest.mark.parametrize("kind", CONTENTS)


def refused(content):
    """The status and the message of content that the library refuses."""
    with pytest.raises(LibraryError) as error:
        Loaded.of_bytes(content)
    assert str(error.value)
    assert "\n" not in str(error.value)
    return error.value.status, str(error.value)


def repacked(content, change):
    """The same file after `change(body, tensors)`, with a checksum that holds."""
    found = container.unpack(content, (1, 2))
    body, tensors = json.loads(json.dumps(found.body)), dict(found.tensors)
    change(body, tensors)
    return container.pack(Container(found.format, body, tensors))


def python_refuses(content):
    try:
        classifier_file.from_bytes(content)
    except QwycError:
        return True
    return False


@kinds
def test_truncated_files(kind):
    content = CONTENTS[kind]
    for size in [*range(40), *np.linspace(40, len(content) - 1, 60).astype(int).tolist()]:
        assert refused(content[:size])[0] == FILE
    assert refused(content + b"\0")[0] == FILE


@kinds
def test_a_changed_byte_is_found(kind):
    content = bytearray(CONTENTS[kind])
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(content), 300).tolist():
        before, content[at] = content[at], content[at] ^ (1 << int(rng.integers(8)))
        # A change that JSON does not see, such as in a space after the header, is none.
        if python_refuses(bytes(content)):
            assert refused(bytes(content))[0] in (FILE, UNSUPPORTED)
        content[at] = before
    Loaded.of_bytes(bytes(content))


def test_a_wrong_checksum():
    _, message = refused(
        CONTENTS["trees"].replace(b'\\"sha256\\":\\"', b'\\"sha256\\":\\"f', 1)[:-1]
    )
    assert message
    found = container.unpack(CONTENTS["trees"], (2,))
    header = {"body": found.body, "format": 2, "sha256": "0" * 64}
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    content = safetensors.numpy.save(found.tensors, metadata={"qwyc": text})
    assert refused(content) == (
        FILE,
        "the file is damaged: its contents do not match their checksum",
    )


def test_another_format():
    found = container.unpack(CONTENTS["trees"], (2,))
    content = container.pack(Container(3, found.body, found.tensors))
    status, message = refused(content)
    assert status == UNSUPPORTED
    assert "the file has format 3; this version of the library reads formats 1 and 2" in message


CHANGES = {
    "threshold": lambda b, t: b["target"].update(threshold="0"),
    "infinite threshold": lambda b, t: b["model"].update(threshold=float("inf")),
    "kind": lambda b, t: b["model"].update(kind="forest"),
    "target": lambda b, t: b["target"].update(kind="many-classes"),
    "no classes": lambda b, t: b["model"]["classes"].update(values=[]),
    "one class": lambda b, t: b["model"]["classes"].update(values=[1]),
    "three classes": lambda b, t: b["model"]["classes"].update(values=[1, 2, 3]),
    "features": lambda b, t: b["model"]["schema"].update(n_features=1),
    "huge count": lambda b, t: b["model"]["schema"].update(n_features=2**70),
    "names": lambda b, t: b["model"]["schema"].update(names=["a"]),
    "digest": lambda b, t: b["model"].update(digest="0" * 64),
    "divisor": lambda b, t: b["model"]["base_models"].update(divisor=0),
    "summation": lambda b, t: b["model"]["base_models"].update(summation="float16"),
    "how": lambda b, t: b["certificate"].update(how="guessed"),
    "confidence": lambda b, t: b["certificate"].update(confidence=2),
    "counts": lambda b, t: b["certificate"]["counts"].update(differences=[5, 5]),
    "missing part": lambda b, t: b.pop("evaluation"),
    "evidence without a path": lambda b, t: b.update(evidence={}),
    "order": lambda b, t: t.update({"policy.order": t["policy.order"] * 0}),
    "order of another length": lambda b, t: t.update({"policy.order": t["policy.order"][:-1]}),
    "crossed": lambda b, t: t.update({"policy.lower": t["policy.upper"] + 1}),
    "NaN": lambda b, t: t.update({"policy.lower": t["policy.lower"] * np.nan}),
    "costs": lambda b, t: t.update({"policy.costs": -t["policy.costs"]}),
    "children": lambda b, t: t.update({"trees.left": t["trees.left"] * 0}),
    "feature": lambda b, t: t.update({"trees.feature": t["trees.feature"] + 1000}),
    "leaves": lambda b, t: t.update({"trees.leaf_value": t["trees.leaf_value"] * np.inf}),
    "type": lambda b, t: t.update({"trees.flags": t["trees.flags"].astype(np.int32)}),
    "axes": lambda b, t: t.update({"trees.flags": t["trees.flags"][None]}),
    "unknown tensor": lambda b, t: t.update({"trees.more": np.zeros(1)}),
    "missing tensor": lambda b, t: t.pop("trees.right"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_content_that_does_not_go_together(name):
    content = repacked(CONTENTS["trees"], CHANGES[name])
    assert python_refuses(content)
    assert refused(content)[0] == FILE


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(CONTENTS)), st.data())
def test_a_changed_value_in_the_header_is_refused_where_python_refuses_it(kind, data):
    """Whatever stands in the model, the target or the certificate: nothing that Python refuses is taken."""
    values = st.one_of(
        st.none(), st.booleans(), st.integers(-2, 5), st.floats(), st.text(max_size=3),
        st.just([]), st.just({}), st.integers(2**62, 2**80),
    )  # fmt: skip

    def change(body, tensors):
        at = body[data.draw(st.sampled_from(["model", "target", "certificate", "evaluation"]))]
        while True:
            key = data.draw(st.sampled_from(sorted(at)))
            if not isinstance(at[key], dict) or not at[key] or data.draw(st.booleans()):
                break
            at = at[key]
        if data.draw(st.booleans()):
            at[key] = data.draw(values)
        else:
            del at[key]

    content = repacked(CONTENTS[kind], change)
    try:
        Loaded.of_bytes(content)
    except LibraryError as error:
        assert error.status in (FILE, UNSUPPORTED)  # noqa: PT017
    else:
        assert not python_refuses(content)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content):
    assert refused(content)[0] == FILE
    assert refused(struct.pack("<Q", len(content)) + content)[0] == FILE


def outer(text):
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"__metadata__":{"qwyc":"' + b"[" * 3000 + b'"}}',
        b'{"__metadata__":{"qwyc":"{}"},"__metadata__":{}}',
        b'{"__metadata__":{"qwyc":"\\ud800"}}',
        b'{"__metadata__":{"qwyc":"\xff"}}',
        b"null",
    ],
)
def test_hostile_headers(text):
    assert refused(outer(text))[0] == FILE


def test_paths_that_cannot_be_read(tmp_path):
    for path, words in ((tmp_path / "none.qwyc", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(LibraryError, match=words) as error:
            Loaded.of_file(path)
        assert error.value.status == READ
        assert str(error.value).startswith(str(path))
    (tmp_path / "empty.qwyc").touch()
    with pytest.raises(LibraryError, match="empty"):
        Loaded.of_file(tmp_path / "empty.qwyc")
    with pytest.raises(LibraryError, match="path is NULL or empty") as error:
        Loaded.of_file("")
    assert error.value.status == ARGUMENT
    assert library().qwyc_load(b"x", None) == ARGUMENT


def test_a_whole_file_of_optimize(tmp_path):
    """With a path, evidence and sketches of the sample."""
    ensemble = random_ensemble(5, n_trees=20)
    rows = random_rows(5, ensemble, n=4000)
    fast = qwyc.optimize(ensemble, rows, alpha=0.05, evaluation="quit", progress=False)
    fast.save(tmp_path / "model.qwyc")
    model = Loaded.of_file(tmp_path / "model.qwyc")
    decided = fast.decide(rows)
    label, steps, score = model.decide(rows)
    np.testing.assert_array_equal(fast.ensemble.classes.take(label), decided.label)
    np.testing.assert_array_equal(steps, decided.steps)
    np.testing.assert_array_equal(score[:, 0], decided.score)
    assert json.loads(model.text("certificate"))["alpha"] == 0.05


def test_wrong_arguments():
    model, lib = Loaded.of_bytes(CONTENTS["trees"]), library()
    width = model.number("n_features")
    for shape, words in (((3, width + 1), "features"), ((3, 0), "features")):
        with pytest.raises(LibraryError, match=words) as error:
            model.decide(np.zeros(shape))
        assert error.value.status == ARGUMENT
    with pytest.raises(LibraryError, match="threads must be"):
        model.decide(np.zeros((1, width)), threads=-1)
    assert lib.qwyc_decide(None, None, 1, None, None, None) == ARGUMENT
    assert lib.qwyc_decide(model.handle, None, 1, None, None, None) == ARGUMENT
    assert lib.qwyc_decide_one_f64(model.handle, None, None, None, None) == ARGUMENT
    row = np.zeros(width)
    assert lib.qwyc_decide_one_f64(model.handle, row.ctypes.data, None, None, None) == OK
    assert len(model.decide(np.zeros((0, width)))[0]) == 0
    assert model.text("feature_name", -1) is None
    assert model.text("class_name", 2) is None
    assert lib.qwyc_n_features(None) == 0
    lib.qwyc_free(None)


def test_versions():
    lib = library()
    header = (classifier_file.FORMAT, lib.qwyc_newest_format(), lib.qwyc_oldest_format())
    assert header == (2, 2, 1)
    assert lib.qwyc_abi_version() == 1
    assert lib.qwyc_version().decode() == qwyc.__version__


def test_text_beyond_ascii():
    ensemble = random_ensemble(3, n_trees=4)
    names = tuple(f'größe 😀 \\ " {j}' for j in range(ensemble.schema.n_features))
    labels = np.array(["naïve\n", "oui"])
    named = replace(ensemble, schema=replace(ensemble.schema, names=names), classes=labels)
    fast = with_random_policy(named, random_rows(3, ensemble))
    model = Loaded.of_bytes(classifier_file.to_bytes(fast))
    assert [model.text("feature_name", j) for j in range(len(names))] == list(names)
    assert [model.text("class_name", k) for k in range(2)] == labels.tolist()


def test_a_large_file_whose_checksum_has_a_thread():
    """From many threads at once, so that some compute it themselves."""
    ensemble = random_ensemble(0, n_trees=3000)
    content = classifier_file.to_bytes(with_random_policy(ensemble, random_rows(0, ensemble), 0))
    assert len(content) > 1 << 18
    damaged = bytearray(content)
    damaged[-9] ^= 1
    with ThreadPoolExecutor(8) as pool:
        sound = list(pool.map(Loaded.of_bytes, [content] * 40))
        assert {model.number("n_models") for model in sound} == {3000}
        for failed in [pool.submit(Loaded.of_bytes, bytes(damaged)) for _ in range(40)]:
            assert "its contents do not match their checksum" in str(failed.exception())
