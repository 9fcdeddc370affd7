"""MLflow: save, log and load what qwyc makes, and serve it as a pyfunc model.

The model folder holds a `.qwyc` file, so that no code is stored and nothing is unpickled."""

from __future__ import annotations

import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy.typing as npt

from qwyc.approximation import Approximation
from qwyc.classifier import Classifier, load
from qwyc.errors import MissingDependencyError, OptionError
from qwyc.predictor import Predictor
from qwyc.report import inspection

try:
    import mlflow
    import mlflow.pyfunc
    from mlflow.models import ModelSignature, infer_signature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema, TensorSpec
    from mlflow.types.schema import AnyType
except ImportError:
    raise MissingDependencyError("qwyc.mlflow needs MLflow: pip install mlflow-skinny") from None

__all__ = ["load_model", "log_model", "save_model"]

Model = Classifier | Approximation | Predictor

FOLDER, FILE = "qwyc", "model.qwyc"  # of the model, in MLflow's folder
FACTS, SENTENCE = "certificate.json", "certificate.txt"
OUTPUTS = ("label", "decisions", "proba")  # values of the parameter "output"


def save_model(
    model: Model,
    path: str | os.PathLike[str],
    *,
    input_example: Any = None,
    signature: ModelSignature | None = None,
    pip_requirements: list[str] | None = None,
    **options: Any,
) -> None:
    """Write a folder that MLflow loads and serves.

    Parameters
    ----------
    model : a `qwyc.Classifier`, `qwyc.Approximation` or `qwyc.Predictor`.
    path : a folder that does not exist yet.
    input_example : some rows. MLflow keeps them, and the signature has their types.
    signature : of MLflow; by default inferred from input_example, or the columns of the model, of any type.
    pip_requirements : what a server installs; by default this version of qwyc, and pandas.
    options : passed to `mlflow.pyfunc.save_model`.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = _write_folder(model, Path(temporary) / FOLDER)
        mlflow.pyfunc.save_model(
            path=os.fspath(path),
            **_pyfunc(model, folder, input_example, signature, pip_requirements),
            **options,
        )


def log_model(
    model: Model,
    name: str = "model",
    *,
    input_example: Any = None,
    signature: ModelSignature | None = None,
    pip_requirements: list[str] | None = None,
    **options: Any,
) -> Any:
    """Log a model in the active run, or in a new one. The certificate is logged as metrics and as the
    artifact `certificate.json`. Returns MLflow's `ModelInfo`.

    Parameters
    ----------
    model : a `qwyc.Classifier`, `qwyc.Approximation` or `qwyc.Predictor`.
    name : of the model within the run.
    input_example : some rows. MLflow keeps them, and the signature has their types.
    signature : of MLflow; by default inferred from input_example, or the columns of the model, of any type.
    pip_requirements : what a server installs; by default this version of qwyc, and pandas.
    options : passed to `mlflow.pyfunc.log_model`, such as `registered_model_name`.
    """
    if mlflow.active_run() is None:
        with mlflow.start_run():
            return log_model(
                model,
                name,
                input_example=input_example,
                signature=signature,
                pip_requirements=pip_requirements,
                **options,
            )
    with tempfile.TemporaryDirectory() as temporary:
        folder = _write_folder(model, Path(temporary) / FOLDER)
        logged = mlflow.pyfunc.log_model(
            name=name,
            **_pyfunc(model, folder, input_example, signature, pip_requirements),
            **options,
        )
        if not isinstance(model, Predictor):
            mlflow.log_artifact(str(folder / FACTS))
            mlflow.log_metrics(certificate_metrics(model))
    return logged


def load_model(model_uri: str) -> Any:
    """The `Classifier`, `Approximation` or `Predictor` that was saved or logged at an address of MLflow.

    Parameters
    ----------
    model_uri : such as "runs:/<run id>/model", "models:/fraud/3" or the path of a folder.
    """
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri))
    found = sorted(folder.glob(f"**/{FILE}"))
    if not found:
        raise OptionError(
            f"{model_uri} holds no qwyc model; it was expected to be written by qwyc.mlflow.save_model or "
            "log_model"
        )
    return load(found[0])


def certificate_metrics(model: Classifier | Approximation) -> dict[str, float]:
    """The numbers of a certificate, by the names that they have in MLflow."""
    seen = model.certificate
    facts: dict[str, Any] = {
        "qwyc_alpha": seen.alpha if isinstance(seen.alpha, float) else None,
        "qwyc_confidence": seen.confidence,
        "qwyc_upper_bound": seen.upper_bound,
        "qwyc_rows": seen.rows,
        "qwyc_disagreements": seen.disagreements,
        "qwyc_observed": seen.observed,
        "qwyc_mean_base_models": seen.mean_models,
        "qwyc_base_models": model.policy.n_models,
        "qwyc_tolerance": seen.tolerance,
    }
    return {name: float(value) for name, value in facts.items() if value is not None}


def _write_folder(model: Model, folder: Path) -> Path:
    if not isinstance(model, (Classifier, Approximation, Predictor)):
        raise OptionError(
            "a qwyc.Classifier, qwyc.Approximation or qwyc.Predictor was expected; got "
            f"{type(model).__name__}: make one with qwyc.optimize or qwyc.read_model"
        )
    folder.mkdir()
    model.save(folder / FILE)
    if not isinstance(model, Predictor):
        facts = json.dumps(inspection.inspect(model), indent=2, default=str)
        (folder / FACTS).write_text(facts + "\n")
        (folder / SENTENCE).write_text(f"{model.certificate}\n")
    return folder


def _pyfunc(
    model: Model,
    folder: Path,
    input_example: Any,
    signature: ModelSignature | None,
    pip_requirements: list[str] | None,
) -> dict[str, Any]:
    """The arguments that saving and logging share."""
    return {
        "loader_module": "qwyc.mlflow",
        "data_path": str(folder),
        "input_example": input_example,
        "signature": signature or _signature(model, input_example),
        "pip_requirements": pip_requirements or [f"qwyc=={version('qwyc')}", "pandas"],
    }


def _signature(model: Model, input_example: Any) -> ModelSignature:
    parameters = ParamSchema([ParamSpec("output", "string", OUTPUTS[0])])
    if input_example is not None:
        found = infer_signature(input_example, model.predict(input_example))
        return ModelSignature(found.inputs, found.outputs, parameters)
    ensemble = model if isinstance(model, Predictor) else model.ensemble
    schema = ensemble.schema
    assert schema is not None  # what can be saved has one
    if schema.names is None:
        inputs = Schema([TensorSpec(schema.dtype, (-1, schema.n_features))])
    else:
        # A number column may come as integers or floats, which MLflow does not convert into each other.
        inputs = Schema([ColSpec(AnyType(), str(name), required=True) for name in schema.names])
    return ModelSignature(inputs, None, parameters)


class _Served:
    """What MLflow calls: rows and parameters in, an array or a data frame out."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> npt.NDArray[Any] | Any:
        """Labels or values, (N,); with `output` "proba" probabilities, (N, n_classes); with "decisions" a
        data frame of label, steps, score and complete."""
        output = (params or {}).get("output", OUTPUTS[0])
        if output == "label":
            return self.model.predict(rows)
        if output == "proba":
            return self.model.predict_proba(rows)
        if output == "decisions" and not isinstance(self.model, Predictor):
            import pandas

            decided = self.model.decide(rows)
            columns = ("label", "steps", "score", "complete")
            return pandas.DataFrame({name: list(getattr(decided, name)) for name in columns})
        known = OUTPUTS if not isinstance(self.model, Predictor) else ("label", "proba")
        raise OptionError(f"output is one of {', '.join(known)}; got {output!r}")


def _load_pyfunc(path: str) -> _Served:
    """MLflow calls this with the folder, or file, that `data_path` named."""
    given = Path(path)
    return _Served(load(given / FILE if given.is_dir() else given))
