"""The code of the pages about the report and about alpha runs as it stands, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run_blocks(page, folder):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S)
    assert blocks
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(blocks)],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_about_the_report(tmp_path):
    run_blocks("report.md", tmp_path)
    large, small = ((tmp_path / name).read_text() for name in ("report.html", "small.html"))
    assert "QWYC* (the paper)" in large.partition('id="facts"')[2]
    assert len(small) < len(large) < 1_000_000


def test_the_page_about_alpha(tmp_path):
    printed = run_blocks("choosing-alpha.md", tmp_path)
    assert re.search(r"^class 1: \d+ of [\d,]+ lost, at most \d+\.\d+%$", printed, flags=re.M)
    bold, careful = map(float, re.search(r"(\S+) and (\S+) base models", printed).groups())
    assert bold < careful


@pytest.mark.parametrize("page", ["report.md", "choosing-alpha.md"])
def test_their_pictures_are_there(page):
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", (DOCS / page).read_text())
    assert pictures
    assert all((DOCS / picture).stat().st_size < 150_000 for picture in pictures)


def test_options_that_are_named_exist():
    from qwyc.cli.report import report

    for option in re.findall(r"[`( ]--([a-z][a-z-]+)", (DOCS / "report.md").read_text()):
        assert option.replace("-", "_") in {"slice", *report.__annotations__}, option
