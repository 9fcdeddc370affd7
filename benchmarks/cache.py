"""Trained models and what is made from them, kept between runs in a folder of the user's own."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import os
import pickle
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRAINERS = ("xgboost-cpu", "lightgbm", "catboost", "ydf", "scikit-learn", "numpy")


@dataclass(frozen=True)
class Trained:
    """A model and the name that it, and what is made from it, has in the cache."""

    key: str
    model: Any


def folder() -> Path:
    """QWYC_BENCH_CACHE, or qwyc-bench in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(os.environ.get("QWYC_BENCH_CACHE") or Path(base) / "qwyc-bench")
    path.mkdir(parents=True, exist_ok=True)
    return path


def cached_file(name: str, make: Callable[[Path], None]) -> Path:
    """The file of that name; `make` writes it where there is none yet. What it writes beside it under
    the same stem is kept too, so `name` must be written last."""
    path = folder() / name
    if not path.exists():
        scratch = folder() / f"{os.getpid()}-{name}"
        make(scratch)
        for written in folder().glob(f"{scratch.stem}.*"):
            if written != scratch:
                written.replace(path.with_suffix(written.suffix))
        scratch.replace(path)
    return path


def trained(make: Callable[..., Any], **settings: Any) -> Trained:
    """The model that `make(**settings)` trains, or the one that it trained in an earlier run."""
    words = [inspect.getsource(make), sorted(settings.items()), platform.python_version()]
    words += [f"{package} {_version(package)}" for package in TRAINERS]
    key = f"{make.__name__}-{hashlib.sha256(repr(words).encode()).hexdigest()[:12]}"
    path = cached_file(f"{key}.pickle", lambda at: _write(at, pickle.dumps(make(**settings))))
    return Trained(key, pickle.loads(path.read_bytes()))  # written by ourselves


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"
