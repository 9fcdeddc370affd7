"""The code of the page about many classes runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "many-classes.md"


def test_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    exec(compile(block, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out
    found = re.fullmatch(r"([\d.]+) of 40 base models, ([\d.]+)% decided differently\n", printed)
    assert found
    assert float(found[1]) < 35
    assert float(found[2]) < 2
