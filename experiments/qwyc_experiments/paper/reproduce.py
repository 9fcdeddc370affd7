"""`qwyc reproduce`: experiments of the paper from one command, resumable.

Models and policies are fitted on the training rows, as in the paper, and measured on the test rows, which
neither has seen. Everything is computed first, stage by stage; the pages are written at the end."""

from __future__ import annotations

import csv
import io
import os
import time
from contextlib import ExitStack
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from qwyc import ArtifactError, OptionError

from ..internals import replacing
from . import claims, figures, report
from .compute import Report, Run
from .curves import KNOBS, LEVELS, OURS, QWYC, Measured, Outcome
from .data import Data, load, need
from .experiments import EXPERIMENTS, GROUPS
from .setting import Setting, setting_for
from .tables import number

# family of ensembles -> module and package
LIBRARIES = {"lightgbm": ("lightgbm", "lightgbm"), "forest": ("sklearn", "scikit-learn")}


def _silent(what: str, done: int, total: int) -> None:
    pass


def run(
    name: str,
    folder: Path,
    *,
    quick: bool,
    console: Console,
    progress: Report = _silent,
    state: Path | None = None,
) -> dict[str, Outcome]:
    """Run the experiments of a group and write their tables, pictures and page into the folder. What
    is done is kept in `state` (by default `state` in the folder), so that a stopped run goes on there."""
    started = time.perf_counter()
    folder = Path(folder)
    outcomes, settings = compute(
        name,
        state or folder / "state",
        quick=quick,
        console=console,
        progress=progress,
        folder=folder,
    )
    progress("Drawing", 0, 0)
    files = contents(outcomes, settings)
    write(folder, files)
    for outcome in outcomes.values():
        console.print(summary(outcome))
    console.print(f"\nWrote in {time.perf_counter() - started:.0f} s:", highlight=False)
    for file in files:
        console.print(f"  {folder / file}", highlight=False, soft_wrap=True)
    return outcomes


def compute(
    name: str,
    state: Path,
    *,
    quick: bool,
    console: Console,
    progress: Report = _silent,
    folder: Path | None = None,
) -> tuple[dict[str, Outcome], dict[str, Setting]]:
    """All experiments of a group; stages that are in `state` are not computed again."""
    if name not in GROUPS:
        raise OptionError(f"there is no experiment {name!r}; there are: {', '.join(GROUPS)}")
    for each in (folder, state):
        if each is not None:
            check_folder(each)
    need("xgboost", "xgboost-cpu")
    need("matplotlib", "matplotlib")
    outcomes = {}
    settings = {each: setting_for(EXPERIMENTS[each], quick=quick) for each in GROUPS[name]}
    loaded: dict[str, Data] = {}  # of all experiments before the first, which may take an hour
    for each, setting in settings.items():
        experiment = EXPERIMENTS[each]
        if experiment.family in LIBRARIES:
            need(*LIBRARIES[experiment.family])
        if experiment.data not in loaded:
            loaded[experiment.data] = load(experiment.data, setting.rows)
    for each, setting in settings.items():
        started = time.perf_counter()
        experiment = EXPERIMENTS[each]
        data = loaded[experiment.data]
        outcomes[each] = Run(experiment, setting, data, state, progress).outcome()
        full = outcomes[each].results.full
        console.print(
            f"{experiment.title}: {outcomes[each].facts['model']}, test accuracy {full.accuracy:.2%}; "
            f"{time.perf_counter() - started:.0f} s.",
            highlight=False,
        )
    return outcomes, settings


def contents(
    outcomes: dict[str, Outcome], settings: dict[str, Setting], images: str = ""
) -> dict[str, bytes]:
    """The files of a run by name. Pictures are named as the page refers to them."""
    paper = {name: o for name, o in outcomes.items() if EXPERIMENTS[name].number is not None}
    others = {name: o for name, o in outcomes.items() if name not in paper}
    files = {"points.csv": points_csv(outcomes).encode()}
    for name, outcome in paper.items():
        files[f"{images}differences-{name}.png"] = figures.differences(outcome)
    if paper:
        files[f"{images}accuracy.png"] = figures.accuracy(paper)
        files[f"{images}histograms.png"] = figures.histograms(paper)
    if others:
        files[f"{images}rivals.png"] = figures.rivals(others)
    files[f"{images}optimism.png"] = figures.optimism(outcomes)
    page = report.page(
        outcomes, claims.claims(paper), claims.beyond(outcomes), settings, images=images
    )
    files["report.md"] = page.encode()
    return files


def check_folder(folder: Path) -> None:
    """Fail now rather than after minutes of work."""
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise ArtifactError(f"cannot write into {folder}: no folder, or no right to write there")


def write(folder: Path, files: dict[str, bytes]) -> None:
    """All files or none, as far as the disk is concerned."""
    try:
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(f"cannot write into {folder}: {error.strerror}") from None
    with ExitStack() as renamed_together:
        for name, content in files.items():
            renamed_together.enter_context(replacing(folder / name)).write(content)


def points_csv(outcomes: dict[str, Outcome]) -> str:
    """One line for every point, and one for each full ensemble."""
    parts = ("in_sample", "test")
    figures_of = ("mean_base_models", "disagreement", "accuracy")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["experiment", "method", "order", "knob", "knob_value", "seed", "bin_width"]
        + [f"{part}_{figure}" for part in parts for figure in figures_of]
    )
    for name, outcome in outcomes.items():
        results = outcome.results
        for point in results.points:
            cells = [name, point.method, point.order, KNOBS[point.method], f"{point.knob:g}"]
            cells += [
                "" if value is None else f"{value:g}" for value in (point.seed, point.bin_width)
            ]
            writer.writerow(cells + _cells(point.fitted) + _cells(point.test))
        cells = [name, "full", "natural", "base models", str(results.n_models), "", ""]
        writer.writerow(cells + _cells(results.fitted) + _cells(results.full))
    return text.getvalue()


def _cells(part: Measured) -> list[str]:
    return [f"{value:.10g}" for value in (part.models, part.differ, part.accuracy)]


def summary(outcome: Outcome) -> Table:
    """Base models at a few shares of test differences, by method."""
    results = outcome.results
    table = Table(
        title=f"\n{EXPERIMENTS[results.name].title}: mean base models of {results.n_models} at equal "
        "test differences",
        box=box.SIMPLE_HEAD,
        title_justify="left",
    )
    table.add_column("method")
    for level in LEVELS:
        table.add_column(f"{level:.2%}", justify="right")
    for key, curve in results.curves.items():
        cells = [number(curve.models_at(level)) for level in LEVELS]
        table.add_row(curve.title, *cells, style="bold" if key in (OURS, QWYC) else "")
    return table
