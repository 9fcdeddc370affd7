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
    """The experiments of the paper on public data."""

    adult = "adult"
    nomao = "nomao"


def reproduce(
    experiment: Annotated[Experiment, argument("EXPERIMENT", "Experiment 1 (adult) or 2 (nomao).")],
    folder: Annotated[
        Path | None, option("Folder to write \\[default: reproduce-EXPERIMENT]", "--output", "-o")
    ] = None,
    reduced: Annotated[
        bool,
        flag(
            "Run a small version that only shows that it works: its figures mean nothing.",
            "--reduced",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Repeat an experiment of the paper: every method, every figure and every claim.

    Nomao is read from the folder that QWYC_DATA names, or fetched from OpenML.
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
        experiments.run(
            experiment.value, target, reduced=reduced, console=console, progress=progress
        )
    if as_json:
        files = sorted(str(path) for path in target.iterdir())
        print_json({"experiment": experiment.value, "reduced": reduced, "files": files})
