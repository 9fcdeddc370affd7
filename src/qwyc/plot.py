"""Pictures of a classifier, with matplotlib. Each function draws into `ax`, or into a new figure, and
returns the axes: `qwyc.plot.survival(classifier, X).figure.savefig("survival.png")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from qwyc.classifier import Classifier
from qwyc.errors import MissingDependencyError, OptionError, RowsError
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.promise.certificate import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["histogram", "survival", "thresholds", "tradeoff"]

BLUE, ORANGE, GREY = "#1f5fa8", "#c4501b", "#8a8a8a"
SIZE = (6.4, 4.0)  # inches
ALPHAS = np.geomspace(1e-4, 0.1, 200)


def tradeoff(classifier: Classifier, *, ax: Axes | None = None) -> Axes:
    """What an alpha costs: base models per row at every alpha that the rows held out can certify, and
    the one that was taken."""
    choices, seen = classifier.choices, classifier.certificate
    if choices is None or seen.confidence is None:
        raise OptionError(
            "this classifier has only one policy; optimise with method='auto' and alpha above 0 to "
            "see what others would cost"
        )
    found = choices.evidence.boldest_at_each(ALPHAS.tolist(), seen.confidence)
    ax = _axes(ax)
    points = [(100 * alpha, choices.evidence.counts.mean_models[k]) for alpha, k in found]
    share, models = np.array(points).reshape(-1, 2).T
    ax.step(share, models, where="post", color=BLUE)
    taken = seen.budget.total
    if taken is not None:
        ax.plot(100 * taken, seen.mean_models, "o", color=ORANGE, zorder=3)
    ax.set(
        xscale="log",
        xlabel=f"alpha: decisions that may differ, % ({percent(seen.confidence)} confidence, log scale)",
        ylabel="base models per row, on rows held out",
        title="Base models evaluated per row, by alpha",
    )
    ax.set_ylim(0, None)
    ax.xaxis.set_major_formatter("{x:g}")
    if taken is not None:
        _note(
            ax,
            f"taken: {seen.mean_models:.1f} of {classifier.policy.n_models}\nat alpha {100 * taken:g}%",
            (100 * taken, seen.mean_models),
        )
    return ax


def survival(classifier: Classifier, X: Any, *, ax: Axes | None = None) -> Axes:
    """The share of the rows X that is still undecided after each base model."""
    steps, n = _steps(classifier, X), classifier.policy.n_models
    undecided = 100 * (1 - np.cumsum(np.bincount(steps, minlength=n + 1)) / len(steps))
    ax = _axes(ax)
    evaluated = np.arange(1, n + 1)
    # Drawn at 0 after the last base model; before it, a row that completes is still undecided.
    ax.step(evaluated, undecided[1:], where="post", color=BLUE)
    ax.fill_between(evaluated, undecided[1:], step="post", color=BLUE, alpha=0.12, linewidth=0)
    ax.set(
        xscale="log",
        xlim=(1, n),
        ylim=(0, 100),
        xlabel=f"base models evaluated, of {n} (log scale)",
        ylabel="rows still undecided, %",
        title=f"How soon {len(steps):,} rows are decided",
    )
    ax.set_xticks(_ticks(n), minor=False)
    ax.minorticks_off()
    ax.xaxis.set_major_formatter("{x:.0f}")
    return ax


def histogram(classifier: Classifier, X: Any, *, bins: int = 50, ax: Axes | None = None) -> Axes:
    """How many base models each of the rows X takes."""
    steps, n = _steps(classifier, X), classifier.policy.n_models
    width = max(1, round(n / max(1, bins)))
    ax = _axes(ax)
    edges = np.arange(0.5, n + width + 0.5, width).tolist()
    rows, _, _ = ax.hist(steps, bins=edges, color=BLUE, rwidth=0.9 if n <= 30 else None)
    ax.set(
        yscale="log",
        xlim=(0.5, n + 0.5),
        ylim=(0.7, 3 * np.max(rows)),  # space for the note
        xlabel="base models that a row takes",
        ylabel="rows (log scale)",
        title=f"{steps.mean():.1f} of {n} base models per row",
    )
    ax.axvline(steps.mean(), color=ORANGE, linewidth=1.5)
    ax.locator_params(axis="x", integer=True)
    _note(ax, f"mean {steps.mean():.1f}", (steps.mean(), ax.get_ylim()[1]), below=True)
    return ax


def thresholds(classifier: Classifier, *, ax: Axes | None = None) -> Axes:
    """Both thresholds on the running sum along the order: outside, a row quits; between, it goes on. Of K
    classes with a score each, the thresholds on the lead of the class with the largest running sum; of a
    filter for one class, those on the lead of the best other class over it."""
    policy = classifier.policy
    if isinstance(policy, FilterPolicy):
        return _gaps(policy, _axes(ax), str(classifier.ensemble.classes[policy.only]))
    if not isinstance(policy, Policy):
        return _leads(policy, _axes(ax), [str(c) for c in classifier.ensemble.classes])
    step = np.arange(1, policy.n_models + 1)
    lower, upper = (np.where(np.isfinite(v), v, np.nan) for v in (policy.lower, policy.upper))
    negative, positive = (str(c) for c in classifier.ensemble.classes)
    ax = _axes(ax)
    drawn = np.concatenate([lower, upper, [policy.threshold]])
    low, high = np.nanmin(drawn), np.nanmax(drawn)
    margin = 0.12 * (high - low) or 1.0
    ax.set_ylim(low - margin, high + margin)
    sides = np.repeat(np.arange(0.5, policy.n_models + 1), 2)[1:-1]  # both of every step
    for limit, edge, colour, word, label in (
        (upper, high + margin, BLUE, "above", positive),
        (lower, low - margin, ORANGE, "below", negative),
    ):
        if np.isfinite(limit).any():  # not every step has them
            there = np.repeat(np.isfinite(limit), 2)
            ax.fill_between(
                sides,
                np.repeat(limit, 2),
                edge,
                where=there.tolist(),
                color=colour,
                alpha=0.15,
                linewidth=0,
            )
            dot = float(np.clip(1500 / policy.n_models, 1.5, 4))
            words = f"{word}: quits as {_short(label)}"
            ax.plot(step, limit, ".", color=colour, markersize=dot, label=words)
    ax.axhline(
        policy.threshold,
        color=GREY,
        linewidth=1,
        linestyle="--",
        label="the full score's threshold",
    )
    ax.set(
        xlim=(0.5, policy.n_models + 0.5),
        xlabel="base models evaluated, in the policy's order",
        ylabel="running sum",
        title="A row quits where its sum is in a coloured part"
        if policy.quit != "never"
        else "No row quits early",
    )
    ax.locator_params(axis="x", integer=True)
    long = len(_short(negative)) + len(_short(positive)) > 16
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=1 if long else 3,
        frameon=False,
        fontsize="small",
        markerscale=2,
        handlelength=1.5,
    )
    return ax


def _leads(policy: LeadPolicy, ax: Axes, labels: list[str]) -> Axes:
    """Thresholds on leads: one line where all classes share them, otherwise the range over the classes."""
    step = np.arange(1, policy.n_models + 1)
    lead = np.where(np.isfinite(policy.lead), policy.lead, np.nan)
    known = np.isfinite(lead).any(axis=1)
    title = "No row quits early"
    if known.any():
        title = "A row quits where the lead of its first class is in the coloured part"
        least, most = (np.full(len(step), np.nan) for _ in range(2))
        least[known], most[known] = np.nanmin(lead[known], axis=1), np.nanmax(lead[known], axis=1)
        shared = bool((policy.lead == policy.lead[:, :1]).all())
        top = 1.12 * float(np.nanmax(most)) or 1.0
        ax.set_ylim(0, top)
        words = f"threshold of all {len(labels)} classes" if shared else "lowest of any class"
        ax.plot(step, least, ".-", color=BLUE, markersize=3, linewidth=1, label=words)
        ax.fill_between(step, least, top, color=BLUE, alpha=0.15, linewidth=0)
        if not shared:
            ax.plot(
                step, most, ".-", color=ORANGE, markersize=3, linewidth=1, label="highest of any"
            )
        ax.legend(frameon=False, fontsize="small")
    ax.set(
        xlim=(0.5, policy.n_models + 0.5),
        xlabel="base models evaluated, in the policy's order",
        ylabel="lead over the second class",
        title=title,
    )
    ax.locator_params(axis="x", integer=True)
    return ax


def _gaps(policy: FilterPolicy, ax: Axes, own: str) -> Axes:
    """Thresholds of a filter: above them a row leaves."""
    step, gap = np.arange(1, policy.n_models + 1), policy.gap
    title = "No row leaves early"
    known = gap[np.isfinite(gap)]
    if len(known):
        title = "A row leaves where the lead is in the coloured part"
        margin = 0.12 * float(known.max() - known.min()) or 1.0
        top = float(known.max()) + margin
        ax.set_ylim(float(known.min()) - margin, top)
        drawn = np.where(np.isfinite(gap), gap, np.nan)
        ax.plot(step, drawn, ".-", color=BLUE, markersize=3, linewidth=1)
        ax.fill_between(step, drawn, top, color=BLUE, alpha=0.15, linewidth=0)
    ax.set(
        xlim=(0.5, policy.n_models + 0.5),
        xlabel="base models evaluated, in the policy's order",
        ylabel=f"lead of the best other class over {_short(own)}",
        title=title,
    )
    ax.locator_params(axis="x", integer=True)
    return ax


def _short(label: str) -> str:
    return label if len(label) <= 40 else f"{label[:39]}…"


def _steps(classifier: Classifier, X: Any) -> Any:
    steps = classifier.decide(X).steps
    if not len(steps):
        raise RowsError("{rows} has no rows; a picture needs at least one")
    return steps


def _axes(ax: Axes | None) -> Axes:
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise MissingDependencyError(
                "pictures need matplotlib: pip install matplotlib"
            ) from None
        _, ax = pyplot.subplots(figsize=SIZE, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _note(ax: Axes, text: str, at: tuple[float, float], *, below: bool = False) -> None:
    """Words beside a point: on its right, or on its left where the right is too near the edge."""
    to_left = ax.transAxes.inverted().transform(ax.transData.transform(at))[0] > 0.75
    ax.annotate(
        text,
        at,
        xytext=(-8 if to_left else 8, -4 if below else 6),
        textcoords="offset points",
        ha="right" if to_left else "left",
        color=ORANGE,
        va="top" if below else "bottom",
    )


def _ticks(n: int) -> list[int]:
    """1, 2, 5, 10 and so on, and the last."""
    round_numbers = [m * 10**e for e in range(7) for m in (1, 2, 5)]
    return [t for t in round_numbers if t < 0.75 * n] + [n]
