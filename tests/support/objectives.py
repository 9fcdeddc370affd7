"""Models of every objective of every library, and whether full evaluation equals the library's own on every
kind of input: the table in docs/parity.md, which this module makes.

    python tests/support/objectives.py      writes the table into the page
"""

import re
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import sklearn.ensemble as ensembles
import sklearn.tree as single
import xgboost
from threadpoolctl import threadpool_limits

import objectives_of_others
import qwyc

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "parity.md"
BEGIN, END = "<!-- matrix: begin -->\n", "<!-- matrix: end -->"
EXACT, UNLIKE = "✓", "UNLIKE"
INPUTS = {
    "float32": "a NumPy array of float32, in C order",
    "float64": "a NumPy array of float64, whose numbers are not those of float32",
    "Fortran": "the same in Fortran order",
    "pandas": "a pandas frame; the library gets it too",
    "Polars": "a Polars frame; the library gets the pandas frame",
    "Arrow": "an Arrow table; the library gets the pandas frame",
    "one row": "`predict_one` of a row of the float64 array",
    "file": "`save`, `qwyc.load`, and the float64 array",
}

# ---- rows ------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
TARGET = 2 * X[:, 0] + X[:, 1] * X[:, 2] + RNG.normal(size=120) / 3
POSITIVE = np.exp(TARGET / 3)
COUNT = POSITIVE.round()
SHARE = 1 / (1 + np.exp(-TARGET))
TWO = (TARGET > 0).astype(int)
THREE = np.digitize(TARGET, [-1, 1])
SEVERAL = np.column_stack([TARGET, POSITIVE])
TRAINING = pd.DataFrame(X, columns=list("abcde"))
NEW = pd.DataFrame(RNG.normal(size=(40, 5)) * 1.5, columns=list("abcde"))


@dataclass(frozen=True)
class Kind:
    """A model of one objective."""

    library: str
    name: str
    train: Any  # () -> live model
    own: Any = (
        None  # (live, rows) -> what the library gives, a list of arrays; None: `predict` and so on
    )


def own_outputs(live, rows):
    """What an estimator gives: labels or values, and probabilities or anomaly scores."""
    found = [np.asarray(live.predict(rows))]
    if isinstance(live, ensembles.IsolationForest):
        return [*found, live.score_samples(rows)]
    return [*found, live.predict_proba(rows)] if hasattr(live, "predict_proba") else found


def our_outputs(model, rows):
    """The same of a model of ours."""
    found = [model.predict(rows)]
    if model.is_isolation_forest:
        return [*found, model.score_samples(rows)]
    return [*found, model.predict_proba(rows)] if model.has_classes else found


# ---- the models ------------------------------------------------------------------------

SMALL = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}
LIGHT = {"n_estimators": 6, "num_leaves": 7, "min_child_samples": 5, "n_jobs": 1, "verbosity": -1}
CAT = {
    "iterations": 6,
    "depth": 3,
    "verbose": 0,
    "thread_count": 1,
    "allow_writing_files": False,
}
SKLEARN = {"n_estimators": 6, "max_depth": 4, "random_state": 0}


def xgb(objective, y, **more):
    return lambda: xgboost.XGBRegressor(objective=objective, **SMALL, **more).fit(TRAINING, y)


def xgb_classes(objective, y):
    return lambda: xgboost.XGBClassifier(objective=objective, **SMALL).fit(TRAINING, y)


def xgb_ranker(objective):
    ranker = xgboost.XGBRanker(objective=objective, **SMALL)
    return lambda: ranker.fit(TRAINING, TWO, qid=np.arange(len(X)) // 20)


def xgb_survival():
    rows = xgboost.DMatrix(TRAINING)
    rows.set_float_info("label_lower_bound", POSITIVE)
    rows.set_float_info("label_upper_bound", POSITIVE * 1.5)
    return xgboost.train({"objective": "survival:aft", "max_depth": 3, "nthread": 1}, rows, 6)


def of_booster(live, rows):
    """A Booster takes a DMatrix, which asks for names."""
    return [live.predict(xgboost.DMatrix(rows, feature_names=list(TRAINING.columns)))]


def lgbm(objective, y, **more):
    return lambda: lightgbm.LGBMRegressor(objective=objective, **LIGHT, **more).fit(TRAINING, y)


def lgbm_classes(objective, y):
    return lambda: lightgbm.LGBMClassifier(objective=objective, **LIGHT).fit(TRAINING, y)


def lgbm_ranker(objective):
    ranker = lightgbm.LGBMRanker(objective=objective, **LIGHT)
    return lambda: ranker.fit(TRAINING, TWO, group=[20] * 6)


def cat(loss, y):
    return lambda: catboost.CatBoostRegressor(loss_function=loss, **CAT).fit(TRAINING, y)


def cat_classes(loss, y):
    return lambda: catboost.CatBoostClassifier(loss_function=loss, **CAT).fit(TRAINING, y)


def cat_ranker(loss):
    ranker = catboost.CatBoostRanker(loss_function=loss, **CAT)
    return lambda: ranker.fit(TRAINING, TWO, group_id=np.arange(len(X)) // 20)


def cat_plain(loss, y):
    return lambda: catboost.CatBoost({"loss_function": loss, **CAT}).fit(TRAINING, y)


def skl(estimator, y):
    return lambda: estimator.fit(TRAINING, y)


def own_objective(y, found):
    return found - y, np.ones_like(y)


XGB_VALUES = {
    "reg:squarederror": TARGET,
    "reg:squaredlogerror": POSITIVE,
    "reg:absoluteerror": TARGET,
    "reg:pseudohubererror": TARGET,
    "count:poisson": COUNT,
    "reg:gamma": POSITIVE,
    "reg:tweedie": COUNT,
    "reg:logistic": SHARE,
    "survival:cox": np.arange(len(X)) + 1.0,
}
LGBM_VALUES = {
    "regression": TARGET,
    "regression_l1": TARGET,
    "huber": TARGET,
    "fair": TARGET,
    "quantile": TARGET,
    "mape": POSITIVE,
    "poisson": COUNT,
    "gamma": POSITIVE,
    "tweedie": COUNT,
    "cross_entropy": SHARE,
    "cross_entropy_lambda": SHARE,
}
CAT_VALUES = {
    "RMSE": TARGET,
    "MAE": TARGET,
    "Quantile:alpha=0.3": TARGET,
    "MAPE": POSITIVE,
    "Lq:q=3": TARGET,
    "Huber:delta=1": TARGET,
    "Expectile:alpha=0.3": TARGET,
    "LogCosh": TARGET,
    "Poisson": COUNT,
    "Tweedie:variance_power=1.5": COUNT,
    "MultiRMSE": SEVERAL,
    "MultiQuantile:alpha=0.1,0.5,0.9": TARGET,
    "RMSEWithUncertainty": TARGET,
    "LogLinQuantile:alpha=0.3": POSITIVE,
}
QUANTILES = {"quantile_alpha": [0.1, 0.5, 0.9]}
HIST = ensembles.HistGradientBoostingRegressor
BOOSTED = ensembles.GradientBoostingRegressor


def _xgboost():
    of = partial(Kind, "XGBoost")
    yield from (of(name, xgb(name, y)) for name, y in XGB_VALUES.items())
    yield of("reg:quantileerror", xgb("reg:quantileerror", TARGET, quantile_alpha=0.3))
    yield of("reg:quantileerror, three values", xgb("reg:quantileerror", TARGET, **QUANTILES))
    yield of("survival:aft, `Booster`", xgb_survival, of_booster)
    yield from (of(name, xgb_ranker(name)) for name in ("rank:pairwise", "rank:ndcg", "rank:map"))
    yield of("two targets", xgb("reg:squarederror", SEVERAL))
    trees = {"multi_strategy": "multi_output_tree"}
    yield of("two targets, one tree for both", xgb("reg:squarederror", SEVERAL, **trees))
    yield of("dart", xgb("reg:squarederror", TARGET, booster="dart", rate_drop=0.3))
    forest = xgboost.XGBRFRegressor(n_estimators=6, n_jobs=1)
    yield of("`XGBRFRegressor`", skl(forest, TARGET))
    for name in ("binary:logistic", "binary:logitraw", "binary:hinge"):
        yield of(name, xgb_classes(name, TWO))
    yield from (of(name, xgb_classes(name, THREE)) for name in ("multi:softprob", "multi:softmax"))


def _lightgbm():
    of = partial(Kind, "LightGBM")
    yield from (of(name, lgbm(name, y)) for name, y in LGBM_VALUES.items())
    yield of("regression, reg_sqrt", lgbm("regression", TARGET, reg_sqrt=True))
    yield of("an objective of your own", lgbm(own_objective, TARGET))
    yield of("dart", lgbm("regression", TARGET, boosting_type="dart"))
    some = {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}
    yield of("rf", lgbm("regression", TARGET, **some))
    yield from (of(name, lgbm_ranker(name)) for name in ("lambdarank", "rank_xendcg"))
    yield of("binary", lgbm_classes("binary", TWO))
    yield from (of(name, lgbm_classes(name, THREE)) for name in ("multiclass", "multiclassova"))


def _catboost():
    of = partial(Kind, "CatBoost")
    yield from (of(loss.partition(":")[0], cat(loss, y)) for loss, y in CAT_VALUES.items())
    yield of("Cox", cat_plain("Cox", np.arange(len(X)) + 1.0))
    bounds = np.column_stack([POSITIVE, POSITIVE * 1.5])
    yield of("SurvivalAft", cat_plain("SurvivalAft", bounds))
    for loss in (
        "YetiRank",
        "YetiRankPairwise",
        "QueryRMSE",
        "QuerySoftMax",
        "PairLogit",
        "PairLogitPairwise",
        "StochasticRank:metric=DCG",
    ):
        yield of(loss.partition(":")[0], cat_ranker(loss))
    yield from (of(loss, cat_classes(loss, TWO)) for loss in ("Logloss", "CrossEntropy"))
    yield from (of(loss, cat_classes(loss, THREE)) for loss in ("MultiClass", "MultiClassOneVsAll"))


def _sklearn():
    of = partial(Kind, "scikit-learn")
    tree = single.DecisionTreeRegressor(max_depth=4, random_state=0)
    stump = single.DecisionTreeClassifier(max_depth=2, random_state=0)
    for name in ("RandomForest", "ExtraTrees"):
        kind = getattr(ensembles, name + "Regressor")
        yield of(kind.__name__, skl(kind(**SKLEARN), TARGET))
        yield of(kind.__name__ + ", two targets", skl(kind(**SKLEARN), SEVERAL))
    yield of("DecisionTreeRegressor", skl(tree, TARGET))
    bagged = ensembles.BaggingRegressor(tree, 6, max_features=0.6, random_state=0)
    yield of("BaggingRegressor", skl(bagged, TARGET))
    for loss in ("squared_error", "absolute_error", "huber", "quantile"):
        yield of(f"GradientBoostingRegressor, {loss}", skl(BOOSTED(loss=loss, **SKLEARN), TARGET))
    for loss in ("squared_error", "absolute_error", "gamma", "poisson", "quantile"):
        made = HIST(loss=loss, quantile=0.3, max_iter=6, max_depth=3)
        yield of(f"HistGradientBoostingRegressor, {loss}", skl(made, POSITIVE))
    ada = ensembles.AdaBoostRegressor(n_estimators=3, random_state=0)
    yield of("AdaBoostRegressor", skl(ada, TARGET))
    for y, words in ((TWO, "two classes"), (THREE, "three classes")):
        for made in (
            ensembles.RandomForestClassifier(**SKLEARN),
            ensembles.ExtraTreesClassifier(**SKLEARN),
            ensembles.BaggingClassifier(stump, 6, random_state=0),
            ensembles.AdaBoostClassifier(stump, n_estimators=6, random_state=0),
            ensembles.GradientBoostingClassifier(**SKLEARN),
            ensembles.HistGradientBoostingClassifier(max_iter=6, max_depth=3),
        ):
            yield of(f"{type(made).__name__}, {words}", skl(made, y))
    yield of(
        "IsolationForest", skl(ensembles.IsolationForest(n_estimators=6, random_state=0), None)
    )


def _others():
    for library, name, train, own in objectives_of_others.kinds(TRAINING, TARGET, TWO):
        yield Kind(library, name, train, own)


def kinds():
    """All of them, in the order of the table."""
    return [*_xgboost(), *_lightgbm(), *_catboost(), *_sklearn(), *_others()]


# ---- the comparison ------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What one kind of model showed on each kind of input: EXACT, UNLIKE, or why it is refused."""

    kind: Kind
    cells: dict[str, str]


def compared(kind):
    """Train a model, and compare full evaluation with its library on every kind of input."""
    # Threads that wait would spin, which takes long on a busy machine.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' about names of columns
        live = kind.train()
        try:
            model = qwyc.read_model(live)
        except qwyc.QwycError as error:
            return Row(kind, dict.fromkeys(INPUTS, reason(error)))
        own = partial(kind.own or own_outputs, live)
        return Row(kind, {name: cell(model, own, name) for name in INPUTS})


def cell(model, own, name):
    """One kind of input."""
    wide = NEW.to_numpy(np.float64)
    given, theirs, how = {
        "float32": (wide.astype(np.float32), wide.astype(np.float32), our_outputs),
        "float64": (wide, wide, our_outputs),
        "Fortran": (np.asfortranarray(wide), np.asfortranarray(wide), our_outputs),
        "pandas": (NEW, NEW, our_outputs),
        "Polars": (pl.from_pandas(NEW), NEW, our_outputs),
        "Arrow": (pa.Table.from_pandas(NEW), NEW, our_outputs),
        "one row": (wide, wide, one_by_one),
        "file": (wide, wide, from_file),
    }[name]
    try:
        found = how(model, given)
    except qwyc.QwycError as error:
        return reason(error)
    expected = own(theirs)
    pairs = list(zip(found, expected, strict=how is not one_by_one))
    return EXACT if pairs and all(equal(*pair) for pair in pairs) else UNLIKE


def one_by_one(model, rows):
    return [np.array([model.predict_one(row) for row in rows])]


def from_file(model, rows):
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "m.qwyc")
        return our_outputs(qwyc.load(Path(folder) / "m.qwyc"), rows)


def equal(ours, theirs):
    """The same numbers, bit for bit. (CatBoost gives columns where others give vectors.)"""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return np.array_equal(ours, theirs.reshape(ours.shape))


def reason(error):
    """Why something is refused, without the name of the model and what else is supported."""
    return re.sub(r"^\w+: ", "", str(error).partition("; ")[0])


# ---- the table ------------------------------------------------------------------------


@cache
def rows():
    """Every kind of model, compared."""
    return [compared(kind) for kind in kinds()]


def table():
    """The matrix as Markdown, with a note for every reason."""
    notes: list[str] = []
    lines = ["| library | objective | " + " | ".join(INPUTS) + " |"]
    lines.append("|---" * (len(INPUTS) + 2) + "|")
    for row in rows():
        shown = []
        for found in row.cells.values():
            if found not in (EXACT, UNLIKE) and found not in notes:
                notes.append(found)
            shown.append(found if found in (EXACT, UNLIKE) else f"✗ {notes.index(found) + 1}")
        lines.append(f"| {row.kind.library} | {row.kind.name} | " + " | ".join(shown) + " |")
    lines.append("")
    lines += [f"{i}. {note}" for i, note in enumerate(notes, 1)]
    meaning = [f"- **{name}**: {text}" for name, text in INPUTS.items()]
    return "\n".join([*lines, "", *meaning]) + "\n"


def write(path=PAGE):
    """Put the table into the page."""
    text = path.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(before + BEGIN + table() + END + after)


if __name__ == "__main__":
    write()
