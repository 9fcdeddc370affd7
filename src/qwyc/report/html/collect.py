"""Everything that the report shows, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import OptionError
from qwyc.policy.counts import Counts, exit_bins
from qwyc.policy.features import reaching
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.promise.certified import Certified
from qwyc.report.html import times
from qwyc.report.html.observed import Given, Observed, given_rows, observe
from qwyc.report.html.points import AS_IT_IS, AnyRule, Point, operating_points, sentences
from qwyc.report.html.rivals import Rival, fit_rivals, rows_to_fit
from qwyc.report.inspection import why
from qwyc.rows.column_names import feature_name
from qwyc.rows.selection import take
from qwyc.rows.slices import Slices
from qwyc.runtime.machine import machine
from qwyc.runtime.progress import ProgressOption, progress_reporter
from qwyc.runtime.threads import thread_count

MAX_ROWS = 20_000
POSITIONS = 90  # steps at which curves are drawn
MOST_CLASSES = 40  # of which losses are shown
FIRST = 10  # base models, and features, that are listed
NAMES = 3  # features that are named for a base model


@dataclass(frozen=True)
class Settings:
    """What the caller of a report may choose."""

    max_rows: int = MAX_ROWS
    speed: bool = True
    threads: int | None = None
    progress: ProgressOption = None


def report_facts(
    certified: Certified,
    X: Any = None,
    y: Any = None,
    *,
    slices: Slices | None = None,
    settings: Settings | None = None,
) -> dict[str, Any]:
    """The facts of a report; everything is the same for the same inputs, except times."""
    settings = settings or Settings()
    for name, value in (("y", y), ("slices", slices)):
        if X is None and value is not None:
            raise OptionError(f"{name} belongs to rows: pass X too")
    given = None
    if X is not None:
        given = given_rows(certified, X, y, slices, settings.max_rows)
    return _Report(certified, given, settings).facts()


@dataclass(frozen=True, eq=False)
class _Report:
    certified: Certified
    given: Given | None
    settings: Settings

    @cached_property
    def n_models(self) -> int:
        return self.certified.policy.n_models

    @cached_property
    def positions(self) -> list[int]:
        """Steps, from 1 to T, close to each other at first."""
        steps = np.unique(np.geomspace(1, self.n_models, POSITIONS).round().astype(int))
        return [int(step) for step in steps]

    def facts(self) -> dict[str, Any]:
        points, own = operating_points(self.certified)
        policies, of_point = _distinct(points)
        observed, rivals = self._observe(policies)
        sources: list[Observed | Counts] = [*observed]
        if self.given is None:
            sources = [_counted(points, of_point, i) for i in range(len(policies))]
        policy_facts = [
            self._policy(policy, source) for policy, source in zip(policies, sources, strict=True)
        ]
        rows = None
        if self.given is not None:
            for one, seen in zip(policy_facts, observed, strict=True):
                one["on_rows"] = seen.facts(self.given)
            rows = self._rows(observed[0])
        facts: dict[str, Any] = {
            "model": self.certified.ensemble.description,
            "why": why(self.certified),
            "classes": self._classes(points[own]),
            "base_models": self.n_models,
            "kind": "leads" if isinstance(self.certified.policy, LeadPolicy) else "thresholds",
            "threshold": getattr(self.certified.policy, "threshold", None),
            "labels": self._two_labels(),
            "promised": self.certified.certificate.holds,
            "how": self.certified.certificate.how,
            "one_cost": self.certified.counts_models,
            "points": [self._point(p, i) for p, i in zip(points, of_point, strict=True)],
            "own": own,
            "positions": self.positions,
            "bins": exit_bins(self.n_models),
            "policies": policy_facts,
            "first": self._first_models(),
            "features": self._features(),
            "rows": rows,
            "rivals": rivals,
            "windows": self.certified.certificate.window_table,
        }
        if self.given is not None and self.settings.speed:
            facts["times"] = self._time(policies, observed, policy_facts)
        return facts

    # ---- what is known without rows -----------------------------------------------------------

    def _point(self, point: Point, policy: int) -> dict[str, Any]:
        seen = point.certificate
        losses = seen.classes
        return {
            "name": point.name,
            "share": point.share,
            "policy": policy,
            "at": _alpha_alone(point),
            "lines": sentences(self.certified, point),
            "sentence": str(seen),
            "upper_bound": seen.upper_bound,
            "rows": seen.rows,
            "differ": seen.disagreements,
            "models": seen.mean_models,
            "cost": seen.mean_cost / seen.full_cost,
            "features": seen.mean_features,
            "losses": [[losses[i].lost, losses[i].upper_bound] for i in self._shown_classes],
        }

    @cached_property
    def _shown_classes(self) -> list[int]:
        """Classes of which losses are shown: of many, those of which the most may be lost."""
        losses = self.certified.certificate.classes
        worst = sorted(range(len(losses)), key=lambda i: -(losses[i].upper_bound or 0))
        return sorted(worst[:MOST_CLASSES])

    def _classes(self, own: Point) -> dict[str, Any]:
        losses, labels = own.certificate.classes, self.certified.ensemble.classes
        return {
            "names": [str(labels[i]) for i in self._shown_classes],
            "rows": [losses[i].rows for i in self._shown_classes],
            "left_out": len(losses) - len(self._shown_classes),
        }

    def _two_labels(self) -> list[str]:
        """What rows quit for below and above thresholds."""
        classes, policy = self.certified.ensemble.classes, self.certified.policy
        if isinstance(policy, FilterPolicy):
            return [f"not {classes[policy.only]}", str(classes[policy.only])]
        return [str(c) for c in classes[:2]]

    def _policy(self, policy: AnyRule, source: Observed | Counts) -> dict[str, Any]:
        facts: dict[str, Any] = {"quit": policy.quit, "survival": None, "exits": None}
        exits, stops = source_counts(source, self.n_models)
        if exits is not None:
            facts["exits"] = exits.tolist()
        if stops is not None:
            left = reaching(stops.tolist())  # (T + 1,) rows that take more than s base models
            share = left / left[0]
            facts["survival"] = _short(share[self.positions])
            use = self.certified.feature_use
            facts["reach_models"] = _short(share[: min(FIRST, self.n_models)])
            if use is not None:
                facts["reach_features"] = _short(share[[use.first[j] for j in self._needed]])
        at = np.array(self.positions) - 1
        if isinstance(policy, Policy):
            facts["lower"], facts["upper"] = _short(policy.lower[at]), _short(policy.upper[at])
        elif isinstance(policy, FilterPolicy):  # as thresholds on "its class less the best other"
            facts["lower"] = _short(-policy.gap[at])
            facts["upper"] = _short(np.full(len(at), np.inf))
        else:
            facts["least"] = _short(policy.lead[at].min(axis=1))
            facts["most"] = _short(policy.lead[at].max(axis=1))
        return facts

    @cached_property
    def _needed(self) -> list[int]:
        """The features that rows need first."""
        use = self.certified.feature_use
        if use is None:
            return []
        return [int(j) for j in np.argsort(use.first, kind="stable") if use.used[j]][:FIRST]

    def _name(self, j: int) -> str:
        schema = self.certified.ensemble.schema
        assert schema is not None  # features are known
        name = str(feature_name(j, schema))
        return f"feature {name}" if schema.names is None else name

    def _features(self) -> dict[str, Any] | None:
        use = self.certified.feature_use
        if use is None:
            return None
        return {
            "used": int(use.used.sum()),
            "names": [self._name(j) for j in self._needed],
            "steps": [int(use.first[j]) + 1 for j in self._needed],
        }

    def _first_models(self) -> list[dict[str, Any]]:
        order = self.certified.policy.order[:FIRST].tolist()
        pairs = self.certified.ensemble.base_models.feature_needs()
        found = []
        for model in order:
            facts: dict[str, Any] = {"model": model}
            if pairs is not None and self.certified.feature_use is not None:
                looked_at = np.unique(pairs[1][pairs[0] == model]).tolist()
                facts["features"] = [self._name(j) for j in looked_at[:NAMES]]
                facts["more"] = max(0, len(looked_at) - NAMES)
            found.append(facts)
        return found

    # ---- what rows show -----------------------------------------------------------------------

    def _observe(self, policies: list[AnyRule]) -> tuple[list[Observed], list[dict[str, Any]]]:
        """What each policy does on the rows; and the same for the others, on rows that they were not
        fitted on, of which the first is the classifier itself."""
        given, certified, settings = self.given, self.certified, self.settings
        if given is None:
            return [], []
        n = len(given)
        fit = rows_to_fit(n)
        order = np.random.default_rng(1).permutation(n)
        chosen, rest = np.sort(order[:fit]), np.sort(order[fit:])
        options = {"threads": settings.threads, "progress": settings.progress}
        found: list[Rival] = []
        if fit:
            scores = certified.ensemble.scores(take(given.X, chosen), threads=settings.threads)
            labels = None if given.truth is None else given.truth[chosen]
            found = fit_rivals(certified, scores, labels, **options)  # type: ignore[arg-type]
        rules = [policy for rival in found for policy in rival.policies]
        seen = observe(certified, [*policies, *rules], given, **options)  # type: ignore[arg-type]
        own, others = seen[: len(policies)], iter(seen[len(policies) :])
        facts = [self._curve("this classifier", own, rest, None, None)] if fit else []
        for rival in found:
            theirs = [next(others) for _ in rival.policies]
            if theirs:
                facts.append(self._curve(rival.name, theirs, rest, rival.labels, rival.policies))
        return own, facts

    def _curve(
        self,
        name: str,
        seen: list[Observed],
        rows: npt.NDArray[np.intp],
        labels: list[str] | None,
        policies: Any,
    ) -> dict[str, Any]:
        there = [one.on(rows) for one in seen]
        facts: dict[str, Any] = {
            "name": name,
            "rows": len(rows),
            "labels": labels,
            "differ": [int(one.differs.sum()) for one in there],
            "models": [float(one.steps.mean()) for one in there],
        }
        if policies is not None and self._can_time:
            ensemble, given = self.certified.ensemble, self.given
            assert given is not None
            with progress_reporter(self.settings.progress, f"Timing {name}", len(seen)) as report:
                facts["microseconds"] = []
                for i, (policy, one) in enumerate(zip(policies, there, strict=True)):
                    took = times.microseconds_of_policy(ensemble, policy, one.survival, given.rows)
                    facts["microseconds"].append(took)
                    report(i + 1)
        return facts

    @property
    def _can_time(self) -> bool:
        enough = self.given is not None and len(self.given) >= times.FEWEST_ROWS
        return enough and self.settings.speed and self.certified.ensemble.schema is not None

    def _rows(self, seen: Observed) -> dict[str, Any]:
        given = self.given
        assert given is not None
        sizes = [np.bincount(c.where, minlength=len(c.slices)).tolist() for c in given.columns]
        facts: dict[str, Any] = {
            "rows": len(given),
            "given": given.total,
            "columns": [
                {"name": c.name, "slices": c.slices, "rows": rows}
                for c, rows in zip(given.columns, sizes, strict=True)
            ],
        }
        if given.truth is not None:
            facts["full_accuracy"] = float(np.mean(seen.full == given.truth))
        return facts

    def _time(
        self,
        policies: list[AnyRule],
        observed: list[Observed],
        facts: list[dict[str, Any]],
    ) -> dict[str, Any] | None:
        """Microseconds per row of each policy, into its facts, and of the full ensemble."""
        given, ensemble = self.given, self.certified.ensemble
        if given is None or not self._can_time:
            return None
        with progress_reporter(self.settings.progress, "Timing", len(policies)) as report:
            for i, (policy, seen) in enumerate(zip(policies, observed, strict=True)):
                if policy.quit == "never":
                    took = times.microseconds_in_full(self.certified, given.rows)
                else:
                    took = times.microseconds_of_policy(ensemble, policy, seen.survival, given.rows)
                facts[i]["microseconds"] = took
                report(i + 1)
        return {
            "full": times.microseconds_in_full(self.certified, given.rows),
            "rows": min(len(given), times.ROWS),
            "cores": thread_count(None),
            "machine": machine(),
        }


def _distinct(points: list[Point]) -> tuple[list[AnyRule], list[int]]:
    """The policies of the points, each once, and which of them each point has."""
    policies: list[AnyRule] = []
    of_point: list[int] = []
    for point in points:
        known = (i for i, policy in enumerate(policies) if _same(policy, point.policy))
        i = next(known, len(policies))
        if i == len(policies):
            policies.append(point.policy)
        of_point.append(i)
    return policies, of_point


def _same(a: AnyRule, b: AnyRule) -> bool:
    if isinstance(a, Policy) and isinstance(b, Policy):
        return np.array_equal(a.lower, b.lower) and np.array_equal(a.upper, b.upper)
    if isinstance(a, LeadPolicy) and isinstance(b, LeadPolicy):
        return np.array_equal(a.lead, b.lead)
    if isinstance(a, FilterPolicy) and isinstance(b, FilterPolicy):
        return np.array_equal(a.gap, b.gap)
    return False


def _alpha_alone(point: Point) -> float | None:
    """The alpha for which `at` gives this point; None where it takes more than an alpha."""
    budget = point.certificate.budget
    plain = isinstance(budget.alpha, float) and not budget.by_class and point.name != AS_IT_IS
    return budget.alpha if plain and point.certificate.confidence is not None else None  # type: ignore[return-value]


def _counted(points: list[Point], of_point: list[int], policy: int) -> Counts:
    """What the certificate counted for a policy."""
    return points[of_point.index(policy)].certificate.counts


def source_counts(
    source: Observed | Counts, T: int
) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64] | None]:
    """Rows by bin and by step, each None where it is not known."""
    stops = np.asarray(source.stops, dtype=np.int64)
    if stops.sum():
        firsts = [first - 1 for first, _ in exit_bins(T)]
        return np.add.reduceat(stops, firsts), stops
    exits = np.asarray(getattr(source, "exits", ()), dtype=np.int64)
    return (exits if exits.sum() else None), None


def _short(values: Any) -> list[float | None]:
    """Numbers to five digits, as many as a picture shows; None where there is none."""
    return [float(f"{v:.5g}") if np.isfinite(v) else None for v in np.asarray(values).tolist()]
