"""Quit When You Can: the same decisions as your tree ensemble, from a fraction of its trees."""

from qwyc.certify import Certificate
from qwyc.classifier import Classifier, load
from qwyc.ensemble import Ensemble
from qwyc.errors import (
    ArtifactError,
    InputError,
    MissingDependencyError,
    ModelError,
    OptionError,
    ParityError,
    QwycError,
)
from qwyc.fit import fit_policy
from qwyc.importers import read_model
from qwyc.optimize import optimize
from qwyc.policy import Decisions, Policy
from qwyc.scores import ScoreMatrix

__version__ = "0.1.0.dev0"

__all__ = [
    "ArtifactError",
    "Certificate",
    "Classifier",
    "Decisions",
    "Ensemble",
    "InputError",
    "MissingDependencyError",
    "ModelError",
    "OptionError",
    "ParityError",
    "Policy",
    "QwycError",
    "ScoreMatrix",
    "fit_policy",
    "load",
    "optimize",
    "read_model",
]
