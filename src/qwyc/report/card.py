"""A classifier as a compact card, for notebooks."""

from __future__ import annotations

from html import escape

import numpy as np

from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.promise.certificate import percent
from qwyc.promise.certified import Certified
from qwyc.report.text import decided_from

# Colours that can be read on light and on dark pages: the text's own, a blue and an orange.
STYLE = (
    "border:1px solid rgba(128,128,128,.35);border-radius:8px;padding:12px 16px;max-width:620px;"
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45"
)
LABEL = "opacity:.65;padding:1px 14px 1px 0;width:1%;white-space:nowrap;vertical-align:top;text-align:left"
VALUE = "padding:1px 0;text-align:left;overflow-wrap:anywhere"
BLUE, ORANGE = "#3d7fc9", "#d0713f"
POINTS = 60  # of the picture


def card(certified: Certified) -> str:
    """HTML without scripts: what it is, what it takes, what it promises, and the thresholds."""
    seen, policy = certified.certificate, certified.policy
    share = seen.mean_models / policy.n_models
    if seen.rows:
        work = f"<b>{seen.mean_models:.1f}</b> of {policy.n_models} base models per row"
    else:
        work = f"at most {policy.n_models} base models per row; not measured"
    bar = (
        f'<div style="background:rgba(128,128,128,.22);height:6px;border-radius:3px;margin:4px 0 3px">'
        f'<div style="background:{BLUE};width:{100 * min(share, 1):.1f}%;height:6px;'
        f'border-radius:3px"></div></div>'
    )
    speed = escape(certified.timing)
    decides, quits = _decides(certified)
    lines = [
        ("decides", decides),
        ("quits", quits),
        ("takes", work + bar + speed),
        *_costs(certified),
        ("promises", _promise(certified)),
    ]
    rows = "".join(
        f'<tr style="background:none"><td style="{LABEL}">{name}</td>'
        f'<td style="{VALUE}">{text}</td></tr>'
        for name, text in lines
    )
    return (
        f'<div style="{STYLE}"><div style="margin-bottom:6px"><b>qwyc.Classifier</b> &middot; '
        f"{escape(certified.ensemble.description)}</div>"
        '<table style="border:none;border-collapse:collapse;width:100%;margin:0;font-size:13px">'
        f"{rows}</table>"
        f"{_band(certified)}</div>"
    )


def _decides(certified: Certified) -> tuple[str, str]:
    """What decides a row, and for which classes it may quit."""
    policy = certified.policy
    never = "never early: every row is evaluated in full"
    if certified.only is not None and not isinstance(policy, Policy):
        own = escape(str(certified.ensemble.classes[certified.only]))
        decides = f"whether the largest of {policy.n_classes} scores is that of {own}"
        others = "early where another class is far enough ahead; all others get all scores"
        return decides, never if policy.quit == "never" else others
    if not isinstance(policy, Policy):
        leads = "early for the class that leads, where its lead is large enough"
        decides = f"the largest of {policy.n_classes} scores, one for each class"
        return decides, never if policy.quit == "never" else leads
    negative, positive = (escape(str(c)) for c in certified.ensemble.classes)
    quits = {
        "both": f"early for {negative} and {positive}",
        "negative": f"early for {negative} only; {positive} always has its full score",
        "positive": f"early for {positive} only; {negative} always has its full score",
        "never": never,
    }[policy.quit]
    return f"{positive} where {escape(decided_from(certified))}, otherwise {negative}", quits


def _costs(certified: Certified) -> list[tuple[str, str]]:
    """What is counted as cost, where base models do not count 1 each."""
    if certified.counts_models:
        return []
    seen, unit = certified.certificate, escape(certified.cost_unit)
    share = f"{seen.mean_cost / seen.full_cost:.1%} of all: " if seen.rows else ""
    return [("costs", share + unit)]


def _promise(certified: Certified) -> str:
    seen = certified.certificate
    if seen.how == "proven":
        return "<b>proven</b>: no input is decided differently from the full ensemble"
    counted = f"{seen.disagreements:,} of {seen.rows:,}"
    if seen.how == "in-sample":
        return f"nothing for new rows; {counted} fitting rows are decided differently"
    if seen.doubts:
        reasons = escape("; ".join(seen.doubts))
        return f"<b>nothing for new rows</b>: {reasons} ({counted} held-out rows are decided differently)"
    names = [escape(str(label)) for label in certified.ensemble.classes]
    statement = seen.budget.statement(names, emphasis="<b>{}</b>")
    return f"{statement}, with {percent(seen.confidence)} confidence ({counted} held-out rows were)"


def _band(certified: Certified) -> str:
    """Where rows quit along the order, as a small picture; nothing where no row does."""
    policy = certified.policy
    if policy.quit == "never" or policy.n_models < 3:
        return ""
    at = np.unique(np.linspace(0, policy.n_models - 2, POINTS).astype(int))  # the last has none
    if isinstance(policy, Policy):
        lower, upper = policy.lower[at], policy.upper[at]
    else:  # the smallest lead of any class; there is nothing below
        leads = policy.lead.min(axis=1) if isinstance(policy, LeadPolicy) else policy.gap
        lower, upper = np.full(len(at), -np.inf), leads[at]
    finite = np.concatenate([lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    if not len(finite):
        return ""
    low, high = float(finite.min()), float(finite.max())
    margin = 0.25 * (high - low) or 1.0  # beyond the outermost threshold, rows quit too
    low, high = low - margin, high + margin
    width, height = 588, 52

    def area(values: np.ndarray, edge: int, colour: str) -> str:
        """From a threshold to the picture's edge: there, a row quits."""
        known = np.isfinite(values)
        x = (width * at / max(int(at[-1]), 1))[known]
        y = (height * (high - values) / (high - low))[known]
        if not len(x):
            return ""
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        return (
            f'<polygon points="{x[0]:.1f},{edge} {line} {x[-1]:.1f},{edge}" fill="{colour}" '
            f'fill-opacity=".3"/><polyline points="{line}" fill="none" stroke="{colour}" '
            'stroke-width="1.5" vector-effect="non-scaling-stroke"/>'
        )

    areas = area(upper, 0, BLUE) + area(lower, height, ORANGE)
    if not isinstance(policy, Policy):
        said = (
            "lead of the first class over the second, first to last base model: in the coloured part a row "
            "quits"
        )
        if certified.only is not None:
            own = escape(str(certified.ensemble.classes[certified.only]))
            said = (
                f"lead of the best other class over {own}, first to last base model: in the coloured part "
                "a row leaves"
            )
        return _picture(areas, width, height, said)
    negative, positive = (escape(str(c)) for c in certified.ensemble.classes)
    quits = [(BLUE, positive)] if np.isfinite(upper).any() else []
    quits += [(ORANGE, negative)] if np.isfinite(lower).any() else []
    legend = " or ".join(f'<b style="color:{colour}">{label}</b>' for colour, label in quits)
    said = f"running sum, first to last base model: in a coloured part a row quits as {legend}"
    return _picture(areas, width, height, said)


def _picture(areas: str, width: int, height: int, said: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" style="display:block;width:100%;height:{height}px;'
        'margin-top:8px" role="img" preserveAspectRatio="none" aria-label="thresholds along the order">'
        f"{areas}</svg>"
        f'<div style="opacity:.8;font-size:11px;overflow-wrap:anywhere">{said}</div>'
    )
