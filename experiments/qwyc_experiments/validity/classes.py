"""Limits on the share of a class that is lost, and bounds after the policy was chosen."""

from __future__ import annotations

import warnings

import numpy as np
from rich.console import Console
from scipy.stats import beta

import qwyc

from . import N_MODELS, broken, column_models, print_table, world

SHIFT = -2.3  # about 1.7% of the rows are positive
SHARES = (0.01, 0.03)
CONFIDENCES = (0.9, 0.95)
ROWS = 60_000


def lost(policy: qwyc.Policy, truth: qwyc.ScoreMatrix) -> tuple[float, float, float]:
    """The share of all rows, of negatives and of positives that is decided differently."""
    differs = policy.apply(truth).label.astype(bool) != truth.positive
    shares = (differs, differs[~truth.positive], differs[truth.positive])
    return tuple(float(np.mean(part)) for part in shares)  # type: ignore[return-value]


def limits(console: Console, scale: float) -> None:
    """How often a class loses more than its limit allows."""
    truth = qwyc.ScoreMatrix.from_array(world(np.random.default_rng(10**6), 400_000, shift=SHIFT))
    models, found = column_models(N_MODELS), {}
    for seed in range(round(300 * scale)):
        X = world(np.random.default_rng(seed), ROWS, shift=SHIFT)
        alone = qwyc.optimize(models, X, by_class={1: SHARES[-1]}, seed=seed, progress=False)
        with_alpha = qwyc.optimize(
            models, X, alpha=0.005, by_class={1: SHARES[-1]}, seed=seed, progress=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", qwyc.QwycWarning)
            plain = with_alpha.at(alpha=0.005)
        found.setdefault(("alpha = 0.5% alone", 0.95), []).append(
            (*lost(plain.policy, truth), plain.certificate.mean_models)
        )
        for confidence in CONFIDENCES:
            for share in SHARES:
                for name, fast, alpha in (
                    (f"{share:.0%} of the positives", alone, None),
                    (f"{share:.0%} of the positives, alpha = 0.5%", with_alpha, 0.005),
                ):
                    chosen = fast.at(alpha=alpha, by_class={1: share}, confidence=confidence)
                    row = (*lost(chosen.policy, truth), chosen.certificate.mean_models)
                    found.setdefault((name, confidence, share), []).append(row)
    rows = []
    for (name, confidence, *share), each in found.items():
        seen = np.array(each)
        rows.append(
            [
                name,
                f"{confidence:.0%}",
                broken(seen[:, 2], share[0]) if share else "",
                f"{1 - confidence:.0%}" if share else "",
                f"{seen[:, 2].mean():.2%}",
                f"{seen[:, 0].mean():.3%}",
                f"{seen[:, 3].mean():.2f}",
            ]
        )
    columns = [
        "limit",
        "confidence",
        "broken",
        "allowed",
        "positives lost",
        "all rows",
        "base models",
    ]
    title = f"Limits on a class: {ROWS:,} rows a time, {truth.positive.mean():.1%} of them positive"
    print_table(console, title, columns, rows)


def bounds(console: Console, scale: float) -> None:
    """How often the truth is above a bound: the plain one of a fixed policy, and those of certificates."""
    truth = qwyc.ScoreMatrix.from_array(world(np.random.default_rng(10**6), 200_000))
    models, cells = column_models(N_MODELS), [(3_000, 0.01), (12_000, 0.005), (40_000, 0.005)]
    rows = []
    for n_rows, alpha in cells:
        plain, stated, by_class = [], [], []
        for seed in range(round(400 * scale)):
            X = world(np.random.default_rng(seed), n_rows)
            fast = qwyc.optimize(models, X, alpha=alpha, seed=seed, progress=False)
            seen, (share, *classes) = fast.certificate, lost(fast.policy, truth)
            fixed = beta.ppf(0.95, seen.disagreements + 1, seen.rows - seen.disagreements)
            plain.append(share > fixed)
            stated.append(share > seen.upper_bound)
            by_class.append(
                [part > loss.upper_bound for part, loss in zip(classes, seen.classes, strict=True)]
            )
        worst = np.mean(by_class, axis=0).max()
        shares = f"{np.mean(plain):.1%}", f"{np.mean(stated):.1%}", f"{worst:.1%}"
        rows.append([f"{n_rows:,} rows, alpha = {alpha:.1%}", *shares, "5%"])
    columns = ["sample", "of a fixed policy", "upper_bound", "of a class, the worse", "allowed"]
    print_table(console, "How often the truth is above a bound", columns, rows)
