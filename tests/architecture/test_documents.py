"""Files and names that the documents for contributors mention exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = "src|native|tests|docs|benchmarks|experiments"
ENDINGS = "py|cpp|hpp|inc|md|toml|awk"
MAIN = ["CONTRIBUTING.md", "docs/architecture.md"]  # each mentions files and names
DECISIONS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/decisions/*.md"))
documents = pytest.mark.parametrize("document", [*MAIN, "native/README.md", *DECISIONS])


def quoted(document, pattern):
    """What stands between backquotes and matches from its start to its end."""
    found = re.findall(rf"`({pattern})`", (ROOT / document).read_text())
    assert found or document not in MAIN, f"{document} mentions nothing that this test knows"
    return sorted(set(found))


@documents
def test_the_files_exist(document):
    names = quoted(document, rf"(?:{FOLDERS})/[\w./-]*|[\w./-]+\.(?:{ENDINGS})")
    assert [name for name in names if not is_file_for(document, name)] == []


def is_file_for(document, name):
    """Whether a path from the root exists. native/README.md names files from native/, or without their
    folder where its table names the folder."""
    if (ROOT / name).exists():
        return True
    if document != "native/README.md":
        return False
    native = ROOT / "native"
    return (native / name).exists() or ("/" not in name and any(native.glob(f"*/{name}")))


@documents
def test_the_names_exist(document):
    assert [name for name in quoted(document, r"qwyc\w*\.[\w.]+") if not importable(name)] == []


@documents
def test_the_links_lead_to_files(document):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / document).read_text())
    assert [link for link in links if not ((ROOT / document).parent / link).exists()] == []


@documents
def test_the_make_targets_exist(document):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    commands = quoted(document, r"make [\w-]+")
    assert [command for command in commands if command.split()[1] not in targets] == []


def importable(name):
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(module), attribute) or bool(import_module(name))
    except ImportError:
        return False
