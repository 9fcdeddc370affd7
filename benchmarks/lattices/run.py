"""A run: the ensembles one after the other, printed as they come, the page written at the end."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console

import qwyc
from qwyc.check.benchmark import machine
from qwyc.runtime.timing import clock_microseconds

from .. import report
from ..contest import ALPHA, WrongAnswer
from ..peers import LeftOut
from . import page
from .bound import Peak, measure_peak
from .contest import Found, contest
from .contestants import ours, theirs
from .data import make_data
from .models import RTL, Weights, live, tensorflow, weights
from .shapes import INTERPOLATIONS, SIZES, Shape, Sizes


def run(chosen: argparse.Namespace) -> None:
    """What the command line chose."""
    sizes = replace(SIZES["tiny" if chosen.tiny else "full"], cpu_time=chosen.cpu_time)
    warnings.filterwarnings("ignore")  # the libraries' about each other
    console = Console(width=140, highlight=False)
    started = time.perf_counter()
    try:
        _, _, _, versions = tensorflow()
    except LeftOut as reason:
        console.print(f"TensorFlow Lattice trains the ensembles, and is {reason}.")
        sys.exit(2)
    peak = None
    about = [
        f"Command: {command(chosen)}",
        ", ".join(f"{name} {value}" for name, value in machine().items())
        + f", TensorFlow Lattice {versions.replace('on', 'on TensorFlow')}",
        "One thread. Contestants take turns; medians. Rows are float32; qwyc and TFLite take them as "
        "NumPy arrays, the others as tensors made beforehand.",
        "Batches by the process's own time, since the machine is busy; single rows by the wall clock."
        if sizes.cpu_time
        else "All times by the wall clock.",
        f"The clock adds {clock_microseconds():.2f} µs to a call.",
    ]
    for words in about:
        console.print(words)
    try:
        peak = measure_peak(sizes.peak_seconds)
    except LeftOut as reason:
        about.append(f"The peak was not measured: {reason}.")
    results: dict[str, Found] = {}
    try:
        for shape in [each for each in sizes.shapes if each.name in chosen.only]:
            with console.status(f"training {shape.name} ..."):
                trained, seconds = weights(shape)
            about.append(training_words(shape, seconds))
            console.print(about[-1])
            for interpolation in INTERPOLATIONS:
                with console.status(f"{shape.name}, {interpolation} ..."):
                    found = measure(shape, trained, interpolation, sizes)
                results[found.name] = found
                title = f"\n{found.title}; µs per row"
                report.show(console, title, *page.contest_rows(found, sizes))
                console.print("\n".join(page.words(found)))
    except WrongAnswer as error:
        console.print(f"WRONG ANSWER: {error}")
        sys.exit(1)
    everything = list(results.values())
    if peak is not None:
        peak = better(peak, measure_peak(sizes.peak_seconds))
        console.print(
            f"\nPeak: {peak.per_second:.3g} multiply-adds per second, {peak.instructions}"
        )
    report.show(console, "\nThe bound", *page.bound_rows(everything, peak, sizes))
    title = "\nAgainst the targets" + (" (they are for the full size)" if chosen.tiny else "")
    figures = page.figures(everything, sizes)
    report.show(console, title, *report.headline_rows(figures))
    about.append(
        f"Took {time.perf_counter() - started:.0f} s, without what earlier runs had trained or converted; "
        f"load at the end {machine().get('load')}."
    )
    console.print(about[-1])
    chosen.page.parent.mkdir(parents=True, exist_ok=True)
    chosen.page.write_text(page.page(about, results, peak, sizes))
    console.print(f"Wrote {chosen.page}.")


def measure(shape: Shape, trained: Weights, interpolation: str, sizes: Sizes) -> Found:
    """One ensemble with one interpolation. The model's own scores are the reference."""
    found = Found(
        f"{shape.name}, {interpolation}",
        f"{shape.title}, {interpolation} interpolation",
        "TensorFlow Lattice",
        shape=shape,
        interpolation=interpolation,
    )
    rows = make_data(shape)
    evaluators = theirs(shape, trained, interpolation, found.left_out)
    own = evaluators[0]  # its graph is the model as it was built
    # The share of positive decisions on training rows is that of positive labels. At a score of 0 it is
    # far smaller for A, so that alpha would allow a filter to lose most positives.
    some = own.evaluate(rows.training[: shape.test_rows])
    found.threshold = float(np.quantile(some, 1 - shape.positive))
    model = live(
        shape, trained, interpolation, RTL
    )  # much faster to build than a layer per lattice
    fast = optimized(model, rows.policy, shape, found)
    if fast is not None:
        evaluators += ours(fast)
        found.mean_models = float(fast.decide(rows.test).steps.mean())
    return contest(found, evaluators, rows.test, own.evaluate(rows.test), sizes)


def optimized(model: Any, policy_rows: Any, shape: Shape, found: Found) -> Any:
    """qwyc's classifier, or None where this version does not read the model. Its warnings are kept."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", qwyc.QwycWarning)
        try:
            fast = qwyc.optimize(
                model,
                policy_rows,
                alpha=ALPHA,
                quit=shape.quit,
                threshold=qwyc.Score(found.threshold),
                threads=1,
                progress=False,
            )
        except qwyc.ModelError as error:
            found.left_out["qwyc"] = f"does not read this model: {str(error).split(';')[0]}"
            return None
    found.warned += [str(w.message) for w in warned if issubclass(w.category, qwyc.QwycWarning)]
    return fast


def command(chosen: argparse.Namespace) -> str:
    """What was run; where the page goes is left out."""
    words = ["python -m benchmarks.lattices"]
    words += ["--tiny"] * chosen.tiny + ["--cpu-time"] * chosen.cpu_time
    if len(chosen.only) < len(SIZES["full"].shapes):
        words += ["--only", *chosen.only]
    return " ".join(words)


def training_words(shape: Shape, seconds: float) -> str:
    """How an ensemble was trained, and on what."""
    return (
        f"{shape.title}, trained by TensorFlow Lattice on {shape.training_rows:,} generated rows, "
        f"{shape.epochs} epochs, {seconds:.0f} s of processor time; policy from "
        f"{shape.policy_rows:,} other rows "
        f'(alpha {ALPHA}, quit="{shape.quit}"); tested on {shape.test_rows:,} more. '
        f"The threshold is where the full ensemble calls {shape.positive:.0%} of "
        f"{shape.test_rows:,} training rows positive."
    )


def better(one: Peak, other: Peak) -> Peak:
    """The larger: what else the machine does can only lower it."""
    return max(one, other, key=lambda peak: peak.per_second)
