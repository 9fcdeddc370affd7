"""What the arithmetic alone takes: counts per row, and the machine's peak, which peak.cpp measures."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..cache import cached_file
from ..peers import LeftOut
from .shapes import KEYPOINTS, Shape

SOURCE = Path(__file__).with_name("peak.cpp")


@dataclass(frozen=True)
class Peak:
    """The most float32 multiply-adds per second that one thread reached."""

    instructions: str
    per_second: float


@dataclass(frozen=True)
class Work:
    """What evaluating all lattices of an ensemble takes for one row."""

    multiply_adds: int
    comparisons: int  # at least so many: sorting for simplex, and finding segments of calibrators
    look_ups: int  # of vertices, 4 bytes each

    def microseconds(self, peak: Peak) -> float:
        """Per row, where nothing but multiply-adds at the peak takes time."""
        return self.multiply_adds / peak.per_second * 1e6


def work(shape: Shape, interpolation: str) -> Work:
    """Lattices, and the comparisons of their shared calibrators; a vertex is one multiply-add."""
    sorting = 0
    vertices = 2**shape.inputs
    if interpolation == "simplex":
        sorting = math.ceil(math.log2(math.factorial(shape.inputs)))
        vertices = shape.inputs + 1
    calibrating = shape.features * math.ceil(math.log2(KEYPOINTS))
    used = shape.lattices * vertices
    return Work(used, shape.lattices * sorting + calibrating, used)


def measure_peak(seconds: float) -> Peak:
    """Compile peak.cpp with the system's compiler, or take it from an earlier run, and run it."""
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        raise LeftOut("there is no C++ compiler (c++ or CXX)")
    key = hashlib.sha256(SOURCE.read_bytes() + compiler.encode()).hexdigest()[:12]

    def build(path: Path) -> None:
        command = [compiler, "-O3", "-std=c++17", str(SOURCE), "-o", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LeftOut(f"peak.cpp does not compile: {done.stderr.strip()[:300]}")

    program = cached_file(f"peak-{key}.bin", build)
    said = subprocess.run([program, str(seconds)], capture_output=True, text=True, check=True)
    name, number = said.stdout.split()
    return Peak(name, float(number))
