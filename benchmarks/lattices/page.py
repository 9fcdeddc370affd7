"""What a run found, as tables and as a page in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qwyc.check.benchmark import FULL, QUITTING

from ..contest import ALPHA
from ..engines.page import table
from ..headline import Figure
from ..report import Rows, case_rows, case_words, headline_rows
from .bound import BLOCK, INNER, KERNELS, Peak, cache_bytes, source, work
from .contest import Found, fastest
from .contestants import GRAPH, LITE, XLA
from .shapes import Sizes

TIMES = 20  # the target of full evaluation against tf.function
SINGLE_MICROSECONDS = 5.0  # the target of a single row of A

INTRODUCTION = """\
# Benchmarks: lattices

One run of `make bench-lattices`, as it wrote it. qwyc and TensorFlow Lattice evaluate the same trained
ensembles on one thread. All scores are compared first. TensorFlow gets its rows as tensors that were made
beforehand. Building, converting and compiling are not counted; what takes too long to convert or compile
is left out, and the tables say so. TensorFlow Lattice can build an ensemble from a layer per lattice or
from one RTL layer. Every line says which form it is. Not measured are: A with XLA on one RTL layer, which
was slower in a trial; B with XLA on a layer per hypercube, which took two minutes of processor time to
compile for one row in a trial; and B with TFLite on a layer per lattice, which was not tried. Targets are
against the fastest of the measured forms at its best batch size."""


def figures(results: Sequence[Found], sizes: Sizes) -> list[Figure]:
    """The figures that have a target, then those that are only reported."""
    judged, reported = [], []
    large = max(sizes.batches)
    for found in results:
        judged.append(factor(found, FULL, GRAPH, large, TIMES))
        reported += [factor(found, FULL, way, large, None) for way in (XLA, LITE)]
        reported.append(factor(found, QUITTING, GRAPH, large, None))
    for found in results:
        for who in (FULL, QUITTING):
            (judged if found.shape and found.shape.name == "A" else reported).append(
                single(found, who)
            )
    reported += [disagreement(found) for found in results]
    return judged + reported


def factor(found: Found, ours: str, theirs: str, batch: int, target: float | None) -> Figure:
    """How many times as fast as TensorFlow's fastest way of a kind, whatever its batch size."""
    what = f"{found.name}, batch of {batch:,}: {ours}, against {theirs}"
    wanted = "report" if target is None else f"at least {target:g}x"
    mine, other = found.line(ours, batch), fastest(found, f"{theirs},")
    if mine is None or other is None:
        return Figure(what, wanted, "not measured", None, "somebody was left out")
    times = other.microseconds / mine.microseconds
    met = None if target is None else times >= target
    remark = (
        f"{other.microseconds:.3g} µs ({other.contestant}, batch {other.batch:,}) and "
        f"{mine.microseconds:.3g} µs per row"
    )
    return Figure(what, wanted, f"{times:.1f}x", met, remark)


def single(found: Found, ours: str) -> Figure:
    """The median of a call with one row as a NumPy vector."""
    judged = found.shape is not None and found.shape.name == "A"
    what = f"{found.name}, single row from Python: {ours}, median"
    wanted = f"under {SINGLE_MICROSECONDS:g} µs" if judged else "report"
    mine = found.line(ours, 1)
    if mine is None:
        return Figure(what, wanted, "not measured", None, "qwyc was left out")
    met = mine.p50 < SINGLE_MICROSECONDS if judged else None
    tail = "" if mine.p95 is None else f"p95 {mine.p95:.3g} µs, p99 {mine.p99:.3g} µs"
    return Figure(what, wanted, f"{mine.p50:.3g} µs", met, tail)


def disagreement(found: Found) -> Figure:
    """Decisions that quitting changes on rows that neither model nor policy has seen."""
    what = f"{found.name}: test decisions that quitting changes"
    wanted = f"alpha {ALPHA:.1%}, with confidence 95%"
    if QUITTING not in found.differ:
        return Figure(what, wanted, "not measured", None, "qwyc was left out")
    missed = f"{found.missed:,} of {found.positives:,} positives missed" if found.positives else ""
    remark = f"{found.mean_models:.2f} lattices per row; {missed}".rstrip("; ")
    return Figure(what, wanted, f"{found.disagreement:.2%}", None, remark)


def bound_rows(results: Sequence[Found], peak: Peak | None, sizes: Sizes) -> tuple[list[str], Rows]:
    """The arithmetic of a row, the time that it takes at the peak, and the share that is reached."""
    header = ["per row", "multiply-adds", "comparisons", "vertices read, bytes"]
    header += ["µs at the peak", "µs found, full batch", "share of the peak"]
    rows = []
    for found in results:
        assert found.shape is not None
        counts = work(found.shape, found.interpolation)
        line = found.line(FULL, max(sizes.batches))
        mine = line.microseconds if line else None
        least = counts.microseconds(peak) if peak else None
        share = "-"
        if mine and least and found.interpolation == "hypercube":
            share = f"{least / mine:.0%}"
        rows.append(
            [
                found.name,
                f"{counts.multiply_adds:,}",
                f"{counts.comparisons:,}",
                f"{4 * counts.look_ups:,}",
                "-" if least is None else f"{least:.3g}",
                "-" if mine is None else f"{mine:.3g}",
                share,
            ]
        )
    return header, rows


def memory_rows(results: Sequence[Found], peak: Peak, sizes: Sizes) -> tuple[list[str], Rows]:
    """What the kernel for hypercubes does beside its multiply-adds, and where vertices come from."""
    header = ["per row", "share of the peak, at most", "found", "vertices of a lattice, bytes"]
    header += [
        "values between, bytes",
        "vertices loaded, bytes per row",
        "cache that holds them, by size",
    ]
    header += ["of all lattices, bytes per row of a block"]
    kernel, caches = KERNELS.get(peak.instructions), cache_bytes()
    rows = []
    for found in results:
        if kernel is None or found.shape is None or found.interpolation != "hypercube":
            continue
        counts = work(found.shape, found.interpolation)
        line = found.line(FULL, max(sizes.batches))
        share = f"{counts.microseconds(peak) / line.microseconds:.0%}" if line else "-"
        rows.append(
            [
                found.name,
                f"{kernel.most_share(found.shape):.0%}",
                share,
                f"{4 * 2**found.shape.inputs:,}",
                f"{kernel.between(found.shape):,}",
                f"{4 * counts.look_ups // kernel.rows:,}",
                source(found.shape, kernel, caches),
                f"{4 * counts.look_ups // BLOCK:,}",
            ]
        )
    return header, rows


def bound_parts(results: Sequence[Found], peak: Peak | None, sizes: Sizes) -> list[str]:
    """The part of the page that says what bounds the kernel."""
    parts = ["## What bounds the kernel"]
    if peak is not None:
        parts.append(
            f"One thread reaches {peak.per_second / 1e9:.1f} billion float32 multiply-adds per second "
            f"with {peak.instructions} in registers alone. A hypercube needs at least one for each "
            "vertex, a simplex one for each vertex that it looks up, after sorting the inputs."
        )
    parts.append(table(*bound_rows(results, peak, sizes)))
    kernel = KERNELS.get(peak.instructions) if peak is not None else None
    if peak is None or kernel is None:
        return parts
    caches = ", ".join(
        f"level {level}: {size // 1024:,} KB" for level, size in sorted(cache_bytes().items())
    )
    parts.append(
        f"Hypercubes: the first {INNER} inputs are summed by weights, a multiply-add for each vertex. The "
        "others are halved, a subtraction and a multiply-add for each pair of values. These instructions "
        "take the same units, so that the share of the peak cannot be 100%. A load of a vertex serves "
        f"{kernel.rows} rows. A block of up to {BLOCK:,} rows goes through one lattice before the next, so "
        "that the vertices of a lattice stay in a cache near the core if they fit it together with the "
        "values between, which halving in memory starts from; all lattices are read again for each block. "
        f"Data caches of this machine: {caches or 'unknown'}. Which cache holds what follows from sizes; "
        "cache misses were not counted."
    )
    parts.append(table(*memory_rows(results, peak, sizes)))
    parts.append(
        "Simplexes: multiply-adds take almost none of the time. A row needs a sorting network of its "
        "inputs, where every comparison moves values and strides, and a gather for each vertex; rows "
        "look up different vertices, so that nothing is shared."
    )
    return parts


def contest_rows(found: Found, sizes: Sizes) -> tuple[list[str], Rows]:
    """Contestants by batch size; those that were left out have a line with the reason."""
    header, rows = case_rows(found, 1, sizes.batches)
    for name, why in found.left_out.items():
        rows.append([f"{name} (left out: {why})", *["-"] * (len(header) - 1)])
    return header, rows


def words(found: Found) -> list[str]:
    """What the table of a case does not say."""
    return [*case_words(replace(found, left_out={})), *answer_words(found)]


def answer_words(found: Found) -> list[str]:
    """How far everyone's answers agree, and what quitting changes."""
    if not found.score_error:
        return []
    worst = max(found.score_error.values())
    near = sum(found.near.values())
    words = [
        f"All full scores agree within {worst:.1e} of max(1, |score|), and all full decisions are the "
        f"same; {near} decision{'' if near == 1 else 's'} within 1e-6 of the threshold excepted."
    ]
    if QUITTING in found.differ:
        words.append(
            f"The full ensemble calls {found.positives:,} test rows positive. Quitting calls "
            f"{found.missed:,} of them negative, and {found.differ[QUITTING] - found.missed:,} other "
            "rows positive."
        )
    return words + [f"qwyc warned: {each}" for each in found.warned]


def page(
    about: Sequence[str],
    results: Mapping[str, Found],
    peak: Peak | None,
    sizes: Sizes,
) -> str:
    """Everything, as Markdown."""
    all_found = list(results.values())
    parts = [INTRODUCTION, "\n".join(f"- {words}" for words in about), "## Against the targets"]
    parts.append(table(*headline_rows(figures(all_found, sizes))))
    shapes = dict.fromkeys(found.shape for found in all_found if found.shape is not None)
    papers = " and ".join(f"{shape.paper} ({shape.name})" for shape in shapes)
    parts.append(
        f"For scale only: the paper's full ensembles of these sizes took {papers} per row."
    )
    parts += bound_parts(all_found, peak, sizes)
    for found in all_found:
        parts.append(f"## {found.title}")
        parts.append("µs per row, 1 thread; p95 and p99 of a call with one row, µs.")
        parts.append(table(*contest_rows(found, sizes)))
        parts.append("\n".join(words(found)))
    return "\n\n".join(part for part in parts if part) + "\n"
