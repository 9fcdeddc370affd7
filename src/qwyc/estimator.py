"""EarlyExitClassifier: qwyc as a scikit-learn meta-estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt

from qwyc.build.optimize import optimize
from qwyc.classifier import Classifier
from qwyc.errors import (
    InfeasibleError,
    InputError,
    MissingDependencyError,
    ModelError,
    OptionError,
    TrainingRowsWarning,
)
from qwyc.policy.decisions import Decisions
from qwyc.policy.policy import Policy
from qwyc.promise.budget import budget_of
from qwyc.promise.certificate import Certificate, check_confidence
from qwyc.promise.repeats import TOGETHER, units
from qwyc.promise.requested import DEFAULT_ALPHA
from qwyc.promise.split import FEWEST_TO_FIT, with_few_rows
from qwyc.rows.identity import table_hashes
from qwyc.rows.selection import row_count, take
from qwyc.rows.values import shortened

try:
    from joblib import effective_n_jobs
    from sklearn import get_config
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_regressor
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit
    from sklearn.utils import (
        assert_all_finite,
        check_consistent_length,
        check_random_state,
        column_or_1d,
        get_tags,
    )
    from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingDependencyError(
        "EarlyExitClassifier needs scikit-learn 1.6 or later: pip install 'scikit-learn>=1.6'"
    ) from None


def _has_predict_proba(self: EarlyExitClassifier) -> bool:
    getattr(getattr(self, "estimator_", self.estimator), "predict_proba")  # noqa: B009 - may raise
    return True


class EarlyExitClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A tree ensemble that quits early, as a scikit-learn classifier.

    If `estimator` is fitted, or wrapped in `sklearn.frozen.FrozenEstimator`, it is kept as it is, and
    `fit(X)` optimises it on all of X. X must be rows that the estimator has not seen: a validation set,
    for example. If its trees show that it was trained on X, `fit` raises InputError. If it is not fitted,
    it is cloned, fitted on part of the data and optimised on the rest; with alpha=0, which needs no rows,
    it is fitted on all of them. Pipelines and searches use `clone`, and the clone of a fitted estimator is
    not fitted: wrap it in `FrozenEstimator` to keep it.

    Parameters
    ----------
    estimator : a classifier that `qwyc.optimize` takes; or a pipeline or a search that ends in one.
    alpha, by_class, confidence, quit, only, threshold, costs, feature_costs, method, repeats, headroom,
        max_rows, evaluation : as in `qwyc.optimize`. alpha is 0.005 by default, unless by_class is given.
    holdout : the part of the data to optimise on if `estimator` has to be fitted: a share, or a number of
        rows.
    random_state : seed of the split, and of an `estimator` to be fitted whose own random_state is None.
    n_jobs : threads; None is 1, -1 every core.

    Attributes
    ----------
    estimator_ : the fitted estimator, that is the full ensemble.
    classifier_ : the `qwyc.Classifier` that decides.
    certificate_ : what is promised about its decisions, and the evidence for it.
    n_steps_ : base models evaluated per row, on average over the rows of the certificate.
    classes_ : the labels; of two, negative and positive.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        alpha: float | Mapping[str, float] | None = None,
        by_class: Mapping[Any, float] | None = None,
        confidence: float = 0.95,
        quit: str = "both",
        only: Any = None,
        threshold: Any = None,
        costs: Any = None,
        feature_costs: Any = None,
        method: str = "auto",
        repeats: str = "together",
        headroom: int = 0,
        holdout: float | int = 0.25,
        max_rows: int | None = None,
        evaluation: Any = "model",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.by_class = by_class
        self.confidence = confidence
        self.quit = quit
        self.only = only
        self.threshold = threshold
        self.costs = costs
        self.feature_costs = feature_costs
        self.method = method
        self.repeats = repeats
        self.headroom = headroom
        self.holdout = holdout
        self.max_rows = max_rows
        self.evaluation = evaluation
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ---- fitting -----------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, **fit_params: Any
    ) -> EarlyExitClassifier:
        """Optimise the estimator on X, or first fit it on part of X and y and optimise it on the rest.

        A fitted estimator needs rows that it has not seen, without labels. InputError is raised if X holds
        its training rows: a promise based on them would not hold.

        Rows of one group of `groups` are never on both sides of a split, and groups are counted instead of
        rows, as in `qwyc.optimize`. `fit_params` are passed to the estimator's own fit; those with one
        value per row are cut to its part (with metadata routing enabled: those that it requests)."""
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise OptionError(
                "estimator must be a classifier, such as RandomForestClassifier(), fitted or not; got "
                f"{shortened(repr(self.estimator))}"
            )
        if hasattr(self.estimator, "__sklearn_tags__") and is_regressor(self.estimator):
            raise OptionError(
                f"estimator must be a classifier; {type(self.estimator).__name__} is a regressor. "
                "qwyc.optimize(model, X, tolerance=...) takes it once it is fitted, and "
                "qwyc.read_model(model) evaluates it exactly"
            )
        X = self._rows(X, reset=True)
        seed = self.random_state
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        fitted = _is_fitted(self.estimator)
        if fitted:
            model, rows = self.estimator, np.arange(row_count(X))
        else:
            y = self._labels(X, y)
            params: Mapping[str, Any] = fit_params
            if params.get("sample_weight") is not None:
                check_consistent_length(X, params["sample_weight"])
            if get_config()["enable_metadata_routing"]:
                params = process_routing(self, "fit", **fit_params).estimator.fit
            fit_rows, rows = self._split(X, y, groups, int(seed))
            model = _seeded(clone(self.estimator), int(seed)).fit(
                take(X, fit_rows), y[fit_rows], **_of_rows(params, fit_rows, row_count(X))
            )
        with _refusing_training_rows() if fitted else nullcontext():
            self.classifier_: Classifier = optimize(
                model,
                take(X, rows),
                alpha=self.alpha,
                by_class=self.by_class,
                confidence=self.confidence,
                quit=self.quit,
                only=self.only,
                threshold=self.threshold,
                costs=self.costs,
                feature_costs=self.feature_costs,
                method=self.method,
                repeats=self.repeats,
                headroom=self.headroom,
                groups=None if groups is None else np.asarray(groups)[rows],
                seed=int(seed),
                max_rows=self.max_rows,
                evaluation=self.evaluation,
                threads=self._threads(),
                progress=False,
            )
        self.estimator_ = model
        self.classes_ = self.classifier_.ensemble.classes
        return self

    def _labels(self, X: Any, y: Any) -> npt.NDArray[Any]:
        if y is None:
            raise ModelError(
                f"this EarlyExitClassifier requires y to be passed, but the target y is None: its "
                f"{type(self.estimator).__name__} is not fitted yet. Pass y, or a fitted estimator; "
                "in pipelines and searches, which clone, wrap it in sklearn.frozen.FrozenEstimator"
            )
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_consistent_length(X, labels)
        check_classification_targets(labels)
        if len(np.unique(labels)) < 2:
            raise ModelError("y has one class only; a classifier needs rows of two classes")
        if type_of_target(labels) not in ("binary", "multiclass"):
            raise ModelError(
                "y must have one class per row. The type of the target is "
                f"{type_of_target(labels)}."
            )
        array: npt.NDArray[Any] = labels
        return array

    def _split(
        self, X: Any, y: npt.NDArray[Any], groups: Any, seed: int
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Rows to fit on, and rows to optimise on, each ascending."""
        n = row_count(X)
        alpha = DEFAULT_ALPHA if self.alpha is None and self.by_class is None else self.alpha
        budget = None if alpha is None else budget_of(alpha)
        if budget is not None and budget.is_zero and self.method == "auto":
            return np.arange(n), np.arange(n)  # proven, whatever the rows
        aside = _holdout(self.holdout, n)
        if budget is not None and self.method == "auto":
            needed = budget.rows_needed(check_confidence(self.confidence)) + FEWEST_TO_FIT
            if aside < needed:
                larger = f"holdout={needed} would be enough. " if needed <= n / 2 else ""
                raise InfeasibleError(
                    f"{budget.named} at confidence {self.confidence:g} needs at least "
                    f"{needed:,} rows to optimise on; holdout={self.holdout!r} of {n:,} rows leaves "
                    f"{aside:,}. {larger}{with_few_rows(aside, self.confidence)}"
                )
        if groups is None and self.repeats == TOGETHER and self.method == "auto":
            groups = units(table_hashes(X), None).group  # no copies of training rows
        if groups is not None:
            splitter = GroupShuffleSplit(1, test_size=aside / n, random_state=seed)
        elif np.unique(y, return_counts=True)[1].min() < 2:
            splitter = ShuffleSplit(1, test_size=aside, random_state=seed)
        else:
            splitter = StratifiedShuffleSplit(1, test_size=aside, random_state=seed)
        fit_rows, rows = next(splitter.split(np.zeros(n), y, groups))
        return np.sort(fit_rows), np.sort(rows)

    # ---- deciding ----------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of every row, (N,), from as few base models as it needs."""
        return self.decide(X).label

    def decide(self, X: Any) -> Decisions:
        """The class of every row, how many base models it took, its score, whether it is complete."""
        rows = self._seen(X)
        return self.classifier_.decide(rows, threads=self._threads())

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """The full score of every row minus the threshold, (N,): above 0 if the full ensemble decides
        positive. For more than two classes, the full scores, (N, K): apart from ties, the largest is that
        of the class that the full ensemble decides. No row quits, so this costs every base model, where
        `predict` costs a fraction of them. The two may disagree in a share alpha of rows."""
        rows = self._seen(X)
        score = self.classifier_.score_full(rows, threads=self._threads())
        if not isinstance(self.classifier_.policy, Policy):
            return score if score.shape[1] > 2 else score[:, 1] - score[:, 0]
        # Positive is score >= threshold; less the number before it, exactly those are above 0.
        below: np.float64 = np.nextafter(self.classifier_.policy.threshold, -np.inf)
        return score - below

    @available_if(_has_predict_proba)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """The estimator's own probabilities, (N, n_classes). No row quits: it costs what the estimator's
        predict_proba costs. For a label, call `predict`; for a ranking, `decision_function` is faster."""
        rows = self._seen(X)
        proba: npt.NDArray[Any] = self.estimator_.predict_proba(rows)
        return proba

    def _seen(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._rows(X, reset=False)

    @property
    def certificate_(self) -> Certificate:
        """What is promised about the decisions, and the evidence for it."""
        return self._fitted().certificate

    @property
    def n_steps_(self) -> float:
        """Base models evaluated per row, on average over the rows of the certificate."""
        return self._fitted().certificate.mean_models

    def _fitted(self) -> Classifier:
        if "classifier_" not in self.__dict__:
            raise AttributeError("this EarlyExitClassifier is not fitted yet; call fit first")
        return self.classifier_

    # ---- the interface of scikit-learn --------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata the estimator's fit gets, and which this one uses itself (`groups`)."""
        return (
            MetadataRouter(owner=self.__class__.__name__)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.classifier_tags.multi_class = inner.classifier_tags is None or (
            inner.classifier_tags.multi_class
        )
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.categorical = inner.input_tags.categorical
        tags.input_tags.string = inner.input_tags.string
        tags.target_tags.required = not _is_fitted(self.estimator)
        tags.non_deterministic = inner.non_deterministic
        return tags

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """X, checked for its columns; as an array unless it is a table, whose types matter."""
        if isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not row_count(X):
                raise OptionError("Found array with 0 sample(s) while a minimum of 1 is required.")
            return X
        tags = get_tags(self).input_tags
        as_it_is = tags.categorical or tags.string
        finite = True if not tags.allow_nan else "allow-nan"
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if tags.sparse else False,
            dtype=None if as_it_is else "numeric",
            ensure_all_finite=False if as_it_is or _takes_infinity(self) else finite,
        )

    def _threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))


@contextmanager
def _refusing_training_rows() -> Iterator[None]:
    """An error instead of a warning where X is what the model was trained on."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingRowsWarning)
        try:
            yield
        except TrainingRowsWarning as warning:
            raise InputError(
                f"{warning}. Or pass the estimator without fitting it: fit(X, y) then holds some rows out "
                "(holdout) and fits it on the others"
            ) from None


def _takes_infinity(meta: EarlyExitClassifier) -> bool:
    """Whether the ensemble says of itself, once read, that it takes infinities as well."""
    fitted = meta.__dict__.get("classifier_")
    schema = None if fitted is None else fitted.ensemble.schema
    return schema is not None and schema.accepts_infinity


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True


def _seeded(estimator: Any, seed: int) -> Any:
    """The estimator, with every random_state in it that is None set to the seed."""
    params = estimator.get_params(deep=True)
    unset = [name for name in params if name.split("__")[-1] == "random_state"]
    return estimator.set_params(**{name: seed for name in unset if params[name] is None})


def _holdout(holdout: Any, n: int) -> int:
    """How many of n rows to keep aside for optimising."""
    if isinstance(holdout, (int, np.integer)) and not isinstance(holdout, bool):
        aside = int(holdout)
    elif isinstance(holdout, (float, np.floating)) and 0 < holdout < 1:
        aside = round(float(holdout) * n)
    else:
        raise OptionError(
            f"holdout must be a share such as 0.25, or a number of rows; got {holdout!r}"
        )
    if not 0 < aside < n:
        raise OptionError(
            f"holdout={holdout!r} of {n:,} rows leaves nothing to fit or to optimise on"
        )
    return aside


def _of_rows(params: Mapping[str, Any], rows: npt.NDArray[np.intp], n: int) -> dict[str, Any]:
    """Fit parameters for some of n rows: what has one value per row is cut to them."""

    def cut(value: Any) -> Any:
        if isinstance(value, (np.ndarray, list)) or hasattr(value, "iloc"):
            return np.asarray(value)[rows] if len(value) == n else value
        return value

    return {name: cut(value) for name, value in params.items()}
