"""The code of the page about monitoring runs as it stands, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import qwyc
from monitored import bold, rows_for

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"


def test_the_page_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert len(blocks) >= 3
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "qwyc.Monitor: 16,281 rows seen" in done.stdout
    assert "fraud_alarm 0" in done.stdout


def test_the_page_names_every_metric():
    fast = bold()
    monitor = qwyc.Monitor(fast, rate=1)
    monitor.predict(rows_for(fast))
    names = re.findall(r"^# TYPE (\S+) ", monitor.metrics(), flags=re.M)
    assert len(names) > 12
    page = PAGE.read_text().replace("`_lower_bound`", "qwyc_disagreement_lower_bound")
    page = page.replace("`_upper_bound`", "qwyc_disagreement_upper_bound")
    page = page.replace("qwyc_class_disagreement_*", "qwyc_class_disagreement_lower_bound "
                        "qwyc_class_disagreement_upper_bound")  # fmt: skip
    assert [name for name in names if name not in page] == []
