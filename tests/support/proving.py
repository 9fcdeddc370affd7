"""Parity of a model with an ensemble and full scores that need not be its own."""

import numpy as np

import qwyc
from qwyc import importers
from qwyc.check import parity


def prove_parity(model, X, ensemble, full, threshold):
    """Whether the model itself could be asked; ParityError where these full scores are not its own."""
    source = importers.OpenModel(ensemble, importers.open_model(model).ask)
    scores = qwyc.ScoreMatrix(np.empty((len(full), 0)), 0.0, threshold, np.asarray(full))
    return parity.prove_parity(source, ensemble.sample(X), scores)
