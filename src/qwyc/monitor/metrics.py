"""A monitor's numbers for other programs: as text of Prometheus, and as instruments of OpenTelemetry."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from qwyc.errors import OptionError
from qwyc.monitor.document import Saved
from qwyc.monitor.text import bin_name
from qwyc.policy.counts import exit_bins

Sample = tuple[dict[str, str], float]


@dataclass(frozen=True)
class Family:
    """Values of one name."""

    name: str
    kind: str  # "counter", "gauge" or "histogram"
    meaning: str
    samples: list[Sample]  # of a histogram: rows in each bin, whose last step is the label "le"
    total: float = 0.0  # of a histogram: the sum over all rows


def families(saved: Saved, prefix: str) -> list[Family]:
    """Everything that a monitor knows."""
    if not isinstance(prefix, str) or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", prefix):
        raise OptionError(
            f"prefix must be a name of letters, digits and underscores such as 'qwyc'; got {prefix!r}"
        )
    judge, state = saved.judge, saved.state
    subject, counts = judge.subject, state.record.counts
    labels = [{"class": str(label)} for label in subject.labels]
    classes = [subject.class_limit(i) for i in range(len(labels))]
    lost = [limit.counted(counts)[0] for limit in classes]
    low, high = judge.interval(state, subject.whole)
    by_class = [judge.interval(state, limit) for limit in classes]
    limits = [{"limit": subject.broken(limit)} for limit in subject.limits]
    raised = [float(at is not None) for at in state.raised]

    def plain(name: str, kind: str, meaning: str, value: float) -> Family:
        return Family(f"{prefix}_{name}", kind, meaning, [({}, float(value))])

    def each(
        name: str, kind: str, meaning: str, keys: list[dict[str, str]], values: Iterable[float]
    ) -> Family:
        pairs = zip(keys, values, strict=True)
        return Family(
            f"{prefix}_{name}", kind, meaning, [(key, float(value)) for key, value in pairs]
        )

    whose = "of the rows of a class, by the full decision"
    bins = exit_bins(subject.n_models)
    return [
        plain("rows_total", "counter", "Rows decided.", saved.rows_seen),
        each("checked_rows_total", "counter", "Rows evaluated in full, by the full decision.",
             labels, counts.by_class),
        plain("failed_checks_total", "counter", "Rows whose full evaluation failed.", state.failed),
        each("disagreements_total", "counter",
             "Checked rows decided differently, by the full decision.", labels, lost),
        plain("disagreement_ratio", "gauge", "Share of the checked rows decided differently.",
              counts.observed if counts.rows else math.nan),
        plain("disagreement_lower_bound", "gauge",
              "Lower end of the interval on the average share decided differently.", low),
        plain("disagreement_upper_bound", "gauge",
              "Upper end of the interval on the average share decided differently.", high),
        each("class_disagreement_lower_bound", "gauge", f"Lower end of the interval {whose}.",
             labels, [interval[0] for interval in by_class]),
        each("class_disagreement_upper_bound", "gauge", f"Upper end of the interval {whose}.",
             labels, [interval[1] for interval in by_class]),
        plain("alarm", "gauge", "1 once some limit was shown to be broken.", max(raised)),
        each("limit_alarm", "gauge", "1 once this was shown.", limits, raised),
        each("limit_share", "gauge", "The share that the limit allows.", limits,
             [limit.share for limit in subject.limits]),
        each("limit_evidence", "gauge", "Evidence against the limit now.", limits,
             judge.evidence(state)),
        plain("alarm_evidence", "gauge", "Evidence that raises the alarm.", judge.needed),
        Family(f"{prefix}_base_models", "histogram", "Base models per checked row.",
               [({"le": str(last)}, float(n))
                for (_, last), n in zip(bins, counts.exits, strict=True)],
               float(state.record.steps)),
        plain("certified_base_models", "gauge", "Base models per row in the certificate.",
              subject.certified.mean_models),
    ]  # fmt: skip


def prometheus(all_families: list[Family]) -> str:
    """The text format of Prometheus, version 0.0.4."""
    lines = []
    for family in all_families:
        meaning = family.meaning.replace("\\", r"\\").replace("\n", r"\n")
        lines += [f"# HELP {family.name} {meaning}", f"# TYPE {family.name} {family.kind}"]
        rows = _histogram(family) if family.kind == "histogram" else _plain(family)
        lines += [f"{name}{_labels(labels)} {_number(value)}" for name, labels, value in rows]
    return "\n".join(lines) + "\n"


def _plain(family: Family) -> Iterator[tuple[str, dict[str, str], float]]:
    for labels, value in family.samples:
        yield family.name, labels, value


def _histogram(family: Family) -> Iterator[tuple[str, dict[str, str], float]]:
    rows = 0.0
    for labels, value in family.samples:
        rows += value
        yield f"{family.name}_bucket", labels, rows
    yield f"{family.name}_bucket", {"le": "+Inf"}, rows
    yield f"{family.name}_sum", {}, family.total
    yield f"{family.name}_count", {}, rows


def _labels(labels: dict[str, str]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    inside = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def instrument(meter: Any, current: Callable[[], list[Family]]) -> None:
    """Observable instruments of a meter of OpenTelemetry; each asks for the current values. A histogram
    becomes a counter by bin, since there is no observable histogram."""
    from opentelemetry.metrics import Observation  # whoever has a meter has it

    def observer(name: str) -> Callable[[Any], list[Any]]:
        def observe(_: Any) -> list[Any]:
            (family,) = (family for family in current() if family.name == name)
            samples = _by_bin(family) if family.kind == "histogram" else family.samples
            return [Observation(value, labels) for labels, value in samples]

        return observe

    for family in current():
        create = {
            "gauge": meter.create_observable_gauge,
            "counter": meter.create_observable_counter,
            "histogram": meter.create_observable_counter,
        }[family.kind]
        name = family.name.removesuffix("_total")  # exporters add it to counters
        create(name, callbacks=[observer(family.name)], description=family.meaning)


def _by_bin(family: Family) -> list[Sample]:
    lasts = [int(labels["le"]) for labels, _ in family.samples]
    firsts = [1, *(last + 1 for last in lasts[:-1])]
    return [
        ({"steps": bin_name(first, last)}, value)
        for first, last, (_, value) in zip(firsts, lasts, family.samples, strict=True)
    ]
