"""`qwyc demo`: Experiment 1 of the paper, from training to a saved classifier, with a table and a plot."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich import box
from rich.console import Console
from rich.table import Table as RichTable

import qwyc
from qwyc import plot
from qwyc.cli.options import Confidence, Json
from qwyc.cli.printing import make_console, print_json
from qwyc.cli.progress import ProgressLine
from qwyc.datasets import load_adult
from qwyc.errors import MissingDependencyError, OptionError
from qwyc.policy.decisions import Decisions
from qwyc.promise.certificate import check_confidence
from qwyc.runtime.arguments import check_alpha
from qwyc.runtime.output import check_target, open_output
from qwyc.runtime.progress import ProgressOption, Report, progress_reporter
from qwyc.runtime.timing import Contestant, interleave

LEARNING_RATE = 0.05
LIBRARIES = {"xgboost": "xgboost-cpu", "sklearn": "scikit-learn", "matplotlib": "matplotlib"}
TREES = 500
TRAINING_ROWS = 16_000  # of 32,561
SECONDS = 0.5  # of timing, for each implementation


def demo(
    alpha: Annotated[
        float, typer.Option(help="Share of decisions on new rows that may differ.")
    ] = 0.005,
    confidence: Confidence = 0.95,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write the classifier to.")
    ] = Path("demo.qwyc"),
    picture: Annotated[Path, typer.Option(help="File to write the plot to.")] = Path("demo.png"),
    as_json: Json = False,
) -> None:
    """Train XGBoost on UCI Adult, make it quit early, and compare the two on the test rows.

    The data comes with qwyc. The command takes ten to twenty seconds, and needs XGBoost, scikit-learn
    and matplotlib.

    [dim]pip install xgboost-cpu scikit-learn matplotlib[/]
    """
    console = make_console(quiet=as_json)
    with ProgressLine("Loading UCI Adult") as progress:
        facts = run_demo(console, alpha, confidence, output, picture, progress=progress)
    if as_json:
        print_json(facts)


def run_demo(
    console: Console,
    alpha: float,
    confidence: float,
    file: Path,
    picture: Path,
    *,
    progress: ProgressOption = None,
) -> dict[str, Any]:
    """Train, optimise, compare on the test rows, save the classifier and draw the plot. Returns the
    figures by name."""
    _require_libraries()
    import xgboost

    check_alpha(alpha)
    check_confidence(confidence)
    _check_files(file, picture)
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
            callbacks=[_tree_callback(xgboost, report)],
            n_jobs=1,  # on a busy machine, threads that wait for one another take ten times as long
        ).fit(X[:TRAINING_ROWS], train.label[:TRAINING_ROWS])
    console.print(
        f"Trained {TREES} trees on {TRAINING_ROWS:,} rows in {time.perf_counter() - started:.1f} s."
    )

    # A model is more certain about its training rows, so other rows are kept for optimising.
    sample = X[TRAINING_ROWS:]
    started = time.perf_counter()
    classifier = qwyc.optimize(model, sample, alpha=alpha, confidence=confidence, progress=progress)
    console.print(
        f"Optimised on {len(sample):,} other rows, without labels, in "
        f"{time.perf_counter() - started:.1f} s.\n{classifier.certificate}"
    )
    decisions, full = classifier.decide(X_test), model.predict(X_test)
    completed = classifier.ensemble.classes[
        classifier.policy.target.decide(classifier.score_full(X_test))
    ]
    microseconds = _time(model, classifier, X_test, progress)
    console.print(
        comparison_table(classifier, decisions, full, completed, test.label, microseconds)
    )
    differ = np.mean(decisions.label != full)
    console.print(
        f"Requested: at most {alpha:.2%} of decisions differ on new rows. Measured: {differ:.2%} on these "
        "rows, which neither the model nor qwyc has seen."
    )
    classifier.save(file)
    draw(classifier, X_test, picture)
    console.print(f"Wrote [bold]{file}[/] (load it with qwyc.load) and [bold]{picture}[/].")
    return {
        "rows": len(full),
        "base_models": classifier.policy.n_models,
        "mean_models": float(decisions.steps.mean()),
        "differ": float(differ),
        "accuracy_full": float(np.mean(full == test.label)),
        "accuracy_quitting": float(np.mean(decisions.label == test.label)),
        "microseconds_xgboost": microseconds[0],
        "microseconds_full": microseconds[1],
        "microseconds_quitting": microseconds[2],
        "certificate": str(classifier.certificate),
        "files": [str(file), str(picture)],
    }


def _require_libraries() -> None:
    absent = [name for name in LIBRARIES if find_spec(name) is None]
    if absent:
        packages = " ".join(LIBRARIES[name] for name in absent)
        raise MissingDependencyError(f"the demo needs {', '.join(absent)}: pip install {packages}")


def _check_files(file: Path, picture: Path) -> None:
    """Raise errors about the output files before the work is done."""
    if picture.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise OptionError(f"the picture must be a .png, .pdf or .svg file; got {picture}")
    if file.absolute() == picture.absolute():
        raise OptionError(f"the classifier and the picture cannot both be {file}; name two files")
    for path in (file, picture):
        check_target(path, regular=True)


def _tree_callback(xgboost: Any, report: Report) -> Any:
    """A callback of XGBoost that reports the number of trees trained."""

    class TreeCallback(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            report(epoch + 1)
            return False

    return TreeCallback()


def _time(
    model: Any, classifier: qwyc.Classifier, X: npt.NDArray[Any], progress: ProgressOption
) -> list[float]:
    """Microseconds per row on one thread: XGBoost, qwyc in full, and qwyc with early quitting."""
    booster = model.get_booster()
    booster.set_param({"nthread": 1})
    implementations: tuple[Callable[[Any], object], ...] = (
        booster.inplace_predict,
        lambda rows: classifier.score_full(rows, threads=1),
        lambda rows: classifier.decide(rows, threads=1),
    )
    with progress_reporter(progress, "Timing", 100) as report:
        timings = interleave(
            {i: Contestant(run, [X], len(X)) for i, run in enumerate(implementations)},
            seconds=SECONDS,
            report=lambda share: report(round(100 * share)),
        )
    return [timings[i].microseconds for i in range(len(implementations))]


def comparison_table(
    classifier: qwyc.Classifier,
    decisions: Decisions,
    full: npt.NDArray[Any],
    completed: npt.NDArray[Any],
    truth: npt.NDArray[Any],
    microseconds: list[float],
) -> RichTable:
    """The full ensemble and qwyc on the test rows. `full`, `completed` and `truth`: (N,) labels of
    XGBoost, of qwyc in full, and of the data."""
    T = classifier.policy.n_models
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


def draw(classifier: qwyc.Classifier, X: Any, path: Path) -> None:
    """Plot the share of rows undecided after each base model, and the number of base models per row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.survival(classifier, X, ax=left).set_title("Most rows are decided early")
    plot.histogram(classifier, X, ax=right).set_title("Few rows need all base models")
    trees = classifier.policy.n_models
    figure.suptitle(
        f"UCI Adult, {len(X):,} test rows, XGBoost with {trees} trees", fontweight="bold"
    )
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=130)
    with open_output(path) as file:
        file.write(content.getvalue())
