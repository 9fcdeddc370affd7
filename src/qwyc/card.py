"""A classifier as a compact card, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from qwyc.classifier import Classifier

# Colours that hold on light and on dark pages: the text's own, and one blue.
STYLE = (
    "border:1px solid rgba(128,128,128,.35);border-radius:8px;padding:12px 16px;max-width:620px;"
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45"
)
LABEL = "opacity:.65;padding:1px 14px 1px 0;white-space:nowrap;vertical-align:top;text-align:left"
VALUE = "padding:1px 0;text-align:left"
BLUE = "#3d7fc9"
POINTS = 60  # of the picture


def card(fast: Classifier) -> str:
    """HTML without scripts: what it is, what it takes, what it promises, and the thresholds."""
    seen, policy = fast.certificate, fast.policy
    negative, positive = (escape(str(c)) for c in fast.ensemble.classes)
    share = seen.mean_models / policy.n_models
    if seen.rows:
        work = f"<b>{seen.mean_models:.1f}</b> of {policy.n_models} base models per row"
    else:
        work = f"at most {policy.n_models} base models per row; not measured"
    bar = (
        f'<div style="background:rgba(128,128,128,.22);height:6px;border-radius:3px;margin:3px 0 2px">'
        f'<div style="background:{BLUE};width:{100 * min(share, 1):.1f}%;height:6px;'
        f'border-radius:3px"></div></div>'
    )
    speed = f"<br>{escape(str(fast.speed))}" if fast.speed is not None else ""
    quits = {
        "both": f"early for {negative} and {positive}",
        "negative": f"early for {negative} only; {positive} always has its full score",
        "positive": f"early for {positive} only; {negative} always has its full score",
        "never": "never early: every row is evaluated in full",
    }[policy.quit]
    lines = [
        ("decides", f"{positive} where score &ge; {policy.threshold:.4g}, otherwise {negative}"),
        ("quits", quits),
        ("takes", work + bar + speed),
        ("promises", _promise(fast)),
    ]
    rows = "".join(
        f'<tr style="background:none"><td style="{LABEL}">{name}</td>'
        f'<td style="{VALUE}">{text}</td></tr>'
        for name, text in lines
    )
    return (
        f'<div style="{STYLE}"><div style="margin-bottom:6px"><b>qwyc.Classifier</b> &middot; '
        f"{escape(fast.ensemble.description)}</div>"
        f'<table style="border:none;border-collapse:collapse;margin:0;font-size:13px">{rows}</table>'
        f"{_band(fast)}</div>"
    )


def _promise(fast: Classifier) -> str:
    seen = fast.certificate
    if seen.how == "proven":
        return "<b>proven</b>: no input is decided differently from the full ensemble"
    counted = f"{seen.disagreements:,} of {seen.rows:,}"
    if seen.how == "in-sample":
        return f"nothing for new rows; {counted} fitting rows are decided differently"
    if isinstance(seen.alpha, dict):
        asked = " and ".join(f"{100 * v:.3g}% {kind}" for kind, v in seen.alpha.items()) + " flips"
    else:
        asked = f"{100 * seen.alpha:.3g}%"
    return (
        f"at most <b>{asked}</b> of new rows are decided differently, with {seen.confidence:.4g} "
        f"confidence ({counted} held-out rows were)"
    )


def _band(fast: Classifier) -> str:
    """Both thresholds along the order as a small picture; nothing where no row quits."""
    policy = fast.policy
    if policy.quit == "never" or policy.n_models < 3:
        return ""
    at = np.unique(np.linspace(0, policy.n_models - 2, POINTS).astype(int))  # the last has none
    lower, upper = policy.lower[at], policy.upper[at]
    finite = np.concatenate([lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    if not len(finite):
        return ""
    low, high = float(finite.min()), float(finite.max())
    spread = (high - low) or 1.0
    width, height = 588, 46

    def points(values: np.ndarray) -> list[str]:
        known = np.isfinite(values)
        x = 2 + (width - 4) * at / max(int(at[-1]), 1)
        y = 3 + (height - 6) * (high - values) / spread
        return [f"{a:.1f},{b:.1f}" for a, b in zip(x[known], y[known], strict=True)]

    lines = "".join(
        f'<polyline points="{" ".join(points(values))}" fill="none" stroke="{BLUE}" stroke-width="1.5" '
        'vector-effect="non-scaling-stroke"/>'
        for values in (upper, lower)
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" style="width:100%;height:46px;margin-top:6px" role="img" '
        f'preserveAspectRatio="none" aria-label="thresholds along the order">{lines}</svg>'
        '<div style="opacity:.65;font-size:11px">thresholds on the running sum, first to last base '
        "model: outside, a row quits</div>"
    )
