"""What scikit-learn's BaggingClassifier and AdaBoostClassifier consist of."""

from __future__ import annotations

from typing import Any

from qwyc.errors import ModelError

TREES = (
    "DecisionTreeClassifier",
    "ExtraTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeRegressor",
)


def has_tree_bases(model: Any) -> bool:
    """Whether a fitted BaggingClassifier or AdaBoostClassifier is one of single decision trees."""
    bases = getattr(model, "estimators_", ())
    return len(bases) > 0 and all(
        type(base).__name__ in TREES and type(base).__module__.startswith("sklearn.tree")
        for base in bases
    )


def check_tree_bases(model: Any, name: str) -> None:
    """Raise ModelError where its base estimators are not single decision trees."""
    if not has_tree_bases(model):
        base = type(model.estimators_[0]).__name__
        raise ModelError(
            f"this {name} is one of {base}, not of decision trees: qwyc.optimize takes it apart "
            "into base models, but it cannot be read as trees"
        )
