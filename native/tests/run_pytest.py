"""Run pytest with another build of the native module: run_pytest.py MODULE.so [pytest's arguments].

The editable install keeps its own build: this one is loaded under the same name before `qwyc` is."""

import importlib.util
import sys
from pathlib import Path

import pytest


def load(path: Path) -> None:
    """Make the extension at `path` the module qwyc._native."""
    spec = importlib.util.spec_from_file_location("qwyc._native", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not an extension module; pass the .so file of a build")
    module = importlib.util.module_from_spec(spec)
    sys.modules["qwyc._native"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    wanted = Path(sys.argv[1]).resolve()
    load(wanted)
    import qwyc.model.trees

    used = Path(qwyc.model.trees._native.__file__)
    if used != wanted:
        raise SystemExit(f"the tests would run with {used}, not with {wanted}")
    sys.exit(pytest.main(["-n", "0", *sys.argv[2:]]))
