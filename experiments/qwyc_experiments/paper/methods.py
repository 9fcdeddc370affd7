"""Every method of the comparison, fitted on the training rows and measured on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import qwyc

from .curves import LEVEL, ORDERS, Curve, Measured, Point
from .data import Data
from .models import Choice, train
from .setting import Setting

Done = Callable[[], None]  # a step is done


class Bench:
    """Scores of the full ensemble on the training and test rows, and how to measure a policy."""

    def __init__(self, data: Data, model: Any, setting: Setting) -> None:
        self.data, self.setting = data, setting
        self.ensemble = qwyc.read_model(model)
        self.fitting = self.ensemble.scores(data.X)
        self.testing = self.ensemble.scores(data.X_test)

    def point(
        self,
        policy: Any,
        method: str,
        order: str,
        knob: float,
        *,
        seed: int | None = None,
        bin_width: float | None = None,
    ) -> Point:
        """What a policy does on the rows it was fitted on and on the test rows."""
        seen, new = policy.apply(self.fitting), policy.apply(self.testing)
        return Point(
            method,
            order,
            knob,
            seed,
            bin_width,
            measured(seen.label, seen.steps, self.fitting.positive, self.data.y),
            measured(new.label, new.steps, self.testing.positive, self.data.y_test),
            new.steps,
            new.label,
        )


def measured(label: Any, steps: Any, full: Any, truth: Any) -> Measured:
    """Base models, differences to the full ensemble and accuracy of decisions about rows."""
    return Measured(
        float(np.mean(steps)), float(np.mean(label != full)), float(np.mean(label == truth))
    )


def joint(bench: Bench, done: Done) -> list[Point]:
    """QWYC*: Algorithm 1, order and thresholds together."""
    points = []
    for alpha in bench.setting.alphas:
        policy = qwyc.fit_policy(
            bench.fitting, alpha=alpha, order="joint", rule="threshold", progress=False
        )
        points.append(bench.point(policy, "qwyc", "joint", alpha))
        done()
    return points


def fixed_orders(bench: Bench, done: Done) -> tuple[list[Point], dict[tuple[str, int | None], Any]]:
    """Algorithm 2 along orders that are fixed beforehand; the points and the orders, each (T,)."""
    points, orders = [], {}
    for name in ORDERS:
        for seed in bench.setting.seeds if name == "random" else (None,):
            order: Any = name
            for alpha in bench.setting.alphas:
                policy = qwyc.fit_policy(
                    bench.fitting,
                    alpha=alpha,
                    order=order,
                    rule="threshold",
                    labels=bench.data.y,
                    seed=seed or 0,
                    progress=False,
                )
                order = policy.order  # found once, then reused
                points.append(bench.point(policy, "algorithm-2", name, alpha, seed=seed))
            orders[name, seed] = order
            done()
    return points, orders


def fan(
    bench: Bench, orders: dict[tuple[str, int | None], Any], done: Done
) -> tuple[list[Point], dict[str, float]]:
    """Fan's rule along the same orders over gamma; the points and the bin width of each order."""
    deviation = float(np.std(bench.fitting.full))
    widths: dict[str, float] = {}
    points = []
    for (name, seed), order in orders.items():
        if name not in widths:  # for random orders, chosen with the first
            widths[name] = choose_bin_width(bench, order, deviation)
            done()
        policies = qwyc.fit_fan_path(
            bench.fitting, bench.setting.gammas, order=order, bin_width=widths[name] * deviation
        )
        for policy in policies:
            points.append(
                bench.point(policy, "fan", name, policy.gamma, seed=seed, bin_width=widths[name])
            )
        done()
    return points, widths


def choose_bin_width(bench: Bench, order: npt.NDArray[np.int32], deviation: float) -> float:
    """The bin width, in deviations of the full score, that needs the fewest base models at 0.5%
    differences on the validation rows when fitted on the other training rows.

    On the rows it was fitted on, the narrowest would always seem best: bins with one row each."""
    data, widths = bench.data, bench.setting.bin_widths
    rest = bench.ensemble.scores(data.X[~data.validation])
    held_out = bench.ensemble.scores(data.X[data.validation])
    truth = data.y[data.validation]
    needed = []
    for width in widths:
        policies = qwyc.fit_fan_path(
            rest, bench.setting.gammas, order=order, bin_width=width * deviation
        )
        points = []
        for policy in policies:
            seen = policy.apply(held_out)
            result = measured(seen.label, seen.steps, held_out.positive, truth)
            points.append(
                Point("fan", "", policy.gamma, None, width, result, result, seen.steps, seen.label)
            )
        curve = Curve(points)
        needed.append((curve.models_at(LEVEL) or np.inf, curve.differ.min(), width))
    return min(needed)[-1]


def smaller(bench: Bench, choices: dict[int, Choice], done: Done) -> list[Point]:
    """Ensembles trained with fewer trees, always evaluated in full."""
    data, points = bench.data, []
    for size in bench.setting.sizes:
        model = train(data, size, bench.setting, choices[size])
        seen, new = model.predict(data.X), model.predict(data.X_test)
        steps = np.full(len(new), size, dtype=np.int32)
        points.append(
            Point(
                "smaller",
                "natural",
                size,
                None,
                None,
                measured(seen, size, bench.fitting.positive, data.y),
                measured(new, size, bench.testing.positive, data.y_test),
                steps,
                new,
            )
        )
        done()
    return points
