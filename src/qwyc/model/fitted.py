"""What scikit-learn expects of an estimator that is fitted: names of attributes, tags and a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.rows.schema import Schema

if TYPE_CHECKING:
    from qwyc.model.ensemble import Ensemble

    Base = Ensemble
else:
    Base = object


class FittedEstimator(Base):
    """For a model with `predict`: it goes where scikit-learn takes a fitted estimator, such as scorers,
    `permutation_importance`, the last step of a pipeline and `CalibratedClassifierCV`. As with
    `sklearn.frozen.FrozenEstimator`, `fit` has no effect and `sklearn.base.clone` gives the same model."""

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels, (n_classes,); AttributeError for a model of values."""
        if not self.has_classes:
            raise AttributeError("a model of values has no classes_")
        return self.classes

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._known_schema("n_features_in_").n_features

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the features, (n_features,); AttributeError where the model does not know them."""
        names = self._known_schema("feature_names_in_").names
        if names is None:
            raise AttributeError(
                "the model has no names of columns, so there is no feature_names_in_"
            )
        return np.array(names, dtype=object)

    def _known_schema(self, name: str) -> Schema:
        if self.schema is None or self.transform is not None:
            raise AttributeError(f"code reads the rows of this model, so there is no {name}")
        return self.schema

    def fit(self, X: Any = None, y: Any = None, **params: Any) -> Any:
        """No effect: the model is trained already."""
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Given by the class that derives from this one."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of a model of classes, or R², averaged over the values of a row, of a model of
        values: what `score` of scikit-learn's classifiers and regressors gives."""
        if self.is_isolation_forest:
            raise OptionError("an isolation forest has no score: use score_samples")
        found, truth = self.predict(X), np.asarray(y)
        if found.shape != truth.shape and truth.size == found.size:
            truth = truth.reshape(found.shape)
        if found.shape != truth.shape:
            raise OptionError(f"y must have the shape {found.shape}; got {truth.shape}")
        if self.has_classes:
            return float(np.average(found == truth, weights=sample_weight))
        return _r_squared(found.astype(np.float64), truth.astype(np.float64), sample_weight)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Any:
        return self

    def __sklearn_tags__(self) -> Any:
        """Called by scikit-learn only."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        kind = "classifier" if self.has_classes else "regressor"
        kind = "outlier_detector" if self.is_isolation_forest else kind
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=False),
            classifier_tags=ClassifierTags() if kind == "classifier" else None,
            regressor_tags=RegressorTags() if kind == "regressor" else None,
            input_tags=InputTags(
                allow_nan=self.schema is None or self.schema.accepts_missing,
                categorical=self.schema is not None and bool(self.schema.categories),
            ),
            requires_fit=False,
        )


def _r_squared(found: npt.NDArray[Any], truth: npt.NDArray[Any], weights: Any) -> float:
    """1 - the squared error of `found` / that of the mean of `truth`, averaged over columns; 1 or 0 for a
    column of one value, as it is found or not."""
    found, truth = found.reshape(len(found), -1), truth.reshape(len(truth), -1)  # (N, K)
    weight = np.ones(len(truth)) if weights is None else np.asarray(weights, np.float64)
    mean = np.average(truth, axis=0, weights=weight)
    error = weight @ (truth - found) ** 2  # (K,)
    spread = weight @ (truth - mean) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(spread > 0, 1 - error / spread, np.where(error > 0, 0.0, 1.0))
    return float(each.mean())
