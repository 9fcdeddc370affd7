"""Generates the screenshots and the plot in this folder: python docs/screens/make.py

Trains a model on UCI Adult in a temporary folder, runs each command for a terminal of 100 columns and
writes its output as an SVG. Times are those of the machine it runs on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import xgboost
from rich.console import Console
from rich.text import Text

import qwyc
from qwyc.datasets import load_adult

HERE = Path(__file__).parent
COLUMNS = 100
COMMANDS = {
    "help": "qwyc --help",
    "optimize": "qwyc optimize adult.json sample.csv -o adult.qwyc --alpha 0.002",
    "inspect": "qwyc inspect adult.qwyc",
    "predict": "qwyc predict adult.qwyc new.csv --keep id | head -6",
    "verify": "qwyc verify adult.qwyc new.csv --alpha 0.005",
    "bench": "qwyc bench adult.qwyc new.csv --model adult.json",
}


def main() -> None:
    """Write all screenshots and the plot."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X_new = prepare(folder)
        for file, command in COMMANDS.items():
            (HERE / f"{file}.svg").write_text(screen(command, folder))
        fast = qwyc.load(folder / "adult.qwyc")
        qwyc.plot.tradeoff(fast).figure.savefig(HERE / "tradeoff.png", dpi=110)
        assert len(X_new) == 16_281


def prepare(folder: Path) -> pd.DataFrame:
    """Write a model, a sample and new rows to files. Returns the new rows."""
    X, label = frame("train")
    X_new, _ = frame("test")
    model = xgboost.XGBClassifier(
        n_estimators=500, max_depth=5, learning_rate=0.05, enable_categorical=True
    )
    model.fit(X[:16000], label[:16000]).save_model(folder / "adult.json")
    X[16000:].to_csv(folder / "sample.csv", index=False)
    X_new.assign(id=range(len(X_new))).to_csv(folder / "new.csv", index=False)
    return X_new


def frame(split: str) -> tuple[pd.DataFrame, object]:
    """UCI Adult with its text columns as categories, and the labels."""
    table = load_adult(split)
    columns = {
        name: pd.Series(values, dtype="category" if values.dtype == object else None)
        for name, values in table.columns.items()
    }
    return pd.DataFrame(columns), table.label


def screen(command: str, folder: Path) -> str:
    """Run a command. Returns its output as an SVG."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(COLUMNS),
        "TERMINAL_WIDTH": str(COLUMNS),
        "FORCE_COLOR": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with open(os.devnull, "w") as null:
        console = Console(record=True, width=COLUMNS, file=null, force_terminal=True)
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(done.stdout.rstrip()))
        return console.export_svg(title="qwyc", unique_id=command.split()[1].strip("-"))


if __name__ == "__main__":
    main()
