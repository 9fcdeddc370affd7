"""`qwyc reproduce`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

from qwyc.cli.options import Json, argument, flag, option
from qwyc.cli.printing import make_console, print_json
from qwyc.cli.progress import ProgressLine
from qwyc.errors import MissingDependencyError


class Experiment(str, Enum):
    """The experiments of the paper, and two kinds of ensemble with rivals of their own."""

    adult = "adult"
    nomao = "nomao"
    rw1 = "rw1"
    rw2 = "rw2"
    lightgbm = "lightgbm"
    forest = "forest"
    all = "all"


def reproduce(
    experiment: Annotated[
        Experiment,
        argument(
            "EXPERIMENT",
            "Experiment 1 (adult), 2 (nomao), 3 and 5 (rw1) or 4 and 6 (rw2), which use stand-ins for data "
            "that is not public; LightGBM models (lightgbm), random forests (forest), or all.",
        ),
    ],
    folder: Annotated[
        Path | None, option("Folder to write \\[default: reproduce-EXPERIMENT]", "--output", "-o")
    ] = None,
    quick: Annotated[
        bool,
        flag(
            "Run a small version that only shows that it works: its figures mean nothing.",
            "--quick",
            "--reduced",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Repeat experiments of the paper: every method, every figure and every claim.

    A run that was stopped goes on where it was. Data that is not shipped is read from the folder that
    QWYC_DATA names; Nomao can be fetched from OpenML.
    """
    try:
        from qwyc_experiments.paper import reproduce as experiments
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "qwyc_experiments":
            raise
        raise MissingDependencyError(
            "qwyc reproduce needs the package qwyc_experiments, which is part of the wheel of qwyc and was "
            "not found; reinstall it from the clone of qwyc: pip install --force-reinstall --no-deps ."
        ) from None

    target = folder or Path(f"reproduce-{experiment.value}")
    console = make_console(quiet=as_json)
    with ProgressLine(f"Loading {experiment.value}") as progress:
        experiments.run(experiment.value, target, quick=quick, console=console, progress=progress)
    if as_json:
        files = sorted(str(path) for path in target.iterdir() if path.is_file())
        print_json({"experiment": experiment.value, "quick": quick, "files": files})
