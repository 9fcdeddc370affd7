"""The JSON file of a monitor. Everything in a file is checked before it is used."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qwyc.errors import ArtifactError, QwycError
from qwyc.files.classifier_file import file_path
from qwyc.files.values import count, number, one_of, shortened, text
from qwyc.limits import MAX_MONITOR_BYTES
from qwyc.monitor.state import Judge, Record, State, tests_of
from qwyc.monitor.subject import MOST_CLASSES, Label, Subject
from qwyc.policy.counts import Counts, exit_bins
from qwyc.promise.limits import Limit
from qwyc.promise.sequential import LARGEST, RateTest, Starts, TestState
from qwyc.runtime.output import replacing

FORMAT = "qwyc monitor 1"
MOST_MODELS = 1 << 31


@dataclass(frozen=True, eq=False)
class Saved:
    """A monitor without its classifier."""

    judge: Judge
    state: State
    rate: float
    seed: int
    rows_seen: int


def write(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write a file in one step."""
    content = json.dumps(_facts(saved), indent=1, allow_nan=False).encode()
    with replacing(file_path(path)) as file:
        file.write(content + b"\n")


def read(path: str | os.PathLike[str]) -> Saved:
    """Read and check a file."""
    try:
        with open(file_path(path), "rb") as file:
            content = file.read(MAX_MONITOR_BYTES + 1)
    except OSError as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        if len(content) > MAX_MONITOR_BYTES:
            raise ArtifactError(f"it is larger than {MAX_MONITOR_BYTES:,} bytes")
        return _saved(json.loads(content))
    except (
        QwycError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        RecursionError,  # lists of many levels
    ) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ArtifactError(f"{path}: not a valid monitor file: {reason}") from None


def _facts(saved: Saved) -> dict[str, Any]:
    subject, state = saved.judge.subject, saved.state
    return {
        "format": FORMAT,
        "rate": saved.rate,
        "confidence": saved.judge.confidence,
        "seed": saved.seed,
        "rows_seen": saved.rows_seen,
        "subject": asdict(subject),
        "record": asdict(state.record),
        "tests": [None if test is None else _test_facts(test) for test in state.tests],
        "raised": list(state.raised),
        "failed": state.failed,
    }


def _test_facts(test: TestState) -> dict[str, Any]:
    """The rows and their differences are in the record."""
    return {
        "parts": test.parts,
        "apart": {"value": test.apart.value.tolist(), "unspent": test.apart.unspent},
        "joint": {"value": test.joint.value.tolist(), "unspent": test.joint.unspent},
    }


def _saved(facts: Any) -> Saved:
    if not isinstance(facts, dict):
        raise ArtifactError("a JSON object was expected")
    one_of(facts["format"], FORMAT)
    subject = _subject(facts["subject"])
    record = _record(facts["record"], subject.lost, subject)
    rows_seen, rows = count(facts["rows_seen"]), sum(record.by_class)
    raised = tuple(None if at is None else count(at) for at in _list(facts["raised"]))
    tests = _list(facts["tests"])
    if len(raised) != len(subject.limits) or len(tests) != len(subject.limits):
        raise ArtifactError("the tests do not match the limits")
    if any(at is not None and not 0 < at <= rows for at in raised) or rows > rows_seen:
        raise ArtifactError("more rows are counted than were seen")
    known = zip(subject.limits, tests_of(subject), tests, strict=True)
    state = State(
        record,
        tuple(_test(*entry, record.counts) for entry in known),
        raised,
        count(facts["failed"]),
    )
    confidence, rate = number(facts["confidence"]), number(facts["rate"])
    if not (0 < confidence < 1 and 1e-9 <= rate <= 1):
        raise ArtifactError("the confidence or the rate is not a share")
    return Saved(Judge(subject, confidence), state, rate, count(facts["seed"]), rows_seen)


def _subject(facts: Mapping[str, Any]) -> Subject:
    n_models = count(facts["n_models"])
    if not 0 < n_models < MOST_MODELS:
        raise ArtifactError(f"{n_models} base models")
    labels = tuple(_label(label) for label in _list(facts["labels"]))
    n_classes = len(labels)
    limits = tuple(_limit(limit, n_classes) for limit in _list(facts["limits"]))
    lost = tuple(_kinds(kinds, n_classes) for kinds in _list(facts["lost"]))
    if not limits or not 2 <= n_classes <= MOST_CLASSES or len(lost) != n_classes:
        raise ArtifactError("there is no limit, or a different number of classes")
    certified = _record(facts["certified"] | {"steps": 0, "cost": 0.0}, lost, None, n_models)
    means = number(facts["certified"]["mean_models"]), number(facts["certified"]["mean_cost"])
    model = facts["model"]
    return Subject(
        None if model is None else text(model),
        text(facts["policy"]),
        n_models,
        labels,
        limits,
        lost,
        one_of(facts["how"], "held-out", "in-sample", "proven"),
        Counts(certified.by_class, certified.differences, *means, certified.exits),
    )


def _limit(facts: Mapping[str, Any], n_classes: int) -> Limit:
    share, among = number(facts["share"]), facts["among"]
    if not 0 <= share < 1:
        raise ArtifactError(f"a limit is a share, got {shortened(share)}")
    if among is not None and count(among) >= n_classes:
        raise ArtifactError("a limit is about an unknown class")
    return Limit(share, _kinds(facts["differences"], n_classes), among)


def _record(
    facts: Mapping[str, Any],
    lost_from: tuple[tuple[int, ...], ...],
    subject: Subject | None,
    n_models: int = 0,
) -> Record:
    """Counts that go together. Those of a certificate may say nothing about exits."""
    by_class, differences, exits = (
        tuple(count(n) for n in _list(facts[name])) for name in ("by_class", "differences", "exits")
    )
    record = Record(by_class, differences, exits, count(facts["steps"]), number(facts["cost"]))
    rows = sum(by_class)
    if len(by_class) != len(lost_from) or len(differences) != len(lost_from):
        raise ArtifactError("rows are counted for different classes or kinds of disagreement")
    lost = [sum(differences[k] for k in kinds) for kinds in lost_from]
    if any(n > of for n, of in zip(lost, by_class, strict=True)):
        raise ArtifactError("there are more differences than rows")
    bins = subject.n_bins if subject else len(exits) and len(exit_bins(n_models))
    if len(exits) != bins or (exits and sum(exits) != rows):
        raise ArtifactError("the counts of where rows stopped are of different rows")
    if subject and not (rows <= record.steps <= rows * subject.n_models and record.cost >= 0):
        raise ArtifactError("the base models do not match the rows")
    return record


def _test(limit: Limit, test: RateTest | None, facts: Any, counts: Counts) -> TestState | None:
    if test is None or facts is None:
        if test is not None or facts is not None:
            raise ArtifactError("a limit has a different kind of test")
        return None
    differ, rows = limit.counted(counts)
    parts = count(facts["parts"])
    if not parts:
        raise ArtifactError("a test has no parts")
    apart, joint = _starts(facts["apart"], test), _starts(facts["joint"], test)
    return TestState(rows, differ, parts, apart, apart if parts == 1 else joint)


def _starts(facts: Mapping[str, Any], test: RateTest) -> Starts:
    value = np.array([number(v) for v in _list(facts["value"])])
    unspent = number(facts["unspent"])
    if value.shape != test.multiples.shape or not 0 <= unspent <= 1:
        raise ArtifactError("a test has different alternatives")
    if not ((value >= 0) & (value <= LARGEST)).all():
        raise ArtifactError("evidence is not a positive number")
    return Starts(value, unspent)


def _kinds(values: Any, n_classes: int) -> tuple[int, ...]:
    """Ways to differ, of which there are as many as classes."""
    kinds = tuple(count(kind) for kind in _list(values))
    if not kinds or len(set(kinds)) != len(kinds) or max(kinds) >= n_classes:
        raise ArtifactError("unknown kinds of difference")
    return kinds


def _label(value: Any) -> Label:
    if not isinstance(value, (str, int, float)) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise ArtifactError(f"a class must be text or a number, got {shortened(value)}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ArtifactError(f"expected a list, got {shortened(value)}")
    return value
