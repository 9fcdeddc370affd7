"""Outputs within a tolerance: the promise is broken no more often than the confidence says."""

import numpy as np

from qwyc.promise.binomial import tail
from qwyc_experiments.validity import tolerance as study


def test_the_promise_holds_as_often_as_it_says():
    model, tolerance = study.models()["probabilities"]
    found = study.delivered(model, tolerance, repetitions=4, n_rows=1400, population=10_000)
    for (alpha, confidence), shares in found.items():
        broken = int(np.sum(shares > alpha))
        # Where each is broken with a probability of 1 - confidence, so many are rare.
        assert tail(len(shares) - broken, len(shares), confidence) > 1e-3 or broken == 0
    assert max(shares.max() for shares in found.values()) > 0  # rows do quit
