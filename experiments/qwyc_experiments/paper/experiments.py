"""The experiments: the paper's six, and two more kinds of ensemble with rivals of their own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Experiment:
    """An ensemble on a data set."""

    name: str
    title: str
    data: str  # "adult", "nomao", "rw1" or "rw2"
    family: str  # "xgboost", "joint" or "independent" (lattices), "lightgbm" or "forest"
    number: int | None = None  # in the paper
    quit: str = "both"
    depth: int = 0  # of XGBoost's trees
    features: int | None = None  # the strongest so many of a data set with more; None is all

    @property
    def stand_in(self) -> bool:
        """Whether other data stands in for the paper's, which is not public."""
        return self.data.startswith("rw")


ALL = (
    Experiment("adult", "Experiment 1, UCI Adult", "adult", "xgboost", 1, depth=5),
    Experiment("nomao", "Experiment 2, UCI Nomao", "nomao", "xgboost", 2, depth=9, features=8),
    Experiment(
        "rw1-joint",
        "Experiment 3, stand-in for Real-world 1, jointly trained",
        "rw1",
        "joint",
        3,
        "negative",
    ),
    Experiment(
        "rw2-joint",
        "Experiment 4, stand-in for Real-world 2, jointly trained",
        "rw2",
        "joint",
        4,
        "negative",
    ),
    Experiment(
        "rw1-independent",
        "Experiment 5, stand-in for Real-world 1, independently trained",
        "rw1",
        "independent",
        5,
        "negative",
    ),
    Experiment(
        "rw2-independent",
        "Experiment 6, stand-in for Real-world 2, independently trained",
        "rw2",
        "independent",
        6,
        "negative",
    ),
    Experiment("adult-lightgbm", "LightGBM on UCI Adult", "adult", "lightgbm"),
    Experiment("adult-forest", "A random forest that votes on UCI Adult", "adult", "forest"),
)
EXPERIMENTS = {experiment.name: experiment for experiment in ALL}

# What `qwyc reproduce NAME` runs.
GROUPS = {
    "adult": ("adult",),
    "nomao": ("nomao",),
    "rw1": ("rw1-joint", "rw1-independent"),
    "rw2": ("rw2-joint", "rw2-independent"),
    "lightgbm": ("adult-lightgbm",),
    "forest": ("adult-forest",),
    "all": tuple(EXPERIMENTS),
}
