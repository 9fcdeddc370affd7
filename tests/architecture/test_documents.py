"""Files and names that CONTRIBUTING.md and docs/architecture.md mention exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = "src|native|tests|docs|benchmarks|experiments"
documents = pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/architecture.md"])


def quoted(document, pattern):
    """What stands between backquotes and matches from its start to its end."""
    found = re.findall(rf"`({pattern})`", (ROOT / document).read_text())
    assert found, f"{document} mentions nothing that this test knows"
    return sorted(set(found))


@documents
def test_the_files_exist(document):
    names = quoted(document, rf"(?:{FOLDERS})/[\w./-]*")
    assert [name for name in names if not (ROOT / name).exists()] == []


@documents
def test_the_names_exist(document):
    assert [name for name in quoted(document, r"qwyc\w*\.[\w.]+") if not importable(name)] == []


def importable(name):
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(module), attribute) or bool(import_module(name))
    except ImportError:
        return False
