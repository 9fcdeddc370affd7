"""What bounds full evaluation: counts per row, the kernel's memory, and the machine's peak, which
peak.cpp measures."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..cache import cached_file
from ..peers import LeftOut
from .shapes import KEYPOINTS, Shape

SOURCE = Path(__file__).with_name("peak.cpp")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
BLOCK = 1024  # rows that go through one lattice before the next; native/core/lattice_engine.cpp
INNER = 3  # inputs that are summed by weights; the others are halved


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


@dataclass(frozen=True)
class Kernel:
    """How native/kernels evaluates hypercubes of float32: see `hypercube` in lattice_body.inc."""

    rows: int  # that share the load of a vertex
    halved: int  # inputs that are halved in registers, before results go to memory

    def halving(self, shape: Shape) -> int:
        """Instructions per row of a register, beside a multiply-add per vertex: a subtraction and a
        multiply-add for each pair of values."""
        return shape.lattices * 2 * (2 ** (shape.inputs - INNER) - 1)

    def most_share(self, shape: Shape) -> float:
        """Of the peak, where every instruction takes as long as a multiply-add."""
        least = shape.lattices * 2**shape.inputs
        return least / (least + self.halving(shape))

    def between(self, shape: Shape) -> int:
        """Bytes of values between the inputs that are halved in registers and the others."""
        return 4 * self.rows * 2 ** max(0, shape.inputs - INNER - self.halved)


KERNELS = {"AVX-512": Kernel(32, 2), "AVX2": Kernel(8, 2)}


def cache_bytes() -> dict[int, int]:
    """Sizes of the data caches of a core, by level; empty where the system does not tell."""
    found = {}
    for each in CACHES.glob("index*"):
        if (each / "type").read_text().strip() != "Instruction":
            size = (each / "size").read_text().strip()
            found[int((each / "level").read_text())] = int(size.removesuffix("K")) * 1024
    return found


def source(shape: Shape, kernel: Kernel, caches: Mapping[int, int]) -> str:
    """Which cache the vertices of a hypercube come from, once for every `kernel.rows` rows. A lattice
    is read again and again for a block of rows, and so are the values between."""
    lattice = 4 * 2**shape.inputs
    for level, size in sorted(caches.items()):
        if lattice + kernel.between(shape) <= size:
            return f"level {level}"
        if lattice <= size:
            return f"level {level} in part, then {level + 1}"
    return "unknown"


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
