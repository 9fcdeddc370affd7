"""One case: everyone prepared, everyone's answers checked, then everyone timed in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import qwyc
from qwyc.check.benchmark import FULL, QUITTING, Line, line
from qwyc.runtime.timing import Contestant, batches, interleave

from . import peers
from .cases import Case, Prepare
from .peers import LeftOut, Peer
from .sizes import Sizes

ALPHA = 0.005
# The figures are for at most ALPHA on these very test rows. That count is itself a draw, off by 0.1% either
# way, so less is asked for, and more surely than by default.
ASKED = 0.004
CONFIDENCE = 0.99
CHECKED_SINGLY = 50
EARLY_STOP_FREQUENCIES = (1, 2, 5, 10, 20, 50)
LARGEST_MARGIN = 1600  # hundredths


class WrongAnswer(Exception):  # noqa: N818
    """Somebody who must decide as the model does, does not."""


@dataclass
class Result:
    """What one case showed."""

    name: str
    title: str
    library: str
    lines: dict[int, list[Line]] = field(default_factory=dict)  # by number of threads
    versions: dict[str, str] = field(default_factory=dict)  # by contestant, as the next three
    notes: dict[str, str] = field(default_factory=dict)
    differ: dict[str, int] = field(default_factory=dict)  # decisions unlike the model's own
    left_out: dict[str, str] = field(default_factory=dict)
    test_rows: int = 0
    mean_models: float = float("nan")

    def line(self, contestant: str, batch: int, threads: int = 1) -> Line | None:
        """What one contestant showed, or None."""
        found = [
            each
            for each in self.lines.get(threads, [])
            if each.contestant == contestant and each.batch == batch
        ]
        return found[0] if found else None

    @property
    def disagreement(self) -> float:
        """Share of test decisions that quitting changed."""
        return self.differ.get(QUITTING, 0) / self.test_rows


def contest(case: Case, sizes: Sizes, thread_counts: tuple[int, ...]) -> Result:
    """Check and time everyone on a case, with each number of threads."""
    result = Result(case.name, case.title, case.library, test_rows=len(case.test))
    try:
        fast = qwyc.optimize(
            case.trained.model, case.sample, alpha=ASKED, confidence=CONFIDENCE, progress=False
        )
        result.mean_models = float(fast.decide(case.test).steps.mean())
    except qwyc.ModelError as error:
        fast = None
        result.left_out["qwyc"] = f"does not read this model: {str(error).split(';')[0]}"
    contestants = list(case.contestants)
    if fast is not None and case.library == "LightGBM":
        allowed = int((fast.predict(case.test).astype(bool) != case.own).sum())
        contestants.append(matched_early_stop(case, allowed))
    rows = enlarged(case.test, sizes.rows)
    for threads in thread_counts:
        taking_part = prepared(case, contestants, threads, result)
        if fast is not None:
            taking_part += ours(fast, threads)
        for peer in taking_part:
            result.versions[peer.name], result.notes[peer.name] = peer.version, peer.note
            result.differ[peer.name] = check(peer, case)
        result.lines[threads] = [
            each
            for size in sizes.batches
            for each in timed(taking_part, rows, size, threads, sizes)
        ]
    return result


def prepared(
    case: Case, contestants: Sequence[Prepare], threads: int, result: Result
) -> list[Peer]:
    """Everyone who can take part; the others are written down with the reason."""
    found = []
    for prepare in contestants:
        try:
            found.append(prepare(case.trained, threads))
        except LeftOut as reason:
            result.left_out[prepare.__name__] = str(reason)
    return found


def ours(fast: Any, threads: int) -> list[Peer]:
    """qwyc's two ways."""
    positive = fast.ensemble.classes[1]
    return [
        Peer(
            FULL,
            qwyc.__version__,
            lambda rows: fast.score_full(rows, threads=threads),
            lambda row: fast.score_full(row[None], threads=threads)[0],
            lambda scores: np.atleast_1d(scores) >= fast.policy.threshold,
        ),
        Peer(
            QUITTING,
            qwyc.__version__,
            lambda rows: fast.predict(rows, threads=threads),
            fast.predict_one,
            lambda labels: np.atleast_1d(labels) == positive,
        ),
    ]


def check(peer: Peer, case: Case) -> int:
    """How many test decisions are unlike the model's own. Those of the model's own library and of
    qwyc's full evaluation must all be alike, and a row must get by itself what it gets in a batch."""
    decisions = case.own
    if peer.batch is not None:
        decisions = peer.positive(peer.batch(peer.form(case.test)))
    differ = int((decisions != case.own).sum())
    if differ and peer.name in (case.library, FULL):
        raise WrongAnswer(f"{case.name}: {peer.name} decides {differ} test rows unlike the model")
    if peer.single is not None:
        single = [bool(peer.positive(peer.single(row))[0]) for row in case.test[:CHECKED_SINGLY]]
        unlike = int((np.array(single) != decisions[:CHECKED_SINGLY]).sum())
        if unlike:
            raise WrongAnswer(
                f"{case.name}: {peer.name} decides {unlike} of {CHECKED_SINGLY} rows one by one "
                "unlike in a batch"
            )
    return differ


def timed(taking_part: list[Peer], rows: Any, size: int, threads: int, sizes: Sizes) -> list[Line]:
    """Everyone in turn with batches of one size."""
    contestants = {}
    for peer in taking_part:
        if size == 1 and peer.single is not None:
            contestants[peer.name] = Contestant(peer.single, list(rows[:1000]))
        elif size > 1 and peer.batch is not None:
            parts = [peer.form(part) for part in batches(rows, size)]
            contestants[peer.name] = Contestant(peer.batch, parts, size)
    timings = interleave(
        contestants,
        seconds=sizes.seconds if size == max(sizes.batches) else sizes.small_seconds,
        pause=0.005 if threads > 1 else 0,
        clock=time.process_time if sizes.cpu_time and threads == 1 < size else time.perf_counter,
    )
    return [line(name, size, timing) for name, timing in timings.items()]


def matched_early_stop(case: Case, allowed: int) -> Prepare:
    """LightGBM's `pred_early_stop` at the fastest setting that changes no more test decisions than
    quitting does. It is chosen on the test rows themselves, which favours LightGBM."""

    def changed(margin: int, freq: int) -> int:
        peer = peers.lightgbm_early(case.trained, 1, margin / 100, freq)
        assert peer.batch is not None
        return int((peer.positive(peer.batch(case.test)) != case.own).sum())

    candidates = []
    for freq in EARLY_STOP_FREQUENCIES:
        low, high = (
            0,
            LARGEST_MARGIN,
        )  # the smallest margin that changes few enough is in (low, high]
        while high - low > 1:
            middle = (low + high) // 2
            if changed(middle, freq) <= allowed:
                high = middle
            else:
                low = middle
        if changed(high, freq) <= allowed:  # not so where no margin is large enough
            candidates.append((high / 100, freq))
    settings = {
        setting: peers.lightgbm_early(case.trained, 1, *setting).batch for setting in candidates
    }
    timings = interleave(
        {name: Contestant(call, [case.test]) for name, call in settings.items()},
        seconds=0.3,
        clock=time.process_time,  # the choice must not depend on what else the machine does
    )
    margin, freq = min(timings, key=lambda setting: timings[setting].median)
    return lambda trained, threads: peers.lightgbm_early(trained, threads, margin, freq)


def enlarged(test: Any, rows: int) -> Any:
    """That many of the test rows, each as often as the others or once more, in random order."""
    order = np.resize(np.arange(len(test)), rows)
    return np.ascontiguousarray(test[np.random.default_rng(0).permutation(order)])
