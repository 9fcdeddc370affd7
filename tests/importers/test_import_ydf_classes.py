"""YDF models of more than two classes as qwyc reads them against YDF itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import ydf

import qwyc
from class_parity import NAMES, check_classes, class_data, ties_of
from qwyc.target.ties import BY_SCORES, Ties

ydf.verbose(0)
CLASSES = (3, 7, 10, 100)
FEATURES = ["a", "b", "c", ("k", ydf.Semantic.CATEGORICAL), "e"]


def frame_of(K, **options):
    """A table with a column of categories, some of them missing, and labels."""
    X, y = class_data(K, **options)
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcke"))
    frame["k"] = np.array(["red", "green", "blue", "grey", None])[
        np.nan_to_num(X[:, 3], nan=4).astype(int)
    ]
    return frame, NAMES[y]


def train(learner, frame, label, **options):
    options = {"label": "label", "features": FEATURES, **options}
    return learner(**options).train(frame.assign(label=label))


def boosted(frame, label, **options):
    options = {"num_trees": 12, "validation_ratio": 0.0, **options}
    return train(ydf.GradientBoostedTreesLearner, frame, label, **options)


def forest(frame, label, **options):
    return train(ydf.RandomForestLearner, frame, label, **{"num_trees": 12, **options})


KINDS = {
    "boosted": boosted,
    "boosted, best first": lambda *data, **options: boosted(
        *data, growing_strategy="BEST_FIRST_GLOBAL", max_num_nodes=15, **options
    ),
    "votes": forest,
    "shares": lambda *data, **options: forest(*data, winner_take_all=False, **options),
    "CART": lambda *data, num_trees=1: train(ydf.CartLearner, *data, min_examples=2),
}


def raw_scores(model, rows):
    """The logits of boosted trees, the shares of forests."""
    if not hasattr(model, "set_output_logits"):
        return model.predict(rows)
    model.set_output_logits(True)
    scores = model.predict(rows)
    model.set_output_logits(False)
    return scores


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_decisions(kind, K):
    frame, label = frame_of(K, missing=0.1)
    model = KINDS[kind](frame, label, num_trees=3 if K == 100 else 12)
    ensemble = check_classes(model, frame, model.predict_class(frame), raw_scores(model, frame))
    assert ensemble.classes.tolist() == model.label_classes()
    assert set(ensemble.classes) == set(label)
    odd = frame.assign(k="unheard", a=np.inf, b=-np.inf)
    check_classes(model, odd, model.predict_class(odd), raw_scores(model, odd))


@pytest.mark.parametrize("kind", ["votes", "shares", "boosted"])
def test_ties_go_where_predict_class_sends_them(kind):
    frame, label = frame_of(4, n=800, coarse=True)
    model = KINDS[kind](frame[:200], label[:200], num_trees=2)
    ensemble = check_classes(model, frame, model.predict_class(frame), raw_scores(model, frame))
    if kind == "votes":
        assert ties_of(ensemble.score_full(frame)) > 5


def test_shares_that_rounding_puts_above_1():
    frame, label = frame_of(3)
    model = forest(frame, label, num_trees=30)
    full = qwyc.read_model(model).score_full(frame)
    assert full.max() > 1
    np.testing.assert_array_equal(np.minimum(full, 1.0), model.predict(frame))
    check_classes(model, frame, model.predict_class(frame), full)


def test_probabilities_are_those_that_decide():
    frame, label = frame_of(10)
    model = boosted(frame, label)
    ensemble = qwyc.read_model(model)
    ties = ensemble.base_models.ties
    assert ties == Ties("exponentials", "float32")
    ours = [ties.probabilities(scores) for scores in ensemble.score_full(frame)]
    np.testing.assert_array_equal(ours, model.predict(frame))


def test_logits_are_decided_as_they_are():
    frame, label = frame_of(3)
    model = boosted(frame, label, apply_link_function=False)
    ensemble = check_classes(model, frame, model.predict_class(frame), model.predict(frame))
    assert ensemble.base_models.ties == BY_SCORES


def test_missing_at_random():
    frame, label = frame_of(5, missing=0.2)
    model = boosted(frame, label, missing_value_policy="RANDOM_LOCAL_IMPUTATION")
    slow = not model.list_compatible_engines()
    labels = model.predict_class(frame, use_slow_engine=slow)
    ensemble = qwyc.read_model(model)
    check_classes(model, frame, labels, ensemble.score_full(frame))
