"""A classifier in a few lines of text."""

from __future__ import annotations

from qwyc.policy.policy import Policy
from qwyc.promise.certified import Certified
from qwyc.runtime.wording import one_line

NEXT_TO_ZERO = 1e-6  # a score in log-odds


def summary(certified: Certified) -> str:
    """What a classifier is, how it decides, what it takes and what it promises."""
    seen = certified.certificate
    if seen.tolerance is not None:
        return (
            f"qwyc.Approximation: {certified.ensemble.description}\n"
            f"  output     {_output(certified)}\n"
            f"  work       {_work(certified)}\n"
            f"  agreement  {_agreement(certified)}"
        )
    return (
        f"qwyc.Classifier: {certified.ensemble.description}\n"
        f"  decision   {_decision(certified)}\n"
        f"  work       {_work(certified)}\n"
        f"  agreement  {_agreement(certified)}"
    )


def _agreement(certified: Certified) -> str:
    """What is promised, and on lines of their own what that rests on."""
    seen = certified.certificate
    basis = f"\n  evidence   {seen.basis}" if seen.basis else ""
    return seen.promise + basis + "".join(f"\n    {line}" for line in seen.window_table)


def _decision(certified: Certified) -> str:
    """What decides a row, and for which classes it may quit."""
    policy = certified.policy
    if certified.only is not None:
        K, own = (
            len(certified.ensemble.classes),
            certified.ensemble.target.differences[certified.only],
        )
        leaves = "no row leaves early"
        if policy.quit != "never":
            leaves = "a row leaves early where another class is far enough ahead; all others get all scores"
        return f"whether the largest of {K} scores is that of {own}; {leaves}"
    if certified.ensemble.by_class:
        quits = "never quits early"
        if policy.quit != "never":
            quits = "quits early for the class that leads, where its lead is large enough"
        return (
            f"the largest of {len(certified.ensemble.classes)} scores, one for each class; {quits}"
        )
    negative, positive = (one_line(label) for label in certified.ensemble.classes)
    quits = {
        "both": f"quits early for {negative} and {positive}",
        "negative": f"quits early for {negative} only; {positive} always gets its full score",
        "positive": f"quits early for {positive} only; {negative} always gets its full score",
        "never": "never quits early",
    }[policy.quit]
    return (
        f"{positive} (the positive class) where {decided_from(certified)}, otherwise {negative}; "
        f"{quits}"
    )


def _output(certified: Certified) -> str:
    """What is estimated, and how closely."""
    what = "the value"
    if certified.ensemble.has_classes:
        what = f"the probability of {one_line(certified.ensemble.classes[1])}"
    quits = "every row is evaluated in full"
    if certified.policy.quit != "never":
        quits = "a row that quits early gets an estimate"
    return f"{what}, within {certified.certificate.tolerance:g}; {quits}"


def _work(certified: Certified) -> str:
    policy, seen = certified.policy, certified.certificate
    if not seen.rows:
        work = f"at most {policy.n_models} base models per row; not measured, no sample was given"
        return work if certified.counts_models else f"{work}; costs: {certified.cost_unit}"
    rows = {"held-out": "held-out rows", "in-sample": "the fitting rows"}.get(
        seen.how, "the sample"
    )
    work = f"{seen.mean_models:.1f} of {policy.n_models} base models per row on {rows}"
    if not certified.counts_models:
        work += f", cost {seen.mean_cost / seen.full_cost:.1%} ({certified.cost_unit})"
    if certified.feature_costs is not None and seen.mean_features is not None:
        work += f"; {features_per_row(certified)}"
    if certified.timing:
        return f"{work}; {certified.timing}"
    if policy.quit == "never" and certified.evaluation.decided_by in ("default", "measurement"):
        work += "; no policy that quits early keeps the promise: pass more rows, or allow a larger share"
    return work


def features_per_row(certified: Certified) -> str:
    """How many features a row needs before it is decided, and what they cost where that is known."""
    seen, use = certified.certificate, certified.feature_use
    assert use is not None  # features are counted
    text = f"{seen.mean_features:.1f} of {int(use.used.sum())} features needed per row"
    if certified.feature_costs is None:
        return text
    return f"{text}, at a cost of {seen.mean_feature_cost:.4g} of {use.full_cost:.4g}"


def decided_from(certified: Certified) -> str:
    """From where on a row is positive: as a probability where scores have one, and as a score."""
    assert isinstance(certified.policy, Policy)  # of one score
    threshold, link = certified.policy.threshold, certified.ensemble.link
    if link.kind == "piecewise":
        return f"output >= {link.output(threshold):.4g} (score >= {threshold:.4g})"
    if link.kind != "logistic":
        return f"score >= {threshold:g}"
    probability = f"probability >= {link.probability(threshold):.4g}"
    if 0 < abs(threshold) < NEXT_TO_ZERO:
        return probability  # how the source rounds at 1/2, which says nothing to a reader
    return f"{probability} (score >= {threshold:.4g})"
