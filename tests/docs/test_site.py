"""The documentation as a site: it is built without a warning, and has every public name and parameter."""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import qwyc

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MODULES = {"distributed", "lattice", "plot"}


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_in_the_reference():
    page = (DOCS / "reference.md").read_text()
    listed = set(re.findall(r"^::: ([\w.]+)$", page, flags=re.M))
    known = {f"qwyc.{name}" for name in qwyc.__all__} - {
        "qwyc.BaseModels",
        "qwyc.EarlyExitClassifier",
    }
    assert known - listed == set()
    assert {"qwyc.estimator.EarlyExitClassifier", "qwyc.mlflow"} <= listed


def test_every_parameter_of_optimize_is_described():
    described = re.findall(r"^    (\w+) : ", qwyc.optimize.__doc__, flags=re.M)
    assert set(described) == set(inspect.signature(qwyc.optimize).parameters)


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text()
    pages = [p.relative_to(DOCS).as_posix() for p in DOCS.glob("**/*.md")]
    assert [page for page in pages if page not in config] == []


def test_the_picture_is_that_of_the_script():
    script = load(DOCS / "how-it-works" / "draw.py")
    assert script.draw() == script.PICTURE.read_text()


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr
    reference = (tmp_path / "site" / "reference.html").read_text()
    section = reference.partition('id="qwyc.optimize"')[2].partition('id="qwyc.recertify"')[0]
    shown = re.findall(r"<b><code>(\w+)</code></b>", section)
    assert shown == re.findall(r"^    (\w+) : ", qwyc.optimize.__doc__, flags=re.M)
    for page in (tmp_path / "site").glob("**/*.html"):
        targets = re.findall(r'(?:href|src)="([^"#:?]+)["#?]', page.read_text())
        missing = [t for t in targets if t.startswith(".") or not t.startswith("/")]
        missing = [t for t in missing if not (page.parent / t).exists()]
        assert not missing, f"{page.name}: {missing}"


@pytest.mark.slow
def test_the_notebook_has_the_code_of_the_tutorial():
    import nbformat

    script = load(DOCS / "notebooks" / "make.py")
    kept, made = nbformat.read(script.NOTEBOOK, as_version=4), script.notebook()
    assert [cell.source for cell in kept.cells] == [cell.source for cell in made.cells]
    code = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)  # it was run
    errors = [out for cell in code for out in cell.outputs if out.output_type == "error"]
    assert errors == []


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("tutorial.md", ["qwyc.Classifier: 200 trees", "trees per row, of 200", "decided differently"]),
        ("how-it-works.md", ["of 40 base models"]),
        ("serving.md", []),
    ],
)  # fmt: skip
def test_the_pages_run(page, printed, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S)
    assert blocks
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for words in printed:
        assert words in done.stdout
    if page == "tutorial.md":
        command = "from qwyc.cli import main; main()"
        for line in re.findall(
            r"^qwyc ((?:inspect|predict) .*)$", (DOCS / page).read_text(), flags=re.M
        ):
            subprocess.run([sys.executable, "-c", command, *line.split()], cwd=tmp_path, check=True)
        assert len((tmp_path / "labels.csv").read_text().splitlines()) == 1001
