"""The guide's code runs as it stands, in an empty folder: first Python, then the commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_guide_runs(tmp_path):
    guide = (DOCS / "guide.md").read_text()
    blocks = re.findall(r"```(python|sh)\n(.*?)```", guide, flags=re.S)
    python = "\n".join(code for language, code in blocks if language == "python")
    shell = "\n".join(code for language, code in blocks if language == "sh")
    commands = [line for line in shell.splitlines() if not line.startswith("pip install")]
    assert len(commands) >= 5
    script = "from qwyc.cli import main; main()"
    (tmp_path / "qwyc").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{script}" "$@"\n')
    (tmp_path / "qwyc").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "Agg",
    }
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", python], **options)
    assert done.returncode == 0, done.stderr
    assert "qwyc.Classifier: 100 trees" in done.stdout
    assert "PASS" in done.stdout
    ran = subprocess.run(["bash", "-e", "-c", "\n".join(commands)], **options)
    assert ran.returncode == 0, ran.stderr
    assert "Wrote adult.qwyc." in ran.stdout
    assert "label,steps,score,complete" in ran.stdout
    assert "PASS" in ran.stdout
    for name in ("tradeoff.png", "adult.qwyc", "labels.parquet", "adult-facts.json"):
        assert (tmp_path / name).stat().st_size > 100


def test_pictures_in_the_documents_are_there():
    for document in (DOCS / "guide.md", DOCS / "cli.md"):
        for target in re.findall(r"!\[.*?\]\((.*?)\)", document.read_text()):
            assert (DOCS / target).is_file(), target


def test_every_exit_code_is_documented():
    table = (DOCS / "cli.md").read_text()
    for code in (0, 1, 2, 130):
        assert f"\n| {code} | " in table
