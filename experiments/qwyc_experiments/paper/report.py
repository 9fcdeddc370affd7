"""The page: every table and figure of the paper, ours beside the published ones."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

import qwyc

from . import tables
from .claims import FAILS, HOLDS, IN_PART, NOT_TESTED, OPEN, Claim
from .curves import LEVEL, Outcome
from .experiments import EXPERIMENTS
from .setting import Setting

WORDS = {
    name: text.strip()
    for name, text in re.findall(
        r"^=== ([\w-]+)\n(.*?)(?=^===|\Z)",
        (Path(__file__).parent / "page.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
}


def words(section: str, **values: object) -> list[str]:
    """A section of page.md, with its values, and an empty line."""
    return [Template(WORDS[section]).substitute(values), ""]


def page(
    outcomes: Mapping[str, Outcome],
    claims: Sequence[Claim],
    beyond: Sequence[Claim],
    settings: Mapping[str, Setting],
    images: str = "",
) -> str:
    """The whole page, in Markdown; `images` is the folder of the pictures as seen from the page."""
    paper = {k: v for k, v in outcomes.items() if EXPERIMENTS[k].number is not None}
    others = {k: v for k, v in outcomes.items() if k not in paper}
    setting = next(iter(settings.values()))
    lines = [_title(outcomes), ""]
    if setting.quick:
        lines += words("quick")
    lines += [*words("how"), *words("about"), _run(outcomes, setting.quick), ""]
    if made_up := sorted(
        {o.facts["source"] for o in outcomes.values() if "made-up" in o.facts["source"]}
    ):
        lines += [f"**Data: {'; '.join(made_up)}.**", ""]
    lines += _glance(outcomes, claims)
    lines += ["## Set-up", "", *tables.setup(outcomes), "", *_settings(outcomes)]
    widths = ", ".join(f"{width:g}" for width in setting.bin_widths)
    lines += words("methods", seeds=len(setting.seeds), widths=widths)
    if paper:
        lines += _timing(paper, setting)
        lines += _trade_offs(paper, images)
        lines += _claims(paper, claims)
    lines += [*words("question"), *tables.question(outcomes, LEVEL), ""]
    lines += _optimism(outcomes, images, settings)
    if others:
        lines += _others(others, images, settings)
    lines += _beyond(outcomes, beyond)
    lines += _fan(paper or others)
    lines += _not_tested()
    text = "\n".join(lines).rstrip() + "\n"
    for name in ("QWYC", "Fan"):  # a bare asterisk would begin emphasis
        text = text.replace(f"{name}*", f"{name}\\*")
    return text


def _glance(outcomes: Mapping[str, Outcome], claims: Sequence[Claim]) -> list[str]:
    """The results in one table, and how many claims hold."""
    counts: dict[str, int] = {}
    for claim in claims:
        for name, found in claim.verdicts.items():
            if name not in EXPERIMENTS or name in claim.said_of:
                counts[found.verdict] = counts.get(found.verdict, 0) + 1
    total = sum(counts.values())
    order = (HOLDS, IN_PART, FAILS, OPEN)
    listed = ", ".join(f'{counts[verdict]} "{verdict}"' for verdict in order if verdict in counts)
    said = (
        f"Of {total} verdicts on what the paper says of its experiments: {listed}." if total else ""
    )
    return [*words("glance"), *tables.glance(outcomes), "", said, ""]


def _title(outcomes: Mapping[str, Outcome]) -> str:
    if len(outcomes) == len(EXPERIMENTS):
        return "# The paper's six experiments, reproduced"
    return f"# {'; '.join(EXPERIMENTS[name].title for name in outcomes)}"


def _run(outcomes: Mapping[str, Outcome], quick: bool) -> str:
    total = sum(sum(outcome.seconds.values()) for outcome in outcomes.values())
    versions = sorted({outcome.facts["version"] for outcome in outcomes.values()})
    families = {EXPERIMENTS[name].family for name in outcomes}
    lattices = families & {"joint", "independent"}
    training = "Training, fitting" if families - lattices or quick else "Fitting"
    took = f"{total:.0f} seconds" if total < 120 else f"{total / 60:.0f} minutes"
    stored = " The lattices were trained before, and their time is not in it." if lattices else ""
    return (
        f"Made with {', '.join(versions)}; qwyc {qwyc.__version__}, NumPy {np.__version__}, Python "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}. {training} and measuring "
        f"took {took} in all.{'' if quick else stored}"
    )


def _settings(outcomes: Mapping[str, Outcome]) -> list[str]:
    lines = ["<details><summary>Settings and features</summary>", ""]
    for name, outcome in outcomes.items():
        facts = outcome.facts
        lines.append(
            f"- {tables.short(name)}. Features: {facts['features']}. {facts.get('settings', '')}"
        )
    return [*lines, "", "</details>", ""]


def _timing(outcomes: Mapping[str, Outcome], setting: Setting) -> list[str]:
    lines = words("timing", level=f"{LEVEL:.1%}", runs=setting.runs)
    for name, outcome in outcomes.items():
        lines += [f"**{EXPERIMENTS[name].title}**", "", *tables.times(outcome), ""]
    return lines


def _trade_offs(outcomes: Mapping[str, Outcome], images: str) -> list[str]:
    lines = words("trade-offs")
    for name, outcome in outcomes.items():
        results = outcome.results
        error = np.sqrt(LEVEL * (1 - LEVEL) / results.n_test)
        title = EXPERIMENTS[name].title
        lines += [
            f"### {title}",
            "",
            f"![Differences against base models, {title}]({images}differences-{name}.png)",
            "",
            f"T = {results.n_models}. Standard error of a share of 0.50% of the test rows: {error:.2%}.",
            "",
            *tables.levels(outcome),
            "",
        ]
    lines += [
        "### Accuracy",
        "",
        f"![Test accuracy against base models]({images}accuracy.png)",
        "",
        "### Base models per row",
        "",
        f"Each method where its test differences are nearest to {LEVEL:.1%}.",
        "",
        f"![Histograms of base models per row]({images}histograms.png)",
        "",
    ]
    return lines


def _claims(outcomes: Mapping[str, Outcome], claims: Sequence[Claim]) -> list[str]:
    columns = [str(EXPERIMENTS[name].number) for name in outcomes]
    lines = words("claims")
    rows = []
    for i, claim in enumerate(claims, 1):
        cells = []
        for name in outcomes:
            found = claim.verdicts.get(name)
            cell = "" if found is None else _cell(found)
            cells.append(cell if name in claim.said_of or not cell else f"({cell})")
        across = [
            f"{key}: {_cell(found)}"
            for key, found in claim.verdicts.items()
            if key not in EXPERIMENTS
        ]
        rows.append([f"{i}. {claim.paper} ({claim.where})", *cells, "; ".join(across)])
    lines += tables.table(["claim", *columns, "across"], rows, left=len(columns) + 2)
    lines += ["", "<details><summary>Evidence</summary>", ""]
    for i, claim in enumerate(claims, 1):
        lines += [f"{i}. {claim.paper}"]
        for key, found in claim.verdicts.items():
            label = tables.short(key) if key in EXPERIMENTS else key
            lines += [f"   - *{label}*: **{found.verdict}**. {found.evidence}"]
    return [*lines, "", "</details>", ""]


def _cell(verdict: Any) -> str:
    return f"**{verdict.verdict}** {verdict.figure}".strip()


def _optimism(
    outcomes: Mapping[str, Outcome], images: str, settings: Mapping[str, Setting]
) -> list[str]:
    setting = settings[next(iter(outcomes))]
    alphas = [alpha for alpha in setting.alphas if alpha in (0.0, 0.001, 0.0025, 0.005, 0.01, 0.02)]
    return [
        *words("optimism", splits=setting.splits),
        f"![Alpha asked for against test differences]({images}optimism.png)",
        "",
        "<details><summary>Table</summary>",
        "",
        *tables.optimism(outcomes, alphas),
        "",
        "</details>",
        "",
    ]


def _others(
    outcomes: Mapping[str, Outcome], images: str, settings: Mapping[str, Setting]
) -> list[str]:
    lines = [
        *words("rivals"),
        f"![Rules for one kind of ensemble]({images}rivals.png)",
        "",
    ]
    for name, outcome in outcomes.items():
        lines += [f"### {EXPERIMENTS[name].title}", "", *tables.levels(outcome), ""]
        lines += [*tables.times(outcome), ""]
    return lines


def _beyond(outcomes: Mapping[str, Outcome], beyond: Sequence[Claim]) -> list[str]:
    lines = ["## How far past the paper we are", ""]
    for claim in beyond:
        lines += [f"**{claim.paper}**", ""]
        rows = [
            [tables.short(key) if key in EXPERIMENTS else key, found.verdict, found.evidence]
            for key, found in claim.verdicts.items()
        ]
        lines += [*tables.table(["experiment", "verdict", "evidence"], rows, left=3), ""]
    return lines


def _fan(outcomes: Mapping[str, Outcome]) -> list[str]:
    return [
        *words("widths"),
        *tables.widths(outcomes, LEVEL),
        "",
    ]


def _not_tested() -> list[str]:
    return [
        *words("remarks"),
        *(f"- {claim} {reason}" for claim, reason in NOT_TESTED),
        "",
        *words("end"),
    ]
