"""The .qwyc file of a classifier of K classes: round trips, and files that are damaged or hostile."""

import json
import pickle

import numpy as np
import pytest
import safetensors.numpy

import qwyc
from many_classes import class_ensemble, rows_of
from qwyc.classifier import from_certified
from qwyc.files import classifier_file, container
from qwyc.target.ties import Ties

SAMPLE, NEW = rows_of(3000), rows_of(500, seed=2)


def made(**options):
    options = {"classes": ["a", "b", "c"], "ties": Ties("softmax", "float32")} | options
    ensemble = class_ensemble(3, 10, **options)
    return qwyc.optimize(ensemble, SAMPLE, alpha=0.03, evaluation="quit")


def to_bytes(fast):
    return classifier_file.to_bytes(fast)


def from_bytes(content):
    return from_certified(classifier_file.from_bytes(content))


FAST = made()
CONTENT = to_bytes(FAST)


def same(a, b, rows=NEW):
    first, second = a.decide(rows), b.decide(rows)
    for name in ("label", "steps", "score", "complete"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(a.score_full(rows), b.score_full(rows))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"vectors": True},
        {"classes": [3, 1, 2], "ties": Ties("sigmoid", scale=2.0)},
        {"classes": np.array([0.5, 1.5, 2.5]), "lean": [0.5, 0.25, 0.0]},
        {"names": tuple("uvwxyz")},
    ],
)
def test_round_trip(options, tmp_path):
    fast = made(**options)
    path = tmp_path / "model.qwyc"
    fast.save(path)
    again = qwyc.load(path)
    same(fast, again)
    assert again.certificate == fast.certificate
    assert again.ensemble.digest == fast.ensemble.digest
    assert again.ensemble.classes.dtype == fast.ensemble.classes.dtype
    assert repr(again) == repr(fast)
    assert again.at(alpha=0.06).certificate == fast.at(alpha=0.06).certificate
    again.save(tmp_path / "again.qwyc")
    assert (tmp_path / "again.qwyc").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0},
        {"alpha": 0.04, "method": "natural"},
        {"alpha": 0.05, "by_class": {"a": 0.05}},
        {"by_class": dict.fromkeys("abc", 0.06)},
        {"alpha": 0.05, "groups": np.repeat(np.arange(1500), 2)},
        {"alpha": 0.05, "order_by": np.arange(3000)},
        {"alpha": 0.05, "feature_costs": [1, 2, 3, 4, 5, 6]},
        {"alpha": 0.05, "evaluation": "full"},
    ],
)
def test_every_kind_of_certificate_survives(options):
    fast = qwyc.optimize(FAST.ensemble, SAMPLE, **options)
    again = from_bytes(to_bytes(fast))
    assert again.certificate == fast.certificate
    assert str(again.certificate) == str(fast.certificate)
    same(fast, again)
    assert to_bytes(again) == to_bytes(fast)


def test_thresholds_that_classes_share_are_kept_once():
    tensors = safetensors.numpy.load(CONTENT)
    assert tensors["policy.lead"].shape == (10, 1)
    assert tensors["path.lead"].shape == (len(FAST.choices.path), 10, 1)
    limits = {"alpha": 0.05, "by_class": {"a": 0.05}}
    own = qwyc.optimize(FAST.ensemble, SAMPLE, **limits, evaluation="quit")
    assert safetensors.numpy.load(to_bytes(own))["policy.lead"].shape == (10, 3)


def test_digests_tell_models_apart():
    digests = {
        made(**options).ensemble.digest
        for options in (
            {},
            {"vectors": True},
            {"seed": 1},
            {"ties": Ties()},
            {"ties": Ties("softmax", "float64")},
            {"classes": ["a", "c", "b"]},
            {"lean": [0.1, 0.0, 0.0]},
        )
    }
    assert len(digests) == 7


def test_pickles():
    same(FAST, pickle.loads(pickle.dumps(FAST)))


def test_every_byte_matters():
    rng = np.random.default_rng(0)
    for position in rng.choice(len(CONTENT), 300, replace=False):
        damaged = bytearray(CONTENT)
        damaged[position] ^= int(rng.integers(1, 256))
        try:
            again = from_bytes(bytes(damaged))
        except qwyc.ArtifactError:
            continue
        assert to_bytes(again) == CONTENT  # bytes without meaning, such as padding in the header
    with pytest.raises(qwyc.ArtifactError):
        from_bytes(CONTENT[:-9])


def resealed(change, content=CONTENT):
    """A file with valid checksums whose contents were changed: a hostile writer can do that."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["qwyc"])
    tensors = safetensors.numpy.load(content)
    change(header["body"], tensors)
    body = header["body"]
    header |= {"sha256": container._digest(body, tensors)}
    return safetensors.numpy.save(tensors, metadata={"qwyc": json.dumps(header)})


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
        tensors[name] = np.ascontiguousarray(make_new(tensors[name]))

    return change


def entry(index, value):
    def make_new(array):
        array = array.copy()
        array[index] = value
        return array

    return make_new


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_in("target", "kind", to="two-classes"), "tensors are missing or unknown"),
        (set_in("target", "kind", to="three-classes"), "expected one of"),
        (set_in("model", "kind", to="trees"), "tensors are missing or unknown"),
        (set_in("model", "classes", "values", to=["a", "b"]), "3 labels"),
        (set_in("model", "classes", "values", to=["a", "b", "c", "d"]), "3 labels"),
        (set_in("model", "classes", "values", to=["a", "c", "b"]), "digest"),
        (
            set_in("model", "base_models", "ties", to=["coin", "float64", 1.0]),
            "not a known rule for ties",
        ),
        (
            set_in("model", "base_models", "ties", to=["softmax", "int8", 1.0]),
            "not a known rule for ties",
        ),
        (set_in("model", "base_models", "ties", to=["scores", "float64", None]), "a number"),
        (set_in("model", "base_models", "ties", to=["scores"]), "not enough values"),
        (set_in("model", "base_models", "ties", to=7), "not a valid"),
        (set_in("model", "base_models", "divisor", to=0.0), ""),
        (set_in("model", "base_models", "summation", to="shares"), "two classes"),
        (set_in("certificate", "counts", "by_class", to=[1, 1]), "number of classes"),
        (set_in("certificate", "counts", "differences", to=[0, 0]), "kinds of disagreement"),
        (set_in("certificate", "by_class", to={"3": 0.1}), "by_class names class 3"),
        (set_in("certificate", "alpha", to={"negative": 0.1, "positive": 0.1}), "two classes"),
        (set_in("evidence", "by_class", to=[1000, 500]), "number of classes"),
        (set_tensor("class-trees.tree_class", entry(0, 3)), "class"),
        (set_tensor("class-trees.tree_class", entry(0, -1)), "class"),
        (set_tensor("class-trees.tree_class", entry(0, 1)), "two trees of one class"),
        (set_tensor("class-trees.tree_class", lambda a: a[:-1]), "class"),
        (set_tensor("class-trees.tree_class", lambda a: a[:0]), ""),
        (set_tensor("class-trees.step_begin", lambda a: a[:1]), "too few"),
        (set_tensor("class-trees.step_begin", lambda a: a[:0]), "too few"),
        (set_tensor("class-trees.step_begin", entry(1, 0)), "divide the trees"),
        (set_tensor("class-trees.step_begin", entry(-1, 2**40)), "divide the trees"),
        (set_tensor("class-trees.start", entry(0, np.nan)), "finite"),
        (set_tensor("class-trees.start", lambda a: a[:2]), ""),
        (set_tensor("class-trees.start", lambda a: a[:0]), "too few"),
        (set_tensor("class-trees.leaf_value", entry(3, np.inf)), "finite"),
        (set_tensor("class-trees.leaf_value", lambda a: a[:-1]), "leaves"),
        (set_tensor("class-trees.leaf_vector", lambda a: np.zeros((0, 2))), "too few"),
        (set_tensor("class-trees.leaf_vector", lambda a: np.zeros((240, 3))), ""),
        (set_tensor("class-trees.leaf_begin", entry(-1, 2**50)), "leaves"),
        (set_tensor("class-trees.leaf_begin", lambda a: a[:0]), "too few"),
        (set_tensor("class-trees.leaf_begin", entry(1, 2**50)), "not valid"),
        (set_tensor("class-trees.node_begin", entry(1, 2**50)), "not valid"),
        (set_tensor("class-trees.left", entry(0, 10**6)), "not valid"),
        (set_tensor("class-trees.feature", entry(0, 10**6)), "not valid"),
        (set_tensor("class-trees.threshold", lambda a: a.astype(np.float64)), "dtype"),
        (set_tensor("class-trees.leaf_other", lambda a: np.zeros(240)), "leaves"),
        (set_tensor("policy.lead", entry((0, 0), -1.0)), "at least 0"),
        (set_tensor("policy.lead", entry((0, 0), np.nan)), "at least 0"),
        (set_tensor("policy.lead", lambda a: np.repeat(a, 2, axis=1)), "for 2 classes"),
        (set_tensor("policy.lead", lambda a: a[:-1]), ""),
        (set_tensor("policy.order", entry(0, 99)), "every base model"),
        (set_tensor("path.lead", lambda a: a[:, :-1]), "differ in length"),
        (set_tensor("path.lead", lambda a: a[:-1]), "differ in length"),
        (set_tensor("path.lead", lambda a: np.repeat(a, 2, axis=2)), "for 2 classes"),
        (set_tensor("path.lead", entry((3, 0, 0), -1.0)), "at least 0"),
        (set_tensor("path.lead", lambda a: a + 1), "not on this path"),
        (set_tensor("path.differences", lambda a: a[:, :2]), "differ in length"),
        (set_tensor("path.differences", entry((1, 1), -1)), "more disagreements"),
    ],
)
def test_hostile_files_are_refused(change, message):
    with pytest.raises(qwyc.ArtifactError, match=message):
        from_bytes(resealed(change))


def test_a_policy_of_two_thresholds_does_not_go_with_many_classes():
    two = qwyc.fit_policy(np.random.default_rng(0).normal(size=(100, 10)), alpha=0.1)
    with pytest.raises(qwyc.OptionError, match="a LeadPolicy, a threshold per step and class"):
        qwyc.Classifier(FAST.ensemble, two, FAST.certificate)
    four = qwyc.LeadPolicy(np.arange(10), np.ones((10, 4)), np.ones(10))
    with pytest.raises(qwyc.OptionError, match="for 4 classes; the ensemble has 3"):
        qwyc.Classifier(FAST.ensemble, four, FAST.certificate)
    three = qwyc.LeadPolicy(np.arange(10), np.ones((10, 3)), np.ones(10))
    with pytest.raises(qwyc.OptionError, match="ties differently"):
        qwyc.Classifier(FAST.ensemble, three, FAST.certificate)
