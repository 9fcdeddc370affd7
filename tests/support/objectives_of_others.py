"""Models of YDF, Treelite and ONNX for the table of objectives."""

import numpy as np
import onnxruntime
import skl2onnx
import sklearn.ensemble
import treelite
import xgboost
import ydf

SMALL = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}


def kinds(frame, target, labels):
    """Library, name, how it is trained, and what the library gives: labels and probabilities."""

    def of_ydf(learner, y, **more):
        made = learner(label="y", num_trees=6, **more)
        return made.train(frame.assign(y=y), verbose=0)

    def of_treelite(estimator, y):
        live = estimator(**SMALL).fit(frame.to_numpy(np.float32), y)
        return treelite.frontend.from_xgboost(live.get_booster())

    def of_onnx(estimator, y):
        live = estimator(6, max_depth=3, random_state=0).fit(frame.to_numpy(np.float32), y)
        options = {"zipmap": False} if hasattr(live, "predict_proba") else None
        return skl2onnx.to_onnx(live, np.zeros((1, 5), np.float32), options=options)

    def both(positive):
        return [(positive > 0.5).astype(int), np.column_stack([1 - positive, positive])]

    def own_ydf(live, rows):
        _, shares = both(live.predict(frame_of(rows)))
        return [live.predict_class(frame_of(rows)), shares]

    def frame_of(rows):
        return {name: np.asarray(rows)[:, i] for i, name in enumerate(frame.columns)}

    def own_treelite(live, rows):
        narrow = np.ascontiguousarray(np.asarray(rows), dtype=np.float32)
        return both(treelite.gtil.predict(live, narrow, nthread=1).reshape(-1))

    def own_onnx(live, rows):
        session = onnxruntime.InferenceSession(live.SerializeToString())
        return session.run(None, {"X": np.asarray(rows, np.float32)})

    def values_of_ydf(live, rows):
        return [live.predict(frame_of(rows))]

    def values_of_treelite(live, rows):
        narrow = np.ascontiguousarray(np.asarray(rows), dtype=np.float32)
        return [treelite.gtil.predict(live, narrow, nthread=1)]

    boosted, forest = ydf.GradientBoostedTreesLearner, ydf.RandomForestLearner
    regression = {"task": ydf.Task.REGRESSION}
    kept = {"validation_ratio": 0.0}
    forests = sklearn.ensemble
    return [
        ("YDF", "boosted trees, two classes", lambda: of_ydf(boosted, labels, **kept), own_ydf),
        ("YDF", "random forest, two classes", lambda: of_ydf(forest, labels), own_ydf),
        ("YDF", "regression", lambda: of_ydf(boosted, target, **regression, **kept), values_of_ydf),
        (
            "Treelite",
            "boosted trees, two classes",
            lambda: of_treelite(xgboost.XGBClassifier, labels),
            own_treelite,
        ),
        (
            "Treelite",
            "regression",
            lambda: of_treelite(xgboost.XGBRegressor, target),
            values_of_treelite,
        ),
        (
            "ONNX",
            "random forest, two classes",
            lambda: of_onnx(forests.RandomForestClassifier, labels),
            own_onnx,
        ),
        ("ONNX", "regression", lambda: of_onnx(forests.RandomForestRegressor, target), own_onnx),
    ]
