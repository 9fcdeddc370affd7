"""The sizes and knobs of a run: as in the paper, or small."""

from __future__ import annotations

from dataclasses import dataclass

from .experiments import Experiment


@dataclass(frozen=True)
class Setting:
    """The sizes and knobs of one experiment."""

    quick: bool
    models: int  # base models of the full ensemble, T
    depth: int  # of XGBoost's trees
    rows: int | None  # use only so many training and test rows; None is all
    alphas: tuple[float, ...]  # of Algorithms 1 and 2
    members: int  # of the default method's path, evenly along it
    gammas: tuple[float, ...]  # of Fan's rule
    search_gammas: tuple[float, ...]  # those for which an order is searched with Fan's rule
    bin_widths: tuple[float, ...]  # of Fan's rule, in deviations of the full score
    margins: tuple[float, ...]  # of LightGBM's pred_early_stop
    penalties: tuple[float, ...]  # of a disagreement, in votes (Kalman & Moscovich)
    confidences: tuple[float, ...]  # of Hernández-Lobato et al.
    seeds: tuple[int, ...]  # of the random orders
    sizes: tuple[int, ...]  # of the smaller ensembles
    learning_rates: tuple[float, ...]  # of boosted trees
    min_child_weights: tuple[float, ...]
    promised: tuple[float, ...]  # alphas that `qwyc.optimize` is asked for
    splits: int  # random halves of the test rows for that
    runs: int  # of each timing


def setting_for(experiment: Experiment, *, quick: bool) -> Setting:
    """The paper's sizes, or a version that takes seconds."""
    few = experiment.data == "rw1"  # base models: 5 in the paper
    odd = experiment.family == "forest"  # votes without ties
    if quick:
        return Setting(
            quick=True,
            models={"rw1": 4, "rw2": 30}.get(experiment.data, 41),
            depth=min(experiment.depth, 4),
            rows=3000,
            alphas=(0.0, 0.005, 0.02),
            members=6,
            gammas=(0.5, 1.0, 2.0, 4.0),
            search_gammas=(1.0, 2.0),
            bin_widths=(0.01, 0.1),
            margins=(0.5, 2.0, 8.0),
            penalties=(20.0, 200.0, 2000.0),
            confidences=(0.9, 0.99, 0.999),
            seeds=(0, 1),
            sizes=(1, 2) if few else (5, 10 + odd, 20 + odd),
            learning_rates=(0.05, 0.2),
            min_child_weights=(1.0,),
            promised=(0.01, 0.02),
            splits=2,
            runs=3,
        )
    alphas = (0.0, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.04)
    gammas = (0.5, 0.75, 1.0, 1.25, 1.375, 1.5, 1.625, 1.75, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0)
    searched = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
    if few:  # each fit takes little, and few base models make coarse curves
        alphas = (*alphas[:3], 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.0075, *alphas[5:])
        gammas = (0.0, 0.1, 0.25, *gammas[:6], *(1.6, 1.7, 1.8, 1.9), *gammas[8:], 8.0)
        searched = gammas[1:]
    return Setting(
        quick=False,
        models={"rw1": 5, "rw2": 500}.get(
            experiment.data, 501 if experiment.family == "forest" else 500
        ),
        depth=experiment.depth,
        rows=None,
        alphas=alphas,
        members=40,
        gammas=gammas,
        search_gammas=searched,
        bin_widths=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
        margins=(0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0),
        penalties=(10.0, 30.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0, 20000.0, 1e5),
        confidences=(0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999),
        seeds=(0, 1, 2, 3, 4),
        sizes=(1, 2, 3, 4) if few else (5, *(size + odd for size in (10, 20, 40, 80, 160, 320))),
        learning_rates=(0.02, 0.03, 0.05, 0.1, 0.2, 0.5),
        min_child_weights=(1.0, 10.0),
        promised=(0.0025, 0.005, 0.01, 0.02),
        splits=20,
        runs=100,
    )
