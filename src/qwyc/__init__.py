"""Quit When You Can: the same decisions as your tree ensemble, from a fraction of its trees."""

from typing import TYPE_CHECKING, Any

from qwyc import distributed, lattice
from qwyc.approximation import Approximation
from qwyc.build.optimize import optimize
from qwyc.build.recertify import recertify
from qwyc.check.diagnose import Diagnosis, diagnose
from qwyc.check.verify import Verification, verify
from qwyc.classifier import Classifier, load
from qwyc.errors import (
    ArtifactError,
    CapacityError,
    InfeasibleError,
    InputError,
    MissingDependencyError,
    ModelError,
    OptionError,
    ParityError,
    QwycError,
    QwycWarning,
    TrainingRowsWarning,
)
from qwyc.model.callables import callable_ensemble as BaseModels  # noqa: N812 - the name that 0.1.0 had
from qwyc.model.cascade import Cascade
from qwyc.model.ensemble import Ensemble
from qwyc.model.lazy import LazyDecisions
from qwyc.monitor.monitor import Monitor
from qwyc.policy.costs import Costs
from qwyc.policy.decisions import Decisions
from qwyc.policy.fan_policy import FanPolicy
from qwyc.policy.filter_path import FilterPath
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.fit.api import fit_fan_path, fit_path, fit_policy
from qwyc.policy.lead_path import LeadPath
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.path import Path
from qwyc.policy.policy import Policy
from qwyc.policy.scores import ScoreMatrix
from qwyc.predictor import Predictor, read_model
from qwyc.promise.certificate import Certificate
from qwyc.target.thresholds import Probability, Score

if TYPE_CHECKING:
    from qwyc import plot
    from qwyc.estimator import EarlyExitClassifier

__version__ = "0.2.0"

__all__ = [
    "Approximation",
    "ArtifactError",
    "BaseModels",
    "CapacityError",
    "Cascade",
    "Certificate",
    "Classifier",
    "Costs",
    "Decisions",
    "Diagnosis",
    "EarlyExitClassifier",
    "Ensemble",
    "FanPolicy",
    "FilterPath",
    "FilterPolicy",
    "InfeasibleError",
    "InputError",
    "LazyDecisions",
    "LeadPath",
    "LeadPolicy",
    "MissingDependencyError",
    "ModelError",
    "Monitor",
    "OptionError",
    "ParityError",
    "Path",
    "Policy",
    "Predictor",
    "Probability",
    "QwycError",
    "QwycWarning",
    "Score",
    "ScoreMatrix",
    "TrainingRowsWarning",
    "Verification",
    "diagnose",
    "distributed",
    "fit_fan_path",
    "fit_path",
    "fit_policy",
    "lattice",
    "load",
    "optimize",
    "plot",
    "read_model",
    "recertify",
    "verify",
]


def __getattr__(name: str) -> Any:
    """What needs scikit-learn or matplotlib is imported where it is first used."""
    if name == "EarlyExitClassifier":
        from qwyc.estimator import EarlyExitClassifier

        return EarlyExitClassifier
    if name == "plot":
        from importlib import import_module

        return import_module("qwyc.plot")
    raise AttributeError(f"module 'qwyc' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, for completion in editors and notebooks."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
