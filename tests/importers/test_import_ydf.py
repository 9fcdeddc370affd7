"""YDF models as qwyc reads them against YDF itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import ydf

import qwyc

ydf.verbose(0)
FEATURES = ["a", "b", "c", ("k", ydf.Semantic.CATEGORICAL), ("i", ydf.Semantic.CATEGORICAL), "t"]
NUMBERS = ["a", "b", "c"]


def make_frame(seed=0, rows=700):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)).round(1), columns=list("abc"))
    frame.loc[rng.random(rows) < 0.1, "a"] = np.nan
    colour = rng.choice(["x", "y", "z", "w", "rare"], rows, p=[0.3, 0.3, 0.2, 0.195, 0.005])
    frame["k"] = np.where(rng.random(rows) < 0.05, None, colour)
    frame["i"] = rng.integers(0, 9, rows)
    frame["t"] = rng.random(rows) < 0.5
    signal = frame["a"].fillna(0) + frame["b"] * frame["c"] + (frame["k"] == "x") + frame["t"]
    return frame, (signal + (frame["i"] == 3) > 0.8).astype(int)


def boosted(**options):
    options = {"num_trees": 20, "features": FEATURES, **options}
    return ydf.GradientBoostedTreesLearner(label="label", **options)


def forest(**options):
    options = {"num_trees": 20, "features": FEATURES, **options}
    return ydf.RandomForestLearner(label="label", **options)


LEARNERS = {
    "boosted": boosted,
    "boosted, best first": lambda: boosted(growing_strategy="BEST_FIRST_GLOBAL", max_num_nodes=15),
    "boosted on numbers": lambda: boosted(features=NUMBERS),
    "boosted on bins": lambda: boosted(features=NUMBERS, discretize_numerical_columns=True),
    "boosted, one tree": lambda: boosted(num_trees=1),
    "boosted, missing tested": lambda: boosted(allow_na_conditions=True),
    "boosted, missing at random": lambda: boosted(missing_value_policy="RANDOM_LOCAL_IMPUTATION"),
    "forest of votes": forest,
    "forest of shares": lambda: forest(winner_take_all=False),
    "CART": lambda: ydf.CartLearner(label="label", features=FEATURES),
}


def odd_rows(frame, seed=1):
    """Unknown categories, empty text, infinities."""
    rng = np.random.default_rng(seed)
    text = rng.choice(["unknown", "", "rare", "<OOD>"], len(frame))
    frame = frame.assign(k=np.where(rng.random(len(frame)) < 0.2, text, frame["k"]))
    frame.loc[rng.random(len(frame)) < 0.05, "b"] = np.inf
    frame.loc[rng.random(len(frame)) < 0.05, "c"] = -np.inf
    frame.loc[rng.random(len(frame)) < 0.1, "i"] = 77
    return frame


@pytest.mark.parametrize("name", LEARNERS)
def test_scores_are_those_of_ydf(name):
    frame, label = make_frame()
    model = LEARNERS[name]().train(frame.assign(label=np.where(label, "yes", "no")))
    ensemble = qwyc.read_model(model)
    slow = not model.list_compatible_engines()
    for rows in (frame, odd_rows(frame)):
        score = ensemble.score_full(rows)
        labels = ensemble.classes[(score >= ensemble.threshold).astype(int)]
        np.testing.assert_array_equal(labels, model.predict_class(rows, use_slow_engine=slow))
        if hasattr(model, "set_output_logits") and not slow:
            model.set_output_logits(True)
            np.testing.assert_array_equal(score, model.predict(rows))
            model.set_output_logits(False)
        elif not slow:
            np.testing.assert_array_equal(np.minimum(score, 1.0), model.predict(rows))
    assert qwyc.optimize(model, frame, alpha=0).policy.n_models == model.num_trees()


def test_logits_are_decided_as_ydf_decides_them():
    frame, label = make_frame()
    model = boosted().train(frame.assign(label=label))
    model.set_output_logits(True)
    fast = qwyc.optimize(model, frame, alpha=0)
    np.testing.assert_array_equal(fast.predict(frame), model.predict_class(frame))


def test_other_forms_of_rows(tmp_path):
    frame, label = make_frame()
    model = boosted(features=[*NUMBERS, ("k", ydf.Semantic.CATEGORICAL), "t"]).train(
        frame.assign(label=label)
    )
    rows = frame[["a", "b", "c", "k", "t"]]
    expected = qwyc.read_model(model).score_full(rows)
    for form in (rows.to_numpy(dtype=object), pl.DataFrame(rows), rows[list("tkcba")]):
        fast = qwyc.optimize(model, form, alpha=0)
        np.testing.assert_array_equal(fast.score_full(form), expected)
    fast.save(tmp_path / "m.qwyc")
    np.testing.assert_array_equal(qwyc.load(tmp_path / "m.qwyc").score_full(rows), expected)
    model.save(str(tmp_path / "model"))
    options = ydf.ModelIOOptions(file_prefix="first_")
    model.save(str(tmp_path / "prefixed"), advanced_options=options)
    for saved in ("model", "model/data_spec.pb", "prefixed"):
        with pytest.raises(qwyc.ModelError, match=r"pass ydf\.load_model"):
            qwyc.read_model(tmp_path / saved)


def test_what_is_refused():
    frame, label = make_frame()
    number = ydf.GradientBoostedTreesLearner(label="a", num_trees=2, task=ydf.Task.REGRESSION)
    with pytest.raises(qwyc.QwycError, match="values"):
        qwyc.optimize(number.train(frame[["a", "b", "c"]].dropna()), frame, alpha=0.1)
    slanted = boosted(features=NUMBERS, split_axis="SPARSE_OBLIQUE").train(
        frame.assign(label=label)
    )
    with pytest.raises(qwyc.ModelError, match=r"several features .*AXIS_ALIGNED"):
        qwyc.read_model(slanted)
