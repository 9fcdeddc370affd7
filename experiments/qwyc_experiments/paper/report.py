"""The page that goes through the paper's claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import qwyc

from .claims import LEVELS, Claim, number
from .curves import ORDERS, QWYC, Curve, Results
from .data import Data, need
from .models import Choice
from .setting import Setting


def text(
    results: Results,
    judged: Sequence[Claim],
    title: str,
    setting: Setting,
    data: Data,
    choices: dict[int, Choice],
    widths: dict[str, float],
) -> str:
    """The whole page, in Markdown."""
    chosen = choices[setting.trees]
    error = np.sqrt(0.005 * 0.995 / results.n_test)
    lines = [
        f"# {title}",
        "",
        f"XGBoost, {results.n_models} trees of depth at most {setting.depth} on {data.X.shape[1]} "
        f"features; learning rate {chosen.learning_rate:g}, min_child_weight {chosen.min_child_weight:g}: "
        f"those with the least loss on {data.validation.sum():,} validation rows, then trained on all "
        f"{results.n_fit:,} training rows. Policies are fitted on the same training rows, as in the paper, "
        f"and every figure is from the {results.n_test:,} test rows, seen by neither, unless it says "
        f"otherwise. Test accuracy of the full ensemble: {results.full.accuracy:.2%} (training rows "
        f"{results.fitted.accuracy:.2%}). A share of 0.50% of the test rows has a standard error of "
        f"{error:.2%}.",
        "",
        "## Mean base models at equal test differences",
        "",
        "Between its points a method's curve is a line in the logarithm of base models; given are the "
        "fewest base models at which it stays within the share and, in brackets, the differences on the "
        f"fitted rows there. Random orders are the mean of {len(setting.seeds)} seeds.",
        "",
        *levels_table(results),
        "",
        "## The paper's claims",
        "",
    ]
    for i, claim in enumerate(judged, 1):
        lines += [f"{i}. {claim.paper} **{_capital(claim.verdict)}.** {claim.evidence}"]
    lines += ["", "## What the paper does not show: fitted rows against test rows", ""]
    lines += [optimism(results), "", *optimism_table(results, setting), ""]
    lines += ["## Settings", ""]
    if len(data.names) < 10:
        lines += [f"Features, by total gain on training rows: {', '.join(data.names)}.", ""]
    sizes = "; ".join(
        f"{size} trees: {choice.learning_rate:g} and {choice.min_child_weight:g}"
        for size, choice in sorted(choices.items())
    )
    listed = ", ".join(f"{ORDERS[order]} {width:g}" for order, width in widths.items())
    lines += [
        f"Learning rate and min_child_weight by size, chosen on validation rows: {sizes}.",
        "",
        "Bin width of Fan's rule, in deviations of the full score, the one of "
        f"{', '.join(f'{w:g}' for w in setting.bin_widths)} that needs the fewest base models at 0.5% on "
        f"the validation rows when fitted on the other training rows: {listed}.",
        "",
        f"Versions: qwyc {qwyc.__version__}, XGBoost {need('xgboost', 'xgboost-cpu').__version__}, NumPy "
        f"{np.__version__}.",
    ]
    return "\n".join(lines) + "\n"


def levels_table(results: Results) -> list[str]:
    """Methods by levels of test differences."""
    lines = [
        "| method | " + " | ".join(f"{level:.2%}" for level in LEVELS) + " | least differences |",
        "|---|" + "---:|" * (len(LEVELS) + 1),
    ]
    for key, curve in results.curves.items():
        cells = [_with_fitted(curve, level) for level in LEVELS]
        best = int(np.argmin(curve.differ))
        cells.append(f"{curve.differ[best]:.2%} with {curve.models[best]:.1f}")
        if key == QWYC:
            cells = [f"**{cell}**" for cell in cells]
        lines.append(f"| {curve.title} | " + " | ".join(cells) + " |")
    return lines


def optimism(results: Results) -> str:
    """How often alpha is kept on the test rows."""
    sentences = []
    for name, curves in (
        ("QWYC*", [results.curves[QWYC]]),
        ("Algorithm 2 with fixed orders", results.family("algorithm-2")),
    ):
        over = [c.differ - c.knob for c in curves]  # each (K,)
        broken, asked = sum((o > 0).sum() for o in over), sum(len(o) for o in over)
        sentences.append(
            f"{name} exceeds alpha on the test rows at {broken} of {asked} settings, by "
            f"{np.mean(np.concatenate(over)) * 100:.2f} points on average"
        )
    ours = results.curves[QWYC]
    if 0.0 in ours.knob:
        share = ours.differ[ours.knob == 0.0][0]
        sentences.append(
            f"asked for no differences at all, QWYC* makes them on {share:.2%} of the test rows"
        )
    return (
        "On the fitted rows alpha holds by construction. " + _capital("; ".join(sentences)) + ". "
        "The table gives test differences by differences on the fitted rows: at the alpha asked for "
        "Algorithms 1 and 2, between points for Fan's rule."
    )


def optimism_table(results: Results, setting: Setting) -> list[str]:
    """Test differences by differences on the fitted rows."""
    lines = [
        "| method | " + " | ".join(f"{alpha:.2%}" for alpha in setting.alphas) + " |",
        "|---|" + "---:|" * len(setting.alphas),
    ]
    for key, curve in results.curves.items():
        if key[0] != "smaller":
            cells = [_share(_test_share(curve, alpha)) for alpha in setting.alphas]
            lines.append(f"| {curve.title} | " + " | ".join(cells) + " |")
    return lines


def _test_share(curve: Curve, alpha: float) -> float | None:
    if curve.key[0] == "fan":
        return curve.test_differ_at(alpha)
    return float(curve.differ[np.flatnonzero(curve.knob == alpha)[0]])


def _with_fitted(curve: Curve, level: float) -> str:
    models, fitted = curve.models_at(level), curve.fitted_differ_at(level)
    return number(models) if fitted is None else f"{number(models)} ({fitted:.2%})"


def _share(value: float | None) -> str:
    return "not reached" if value is None else f"{value:.2%}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
