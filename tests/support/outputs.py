"""Models of values and probabilities, compared with what their own libraries give."""

import numpy as np

import qwyc


def made_rows(missing=0.1, n=1200, features=8):
    """Rows of float32, some values missing, and a target that depends on two of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, features)).astype(np.float32)
    target = 2.0 * X[:, 0] + X[:, 1] + rng.normal(scale=0.3, size=n)
    X[rng.random(X.shape) < missing] = np.nan
    return X, target


def check_values(model, X, own, folder):
    """`predict` and `predict_one` give `own`, its type included; so does the model from a file."""
    predictor = qwyc.read_model(model)
    _equal(predictor.predict(X), own)
    _equal(np.array([predictor.predict_one(row) for row in X[:20]], dtype=own.dtype), own[:20])
    predictor.save(folder / "saved.qwyc")
    _equal(qwyc.load(folder / "saved.qwyc").predict(X), own)


def check_probabilities(model, X, own, folder):
    """`predict_proba` gives `own`, its type included; so does the model from a file."""
    predictor = qwyc.read_model(model)
    _equal(predictor.predict_proba(X), own)
    _equal(predictor.predict_proba(X, threads=2), own)
    predictor.save(folder / "saved.qwyc")
    _equal(qwyc.load(folder / "saved.qwyc").predict_proba(X), own)


def onnx_outputs(model, rows):
    """What ONNX Runtime gives on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {session.get_inputs()[0].name: rows})


def _equal(ours, own):
    assert ours.dtype == own.dtype
    np.testing.assert_array_equal(ours, own)
