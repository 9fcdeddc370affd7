"""Files written by version 0.1.0 are read for ever, and decide the same, row for row."""

import importlib.util
import json
from pathlib import Path

import pytest

import qwyc
from qwyc.files import classifier_file, container

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = sorted((GOLDEN / "0.1.0").glob("*.qwyc"))


def load_rows(kind):
    spec = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    return make.adult(kind)[1][: make.ROWS]


@pytest.fixture(scope="module")
def rows():
    return {kind: load_rows(kind) for kind in ("codes", "filled", "frame", "text")}


def test_there_is_a_golden_file_of_ten_kinds_of_model():
    assert len(FILES) == 10
    for path in FILES:
        assert container.unpack(path.read_bytes(), (1, 2)).format == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_0_1_0_decides_as_it_did(path, rows, tmp_path):
    facts = json.loads(path.with_suffix(".json").read_text())
    fast, X = qwyc.load(path), rows[facts["rows"]]
    fast.save(tmp_path / "again.qwyc")
    again = qwyc.load(tmp_path / "again.qwyc")
    assert container.unpack((tmp_path / "again.qwyc").read_bytes(), (2,)).format == 2
    for classifier in (fast, again):
        decisions = classifier.decide(X)
        assert decisions.label.tolist() == facts["label"]
        assert decisions.steps.tolist() == facts["steps"]
        assert [value.hex() for value in decisions.score.tolist()] == facts["score"]
        assert [value.hex() for value in classifier.score_full(X).tolist()] == facts["full"]
        seen, said = classifier.certificate, dict(facts["certificate"])
        if seen.how == "held-out":  # the bound of 0.1.0 did not count that the policy was chosen
            said["upper_bound"] = (
                seen.alpha if isinstance(seen.alpha, float) else sum(seen.alpha.values())
            )
        assert {name: getattr(seen, name) for name in said} == said
        assert classifier.evaluation.decided_by == "unknown"  # 0.1.0 did not record it
        if facts["at"] is not None:
            assert classifier.at(alpha=0.05).policy.lower.tolist()[:-1] == facts["at"]
    assert fast.ensemble.digest == again.ensemble.digest
    single = X.iloc[:20] if hasattr(X, "iloc") else X[:20]
    one = [fast.predict_one(single[i : i + 1] if hasattr(X, "iloc") else row)
           for i, row in enumerate(single if not hasattr(X, "iloc") else range(20))]  # fmt: skip
    assert one == facts["label"][:20]


def test_a_damaged_golden_file_is_refused(tmp_path):
    content = bytearray(FILES[0].read_bytes())
    content[-3] ^= 1
    (tmp_path / "bad.qwyc").write_bytes(content)
    with pytest.raises(qwyc.ArtifactError, match="checksum"):
        qwyc.load(tmp_path / "bad.qwyc")


def test_a_later_format_says_which_formats_are_read(tmp_path):
    found = container.unpack(FILES[0].read_bytes(), (1,))
    later = container.Container(3, found.body, found.tensors)
    (tmp_path / "later.qwyc").write_bytes(container.pack(later))
    with pytest.raises(qwyc.ArtifactError, match=r"format 3.*formats 1 and 2"):
        qwyc.load(tmp_path / "later.qwyc")


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (
            ("model", "kind"),
            "networks",
            "expected one of trees, class-trees, combined-trees, combined-class-trees, lattices; "
            "got 'networks'",
        ),
        (("model", "kind"), "lattices", "tensors are missing or unknown"),
        (("target", "kind"), "one-of-many", "expected one of two-classes"),
        (("evaluation", "decided_by"), "fate", "measurement"),
    ],
)
def test_format_2_records_kinds_and_refuses_others(where, value, said):
    content = classifier_file.to_bytes(qwyc.load(FILES[0]))
    found = container.unpack(content, (2,))
    assert found.body["model"]["kind"] == "trees"
    assert found.body["target"]["kind"] == "two-classes"
    body = json.loads(json.dumps(found.body))
    body[where[0]][where[1]] = value
    with pytest.raises(qwyc.ArtifactError, match=said):
        classifier_file.from_bytes(container.pack(container.Container(2, body, found.tensors)))


def test_the_same_classifier_gives_the_same_bytes():
    fast = qwyc.load(FILES[-1])
    first = classifier_file.to_bytes(fast)
    again = classifier_file.to_bytes(classifier_file.from_bytes(first))
    assert first == again
