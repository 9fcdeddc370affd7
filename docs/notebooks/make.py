"""Make docs/notebooks/tutorial.ipynb from docs/tutorial.md, and run it: `python docs/notebooks/make.py`."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
NOTEBOOK = HERE / "tutorial.ipynb"


def notebook() -> nbformat.NotebookNode:
    """The tutorial's text and code as cells, before they are run. Commands of the shell stay text."""
    page = (HERE.parent / "tutorial.md").read_text()
    made = nbformat.v4.new_notebook()
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for part in re.split(r"(```python\n.*?```\n)", page, flags=re.S):
        if part.startswith("```python"):
            made.cells.append(nbformat.v4.new_code_cell(part[10:-5].strip()))
        elif part.strip():
            # Pages of the site: MkDocs does not rewrite links in notebooks.
            links = re.sub(r"\]\(([a-z-]+)\.md", r"](../\1.html", part.strip())
            made.cells.append(nbformat.v4.new_markdown_cell(links))
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
    return made


def main() -> None:
    """Run the cells in an empty folder, and write the notebook with their outputs."""
    made = notebook()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(made, timeout=300, resources={"metadata": {"path": folder}}).execute()
    for cell in made.cells:
        cell.metadata.pop("execution", None)  # times
    made.metadata.pop("language_info", None)
    nbformat.write(made, NOTEBOOK)


if __name__ == "__main__":
    main()
