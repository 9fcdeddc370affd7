"""The figures that matter most, each next to what it is meant to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from qwyc.check.benchmark import FULL, QUITTING

from .contest import ALPHA, Result
from .sizes import Sizes

FEW = 0.001  # a peer that decides more of the rows unlike the model is not counted as the fastest


@dataclass(frozen=True)
class Figure:
    """One of them."""

    what: str
    target: str
    found: str
    met: bool | None  # None: not measured
    remark: str = ""


def headline(
    results: Mapping[str, Result], sizes: Sizes, left_out: Mapping[str, str]
) -> list[Figure]:
    """All of them, one thread; what could not be measured says why (`left_out`: whole cases)."""
    large = max(sizes.batches)
    batch = f"batch of {large:,}"
    early = "LightGBM pred_early_stop"
    figures = [
        factor(results, "xgboost", QUITTING, "XGBoost", 120, large, f"{batch}: quitting"),
        fastest(results, "xgboost", QUITTING, 100, large, f"{batch}: quitting"),
        factor(results, "lightgbm", QUITTING, early, 100, large, f"{batch}: quitting"),
        factor(results, "xgboost", FULL, "XGBoost", 60, large, f"{batch}: in full"),
        factor(results, "lightgbm", FULL, "LightGBM", 90, large, f"{batch}: in full"),
        factor(results, "catboost", FULL, "CatBoost", 2.5, large, f"{batch}: in full"),
        factor(results, "forest", QUITTING, "scikit-learn", 100, large, f"{batch}: quitting"),
        factor(results, "forest", FULL, "scikit-learn", 7, large, f"{batch}: in full"),
        factor(results, "classes", FULL, "XGBoost", 40, large, f"{batch}: in full"),
        factor(results, "classes", QUITTING, FULL, 3, large, f"{batch}: quitting"),
        single_row(results, "xgboost", 0.5),
        single_row(results, "classes", 3),
        fastest(results, "xgboost", QUITTING, 50, 1, "single row from Python: quitting"),
    ]
    for name in ("xgboost", "lightgbm", "forest", "classes"):
        if name in results:
            figures.append(disagreement(results[name]))
    return [
        replace(figure, remark=left_out[case]) if case in left_out else figure
        for figure in figures
        for case in [figure.what.split(",")[0]]
    ]


def factor(
    results: Mapping[str, Result],
    case: str,
    ours: str,
    theirs: str,
    target: float | None,
    batch: int,
    what: str,
) -> Figure:
    """How many times as fast as one of the others."""
    words = f"{case}, {what}, against {theirs}"
    wanted = "report" if target is None else f"at least {target:g}x"
    result = results.get(case)
    if result is None:
        return Figure(words, wanted, "not measured", None, "the case was not run")
    a, b = result.line(ours, batch), result.line(theirs, batch)
    if a is None or b is None:
        why = result.left_out.get("qwyc") or "; ".join(result.left_out.values())
        return Figure(words, wanted, "not measured", None, why)
    times = b.microseconds / a.microseconds
    met = None if target is None else times >= target
    remark = f"{b.microseconds:.3g} µs and {a.microseconds:.3g} µs per row"
    if ours == QUITTING and result.disagreement > ALPHA:
        met = met and False
        remark += f", but {result.disagreement:.2%} of decisions differ"
    return Figure(words, wanted, f"{times:.1f}x", met, remark)


def fastest(
    results: Mapping[str, Result], case: str, ours: str, target: float, batch: int, what: str
) -> Figure:
    """How many times as fast as the fastest full evaluation of the same model by anyone."""
    result = results.get(case)
    others = []
    if result is not None:
        others = [
            line
            for line in result.lines.get(1, [])
            if line.batch == batch
            and line.contestant not in (FULL, QUITTING, "LightGBM pred_early_stop")
            and result.differ[line.contestant] <= FEW * result.test_rows
        ]
    if result is None or not others:
        words = f"{case}, {what}, against the fastest"
        return Figure(
            words, f"at least {target:g}x", "not measured", None, "nobody to compare with"
        )
    best = min(others, key=lambda line: line.microseconds).contestant
    figure = factor(results, case, ours, best, target, batch, f"{what}, fastest of the others")
    if not result.left_out:
        return figure
    absent = f"; not judged without {', '.join(result.left_out)}"
    return replace(figure, met=None, remark=figure.remark + absent)


def single_row(results: Mapping[str, Result], case: str, target: float) -> Figure:
    """The median of a call with one row, which is to be under so many microseconds."""
    words, wanted = f"{case}, single row from Python: quitting, median", f"under {target:g} µs"
    line = results[case].line(QUITTING, 1) if case in results else None
    if line is None:
        return Figure(words, wanted, "not measured", None, "the case was not run")
    tail = "" if line.p95 is None else f"p95 {line.p95:.3g} µs, p99 {line.p99:.3g} µs"
    return Figure(words, wanted, f"{line.p50:.3g} µs", line.p50 < target, tail)


def disagreement(result: Result) -> Figure:
    """The disagreement that quitting causes on rows that neither model nor policy has seen."""
    if QUITTING not in result.differ:
        return Figure(f"{result.name}: disagreement", "", "not measured", None)
    return Figure(
        f"{result.name}: test decisions that quitting changes",
        f"at most {ALPHA:.1%}",
        f"{result.disagreement:.2%}",
        result.disagreement <= ALPHA,
        f"{result.mean_models:.1f} base models per row",
    )
