"""A monitor in a few lines of text."""

from __future__ import annotations

import math

from qwyc.monitor.document import Saved
from qwyc.monitor.state import Judge, State
from qwyc.policy.counts import exit_bins
from qwyc.promise.budget import percentage
from qwyc.promise.certificate import percent
from qwyc.runtime.wording import one_line


def alarms(judge: Judge, state: State) -> tuple[str, ...]:
    """The limits that were shown to be broken."""
    sentences = []
    for limit, at in zip(judge.subject.limits, state.raised, strict=True):
        if at is None:
            continue
        count, rows = limit.counted(state.record.counts)
        sentences.append(
            f"{judge.subject.broken(limit)} (raised after {at:,} checked rows; now {count:,} of {rows:,})"
        )
    return tuple(sentences)


def summary(saved: Saved) -> str:
    """What was seen, against what was promised."""
    judge, state = saved.judge, saved.state
    subject, counts, level = judge.subject, state.record.counts, percent(judge.confidence)
    lines = [
        f"qwyc.Monitor: {saved.rows_seen:,} rows seen, {counts.rows:,} of them checked in full "
        f"(rate {percentage(saved.rate)})"
    ]
    if state.failed:
        lines.append(f"  failed        {state.failed:,} rows could not be checked")
    raised = alarms(judge, state)
    lines += [f"  ALARM         {sentence}" for sentence in raised] or [
        f"  alarm         none ({level} confidence; {_basis(judge)})"
    ]
    names = ["all rows", *(f"full decision {one_line(label)}" for label in subject.labels)]
    limits = [subject.whole, *(subject.class_limit(i) for i in range(len(subject.labels)))]
    width = max(len(name) for name in names)
    lines.append(f"  disagreement, with {level} intervals on the average so far")
    for name, limit in zip(names, limits, strict=True):
        count, rows = limit.counted(counts)
        low, high = judge.interval(state, limit)
        share = f"{count / rows:.3%}" if rows else "-"
        allowed = [
            percentage(own.share)
            for own in subject.limits
            if (own.among, own.differences) == (limit.among, limit.differences)
        ]
        lines.append(
            f"    {name:{width}}  {count:,} of {rows:,} = {share}, {low:.3%} to {high:.3%}"
            + "".join(f"; allowed: {share}" for share in allowed)
        )
    taken = "-" if math.isnan(counts.mean_models) else f"{counts.mean_models:.1f}"
    lines.append(
        f"  base models   {taken} of {subject.n_models} per row; "
        f"certificate: {subject.certified.mean_models:.1f}"
    )
    return "\n".join([*lines, *_exits(judge, state)])


def _basis(judge: Judge) -> str:
    """What the alarm compares with."""
    if judge.subject.how == "in-sample":
        return "against the requested share; the certificate promises nothing for new rows"
    return "against the certificate's promise"


def _exits(judge: Judge, state: State) -> list[str]:
    """Where rows stopped, now and in the certificate."""
    bins = exit_bins(judge.subject.n_models)
    table = [[bin_name(first, last) for first, last in bins]]
    names = ["steps"]
    for name, exits in {
        "now": state.record.exits,
        "certificate": judge.subject.certified.exits,
    }.items():
        if sum(exits):
            names.append(name)
            table.append([f"{n / sum(exits):.1%}" for n in exits])
    widths = [max(len(row[i]) for row in table) for i in range(len(bins))]
    return [
        f"  {name:<14}"
        + "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for name, row in zip(names, table, strict=True)
    ]


def bin_name(first: int, last: int) -> str:
    """Steps as a label: "3-4"."""
    return str(first) if first == last else f"{first}-{last}"
