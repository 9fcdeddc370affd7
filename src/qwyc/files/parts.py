"""The parts of a classifier as plain values and tensors, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ArtifactError
from qwyc.files import evidence_parts, feature_parts, policies
from qwyc.files.container import Tensors
from qwyc.files.families import FAMILIES
from qwyc.files.values import count, flag, number, one_of, rows, text, whole
from qwyc.model.ensemble import Ensemble, Source
from qwyc.model.link import FORMS, Link
from qwyc.model.output import Output
from qwyc.policy.costs import KINDS
from qwyc.policy.counts import Counts, PathCounts, exit_bins
from qwyc.policy.estimate_policy import EstimatePolicy
from qwyc.policy.filter_policy import ClassPolicy, FilterPolicy
from qwyc.policy.policy import Policy
from qwyc.policy.rule import StoppingRule
from qwyc.promise.budget import Budget, budget_of
from qwyc.promise.certificate import Certificate
from qwyc.promise.evaluation import DECIDED_BY, Evaluation
from qwyc.promise.evidence import Choices, Evidence
from qwyc.promise.requested import target_of
from qwyc.promise.tolerance import ToleranceBudget
from qwyc.promise.windows import Window
from qwyc.rows.schema import ABSENT, INTEGERS, REFUSED, Schema
from qwyc.target.target import Target

# ---- the model --------------------------------------------------------------------------------


def model_facts(ensemble: Ensemble) -> dict[str, Any]:
    """What `model` holds in a header."""
    models, schema, source = ensemble.base_models, ensemble.schema, ensemble.source
    assert schema is not None  # code alone has none, and is not saved
    return {
        "kind": models.kind,
        "base_models": models.facts(),
        "source": None if source is None else asdict(source),
        "digest": ensemble.digest,
        "schema": schema_facts(schema),
        "threshold": ensemble.threshold,
        "classes": classes_facts(ensemble.classes),
        "link": ensemble.link.facts(),
    } | ({} if ensemble.output is None else {"output": ensemble.output.facts()})


def read_model(facts: dict[str, Any], tensors: Tensors) -> Ensemble:
    """The ensemble, once its base models have been checked."""
    schema = read_schema(facts["schema"])
    read = FAMILIES[facts["kind"]].read
    ensemble = Ensemble(
        read(facts["base_models"], tensors, schema),
        schema,
        threshold=number(facts["threshold"]),
        classes=read_classes(facts["classes"]),
        source=_read_source(facts["source"]),
        link=read_link(facts["link"]),
        output=_read_output(facts.get("output")),
    )
    if ensemble.digest != facts["digest"]:
        raise ArtifactError("the model does not match its digest")
    return ensemble


def read_link(facts: dict[str, Any]) -> Link:
    """How scores become probabilities."""
    kind = one_of(facts["kind"], "logistic", "identity", "none", "piecewise")
    scale, dtype = number(facts["scale"]), one_of(facts["dtype"], "float32", "float64")
    if kind != "piecewise":
        form = one_of(facts.get("form", "plain"), *FORMS)
        return Link(kind, scale, dtype, form=form)
    points, outputs = (tuple(number(v) for v in facts[name]) for name in ("points", "outputs"))
    means = one_of(facts["means"], "identity", "logistic", "none")
    try:
        return Link(kind, scale, dtype, points, outputs, means)
    except ValueError as error:
        raise ArtifactError(f"the model's link is not valid: {error}") from None


def _read_output(facts: dict[str, Any] | None) -> Output | None:
    """How scores become the source's own outputs."""
    if facts is None:
        return None
    scale = number(facts["scale"])
    if not scale > 0:
        raise ArtifactError(f"the scale of outputs is {scale}, not above 0")
    return Output(text(facts["kind"]), text(facts["dtype"]), scale)


def _read_source(facts: dict[str, Any] | None) -> Source | None:
    """Where a model was read from; None where it was built with qwyc itself."""
    if facts is None:
        return None
    return Source(**{f.name: text(facts[f.name]) for f in fields(Source)})


def schema_facts(schema: Schema) -> dict[str, Any]:
    """What rows must look like."""
    facts: dict[str, Any] = {
        "n_features": schema.n_features,
        "names": None if schema.names is None else list(schema.names),
        "dtype": schema.dtype,
        "categories": [[i, list(v)] for i, v in sorted(schema.categories.items())],
        "arrays_hold_values": schema.arrays_hold_values,
        "unseen": schema.unseen,
        "hashed": schema.hashed,
        "missing": None if np.isnan(schema.missing) else schema.missing,
        "accepts_missing": schema.accepts_missing,
        "accepts_infinity": schema.accepts_infinity,
        "integers": schema.integers,
    }
    if schema.must_have:
        facts["must_have"] = list(schema.must_have)
    if schema.by_name:
        facts["by_name"] = True
    if schema.own_missing:
        facts["own_missing"] = [list(pair) for pair in schema.own_missing]
    if schema.absent != REFUSED:
        facts["absent"] = schema.absent
    return facts


def read_schema(facts: dict[str, Any]) -> Schema:
    """What rows must look like."""
    n, names = count(facts["n_features"]), facts["names"]
    if names is not None and len(names) != n:
        raise ArtifactError(f"{len(names)} feature names for {n} features")
    categories = {}
    for i, values in facts["categories"]:
        if count(i) >= n or not all(isinstance(v, (str, int, float, type(None))) for v in values):
            raise ArtifactError("categories of an unknown feature, or not text or numbers")
        categories[i] = tuple(values)
    must_have = tuple(count(i) for i in facts.get("must_have", ()))
    if any(i >= n for i in must_have):
        raise ArtifactError("a column that must have values is not one of the features")
    by_name = flag(facts.get("by_name", False))
    if by_name and names is None:
        raise ArtifactError("columns without names cannot be found by name")
    own_missing = tuple((count(i), number(value)) for i, value in facts.get("own_missing", ()))
    if any(i >= n for i, _ in own_missing):
        raise ArtifactError("a column with a number for missing values is not one of the features")
    missing = facts["missing"]
    return Schema(
        n_features=n,
        names=None if names is None else tuple(text(name) for name in names),
        dtype=text(facts["dtype"]),
        categories=categories,
        arrays_hold_values=flag(facts["arrays_hold_values"]),
        unseen=text(facts["unseen"]),
        hashed=flag(facts["hashed"]),
        missing=float("nan") if missing is None else number(missing, finite=False),
        accepts_missing=flag(facts["accepts_missing"]),
        accepts_infinity=flag(facts["accepts_infinity"]),
        integers=one_of(facts["integers"], *INTEGERS),
        must_have=must_have,
        by_name=by_name,
        own_missing=own_missing,
        absent=one_of(facts.get("absent", REFUSED), *ABSENT),
    )


def classes_facts(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """The class labels and their dtype."""
    values = classes.tolist()
    if not all(isinstance(v, (str, int, float)) for v in values):
        raise ArtifactError(f"class labels must be text or numbers to be saved; got {values!r}")
    return {"dtype": classes.dtype.str, "values": values}


def read_classes(facts: dict[str, Any]) -> npt.NDArray[Any]:
    """The class labels, (2,) or (K,); (0,) of a model of values."""
    values = facts["values"]
    if len(values) == 1 or not all(isinstance(v, (str, int, float)) for v in values):
        raise ArtifactError("classes must be two labels or more, text or numbers")
    dtype = np.dtype(text(facts["dtype"]))
    if dtype.kind not in "biufUO" or dtype.itemsize > 4096:
        raise ArtifactError(f"classes cannot have dtype {dtype}")
    return np.array(values, dtype=dtype)


# ---- the certificate and the evidence ---------------------------------------------------------


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """What `certificate` holds in a header."""
    return {
        "alpha": certificate.alpha,
        "by_class": {str(c): share for c, share in certificate.budget.by_class.items()},
        "confidence": certificate.confidence,
        "counts": _counts_facts(certificate.counts),
        "full_cost": certificate.full_cost,
        "how": certificate.how,
        "fit_rows": certificate.fit_rows,
        "seed": certificate.seed,
        "sample": certificate.sample,
        "groups": certificate.groups,
        "headroom": certificate.headroom,
        "doubts": list(certificate.doubts),
    } | evidence_parts.later_facts(certificate)


def read_certificate(
    facts: dict[str, Any],
    ensemble: Ensemble,
    policy: Policy | ClassPolicy,
    choices: Choices | None,
    stops: Any = None,
) -> Certificate:
    """A certificate whose numbers go together. The keys that `get` reads came after format 1. `stops` (T,)
    are rows by the steps that they took, where no path has them."""
    how = one_of(facts["how"], "held-out", "in-sample", "proven")
    confidence = facts["confidence"]
    if confidence is not None and not 0 < number(confidence) < 1:
        raise ArtifactError(f"confidence must be between 0 and 1, got {confidence!r}")
    if number(facts["full_cost"]) <= 0:
        raise ArtifactError("costs must be positive")
    counts = _read_counts(facts["counts"], _target(ensemble, policy), policy.n_models)
    counts = _with_groups(counts, policy, choices)
    if how == "held-out" and choices is not None:
        _check_evidence(facts, counts, policy, choices)
    return Certificate(
        budget=_read_budget(facts, ensemble, policy),
        confidence=None if confidence is None and how != "held-out" else number(confidence),
        counts=feature_parts.with_stops(counts, policy, choices, stops),
        full_cost=number(facts["full_cost"]),
        how=how,
        fit_rows=rows(facts["fit_rows"]),
        seed=whole(facts["seed"]),
        sample=text(facts["sample"]),
        groups=rows(facts["groups"]),
        policies=1 if choices is None else choices.policies,
        quit=policy.quit,
        headroom=rows(facts.get("headroom", 0)),
        doubts=_read_doubts(facts),
        windows=_windows_of(policy, choices),
        **evidence_parts.read_later(facts),
    )


def _counts_facts(counts: Counts) -> dict[str, Any]:
    facts = {name: getattr(counts, name) for name in ("by_class", "differences", "exits")}
    return facts | {"mean_models": counts.mean_models, "mean_cost": counts.mean_cost}


def _with_groups(counts: Counts, policy: StoppingRule, choices: Choices | None) -> Counts:
    """A certificate's counts, with the groups that the evidence has for its policy."""
    if choices is None or choices.evidence.counts.groups is None:
        return counts
    seen = choices.evidence.counts[choices.index_of(policy)]
    if (seen.by_class, seen.differences) != (counts.by_class, counts.differences):
        raise ArtifactError("the certificate and the evidence count different rows")
    return replace(counts, groups=seen.groups)


def _check_evidence(
    facts: Mapping[str, Any], counts: Counts, policy: StoppingRule, choices: Choices
) -> None:
    """Refuse a certificate that says something else than the evidence it was made from."""
    seen = choices.evidence
    known = seen.counts[choices.index_of(policy)]
    own = (counts.by_class, counts.differences, facts["sample"], facts["fit_rows"])
    if own != (known.by_class, known.differences, seen.sample, seen.fit_rows):
        raise ArtifactError("the certificate and the evidence count different rows")


def _windows_of(policy: StoppingRule, choices: Choices | None) -> tuple[Window, ...]:
    if choices is None or choices.evidence.windows is None:
        return ()
    return choices.evidence.windows[choices.index_of(policy)]


def _read_budget(
    facts: Mapping[str, Any], ensemble: Ensemble, policy: Policy | ClassPolicy
) -> Budget:
    by_class = {int(text(c)): number(share) for c, share in facts.get("by_class", {}).items()}
    if isinstance(policy, EstimatePolicy):
        if by_class:
            raise ArtifactError("outputs within a tolerance have no limits by class")
        return ToleranceBudget.of(number(facts["alpha"]), policy.within)
    only = policy.only if isinstance(policy, FilterPolicy) else None
    if only is not None and any(c != only for c in by_class):
        raise ArtifactError("a filter for one class has limits on others")
    return budget_of(facts["alpha"], by_class or None, target_of(ensemble, only))


def _target(ensemble: Ensemble, policy: Policy | ClassPolicy) -> Target:
    """What is counted."""
    return policy.within if isinstance(policy, EstimatePolicy) else ensemble.target


def _read_doubts(facts: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(text(doubt) for doubt in facts.get("doubts", ()))


def _read_counts(facts: Mapping[str, Any], target: Target, n_models: int) -> Counts:
    counts = Counts(
        _by_class(facts["by_class"], target),
        tuple(rows(n) for n in facts["differences"]),
        number(facts["mean_models"]),
        number(facts["mean_cost"]),
        tuple(rows(n) for n in facts.get("exits", ())),
    )
    bins = len(exit_bins(n_models)) if counts.exits else 0
    if len(counts.exits) != bins or (counts.exits and sum(counts.exits) != counts.rows):
        raise ArtifactError("the certificate's counts of where rows stopped are of different rows")
    if len(counts.differences) != len(target.differences):
        raise ArtifactError("the certificate counts different kinds of disagreement")
    if counts.disagreements > counts.rows:
        raise ArtifactError("the certificate has more disagreements than rows")
    if counts.mean_models < 0:
        raise ArtifactError("base models per row must be positive")
    return counts


def _by_class(values: Any, target: Target) -> tuple[int, ...]:
    by_class = tuple(rows(n) for n in values)
    if len(by_class) != target.n_classes:
        raise ArtifactError("rows are counted for a different number of classes")
    return by_class


def evidence_facts(choices: Choices) -> dict[str, Any]:
    """What `evidence` holds in a header."""
    seen = choices.evidence
    return {
        "by_class": list(seen.counts.by_class),
        "fit_rows": seen.fit_rows,
        "seed": seen.seed,
        "sample": seen.sample,
        "groups": seen.groups,
        "doubts": list(seen.doubts),
        **evidence_parts.later_facts(seen),
    } | evidence_parts.facts(seen)


def path_tensors(choices: Choices) -> Tensors:
    """A path and the evidence on it, as tensors."""
    path, seen = choices.path, choices.evidence
    return {
        **policies.path_tensors(path),
        "path.penalty": path.penalty,
        "path.differences": seen.counts.differences,
        "path.fit_differences": seen.fit_differences,
        "path.mean_models": seen.counts.mean_models,
        "path.mean_cost": seen.counts.mean_cost,
        **feature_parts.path_tensors(seen.counts),
        **evidence_parts.tensors(seen),
    }


def read_choices(
    facts: dict[str, Any], tensors: Tensors, policy: Policy | ClassPolicy, ensemble: Ensemble
) -> Choices:
    """A path that the policy is on, and evidence that goes with it."""
    t = {name.removeprefix("path."): tensors[name] for name in tensors if name.startswith("path.")}
    path, target = policies.read_path(t, policy, ensemble), _target(ensemble, policy)
    K, T, kinds = len(path), policy.n_models, len(target.differences)
    shapes: dict[str, tuple[int, ...]] = {"mean_models": (K,), "mean_cost": (K,)}
    shapes |= {"differences": (K, kinds), "fit_differences": (K, kinds)}
    exits = t.get("exits")  # files of 0.1.0 do not have them
    if exits is not None:
        shapes["exits"] = (K, len(exit_bins(T)))
    if "stops" in t:
        shapes["stops"] = (K, T)
    if K == 0 or any(t[name].shape != shape for name, shape in shapes.items()):
        raise ArtifactError("the path's tensors differ in length")
    members = [path[k] for k in range(K)]  # checks their thresholds
    if members[0].quit != "never":  # `full` relies on it
        raise ArtifactError("the first policy of the path quits; it must not")
    by_class = _by_class(facts["by_class"], target)
    counts = PathCounts(by_class, t["differences"], t["mean_models"], t["mean_cost"], exits)
    if exits is not None and (exits.min() < 0 or (exits.sum(axis=1) != counts.rows).any()):
        raise ArtifactError("the path's counts of where rows stopped are of different rows")
    if "stops" in t:
        feature_parts.check_stops(t["stops"], counts)
        counts = replace(counts, stops=t["stops"])
    fit_rows = rows(facts["fit_rows"])
    for found, n in ((counts.differences, counts.rows), (t["fit_differences"], fit_rows)):
        # Each by itself first: sums may overflow.
        if found.min() < 0 or found.max() > n or found.sum(axis=1).max() > n or n == 0:
            raise ArtifactError("the path has more disagreements than rows")
    counts = replace(counts, groups=evidence_parts.read_groups(facts, t, counts, target))
    evidence = Evidence(
        counts=counts,
        fit_rows=fit_rows,
        fit_differences=t["fit_differences"],
        seed=whole(facts["seed"]),
        sample=text(facts["sample"]),
        groups=rows(facts["groups"]),
        doubts=_read_doubts(facts),
        windows=evidence_parts.read_windows(facts, t, counts, target),
        **evidence_parts.read_later(facts),
    )
    choices = Choices(path, evidence)
    choices.index_of(policy)  # which was chosen from it
    return choices


def read_evaluation(facts: dict[str, Any]) -> Evaluation:
    """Who decided whether rows quit."""
    return Evaluation(flag(facts["quits"]), one_of(facts["decided_by"], *DECIDED_BY))


def read_cost_kind(value: Any) -> str:
    """How costs came about; "" where a file does not say, as those before 0.2.0."""
    return "" if value is None else one_of(value, *KINDS)
