"""What a time depends on besides the code."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from qwyc.runtime.threads import thread_count


def machine() -> dict[str, str]:
    """Processor, cores, system, load and versions."""
    found = {
        "processor": _processor(),
        "cores": str(thread_count(None)),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "qwyc": metadata.version("qwyc"),
    }
    if hasattr(os, "getloadavg"):
        found["load"] = f"{os.getloadavg()[0]:.2f}"
    return found


def _processor() -> str:
    try:
        for words in Path("/proc/cpuinfo").read_text().splitlines():
            if words.startswith("model name"):
                return words.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
