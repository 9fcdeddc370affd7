"""Draw docs/images/how-it-works.svg: `python docs/how-it-works/draw.py`.

The paper's Algorithm 1 fits a policy to made-up scores. The upper panel shows its thresholds and the
running sums of some rows, the lower one the share of rows that is still undecided."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import qwyc

PICTURE = Path(__file__).parents[1] / "images" / "how-it-works.svg"
ROWS, T = 4000, 24
WIDTH, HEIGHT = 560, 590
X1, X2 = 56, 540  # of both panels
SUMS, SHARES = (40, 300), (370, 540)  # y of each
BLUE, ORANGE, GREY = "#1f5fa8", "#c4501b", "#6b6b6b"
FONT = 'font-family="DejaVu Sans, Helvetica, sans-serif" font-size="14"'
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
        return X1 + (X2 - X1) * step / T

    def y(value: float) -> float:
        middle, half = (SUMS[0] + SUMS[1]) / 2, (SUMS[1] - SUMS[0]) / 2
        return middle - half * float(np.clip(value, -high, high)) / high

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        "<title>Rows quit when their running sum leaves the band between two thresholds</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(X1, 24, "Running sums of five rows", "#222222", weight="bold"),
        _text(X1, SHARES[0] - 16, "Rows still undecided", "#222222", weight="bold"),
    ]
    for limit, edge, colour in ((policy.upper, SUMS[0], BLUE), (policy.lower, SUMS[1], ORANGE)):
        known = [k for k in range(T - 1) if np.isfinite(limit[k])]
        line = " ".join(f"{x(steps[k]):.1f},{y(limit[k]):.1f}" for k in known)
        first, last = x(steps[known[0]]), x(steps[known[-1]])
        out.append(
            f'<polygon points="{first:.1f},{edge} {line} {last:.1f},{edge}" fill="{colour}" '
            'fill-opacity="0.14"/>'
        )
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    out.append(_text(X2, SUMS[0] + 18, "quits as positive", BLUE, "end"))
    out.append(_text(X2, SUMS[1] - 10, "quits as negative", ORANGE, "end"))
    for row in _chosen(decisions.steps, decisions.label):
        n = int(decisions.steps[row])
        path = [(0.0, 0.0), *((float(steps[k]), float(sums[row, k])) for k in range(n))]
        line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in path)
        colour = BLUE if decisions.label[row] else ORANGE
        out.append(f'<polyline points="{line}" fill="none" stroke="{GREY}" stroke-width="1.2"/>')
        end = path[-1]
        out.append(f'<circle cx="{x(end[0]):.1f}" cy="{y(end[1]):.1f}" r="4.5" fill="{colour}"/>')
    out += _axes(SUMS)
    undecided = [1.0, *(float(np.mean(decisions.steps > k)) for k in steps[:-1]), 0.0]
    tall = SHARES[1] - SHARES[0]
    points = " ".join(
        f"{x(k):.1f},{SHARES[1] - tall * share:.1f}" for k, share in enumerate(undecided)
    )
    area = f"{X1},{SHARES[1]} {points} {X2},{SHARES[1]}"
    out.append(f'<polygon points="{area}" fill="{BLUE}" fill-opacity="0.14"/>')
    out.append(f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    mean = f"{decisions.steps.mean():.1f} of {T} on average"
    out.append(_text(X2, SHARES[0] + 30, mean, BLUE, "end"))
    for share in (0, 0.5, 1):
        height = SHARES[1] - tall * share
        out.append(_text(X1 - 8, height + 4, f"{share:.0%}", GREY, "end"))
    out += _axes(SHARES)
    return "\n".join([*out, "</svg>", ""])


def _chosen(steps: np.ndarray, labels: np.ndarray) -> list[int]:
    """One row for each number of steps that is wanted, of both classes in turn."""
    return [int(np.flatnonzero((steps == n) & (labels == k % 2))[0]) for k, n in enumerate(WANTED)]


def _axes(panel: tuple[int, int]) -> list[str]:
    top, bottom = panel
    return [
        f'<path d="M{X1} {top} V{bottom} H{X2}" fill="none" stroke="{GREY}"/>',
        _text((X1 + X2) / 2, bottom + 26, f"base models evaluated, of {T}", GREY, "middle"),
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
