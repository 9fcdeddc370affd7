"""Many classes: base models and time per row at equal disagreement on new rows.

    python -m qwyc_experiments.many_classes [PART ...] [--only NAME ...] [--small]

The part "rivals" compares three ways to stop early, on one LightGBM model for each data set: this library;
Algorithm 2 of the paper on leads, along the model's own order; and LightGBM's `pred_early_stop`, which
tests every so many rounds whether the lead exceeds a margin. The part "filters" lets rows leave that are
not of one class, for each class of Covertype, as `optimize` makes and certifies it on the rows to fit on.

The model is trained on one part of the rows, policies are fitted on a second, and everything is measured
on a third that neither has seen. Each way is swept along its own knobs. At a level, the point with the
fewest base models that decides no more of the test rows differently is shown. Times are medians over calls
that take turns, of processor time on one thread: "µs" in this library's engine for all ways, "LightGBM µs"
in LightGBM itself. LightGBM does not say how many rounds a row takes, so its rule is counted by the same
rule in this library, whose labels are compared with LightGBM's own."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightgbm
import numpy as np
from rich.console import Console
from sklearn.datasets import load_digits, make_classification

import qwyc

from .frontier import covertype_kinds, data_folder
from .validity import print_table

LEVELS = (0.002, 0.005, 0.01, 0.02)
LOST = 0.05  # of the rows of a class, by a filter, at most
ALPHAS = (0.0002, 0.0005, 0.001, 0.002, 0.004, 0.006, 0.01, 0.015, 0.02, 0.03, 0.05)
FREQUENCIES = (1, 2, 5, 10, 20)  # rounds between two tests; 10 is LightGBM's own
MARGINS = 30  # of each of two kinds
TIMED_ROWS, CALLS = 10_000, 9
SAME = 0.999  # of LightGBM's own labels, at least, that the same rule here has too
SMALL = 20  # by which rows are divided in a quick run


@dataclass(frozen=True, eq=False)
class Case:
    """A trained model, and rows that it has not seen: to fit policies on, and to measure on."""

    name: str
    booster: lightgbm.Booster
    ensemble: qwyc.Ensemble
    fit: qwyc.ScoreMatrix
    test: qwyc.ScoreMatrix
    sample: np.ndarray  # the rows to fit on
    rows: np.ndarray  # of the test

    @property
    def shape(self) -> tuple[int, int]:
        """Rounds and classes."""
        _, rounds, classes = self.fit.values.shape
        return rounds, classes


@dataclass(frozen=True, eq=False)
class Point:
    """A policy, and what it does on the test rows."""

    policy: Any
    differ: float
    models: float
    reach: np.ndarray  # (T,) share of the fitting rows that reach each step
    options: dict[str, Any] | None = None  # of LightGBM's predict, where it has the rule


# ---- data -------------------------------------------------------------------------------------


def digits() -> tuple[np.ndarray, np.ndarray]:
    """1,797 pictures of digits, of scikit-learn."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.float32), y


def census_industries() -> tuple[np.ndarray, np.ndarray]:
    """The people of UCI Census-Income (KDD) who work, and in which of 51 industries. Text is its place in
    the alphabet. The coarse industry, which the fine one gives, is left out."""
    import pandas as pd

    frame = pd.read_parquet(data_folder() / "census_income_kdd_train.parquet")
    frame = frame[frame["industry_code"] != "0"].drop(columns=["label", "major_industry_code"])
    industry = pd.factorize(frame.pop("industry_code"), sort=True)[0]
    numbers = [
        column if column.dtype.kind in "iu" else pd.factorize(column, sort=True)[0]
        for _, column in frame.items()
    ]
    return np.column_stack(numbers).astype(np.float32), industry


def made_up() -> tuple[np.ndarray, np.ndarray]:
    """26 classes of clusters in 16 features, in the place of letters."""
    X, y = make_classification(
        60_000,
        16,
        n_informative=12,
        n_redundant=2,
        n_classes=26,
        n_clusters_per_class=2,
        class_sep=1.4,
        random_state=0,
    )
    return X.astype(np.float32), y


# Rows to train on, to fit on and to test on, and rounds.
DATA: dict[str, tuple[Callable[[], tuple[np.ndarray, np.ndarray]], int, int, int, int]] = {
    "Covertype, 7 classes": (covertype_kinds, 60_000, 15_000, 30_000, 100),
    "digits, 10 classes": (digits, 600, 600, 597, 60),
    "Census industries, 51 classes": (census_industries, 40_000, 15_000, 20_000, 60),
    "made up, 26 classes": (made_up, 25_000, 15_000, 20_000, 60),
}


def case_of(name: str, small: bool = False) -> Case:
    """Train and score."""
    load, *sizes, rounds = DATA[name]
    X, y = load()
    if small:
        sizes, rounds = [max(n // SMALL, 400) for n in sizes], rounds // 4
    rows = np.random.default_rng(0).permutation(len(X))
    train, fit, test, _ = np.split(rows, np.cumsum(sizes))
    model = lightgbm.LGBMClassifier(
        n_estimators=rounds, num_leaves=31, learning_rate=0.1, n_jobs=1, random_state=0, verbose=-1
    ).fit(X[train], y[train])
    ensemble = qwyc.read_model(model)
    scores = (ensemble.scores(X[part], threads=1) for part in (fit, test))
    return Case(name, model.booster_, ensemble, *scores, X[fit], X[test])


# ---- ways to stop -----------------------------------------------------------------------------


def point_of(case: Case, policy: Any, options: dict[str, Any] | None = None) -> Point:
    """What a policy does."""
    done, target = policy.apply(case.test, threads=1), policy.target
    differ = target.count_differences(done.label, target.decide(case.test.full)).sum()
    steps = policy.apply(case.fit, threads=1).steps
    stopped = np.bincount(steps, minlength=policy.n_models + 1)[: policy.n_models]
    reach = 1 - np.cumsum(stopped) / len(steps)
    return Point(policy, float(differ / len(done)), float(done.steps.mean()), reach, options)


def ours(case: Case) -> Iterator[Point]:
    """Optimal stopping, along the better of two orders."""
    path = qwyc.fit_path(case.fit, threads=1, progress=False)
    return (point_of(case, path[k]) for k in range(1, len(path)))


def algorithm_2(case: Case) -> Iterator[Point]:
    """Thresholds on the lead along the model's own order."""
    fit = partial(qwyc.fit_policy, case.fit, order="natural", threads=1, progress=False)
    return (point_of(case, fit(alpha=alpha)) for alpha in ALPHAS)


def margins(case: Case) -> Iterator[Point]:
    """LightGBM's rule: every `freq` rounds, rows stop whose lead exceeds a margin."""
    rounds, classes = case.shape
    best = np.sort(case.fit.full, axis=1)
    leads = best[:, -1] - best[:, -2]
    small = np.geomspace(0.02 * np.median(leads), leads.max(), MARGINS)
    for margin in np.sort(np.append(small, np.quantile(leads, np.linspace(0, 0.995, MARGINS)))):
        for freq in FREQUENCIES:
            lead = np.full((rounds, classes), np.inf)
            lead[freq - 1 : rounds - 1 : freq] = margin
            policy = qwyc.LeadPolicy(np.arange(rounds), lead, np.ones(rounds), case.fit.ties)
            options = {"pred_early_stop_freq": freq, "pred_early_stop_margin": float(margin)}
            yield point_of(case, policy, options)


WAYS: dict[str, Callable[[Case], Iterator[Point]]] = {
    "qwyc": ours,
    "Algorithm 2, natural order": algorithm_2,
    "LightGBM's margin": margins,
}


def at_level(points: list[Point], level: float, share: Callable[[Point], float]) -> Point | None:
    """The point with the fewest base models among those that are within the level."""
    within = [point for point in points if share(point) <= level]
    return min(within, key=lambda point: point.models, default=None)


# ---- times ------------------------------------------------------------------------------------


def medians(calls: dict[Any, Callable[[], object]], n: int) -> dict[Any, float]:
    """Microseconds of processor time per row of each call, which take turns."""
    times: dict[Any, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()  # lays out what is laid out once
    for _ in range(CALLS):
        for name, call in calls.items():
            started = time.process_time()
            call()
            times[name].append(1e6 * (time.process_time() - started) / n)
    return {name: float(np.median(each)) for name, each in times.items()}


def our_call(case: Case, point: Point, rows: np.ndarray) -> Callable[[], object]:
    """Decisions in this library's engine."""
    runner = case.ensemble.runner(point.policy, point.reach)
    return lambda: runner.decide(rows, threads=1)


def their_call(case: Case, options: dict[str, Any], rows: np.ndarray) -> Callable[[], Any]:
    """LightGBM's own prediction."""
    return lambda: case.booster.predict(rows, raw_score=True, num_threads=1, **options)


def check_same_rule(case: Case, point: Point) -> float:
    """The share of test rows whose label LightGBM's own early stopping has too."""
    assert point.options is not None
    own = their_call(case, {"pred_early_stop": True, **point.options}, case.rows)().argmax(axis=1)
    same = float(np.mean(own == point.policy.apply(case.test, threads=1).label))
    assert same >= SAME, f"{case.name}, {point.options}: LightGBM decides {same:.4%} alike"
    return same


# ---- parts ------------------------------------------------------------------------------------


def rivals(console: Console, case: Case) -> None:
    """Each way at each level."""
    rows = case.rows[:TIMED_ROWS]
    found: dict[tuple[float, str], Point | None] = {}
    for name, way in WAYS.items():
        points = list(way(case))
        for level in LEVELS:
            found[level, name] = at_level(points, level, lambda point: point.differ)
    calls: dict[Any, Callable[[], object]] = {
        "full": lambda: case.ensemble.score_full(rows, threads=1),
        "LightGBM": their_call(case, {}, rows),
    }
    same = 1.0
    for key, point in found.items():
        if point is None:
            continue
        calls[key] = our_call(case, point, rows)
        if point.options is not None:
            same = min(same, check_same_rule(case, point))
            calls[key, "LightGBM"] = their_call(
                case, {"pred_early_stop": True, **point.options}, rows
            )
    times = medians(calls, len(rows))
    rounds, _ = case.shape
    lines = [["", "in full", "0%", f"{rounds}", f"{times['full']:.2f}", f"{times['LightGBM']:.1f}"]]
    for (level, name), point in sorted(found.items(), key=lambda item: item[0][0]):
        if point is None:
            lines.append([f"{level:.1%}", name, "–", "–", "–", "–"])
            continue
        knob = "" if point.options is None else f", every {point.options['pred_early_stop_freq']}"
        theirs = times.get(((level, name), "LightGBM"))
        lines.append(
            [
                f"{level:.1%}",
                name + knob,
                f"{point.differ:.2%}",
                f"{point.models:.1f}",
                f"{times[level, name]:.2f}",
                "" if theirs is None else f"{theirs:.1f}",
            ]
        )
    title = (
        f"{case.name}: {len(case.rows):,} test rows; labels of LightGBM's rule: {same:.2%} alike"
    )
    columns = ["at most", "way", "differ", "base models", "µs", "LightGBM µs"]
    print_table(console, title, columns, lines)


def filters(console: Console, case: Case) -> None:
    """What `optimize` makes of a filter for each class, with a limit on what is lost of it."""
    rows, lines = case.rows[:TIMED_ROWS], []
    winner = case.test.target.decide(case.test.full)
    calls: dict[Any, Callable[[], object]] = {
        "full": lambda: case.ensemble.score_full(rows, threads=1)
    }
    made: dict[Any, qwyc.Classifier | None] = {}
    for label in case.ensemble.classes.tolist():
        options = {"only": label, "by_class": {label: LOST}, "progress": False, "threads": 1}
        try:
            made[label] = qwyc.optimize(case.ensemble, case.sample, evaluation="quit", **options)
        except qwyc.InfeasibleError:  # too few rows of the class
            made[label] = None
            continue
        calls[label] = partial(made[label].predict, rows, threads=1)
    times = medians(calls, len(rows))
    for k, (label, fast) in enumerate(made.items()):
        line = [str(label), f"{np.mean(winner == k):.1%}"]
        if fast is None:
            lines.append([*line, "–", "–", "–", "–"])
            continue
        done = fast.decide(case.rows)
        missed = (winner == k) & (done.label != label)
        line += [f"{missed.sum() / np.sum(winner == k):.1%}", f"{done.steps.mean():.1f}"]
        lines.append([*line, f"{np.mean(done.complete):.1%}", f"{times[label]:.2f}"])
    columns = ["class", "of the rows", "of it lost", "base models", "complete", "µs"]
    title = (
        f"{case.name}: is a row of this class? At most {LOST:.0%} of it may be lost; in full "
        f"{case.shape[0]} base models, {times['full']:.2f} µs"
    )
    print_table(console, title, columns, lines)


PARTS = {"rivals": rivals, "filters": filters}


def main() -> None:
    """Run the parts that were asked for, on the data sets that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--only", nargs="*", default=[""], help="data sets whose name has this")
    parser.add_argument("--small", action="store_true", help="few rows and rounds, to try it out")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    console = Console(width=120)
    for name in DATA:
        if not any(word in name for word in options.only):
            continue
        started, case = time.perf_counter(), case_of(name, options.small)
        for part in options.parts or PARTS:
            if part == "rivals" or name.startswith("Covertype"):
                PARTS[part](console, case)
        console.print(f"{name}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
