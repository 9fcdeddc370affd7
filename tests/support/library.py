"""libqwyc: compiled once, and called by ctypes."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "ctest"  # where `make ctest` has compiled the core
OK, ARGUMENT, READ, FILE, UNSUPPORTED, ROWS, CATEGORY = range(7)
FLOAT32, FLOAT64 = 1, 2
CLASSIFIER, PREDICTOR, APPROXIMATION = 1, 2, 3

_pointer = ctypes.c_void_p
_long = ctypes.c_int64


class Rows(ctypes.Structure):
    _fields_ = (
        ("data", _pointer),
        ("type", ctypes.c_int32),
        ("n_rows", _long),
        ("n_columns", _long),
        ("row_stride", _long),
        ("column_stride", _long),
    )


class Column(ctypes.Structure):
    _fields_ = (("data", _pointer), ("type", ctypes.c_int32))


class LibraryError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def tool(name):
    """A program of the virtual environment, or on PATH."""
    own = Path(sys.executable).with_name(name)
    return str(own if own.exists() else name)


def cmake(*arguments):
    environment = dict(os.environ)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    if shutil.which("ccache"):
        environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
        environment.setdefault("CCACHE_BASEDIR", str(ROOT))
        environment.setdefault("CCACHE_NOHASHDIR", "1")
    run = subprocess.run(
        [tool("cmake"), *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


@cache
def built():
    """The folder with libqwyc.so and libqwyc.a, compiled if they are out of date."""
    BUILD.parent.mkdir(exist_ok=True)
    with open(BUILD.parent / "library.lock", "w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = ("-DQWYC_PYTHON=OFF", "-DQWYC_TESTS=ON", "-DQWYC_LIBRARY=ON")
        cmake("-S", ROOT, "-B", BUILD, "-G", "Ninja", *options)
        cmake("--build", BUILD, "--parallel", "2", "--target", "qwyc", "qwyc_static")
    return BUILD


@cache
def library():
    """The shared library, with the types of its functions."""
    lib = ctypes.CDLL(str(built() / "libqwyc.so"))
    texts = ("version", "last_error", "feature_name", "class_name", "certificate")
    for name in texts:
        getattr(lib, f"qwyc_{name}").restype = ctypes.c_char_p
    for name in ("n_features", "n_models", "n_classes", "n_scores"):
        getattr(lib, f"qwyc_{name}").restype = _long
    lib.qwyc_tolerance.restype = ctypes.c_double
    lib.qwyc_load.argtypes = (ctypes.c_char_p, _pointer)
    lib.qwyc_load_memory.argtypes = (_pointer, ctypes.c_size_t, _pointer)
    lib.qwyc_free.argtypes = (_pointer,)
    for name in ("kind_of", "n_features", "n_models", "n_classes", "n_scores", "certificate"):
        getattr(lib, f"qwyc_{name}").argtypes = (_pointer,)
    lib.qwyc_tolerance.argtypes = (_pointer,)
    for name in ("feature_name", "class_name"):
        getattr(lib, f"qwyc_{name}").argtypes = (_pointer, _long)
    kinds = {"text": ctypes.c_char_p, "integer": _long, "number": ctypes.c_double}
    for name, kind in kinds.items():
        getattr(lib, f"qwyc_code_of_{name}").argtypes = (_pointer, _long, kind, _pointer)
    many = (_pointer, _pointer, ctypes.c_int32)
    lib.qwyc_decide.argtypes = (*many, _pointer, _pointer, _pointer)
    lib.qwyc_decide_columns.argtypes = (
        *(_pointer, _pointer, _long, _long, ctypes.c_int32),
        *(_pointer, _pointer, _pointer),
    )
    lib.qwyc_decide_full.argtypes = (*many, _pointer, _pointer)
    lib.qwyc_probabilities.argtypes = lib.qwyc_values.argtypes = (*many, _pointer)
    for name in ("f32", "f64"):
        one = getattr(lib, f"qwyc_decide_one_{name}")
        one.argtypes = (_pointer, _pointer, _pointer, _pointer, _pointer)
    return lib


def check(status):
    """Raise what a status says."""
    if status != OK:
        raise LibraryError(status, library().qwyc_last_error().decode())


def address(array):
    return None if array is None else array.ctypes.data


def type_of(array):
    return FLOAT32 if array.dtype == np.float32 else FLOAT64


def rows_of(array):
    """A matrix of any strides, as the library takes it."""
    row, column = (stride // array.itemsize for stride in array.strides)
    return Rows(address(array), type_of(array), *array.shape, row, column)


@dataclass
class Loaded:
    """A model of the library."""

    handle: ctypes.c_void_p

    @classmethod
    def of_file(cls, path):
        handle = ctypes.c_void_p()
        check(library().qwyc_load(os.fsencode(path), ctypes.byref(handle)))
        return cls(handle)

    @classmethod
    def of_bytes(cls, content):
        handle = ctypes.c_void_p()
        check(library().qwyc_load_memory(content, len(content), ctypes.byref(handle)))
        return cls(handle)

    def __del__(self):
        library().qwyc_free(self.handle)

    def number(self, name):
        return getattr(library(), f"qwyc_{name}")(self.handle)

    def text(self, name, *arguments):
        found = getattr(library(), f"qwyc_{name}")(self.handle, *arguments)
        return None if found is None else found.decode()

    def _outputs(self, n):
        return np.empty(n, np.int32), np.empty(n, np.int32), np.empty((n, self.number("n_scores")))

    def decide(self, rows, threads=1):
        """Labels, steps and scores, (N,), (N,) and (N, K)."""
        out, given = self._outputs(len(rows)), rows_of(rows)
        arrays = (address(array) for array in out)
        check(library().qwyc_decide(self.handle, ctypes.byref(given), threads, *arrays))
        return out

    def decide_columns(self, columns, threads=1):
        """The same for a list of columns."""
        out = self._outputs(len(columns[0]))
        table = (Column * len(columns))(*((address(c), type_of(c)) for c in columns))
        size = (len(columns), len(columns[0]), threads)
        arrays = (address(array) for array in out)
        check(library().qwyc_decide_columns(self.handle, table, *size, *arrays))
        return out

    def decide_each(self, rows):
        """The same, one row at a time."""
        out = self._outputs(len(rows))
        name = "f32" if rows.dtype == np.float32 else "f64"
        one, rows = getattr(library(), f"qwyc_decide_one_{name}"), np.ascontiguousarray(rows)
        for i in range(len(rows)):
            check(one(self.handle, address(rows[i]), *(address(array[i:]) for array in out)))
        return out

    def decide_full(self, rows, threads=1):
        """Labels and full scores."""
        label, _, score = self._outputs(len(rows))
        given = rows_of(rows)
        where = (address(label), address(score))
        check(library().qwyc_decide_full(self.handle, ctypes.byref(given), threads, *where))
        return label, score

    def output(self, name, rows, width, threads=1):
        """Probabilities or values, (N, width)."""
        out, given = np.empty((len(rows), width)), rows_of(rows)
        call = getattr(library(), f"qwyc_{name}")
        check(call(self.handle, ctypes.byref(given), threads, address(out)))
        return out

    def code_of(self, feature, value):
        """The code of a category."""
        code = ctypes.c_double()
        if value is None or isinstance(value, str):
            name, value = "text", None if value is None else value.encode()
        else:
            name = "integer" if isinstance(value, int) else "number"
        call = getattr(library(), f"qwyc_code_of_{name}")
        check(call(self.handle, feature, value, ctypes.byref(code)))
        return code.value
