"""Draw docs/images/how-it-works.svg: `python docs/how-it-works/draw.py`.

A policy is fitted by the paper's Algorithm 1 to made-up scores. The left panel shows its thresholds and the
running sums of some rows, the right one the share of rows that is still undecided."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import qwyc

PICTURE = Path(__file__).parents[1] / "images" / "how-it-works.svg"
ROWS, T = 4000, 24
WIDTH, HEIGHT, TOP, BOTTOM = 900, 380, 46, 330
LEFT, RIGHT = (56, 516), (600, 876)  # x of both panels
BLUE, ORANGE, GREY = "#1f5fa8", "#c4501b", "#6b6b6b"
FONT = 'font-family="DejaVu Sans, Helvetica, sans-serif" font-size="13"'
WANTED = (2, 4, 7, 12, T)  # steps that the drawn rows take


def draw() -> str:
    """The picture, as SVG."""
    rng = np.random.default_rng(3)
    signal = rng.normal(scale=0.8, size=(ROWS, 1))
    scores = signal * rng.uniform(0.2, 1.4, size=T) + rng.normal(scale=0.9, size=(ROWS, T))
    policy = qwyc.fit_policy(scores, alpha=0.01, order="joint")
    decisions = policy.apply(scores)
    sums = np.cumsum(scores[:, policy.order], axis=1)  # (ROWS, T)
    steps = np.arange(1, T + 1)
    high = 11.0

    def x(step: float) -> float:
        return LEFT[0] + (LEFT[1] - LEFT[0]) * step / T

    def y(value: float) -> float:
        return (TOP + BOTTOM) / 2 - (BOTTOM - TOP) / 2 * float(np.clip(value, -high, high)) / high

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        "<title>Rows quit when their running sum leaves the band between two thresholds</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT[0], 24, "Running sums of five rows", "#222222", weight="bold"),
        _text(RIGHT[0], 24, "Rows still undecided", "#222222", weight="bold"),
    ]
    for limit, edge, colour in ((policy.upper, TOP, BLUE), (policy.lower, BOTTOM, ORANGE)):
        known = [k for k in range(T - 1) if np.isfinite(limit[k])]
        line = " ".join(f"{x(steps[k]):.1f},{y(limit[k]):.1f}" for k in known)
        first, last = x(steps[known[0]]), x(steps[known[-1]])
        out.append(
            f'<polygon points="{first:.1f},{edge} {line} {last:.1f},{edge}" fill="{colour}" '
            'fill-opacity="0.14"/>'
        )
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    out.append(_text(LEFT[1], TOP + 16, "quits as positive", BLUE, "end"))
    out.append(_text(LEFT[1], BOTTOM - 8, "quits as negative", ORANGE, "end"))
    for row in _chosen(decisions.steps, decisions.label):
        n = int(decisions.steps[row])
        path = [(0.0, 0.0), *((float(steps[k]), float(sums[row, k])) for k in range(n))]
        line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in path)
        colour = BLUE if decisions.label[row] else ORANGE
        out.append(f'<polyline points="{line}" fill="none" stroke="{GREY}" stroke-width="1.2"/>')
        end = path[-1]
        out.append(f'<circle cx="{x(end[0]):.1f}" cy="{y(end[1]):.1f}" r="4.5" fill="{colour}"/>')
    out += _axes(LEFT, f"base models evaluated, of {T}")
    undecided = [1.0, *(float(np.mean(decisions.steps > k)) for k in steps[:-1]), 0.0]
    across = (RIGHT[1] - RIGHT[0]) / T
    tall = BOTTOM - TOP
    points = " ".join(
        f"{RIGHT[0] + across * k:.1f},{BOTTOM - tall * share:.1f}"
        for k, share in enumerate(undecided)
    )
    area = f"{RIGHT[0]},{BOTTOM} {points} {RIGHT[1]},{BOTTOM}"
    out.append(f'<polygon points="{area}" fill="{BLUE}" fill-opacity="0.14"/>')
    out.append(f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    mean = f"{decisions.steps.mean():.1f} of {T} on average"
    out.append(_text(RIGHT[1], TOP + 40, mean, BLUE, "end"))
    for share in (0, 0.5, 1):
        height = BOTTOM - tall * share
        out.append(_text(RIGHT[0] - 8, height + 4, f"{share:.0%}", GREY, "end"))
    out += _axes(RIGHT, f"base models evaluated, of {T}")
    return "\n".join([*out, "</svg>", ""])


def _chosen(steps: np.ndarray, labels: np.ndarray) -> list[int]:
    """One row for each number of steps that is wanted, of both classes in turn."""
    return [int(np.flatnonzero((steps == n) & (labels == k % 2))[0]) for k, n in enumerate(WANTED)]


def _axes(panel: tuple[int, int], name: str) -> list[str]:
    left, right = panel
    return [
        f'<path d="M{left} {TOP} V{BOTTOM} H{right}" fill="none" stroke="{GREY}"/>',
        _text((left + right) / 2, BOTTOM + 32, name, GREY, "middle"),
    ]


def _text(
    x: float, y: float, words: str, fill: str, anchor: str = "start", weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{words}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw())
