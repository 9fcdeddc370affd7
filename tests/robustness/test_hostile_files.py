"""Files that claim more than they hold are refused quickly, in little memory."""

import json

import numpy as np
import pandas as pd
import pytest

import qwyc
from bounded import measured
from fuzz.corpus import corpus
from qwyc.limits import MAX_FEATURES, MAX_TENSORS, MEMORY
from robustness import hostile

SECONDS = 20  # far above what any of them takes, and far below what each took


@pytest.mark.parametrize(
    ("library", "make"),
    [(library, make) for library, makers in hostile.FILES.items() for make in makers],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_memory_and_time_are_bounded(tmp_path, library, make):
    content = make()
    path = tmp_path / ("model.qwyc" if library == "qwyc" else "model")
    path.write_bytes(content)
    read = "qwyc.load(path)" if library == "qwyc" else "qwyc.read_model(path)"
    done = measured(read, path)
    assert done.bytes <= MEMORY[library].bytes_for(len(content))
    assert done.seconds < SECONDS
    assert done.error in ("", "ModelError", "ArtifactError"), done.message


def read_error(tmp_path, content, name="model"):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(qwyc.QwycError) as caught:
        (qwyc.load if name.endswith(".qwyc") else qwyc.read_model)(path)
    return str(caught.value)


def test_errors_name_the_limit(tmp_path):
    assert f"0 to {MAX_FEATURES:,}" in read_error(tmp_path, hostile.many_features())
    assert "more than 4" in read_error(tmp_path, hostile.many_axes(), "a.qwyc")
    assert f"at most {MAX_TENSORS}" in read_error(tmp_path, hostile.many_tensors(), "a.qwyc")
    for make in (hostile.shared_categories, hostile.many_categories):
        assert "at most 134,217,728 are held" in read_error(tmp_path, make())
    assert "the graph has a cycle" in read_error(tmp_path, hostile.cyclic_graph())
    assert "64 levels" in read_error(tmp_path, hostile.deep_document())


def test_rows_of_another_width_are_refused_at_once(tmp_path):
    """A table of a model's columns takes memory for each of them; it is made once the columns are there."""
    document = json.loads(corpus("xgboost-json")[2])
    document["learner"]["learner_model_param"]["num_feature"] = str(MAX_FEATURES)
    document["learner"] |= {"feature_names": [], "feature_types": []}
    (tmp_path / "model").write_text(json.dumps(document))
    code = "qwyc.read_model(path).predict(np.zeros((2, 3)))"
    done = measured(code, tmp_path / "model")
    assert "2 columns" not in done.message
    assert "X has 3 columns; the model was trained on 16777216" in done.message
    assert done.bytes < 300e6
    model = qwyc.read_model(tmp_path / "model")
    with pytest.raises(qwyc.InputError, match="trained on 16777216"):
        model.predict(pd.DataFrame(np.zeros((2, 3))))


def header_of(content):
    size = int.from_bytes(content[:8], "little")
    return content[8 : 8 + size].rstrip(), content[8 + size :]


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.replace(b"{", b'{"__metadata__":{"qwyc":"x"},', 1),
        lambda header: header.replace(b'"__metadata__":{', b'"__metadata__":{"more":"x",', 1),
    ],
    ids=["twice", "more"],
)
def test_metadata_is_there_once_and_alone(tmp_path, change):
    header, tensors = header_of(corpus("qwyc")[0])
    assert change(header) != header
    message = read_error(tmp_path, hostile.sealed(change(header), tensors), "a.qwyc")
    assert "not a qwyc file" in message


def test_bytes_after_the_tensors_are_refused(tmp_path):
    assert "fill the file" in read_error(tmp_path, corpus("qwyc")[0] + b"xx", "a.qwyc")
