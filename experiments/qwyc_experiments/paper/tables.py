"""The tables of the page, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .curves import (
    FAN_JOINT,
    FAN_STAR,
    JOINT_FAN,
    KNOBS,
    LEVEL,
    LEVELS,
    OURS,
    QWYC,
    SMALLER,
    Curve,
    Interval,
    Outcome,
    Timed,
    ratio,
    title,
)
from .experiments import EXPERIMENTS
from .published import TABLES, Published

PRINTED = {None: "full", QWYC: "qwyc", FAN_STAR: "fan"}  # methods that the paper's tables have


def table(head: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Markdown; the first `left` columns are aligned left, the others right."""
    marks = ["---"] * left + ["---:"] * (len(head) - left)
    return [
        "| " + " | ".join(head) + " |",
        "|" + "|".join(marks) + "|",
        *("| " + " | ".join(line) + " |" for line in lines),
    ]


def times(outcome: Outcome) -> list[str]:
    """The paper's table of evaluation times, its own figures beside ours."""
    number_of = EXPERIMENTS[outcome.results.name].number
    printed = TABLES.get(number_of or 0, {})
    full = next(t for t in outcome.timed if t.key is None)
    lines = []
    for each in outcome.timed:
        paper = printed.get(PRINTED.get(each.key, ""))
        name = "full ensemble" if each.key is None else title(each.key)
        cells = [
            name if each.key not in (QWYC, OURS) else f"**{name}**",
            f"{each.test.differ:.2%} ({_fitted(outcome, each):.2%})",
            f"{each.test.models:.4g}",
            f"{each.microseconds.mean():.3g} ± {relative(each):.0%}",
            f"{full.microseconds.mean() / each.microseconds.mean():.1f}x",
            f"{full.test.models / each.test.models:.1f}x",
        ]
        lines.append(cells + (_of_paper(paper) if printed else []))
    head = ["method", "differ", "base models", "µs per row", "speed-up", "speed-up in base models"]
    if printed:
        head += [f"paper: {what}" for what in ("differ", "base models", "µs per row", "speed-up")]
    return table(head, lines)


def _fitted(outcome: Outcome, timed: Timed) -> float:
    """Differences on the fitted rows of what was timed."""
    if timed.key is None:
        return 0.0
    return outcome.results.curves[timed.key].nearest("differ", LEVEL).fitted.differ


def relative(timed: Timed) -> float:
    """Deviation over runs as a share of the mean."""
    return float(timed.microseconds.std(ddof=1) / timed.microseconds.mean())


def _of_paper(line: Published | None) -> list[str]:
    if line is None:
        return ["", "", "", ""]
    return [
        f"{line.differ:.2%}" if line.differ else "0",
        f"{line.models:g}",
        f"{line.microseconds:g} ± {line.deviation:.0%}",
        f"{line.speed_up:.1f}x",
    ]


def glance(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Speed-ups over the full ensemble at about 0.5% differences, in time and in base models."""
    lines = []
    for name, outcome in outcomes.items():
        timed = {each.key: each for each in outcome.timed}
        full = timed[None]
        printed = TABLES.get(EXPERIMENTS[name].number or 0, {})
        cells = [short(name)]
        for key, line in ((QWYC, "qwyc"), (FAN_STAR, "fan"), (OURS, "")):
            each = timed[key]
            in_time = full.microseconds.mean() / each.microseconds.mean()
            in_models = full.test.models / each.test.models
            cells.append(f"{in_time:.1f}x, {in_models:.1f}x ({each.test.differ:.2%})")
            if line:
                paper = printed.get(line)
                in_paper = "" if paper is None else printed["full"].models / paper.models
                cells.append(
                    ""
                    if paper is None
                    else f"{paper.speed_up:.1f}x, {in_paper:.1f}x ({paper.differ:.2%})"
                )
        lines.append(cells)
    head = ["experiment", "QWYC*", "QWYC*, paper", "Fan*", "Fan*, paper", "qwyc, default method"]
    return table(head, lines)


def question(outcomes: Mapping[str, Outcome], level: float) -> list[str]:
    """Base models of Fan's rule over those of QWYC*, along its order and with an order of its own, and time
    per row likewise."""
    lines = []
    for name, outcome in outcomes.items():
        curves = outcome.results.curves
        timed = {each.key: each.microseconds.mean() for each in outcome.timed}
        cells = [short(name), number(curves[QWYC].models_at(level))]
        for key in (FAN_JOINT, JOINT_FAN):
            cells.append(between(ratio(curves[key], curves[QWYC], level)))
            cells.append(f"{timed[key] / timed[QWYC]:.2f}")
        lines.append(cells)
    head = [
        "experiment",
        "QWYC*, base models",
        "Fan's rule along its order: base models over those of QWYC*",
        "time",
        "Fan's rule in the search: base models over those of QWYC*",
        "time",
    ]
    return table(head, lines)


def between(found: Interval | None) -> str:
    """A ratio with its interval."""
    if found is None or not np.isfinite(found.value):
        return "not reached"
    if found.value == 0:
        return "QWYC* does not reach it"
    if found.low == 0:  # in some bootstrap samples QWYC* does not reach the level
        return f"{found.value:.2f} (at most {found.high:.2f})"
    if not np.isfinite(found.high):
        return f"{found.value:.2f} (at least {found.low:.2f})"
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def levels(outcome: Outcome) -> list[str]:
    """Mean base models by method and level of test differences; fitted differences in brackets."""
    lines = []
    for key, curve in outcome.results.curves.items():
        best = int(np.argmin(curve.differ))
        cells = [_at(curve, level) for level in LEVELS]
        fitted = curve.fitted_differ[best]
        cells.append(f"{curve.differ[best]:.2%} ({fitted:.2%}) with {curve.models[best]:.4g}")
        if key in (OURS, QWYC):
            cells = [f"**{cell}**" for cell in cells]
        lines.append([curve.title, *cells])
    head = ["method", *(f"{level:.2%}" for level in LEVELS), "least differences"]
    return table(head, lines)


def _at(curve: Curve, level: float) -> str:
    fitted = curve.fitted_differ_at(level)
    models = number(curve.models_at(level))
    return models if fitted is None else f"{models} ({fitted:.2%})"


def optimism(outcomes: Mapping[str, Outcome], alphas: Sequence[float]) -> list[str]:
    """Test differences at each alpha asked for, method by method, experiment by experiment."""
    lines = []
    for name, outcome in outcomes.items():
        for key, curve in outcome.results.curves.items():
            if key == SMALLER:  # it is asked for nothing
                continue
            cells = [share(test_share(curve, alpha)) for alpha in alphas]
            lines.append([short(name), curve.title, *cells])
        kept = {p.alpha: p for p in outcome.promised}
        cells = []
        for alpha in alphas:
            found = kept.get(alpha)
            cells.append(
                ""
                if found is None
                else f"{found.differ:.2%} ({found.above} and {found.broken} of {found.splits})"
            )
        lines.append([short(name), "**qwyc.optimize, certified**", *cells])
    return table(["experiment", "method", *(f"{alpha:.2%}" for alpha in alphas)], lines, left=2)


def test_share(curve: Curve, alpha: float) -> float | None:
    """Test differences where alpha was asked for, or where the fitted rows' differences are alpha."""
    if KNOBS[curve.key[0]] == "alpha":
        at = np.flatnonzero(curve.knob == alpha)
        return float(curve.differ[at[0]]) if len(at) else None
    return curve.test_differ_at(alpha)


def widths(outcomes: Mapping[str, Outcome], level: float) -> list[str]:
    """Fan* by bin width: base models at a level, the least differences, and bins of a step."""
    lines = []
    for name, outcome in outcomes.items():
        for width in outcome.bins:
            points = [point for point in outcome.widths if point.bin_width == width]
            curve = Curve(points)
            chosen = outcome.chosen_widths.get("individual-mse") == width
            cells = [
                f"{width:g}" + (" (chosen)" if chosen else ""),
                f"{outcome.bins[width]:.0f}",
                number(curve.models_at(level)),
                share(curve.differ.min()),
            ]
            lines.append([short(name), *cells])
    head = [
        "experiment",
        "bin width",
        "bins per step",
        f"base models at {level:.1%}",
        "least differences",
    ]
    return table(head, lines)


def setup(outcomes: Mapping[str, Outcome]) -> list[str]:
    """What was trained on what."""
    lines = []
    for name, outcome in outcomes.items():
        results, facts = outcome.results, outcome.facts
        lines.append(
            [
                short(name),
                f"{results.n_fit:,} and {results.n_test:,}",
                facts["features"].split(":")[0],
                facts["model"],
                facts["called negative"].split(" of")[0],
                f"{results.fitted.accuracy:.2%} and {results.full.accuracy:.2%}",
                EXPERIMENTS[name].quit,
            ]
        )
    head = [
        "experiment",
        "rows, training and test",
        "features",
        "full ensemble",
        "called negative",
        "accuracy, training and test rows",
        "quits",
    ]
    return table(head, lines, left=len(head))


def short(name: str) -> str:
    """An experiment in a cell."""
    experiment = EXPERIMENTS[name]
    if experiment.number is None:
        return {"lightgbm": "LightGBM", "forest": "forest"}[
            experiment.family
        ] + f", {experiment.data}"
    what = {"rw1": "stand-in RW 1", "rw2": "stand-in RW 2"}.get(experiment.data, experiment.data)
    trained = f", {experiment.family}" if experiment.stand_in else ""
    return f"{experiment.number}: {what}{trained}"


def number(models: float | None) -> str:
    """Base models for a table."""
    return "not reached" if models is None else f"{models:.4g}" if models >= 10 else f"{models:.3g}"


def share(value: float | None) -> str:
    """A share for a table."""
    return "not reached" if value is None else f"{value:.2%}"
