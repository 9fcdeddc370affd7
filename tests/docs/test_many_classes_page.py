"""The code of the page about many classes runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "many-classes.md"
RESULT = r"([\d.]+) of (\d+) base models, ([\d.]+)% decided differently\n"


def test_the_page_runs(capsys):
    models, only, arrays = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    names = {}
    exec(compile(models, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    steps, of, differ = re.match(RESULT, printed).groups()
    assert of == "60"
    assert float(steps) < 40
    assert float(differ) <= 1
    assert "{'class 0': 0.02, 'class 1': 0.02, 'class 2': 0.02, 'class 3': 0.02}" in printed
    assert names["limited"].certificate.alpha is None
    assert re.search(r"^(pass|undecided)$", printed, flags=re.M)
    assert "rows by full decision (lines) and by early decision (columns)" in printed
    exec(compile(only, str(PAGE), "exec"), names)
    steps, missed, of = re.fullmatch(
        r"([\d.]+) of 60 base models; (\d+) of (\d+) lost\n", capsys.readouterr().out
    ).groups()
    assert float(steps) < 40
    assert int(missed) <= 0.03 * int(of)
    exec(compile(arrays, str(PAGE), "exec"), names)
    steps, of, differ = re.fullmatch(RESULT, capsys.readouterr().out).groups()
    assert of == "40"
    assert float(steps) < 35
    assert float(differ) < 2
