"""The page of a report, made from plain values. Nothing of them is taken for HTML or for code."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib import metadata, resources
from string import Template
from typing import Any

from qwyc.promise.budget import percentage

SCRIPTS = ("charts.js", "tables.js", "page.js")  # one after the other


def page(facts: dict[str, Any]) -> bytes:
    """One HTML file as UTF-8. It loads nothing: style, script and data are in it, and its policy for
    content refuses everything else."""
    own = facts["points"][facts["own"]]
    style = _part("page.css")
    script = "(() => {\n'use strict';\n" + "".join(map(_part, SCRIPTS)) + "})();\n"
    text = Template(_part("page.html")).substitute(
        title=escape(f"qwyc report: {facts['model']}"),
        model=escape(facts["model"]),
        version=escape(metadata.version("qwyc")),
        why=escape(f"{facts['why'][:1].upper()}{facts['why'][1:]}."),
        lines="".join(f"<li>{escape(line)}</li>" for line in own["lines"]),
        sentence=escape(own["sentence"]),
        windows=_windows(facts["windows"]),
        control=_control(facts),
        losses_note=escape(_losses_note(facts)),
        points_table=_points_table(facts),
        facts=_as_json(facts),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
    )
    return text.encode("utf-8", errors="replace")  # half of a surrogate pair has no bytes


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """A source expression that allows this text and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _as_json(facts: dict[str, Any]) -> str:
    """JSON in ASCII that cannot end the element it stands in."""
    text = json.dumps(facts, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _windows(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    rows = "\n".join(escape(line) for line in lines)
    return f"<p>By window, from the earliest to the latest:</p><pre>{rows}</pre>"


def _control(facts: dict[str, Any]) -> str:
    """The slider; without other points to choose, a sentence that says why."""
    points, own = facts["points"], facts["own"]
    now = escape(points[own]["name"])
    if len(points) == 1:
        return (
            '<h2 id="choose">Operating point</h2>'
            f'<p class="bar-top"><span class="bar-now" id="now">{_only(facts)}</span>'
            '<span class="bar-sum" id="sum"></span></p>'
        )
    return (
        '<div class="bar-top"><h2 id="choose"><label for="alpha">alpha: decisions that may differ</label>'
        f'</h2><output class="bar-now" id="now" for="alpha">{now}</output>'
        '<span class="bar-sum" id="sum"></span></div>'
        f'<div class="bar-row"><input type="range" id="alpha" min="0" max="{len(points) - 1}" step="1" '
        f'value="{own}" aria-valuetext="{now}">'
        '<button type="button" id="reset">Reset</button></div>'
        '<p class="note wide">Choose one alpha: the promise holds for a single choice, not for the best of '
        "several tried. "
        '<span id="code"></span></p>'
    )


def _only(facts: dict[str, Any]) -> str:
    """What there is instead of a choice of alpha."""
    if facts["how"] == "proven":
        return "alpha = 0, proven. There is no other alpha to choose."
    if facts["how"] == "in-sample":
        return "One policy, fitted by the paper&#x27;s method. There is no other alpha to choose."
    if facts["policies"][0]["quit"] == "never":
        return "Every row is evaluated in full. There is no other alpha to choose."
    return f"alpha = {escape(facts['points'][0]['name'])}. No other alpha can be certified."


def _losses_note(facts: dict[str, Any]) -> str:
    text = (
        "Rows by the decision of the full ensemble, and how many of them are decided differently."
    )
    if not facts["points"][0]["rows"]:
        text = "No rows were counted."
    if facts["classes"]["left_out"]:
        shown = len(facts["classes"]["names"])
        text += f" Shown are the {shown} classes of which the most may be lost."
    return text


def _points_table(facts: dict[str, Any]) -> str:
    head = ("alpha", "base models per row", "differ", "of rows", "at most")
    rows = []
    for i, point in enumerate(facts["points"]):
        bound = point["upper_bound"]
        cells = (
            f"{point['models']:.1f}" if point["rows"] else "not measured",
            f"{point['differ']:,}",
            f"{point['rows']:,}",
            "nothing promised" if bound is None else percentage(bound),
        )
        mark = ' class="now"' if i == facts["own"] else ""
        name = escape(point["name"])
        rows.append(
            f'<tr{mark}><th scope="row">{name}</th>{"".join(f"<td>{c}</td>" for c in cells)}</tr>'
        )
    heads = "".join(f'<th scope="col">{h}</th>' for h in head)
    return (
        '<table id="points" aria-label="Certified operating points">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
