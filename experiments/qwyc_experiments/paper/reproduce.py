"""`qwyc reproduce`: the paper's Experiments 1 (UCI Adult) and 2 (UCI Nomao) from one command.

Model and policies are fitted on the training rows, as in the paper, and measured on the test rows, which
neither has seen. All is computed first and written at the end."""

from __future__ import annotations

import csv
import io
import itertools
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from qwyc import ArtifactError, OptionError

from . import figures, report
from .claims import LEVELS, claims, number
from .curves import QWYC, Measured, Results
from .data import Data, load, need
from ..internals import replacing
from .methods import Bench, fan, fixed_orders, joint, measured, smaller
from .models import Choice, choose, strongest_features, train
from .setting import Setting, setting_for


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper."""

    title: str
    depth: int
    features: int | None  # the strongest so many; None is all


EXPERIMENTS = {
    "adult": Experiment("Experiment 1, UCI Adult", depth=5, features=None),
    "nomao": Experiment("Experiment 2, UCI Nomao", depth=9, features=8),
}


Report = Callable[[str, int, int], None]  # what, done, total; total 0: not known


def _silent(what: str, done: int, total: int) -> None:
    pass


def run(
    name: str, folder: Path, *, reduced: bool, console: Console, progress: Report = _silent
) -> None:
    """Run an experiment and write its table, pictures and report into the folder."""
    started = time.perf_counter()
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise OptionError(f"there is no experiment {name!r}; there are: {known}")
    folder = Path(folder)
    check_folder(folder)
    need("xgboost", "xgboost-cpu")
    need("matplotlib", "matplotlib")
    experiment = EXPERIMENTS[name]
    setting = setting_for(experiment.depth, reduced=reduced)
    data = load(name, setting.rows)
    results, choices, widths, data = compute(name, experiment, setting, data, console, progress)
    progress("Drawing", 0, 0)
    judged = claims(results)
    files = {
        "points.csv": points_csv(results).encode(),
        "accuracy.png": figures.accuracy(results, experiment.title),
        "differences.png": figures.differences(results, experiment.title),
        "histograms.png": figures.histograms(results, experiment.title),
        "report.md": report.text(
            results, judged, experiment.title, setting, data, choices, widths
        ).encode(),
    }
    write(folder, files)
    console.print(summary(results, experiment.title))
    for claim in judged:
        console.print(f"{claim.verdict:>15}  {claim.paper}", highlight=False)
    console.print(f"\nWrote in {time.perf_counter() - started:.0f} s:", highlight=False)
    for file in files:
        console.print(f"  {folder / file}", highlight=False, soft_wrap=True)


def compute(
    name: str,
    experiment: Experiment,
    setting: Setting,
    data: Data,
    console: Console,
    progress: Report = _silent,
) -> tuple[Results, dict[int, Choice], dict[str, float], Data]:
    """All points of the comparison, the chosen settings and bin widths, and the data as used."""
    grid = len(setting.learning_rates) * len(setting.min_child_weights)
    n_orders = 3 + len(setting.seeds)

    def stage(what: str, total: int) -> Callable[[], None]:
        """A stage of so many steps, each of which takes about as long as the others."""
        steps = itertools.count(1)
        progress(what, 0, total)
        return lambda: progress(what, next(steps), total)

    if experiment.features is not None:
        progress("Choosing features", 0, 0)
        data = data.features(strongest_features(data, setting, experiment.features))
        console.print(
            f"Strongest {experiment.features} features: {', '.join(data.names)}.",
            highlight=False,
        )
    choices = choose(data, setting, stage("1/6 Choosing settings", grid))
    chosen = choices[setting.trees]
    console.print(
        f"{setting.trees} trees of depth {setting.depth}: learning rate "
        f"{chosen.learning_rate:g} and min_child_weight {chosen.min_child_weight:g}, the best of "
        f"{grid} on {data.validation.sum():,} validation rows.",
        highlight=False,
    )
    progress("2/6 Training the full ensemble", 0, 0)
    bench = Bench(data, train(data, setting.trees, setting, chosen), setting)
    points = joint(bench, stage("3/6 QWYC*", len(setting.alphas)))
    more, orders = fixed_orders(bench, stage("4/6 Algorithm 2 along fixed orders", n_orders))
    points += more
    more, widths = fan(bench, orders, stage("5/6 Fan's rule", n_orders + 4))
    points += more
    points += smaller(bench, choices, stage("6/6 Smaller ensembles", len(setting.sizes)))
    full = measured(bench.testing.positive, setting.trees, bench.testing.positive, data.y_test)
    fitted = measured(bench.fitting.positive, setting.trees, bench.fitting.positive, data.y)
    results = Results(
        name, setting.trees, len(data.y), len(data.y_test), fitted, full, tuple(points)
    )
    return results, choices, widths, data


def check_folder(folder: Path) -> None:
    """Fail now rather than after minutes of work."""
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise ArtifactError(f"cannot write into {folder}: no folder, or no right to write there")


def write(folder: Path, files: dict[str, bytes]) -> None:
    """All files or none, as far as the disk is concerned."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(f"cannot write into {folder}: {error.strerror}") from None
    with ExitStack() as renamed_together:
        for name, content in files.items():
            renamed_together.enter_context(replacing(folder / name)).write(content)


def points_csv(results: Results) -> str:
    """One line for every point, and one for the full ensemble."""
    parts = ("in_sample", "test")
    figures_of = ("mean_base_models", "disagreement", "accuracy")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["experiment", "method", "order", "knob", "knob_value", "seed", "bin_width"]
        + [f"{part}_{figure}" for part in parts for figure in figures_of]
    )
    knobs = {"qwyc": "alpha", "algorithm-2": "alpha", "fan": "gamma", "smaller": "trees"}
    for point in results.points:
        cells = [results.name, point.method, point.order, knobs[point.method], f"{point.knob:g}"]
        cells += ["" if value is None else f"{value:g}" for value in (point.seed, point.bin_width)]
        writer.writerow(cells + _cells(point.fitted) + _cells(point.test))
    cells = [results.name, "full", "natural", "trees", str(results.n_models), "", ""]
    writer.writerow(cells + _cells(results.fitted) + _cells(results.full))
    return text.getvalue()


def _cells(part: Measured) -> list[str]:
    return [f"{value:.10g}" for value in (part.models, part.differ, part.accuracy)]


def summary(results: Results, title: str) -> Table:
    """Base models at a few shares of test differences, by method."""
    table = Table(
        title=f"\n{title}: mean base models of {results.n_models} at equal test differences",
        box=box.SIMPLE_HEAD,
        title_justify="left",
    )
    table.add_column("method")
    for level in LEVELS:
        table.add_column(f"{level:.2%}", justify="right")
    for key, curve in results.curves.items():
        cells = [number(curve.models_at(level)) for level in LEVELS]
        table.add_row(curve.title, *cells, style="bold" if key == QWYC else "")
    return table
