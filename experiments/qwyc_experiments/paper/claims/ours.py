"""What we claim beyond the paper: the default method, alpha on new rows, and rivals of later years."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..curves import (
    BAYES_VOTES,
    BEST_VOTES,
    LEVEL,
    MARGIN,
    MARGIN_10,
    ORDERS,
    OURS,
    QWYC,
    Curve,
    Key,
    Outcome,
)
from . import timing
from .accuracy import more_accurate
from .verdicts import (
    AGAINST,
    FAILS,
    FOR,
    HOLDS,
    IN_PART,
    UNDECIDED,
    Claim,
    Verdict,
    against,
    by_experiment,
    capital,
    digits,
    settle,
)

CONFIDENCE = 0.95  # of the certificate
STOPPING = (MARGIN, MARGIN_10)
VOTES = (BEST_VOTES, BAYES_VOTES)
PUBLISHED: tuple[Key, ...] = (
    QWYC,
    *((rule, order) for rule in ("algorithm-2", "fan") for order in (*ORDERS, "accuracy")),
    *STOPPING,
    *VOTES,
)


def beyond(outcomes: Mapping[str, Outcome]) -> list[Claim]:
    """All claims of ours that the outcomes can judge."""
    judges = {
        "The default method needs fewer base models than QWYC*, at equal differences.": (
            lambda outcome: against(outcome, OURS, (QWYC,))
        ),
        "The default method needs fewer base models than every published method, at equal differences.": (
            against_published
        ),
        "The default method is more accurate than every published method, at equal base models.": (
            more_accurate_than_published
        ),
        "The default method takes less time than QWYC* at about 0.5% differences.": (
            lambda outcome: timing.takes_less(outcome, OURS, QWYC)
        ),
        "QWYC* makes more differences on new rows than the alpha it was asked for.": exceeds_alpha,
        "The classifier that `qwyc.optimize` certifies makes no more differences than alpha.": keeps_alpha,
        "The default method needs fewer base models than LightGBM's pred_early_stop.": (
            lambda outcome: against(outcome, OURS, STOPPING)
        ),
        "QWYC* needs fewer base models than LightGBM's pred_early_stop.": (
            lambda outcome: against(outcome, QWYC, STOPPING)
        ),
        "The default method needs fewer base models than the stopping rules for votes, Kalman & Moscovich "
        "and Hernández-Lobato et al.": lambda outcome: against(outcome, OURS, VOTES),
        "QWYC* needs fewer base models than the stopping rules for votes, Kalman & Moscovich and "
        "Hernández-Lobato et al.": lambda outcome: against(outcome, QWYC, VOTES),
    }
    found = [
        Claim(text, "ours", by_experiment(outcomes, judge), ()) for text, judge in judges.items()
    ]
    return [claim for claim in found if claim.verdicts]


def published(outcome: Outcome) -> list[Curve]:
    """The methods of the literature, without our combinations of them."""
    return [outcome.results.curves[key] for key in PUBLISHED if key in outcome.results.curves]


def against_published(outcome: Outcome) -> Verdict | None:
    """The default method against all published methods; the evidence names the best at each level."""
    return against(outcome, OURS, PUBLISHED)


def more_accurate_than_published(outcome: Outcome) -> Verdict | None:
    """At equal base models."""
    return more_accurate(outcome.results.curves.get(OURS), published(outcome))


def exceeds_alpha(outcome: Outcome) -> Verdict | None:
    """Test differences of QWYC* against alpha, by two standard errors of a share. The alpha nearest to
    0.5% is decisive."""
    results = outcome.results
    ours = results.curves.get(QWYC)
    if ours is None:
        return None
    over = ours.differ - ours.knob  # (K,)
    error = np.sqrt(ours.differ * (1 - ours.differ) / results.n_test)
    marks = [
        FOR if more > 2 * e else AGAINST if more < -2 * e else UNDECIDED
        for more, e in zip(over, error, strict=True)
    ]
    nearest = int(np.argmin(np.abs(ours.knob - LEVEL)))
    listed = "; ".join(
        f"{alpha:.2%}: {differ:.2%}" for alpha, differ in zip(ours.knob, ours.differ, strict=True)
    )
    exceeded = int((over > 0).sum())
    return Verdict(
        settle(marks, [marks[nearest]]),
        f"{exceeded} of {len(over)} alphas, by {100 * over.mean():+.2f} points",
        f"QWYC* exceeds alpha on the test rows at {exceeded} of {len(over)} alphas, at {marks.count(FOR)} "
        f"beyond two standard errors, and by {100 * over.mean():+.2f} points on average. Test differences "
        f"by alpha: {listed}. On the fitted rows alpha holds by construction.",
    )


def keeps_alpha(outcome: Outcome) -> Verdict | None:
    """Of random splits. A certificate may be wrong in 5% of all cases: it holds where no more than 5% of
    the splits exceed alpha beyond chance at any alpha, nor the mean over splits; in part where that is so
    at some alphas."""
    if not outcome.promised:
        return None
    kept = [
        p.broken <= (1 - CONFIDENCE) * p.splits and p.differ <= p.alpha for p in outcome.promised
    ]
    broken, splits = (
        sum(getattr(p, part) for p in outcome.promised) for part in ("broken", "splits")
    )
    listed = "; ".join(
        f"alpha {p.alpha:.2%}: mean {p.differ:.2%}, largest {p.worst:.2%}, {p.above} of {p.splits} splits "
        f"above alpha, {p.broken} beyond chance, {digits(p.models)} base models"
        for p in sorted(outcome.promised, key=lambda p: p.alpha)
    )
    return Verdict(
        HOLDS if all(kept) else IN_PART if any(kept) else FAILS,
        f"{broken} of {splits} splits above alpha beyond chance",
        "Differences on rows that had no part in fit or certificate, over random splits of the rows that "
        f"the model has not seen. {capital(listed)}. The certificate is for {CONFIDENCE:.0%} confidence. "
        "It is about the rate at which rows differ; the share of a split's rows scatters around it.",
    )
