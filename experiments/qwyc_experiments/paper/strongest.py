"""`python -m qwyc_experiments.paper.strongest`: how the features of the stand-ins were chosen.

standins.py has the result as constants, so that the rows do not depend on the version of XGBoost."""

from __future__ import annotations

from .data import load
from .models import strongest_features

SOIL = "Soil_Type"


def census() -> tuple[str, ...]:
    """The 16 of 40 features with the largest total gain."""
    data = load("rw1", None, every=True)
    kept = strongest_features(data, 16, depth=5)
    return tuple(data.names[k] for k in kept)


def covertype() -> tuple[str, ...]:
    """The numbers, the wilderness areas and the 16 of 40 soil types with the largest total gain."""
    data = load("rw2", None, every=True)
    soils = [k for k, name in enumerate(data.names) if name.startswith(SOIL)]
    others = [k for k in range(len(data.names)) if k not in soils]
    # The model sees all features; of its ranking only the soil types are used.
    ranked = strongest_features(data, len(data.names), depth=5, ranked=True)
    best = [k for k in ranked if k in soils][:16]
    return tuple(data.names[k] for k in sorted(others + best))


if __name__ == "__main__":
    print(census())
    print(covertype())
