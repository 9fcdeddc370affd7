"""What `qwyc.optimize` promises, and what new rows then see."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

import qwyc

from .bench import Bench
from .curves import Promised
from .files import need


def promised(bench: Bench, done: Callable[[], None]) -> list[Promised]:
    """`promised_over_splits`, without warnings of a rare class: the largest alpha is asked for where it
    makes no sense as well, so that all experiments have the same alphas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qwyc.QwycWarning)
        return promised_over_splits(bench, done)


def promised_over_splits(bench: Bench, done: Callable[[], None]) -> list[Promised]:
    """Over random splits of the test rows: fit and certify on one half, measure on the other. The model
    has seen neither half, so the certificate's assumption holds; training rows would break it."""
    data, setting = bench.data, bench.setting
    full = bench.testing.positive
    found: dict[float, list[tuple[float, float]]] = {alpha: [] for alpha in setting.promised}
    for split in range(setting.splits):
        rows = np.random.default_rng(split).permutation(len(data.X_test))
        fit, new = np.split(rows, [len(rows) // 2])
        first = qwyc.optimize(
            bench.ensemble,
            data.X_test[fit],
            alpha=max(setting.promised),
            quit=bench.experiment.quit,
            seed=split,
            repeats="independent",  # draws of a few discrete columns are often equal
            evaluation="quit",
            progress=False,
        )
        testing = bench.testing.take(np.sort(new))
        for alpha in setting.promised:
            try:
                policy = first.at(alpha=alpha).policy
            except qwyc.InfeasibleError:
                continue  # too few rows to certify so small an alpha
            seen = policy.apply(testing)
            differ = float(np.mean(seen.label.astype(bool) != full[np.sort(new)]))
            found[alpha].append((float(seen.steps.mean()), differ))
        done()
    return [
        Promised(
            alpha,
            float(np.mean([models for models, _ in each])),
            float(np.mean([differ for _, differ in each])),
            max(differ for _, differ in each),
            sum(differ > alpha for _, differ in each),
            sum(surely_above(differ, len(rows) - len(rows) // 2, alpha) for _, differ in each),
            len(each),
        )
        for alpha, each in found.items()
        if each
    ]


def surely_above(share: float, n: int, alpha: float) -> bool:
    """Whether so many of n rows differ that a rate of alpha is rejected at 5%. The promise is about the
    rate; the share of a finite number of rows is above a rate of just below alpha half of the time."""
    binom = need("scipy.stats", "scipy").binom
    return bool(binom.sf(round(share * n) - 1, n, alpha) < 0.05)
