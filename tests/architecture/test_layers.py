"""The import-linter contracts in pyproject.toml hold and can fail; the picture is drawn from them."""

import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.layers import LayersContract

ROOT = Path(__file__).parents[2]

sys.path.insert(0, str(ROOT / "docs" / "architecture"))
import draw  # noqa: E402

sys.path.pop(0)

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def test_every_contract_holds():
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def check(contract_id, change):
    """The outcome of a layers contract after a change to the graph of imports."""
    settings = read_configuration(str(ROOT / "pyproject.toml"))
    (options,) = [c for c in settings["contracts_options"] if c["id"] == contract_id]
    contract = LayersContract(options["name"], settings["session_options"], options)
    graph = grimp.build_graph("qwyc", cache_dir=None)
    change(graph)
    return contract.check(graph, verbose=False).metadata


@pytest.mark.parametrize(
    ("contract_id", "importer", "imported"),
    [
        ("layers", "qwyc.policy.policy", "qwyc.cli"),
        ("layers", "qwyc.runtime.threads", "qwyc.rows.matrix"),
        ("layers", "qwyc.errors", "qwyc.datasets"),  # of one layer
        ("importers", "qwyc.importers.live", "qwyc.importers.ydf"),
        ("importers", "qwyc.importers.ydf", "qwyc.importers.xgboost"),  # of one layer
    ],
)
def test_an_import_that_goes_up_is_found(contract_id, importer, imported):
    def add(graph):
        graph.add_import(importer=importer, imported=imported)

    depth = 2 if contract_id == "layers" else 3
    pair = tuple(".".join(name.split(".")[:depth]) for name in (importer, imported))
    found = check(contract_id, add)["invalid_dependencies"]
    assert pair in {(chain["importer"], chain["imported"]) for chain in found}


@pytest.mark.parametrize(
    ("contract_id", "module"), [("layers", "qwyc.new"), ("importers", "qwyc.importers.new")]
)
def test_a_module_in_no_layer_is_found(contract_id, module):
    assert not check(contract_id, lambda graph: None)["undeclared_modules"]
    assert check(contract_id, lambda graph: graph.add_module(module))["undeclared_modules"] == {
        module
    }


def test_imports_for_type_checkers_count():
    options = read_configuration(str(ROOT / "pyproject.toml"))["session_options"]
    assert options.get("exclude_type_checking_imports", "False") == "False"


def test_below_the_command_line_only_the_native_module_is_taken_from_the_package():
    """The contracts ignore imports of `qwyc` itself, so this test looks at them."""
    graph = grimp.build_graph("qwyc", cache_dir=None)
    users = graph.find_modules_that_directly_import("qwyc")
    below = {name for name in users if name.split(".")[1] not in ("cli", "__main__")}
    assert below, "the native module is imported in another way now: drop ignore_imports"
    assert [name for name in sorted(below) if not draw.native_only(graph, name)] == []


def test_the_picture_is_up_to_date():
    assert draw.PICTURE.read_text() == draw.draw(), "run `python docs/architecture/draw.py`"


def test_every_box_has_a_caption():
    names = [name for row in draw.layers() for name in row]
    assert len(names) > 15
    assert [name for name in names if len(draw.first_sentence(name)) < 10] == []


def test_the_oracle_runs_without_the_package():
    code = "import sys, oracle; print('qwyc' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "tests", check=True
    )
    assert done.stdout == "False\n"
