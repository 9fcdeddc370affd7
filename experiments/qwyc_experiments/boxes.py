"""alpha = 0: would bounds that know the path taken so far pay?

    python -m qwyc_experiments.boxes [--trees 100] [--rows 400]

The proof bounds what the remaining trees add by their smallest and largest leaves. A row that has gone
through some trees is known to lie in a box of the features, and only leaves that the box can reach count.
Base models per row on UCI Adult rows with bounds that know nothing, the box after the first one, two or
five trees, or the box after every tree. The last column is the number of nodes looked at to find
the bounds of the column before it. Evaluating every tree visits a node per level and tree.
"""

from __future__ import annotations

import argparse

import numpy as np
import xgboost
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import qwyc

from .frontier import adult


class Boxes:
    """What is known of every row's features, and the leaves that are then in reach."""

    def __init__(self, ensemble: qwyc.Ensemble, X: np.ndarray) -> None:
        self.trees, self.X = ensemble.base_models.trees, X
        self.step = self.trees.leaf_value / ensemble.base_models.divisor
        self.less_equal = ensemble.base_models.less_equal
        self.low = np.full(X.shape, -np.inf)  # (rows, features)
        self.high = np.full(X.shape, np.inf)
        self.looked = 0  # nodes

    def learn(self, t: int) -> None:
        """Take in the path through tree t."""
        trees, first = self.trees, self.trees.node_begin[t]
        at = np.zeros(len(self.X), dtype=np.int64)
        while trees.node_begin[t + 1] > first and (at >= 0).any():
            rows = np.flatnonzero(at >= 0)
            node = first + at[rows]
            feature, threshold = trees.feature[node], trees.threshold[node]
            x = self.X[rows, feature]
            left = x <= threshold if self.less_equal else x < threshold
            self.high[rows[left], feature[left]] = np.minimum(
                self.high[rows[left], feature[left]], threshold[left]
            )
            self.low[rows[~left], feature[~left]] = np.maximum(
                self.low[rows[~left], feature[~left]], threshold[~left]
            )
            at[rows] = np.where(left, trees.left[node], trees.right[node])

    def reach(self, t: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and most that tree t can add, (rows,) each."""
        trees, first = self.trees, self.trees.node_begin[t]
        n_nodes = trees.node_begin[t + 1] - first
        least, most = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)

        def leaf(k: int, here: np.ndarray) -> None:
            value = self.step[trees.leaf_begin[t] + k]
            least[here] = np.minimum(least[here], value)
            most[here] = np.maximum(most[here], value)

        if n_nodes == 0:
            leaf(0, np.arange(len(rows)))
            return least, most
        waiting = [(0, np.arange(len(rows)))]
        while waiting:
            k, here = waiting.pop()
            self.looked += len(here)
            feature, threshold = trees.feature[first + k], trees.threshold[first + k]
            ways = (
                (trees.left[first + k], here[self.low[rows[here], feature] < threshold]),
                (trees.right[first + k], here[self.high[rows[here], feature] > threshold]),
            )
            for child, some in ways:
                if len(some) and child < 0:
                    leaf(~child, some)
                elif len(some):
                    waiting.append((child, some))
        return least, most


def base_models(ensemble: qwyc.Ensemble, X: np.ndarray, learned: int) -> tuple[float, float]:
    """Mean base models per row where bounds know the box after up to `learned` trees; nodes looked at."""
    scores, T = ensemble.scores(X), ensemble.n_models
    boxes = Boxes(ensemble, X)
    everyone = np.arange(len(X))
    range_of = [float(np.ptp(np.stack(boxes.reach(t, everyone[:1])))) for t in range(T)]
    order = np.argsort(-np.array(range_of), kind="stable")
    boxes.looked = 0
    bounds = [boxes.reach(t, everyone) for t in range(T)]
    running, undecided = np.full(len(X), scores.base), everyone
    steps = np.full(len(X), T)
    for r in range(T - 1):
        running += scores.values[:, order[r]]
        if r < learned:
            boxes.learn(order[r])
            for t in order[r + 1 :]:
                bounds[t][0][undecided], bounds[t][1][undecided] = boxes.reach(t, undecided)
        least = np.sum([bounds[t][0] for t in order[r + 1 :]], axis=0)
        most = np.sum([bounds[t][1] for t in order[r + 1 :]], axis=0)
        settled = (running + most < ensemble.threshold) | (running + least >= ensemble.threshold)
        steps[undecided[settled[undecided]]] = r + 1
        undecided = undecided[~settled[undecided]]
        if not len(undecided):
            break
    return float(steps.mean()), boxes.looked / len(X)


def main() -> None:
    """A line per model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rows", type=int, default=400)
    options = parser.parse_args()
    X, y = adult(0)
    X = np.ascontiguousarray(np.nan_to_num(X, nan=-1.0), dtype=np.float32)
    new = X[20_000 : 20_000 + options.rows]
    trees = options.trees
    models = {
        "XGBoost, lr 0.1": xgboost.XGBClassifier(
            n_estimators=trees, max_depth=5, learning_rate=0.1
        ),
        "XGBoost, lr 0.03": xgboost.XGBClassifier(
            n_estimators=trees, max_depth=5, learning_rate=0.03
        ),
        "random forest": RandomForestClassifier(trees, max_depth=10, random_state=0),
    }
    table = Table(box=box.SIMPLE_HEAD)
    knows = {"nothing": 0, "1 tree": 1, "2 trees": 2, "5 trees": 5, "every tree": trees}
    for column in ("bounds know", *knows, "nodes looked at for that, per row"):
        table.add_column(column, justify="left" if column == "bounds know" else "right")
    for name, model in models.items():
        ensemble = qwyc.read_model(model.fit(X[:16_000], y[:16_000]))
        found = [base_models(ensemble, new, learned) for learned in knows.values()]
        table.add_row(name, *[f"{mean:.1f}" for mean, _ in found], f"{found[-1][1]:,.0f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
