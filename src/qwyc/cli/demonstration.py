"""The demo: the paper's Experiment 1 from training to a saved classifier, in one table and picture."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table as RichTable

import qwyc
from qwyc import plot
from qwyc.classifier import Classifier
from qwyc.datasets import load_adult
from qwyc.errors import MissingDependencyError, OptionError
from qwyc.policy.policy import Decisions
from qwyc.promise.certificate import check_confidence
from qwyc.runtime.arguments import check_alpha
from qwyc.runtime.output import check_target, open_output
from qwyc.runtime.progress import ProgressOption, Report, progress_reporter
from qwyc.runtime.timing import Contestant, interleave

LEARNING_RATE = 0.05
LIBRARIES = {"xgboost": "xgboost-cpu", "sklearn": "scikit-learn", "matplotlib": "matplotlib"}
TREES = 500
TRAINING_ROWS = 16_000  # of 32,561
SECONDS = 0.5  # of timing, for each of three ways


def run(
    console: Console,
    alpha: float,
    confidence: float,
    file: Path,
    picture: Path,
    *,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Train, optimise, compare on the test rows, save the classifier and draw the picture; the figures
    by name."""
    _require_libraries()
    import xgboost

    check_alpha(alpha)
    check_confidence(confidence)
    if picture.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise OptionError(f"the picture must be a .png, .pdf or .svg file; got {picture}")
    if file.absolute() == picture.absolute():
        raise OptionError(f"the classifier and the picture cannot both be {file}; name two files")
    for path in (file, picture):  # now, not after the work
        check_target(path, regular=True)
    train, test = load_adult("train"), load_adult("test")
    X, X_test = train.codes(), test.codes(like=train)
    with progress_reporter(progress, "Training XGBoost on UCI Adult", TREES) as report:
        started = time.perf_counter()
        model = xgboost.XGBClassifier(
            n_estimators=TREES,
            max_depth=5,
            learning_rate=LEARNING_RATE,
            enable_categorical=True,
            feature_types=train.feature_types,
            callbacks=[_each_tree(xgboost, report)],
            n_jobs=1,  # threads that wait for one another take ten times as long on a busy machine
        ).fit(X[:TRAINING_ROWS], train.label[:TRAINING_ROWS])
    console.print(
        f"Trained {TREES} trees on {TRAINING_ROWS:,} rows in {time.perf_counter() - started:.1f} s."
    )

    # The model is surer of rows it was trained on, so others are kept aside for optimising.
    aside = X[TRAINING_ROWS:]
    started = time.perf_counter()
    fast = qwyc.optimize(model, aside, alpha=alpha, confidence=confidence, progress=progress)
    console.print(
        f"Optimised on {len(aside):,} others, without labels, in "
        f"{time.perf_counter() - started:.1f} s.\n{fast.certificate}"
    )
    decisions, full = fast.decide(X_test), model.predict(X_test)
    completed = fast.ensemble.classes[
        (fast.score_full(X_test) >= fast.policy.threshold).astype(int)
    ]
    booster = model.get_booster()
    booster.set_param({"nthread": 1})
    ways: tuple[Callable[[Any], object], ...] = (
        booster.inplace_predict,
        lambda rows: fast.score_full(rows, threads=1),
        lambda rows: fast.decide(rows, threads=1),
    )
    with progress_reporter(progress, "Timing", 100) as report:
        timings = interleave(
            {i: Contestant(way, [X_test], len(X_test)) for i, way in enumerate(ways)},
            seconds=SECONDS,
            report=lambda share: report(round(100 * share)),
        )
    microseconds = [timings[i].microseconds for i in range(len(ways))]
    console.print(comparison_table(fast, decisions, full, completed, test.label, microseconds))
    differ = np.mean(decisions.label != full)
    console.print(
        f"Asked for at most {alpha:.2%} of decisions to differ on new rows, got {differ:.2%} on these, "
        "which neither the model nor qwyc has seen."
    )
    fast.save(file)
    draw(fast, X_test, picture)
    console.print(f"Wrote [bold]{file}[/] (open it with qwyc.load) and [bold]{picture}[/].")
    return {
        "rows": len(full),
        "base_models": fast.policy.n_models,
        "mean_models": float(decisions.steps.mean()),
        "differ": float(differ),
        "accuracy_full": float(np.mean(full == test.label)),
        "accuracy_quitting": float(np.mean(decisions.label == test.label)),
        "microseconds_xgboost": microseconds[0],
        "microseconds_full": microseconds[1],
        "microseconds_quitting": microseconds[2],
        "certificate": str(fast.certificate),
        "files": [str(file), str(picture)],
    }


def _each_tree(xgboost: Any, report: Report) -> Any:
    """Reports every tree that has been trained."""

    class EachTree(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            report(epoch + 1)
            return False

    return EachTree()


def comparison_table(
    fast: Classifier,
    decisions: Decisions,
    full: npt.NDArray[Any],
    completed: npt.NDArray[Any],
    truth: npt.NDArray[Any],
    microseconds: list[float],
) -> RichTable:
    """Full ensemble against qwyc on rows that neither model nor policy has seen."""
    T = fast.policy.n_models
    table = RichTable(
        title=f"\nUCI Adult, {len(truth):,} test rows", box=box.SIMPLE_HEAD, title_justify="left"
    )
    table.add_column("")
    for name in ("XGBoost, full", "qwyc, full", "qwyc, quitting"):
        table.add_column(name, justify="right")
    steps = decisions.steps
    table.add_row("base models per row, mean", f"{T}", f"{T}", f"[bold]{steps.mean():.1f}[/]")
    table.add_row("  median", f"{T}", f"{T}", f"{np.median(steps):.0f}")
    table.add_row("  99th percentile", f"{T}", f"{T}", f"{np.percentile(steps, 99):.0f}")
    labels = (full, completed, decisions.label)
    table.add_row("decisions that differ", "", *[f"{np.mean(v != full):.2%}" for v in labels[1:]])
    table.add_row("accuracy", *[f"{np.mean(v == truth):.2%}" for v in labels])
    table.add_row("µs per row, one thread", *[f"{t:.2f}" for t in microseconds])
    table.add_row("  times as fast", *[f"{microseconds[0] / t:.1f}" for t in microseconds])
    return table


def draw(fast: Classifier, X: Any, path: Path) -> None:
    """Share of rows undecided after each base model, and how many base models rows needed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.survival(fast, X, ax=left).set_title("Most rows are decided early")
    plot.histogram(fast, X, ax=right).set_title("Few rows need them all")
    trees = fast.policy.n_models
    figure.suptitle(
        f"UCI Adult, {len(X):,} test rows, XGBoost with {trees} trees", fontweight="bold"
    )
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=130)
    with open_output(path) as written:
        written.write(content.getvalue())


def _require_libraries() -> None:
    absent = [name for name in LIBRARIES if find_spec(name) is None]
    if absent:
        packages = " ".join(LIBRARIES[name] for name in absent)
        raise MissingDependencyError(f"the demo needs {', '.join(absent)}: pip install {packages}")
