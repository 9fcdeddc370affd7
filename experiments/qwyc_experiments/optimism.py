"""How far the published procedure's alpha is from what new rows see.

    python -m qwyc_experiments.optimism [--trees 500]

Algorithm 1 (joint order) and Algorithm 2 along the source's own order, fitted on Adult's training rows for
several alphas; disagreement with the full ensemble on those rows and on the test rows, which neither the
model nor the policy has seen.
"""

from __future__ import annotations

import argparse

import numpy as np
import xgboost
from rich import box
from rich.console import Console
from rich.table import Table

import qwyc
from qwyc.datasets import load_adult


def main() -> None:
    """Train, fit at each alpha, print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=500)
    options = parser.parse_args()
    train, test = load_adult("train"), load_adult("test")
    model = xgboost.XGBClassifier(
        n_estimators=options.trees,
        max_depth=5,
        learning_rate=0.05,
        enable_categorical=True,
        feature_types=train.feature_types,
    ).fit(train.codes(), train.label)
    ensemble = qwyc.read_model(model)
    fitting, held_out = ensemble.scores(train.codes()), ensemble.scores(test.codes(like=train))

    table = Table(
        title=f"UCI Adult, XGBoost with {options.trees} trees of depth 5",
        box=box.SIMPLE_HEAD,
        title_justify="left",
    )
    table.add_column("order")
    for name in ("alpha", "differ, fitted rows", "differ, test rows", "base models, test rows"):
        table.add_column(name, justify="right")
    for order in ("joint", "natural"):
        for alpha in (0.0, 0.001, 0.0025, 0.005, 0.01, 0.02):
            policy = qwyc.fit_policy(fitting, alpha=alpha, order=order, progress=False)
            seen, new = policy.apply(fitting), policy.apply(held_out)
            table.add_row(
                order,
                f"{alpha:.2%}",
                f"{np.mean(seen.label != fitting.positive):.2%}",
                f"{np.mean(new.label != held_out.positive):.2%}",
                f"{new.steps.mean():.1f}",
            )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
