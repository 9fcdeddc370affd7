"""Parity of a model with an ensemble and full scores that need not be its own."""

import numpy as np

import qwyc
from qwyc import importers
from qwyc.check import parity


def prove_parity(model, X, ensemble, full, threshold):
    """Whether there is a live model to compare with; ParityError where the scores are not its own."""
    source = importers.OpenModel(ensemble, importers.open_model(model).predict_live)
    scores = qwyc.ScoreMatrix(np.empty((len(full), 0)), 0.0, threshold, np.asarray(full))
    return parity.prove_parity(source, ensemble.sample(X), scores)
