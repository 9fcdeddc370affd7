"""The code of the page about C runs as it stands, and what it writes compiles."""

import re
import subprocess
from pathlib import Path

from exported import WARNINGS

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
PROGRAM = """
#include <math.h>
#include <stdio.h>
{include}
int main(void) {{
{body}
    printf("%d %d %d %a\\n", index, tiny_predict_one(row), (int)steps, score);
    return 0;
}}
"""


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    (block,) = re.findall(r"```c\n(.*?)```", text, flags=re.S)
    include, body = block.split("\n", 1)
    main = tmp_path / "main.c"
    main.write_text(PROGRAM.format(include=f'{include}\n#include "tiny.h"', body=body))
    command = ["cc", *WARNINGS, main, "fraud.c", "tiny.c", "-o", "program", "-lm"]
    subprocess.run(command, check=True)
    printed = subprocess.run(["./program"], capture_output=True, text=True, check=True).stdout
    index, small, steps, score = printed.split()
    row = names["np"].array([[0.1, 0.7, -1.2, names["np"].nan, 3.0]], dtype="float32")
    decisions = names["fast"].decide(row)
    assert int(index) == int(small) == decisions.label[0]
    assert int(steps) == decisions.steps[0]
    assert float.fromhex(score) == decisions.score[0]


def test_the_header_has_what_the_page_lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    header = Path("fraud.h").read_text()
    for name in ("N_FEATURES", "N_CLASSES", "N_MODELS", "N_SCORES", "TABLE_BYTES", "REFUSED"):
        assert f"FRAUD_{name}" in header
    assert "FRAUD_N_SCORES" in header
    assert "TINY_N_SCORES" not in Path("tiny.h").read_text()
