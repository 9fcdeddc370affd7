"""The folders of native/: which may include which, and where Python may be."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

NATIVE_LAYERS = {  # folder of native/ -> the folders that it may include
    "core": {"core"},
    "kernels": {"core", "kernels"},
    "fit": {"core", "fit"},
    "files": {"core", "files"},
    "capi": {"core", "files", "capi"},
    "python": {"core", "fit", "python"},
    "tests": {"core", "kernels", "fit", "files", "capi", "tests"},
    "fuzz": {"core", "kernels", "files", "capi", "tests", "fuzz"},
}


def native_files():
    return [p for p in (ROOT / "native").rglob("*") if p.suffix in {".cpp", ".hpp", ".inc"}]


def bad_includes(folder, text):
    """The includes in `text`, a file of native/`folder`, that its layer does not allow."""
    ours = re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE)
    bad = [name for name in ours if name.split("/")[0] not in NATIVE_LAYERS[folder]]
    if folder in ("capi", "tests", "fuzz"):  # the header that users include
        bad = [name for name in bad if name != "qwyc.h"]
    if folder != "python":
        bad += re.findall(r"^\s*#\s*include\s+<((?:nanobind/.*|Python\.h))>", text, re.MULTILINE)
    return bad


def test_native_folders_include_only_what_is_below_them():
    paths = native_files()
    assert {path.parent.name for path in paths} == set(NATIVE_LAYERS)
    for path in paths:
        assert bad_includes(path.parent.name, path.read_text()) == [], path


@pytest.mark.parametrize(
    ("folder", "include"),
    [
        ("core", '"fit/gram.hpp"'),
        ("core", '"kernels/targets.hpp"'),
        ("kernels", '"fit/gram.hpp"'),
        ("fit", '"python/arrays.hpp"'),
        ("fit", '"kernels/targets.hpp"'),
        ("tests", '"python/arrays.hpp"'),
        ("core", '"files/json.hpp"'),
        ("files", '"capi/model.hpp"'),
        ("files", '"kernels/targets.hpp"'),
        ("capi", '"fit/gram.hpp"'),
        ("files", '"qwyc.h"'),
        ("core", '"forest.hpp"'),  # without its folder
        ("kernels", "<Python.h>"),
        ("core", "<nanobind/nanobind.h>"),
    ],
)
def test_an_include_from_a_higher_folder_is_found(folder, include):
    assert bad_includes(folder, f"#include <vector>\n#include {include}\n") == [include[1:-1]]
