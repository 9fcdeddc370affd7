"""Every limit on what files may hold, in one place. docs/limits.md lists them; a test compares the two.

Sizes in a file are claims. A reader compares a claim with its limit, and with the bytes that are there,
before it allocates anything for it."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1 << 20

# ---- models ------------------------------------------------------------------------------------
MAX_FEATURES = 1 << 24  # columns of a model
MAX_NODES = (1 << 28) - 1  # of all trees together, and as many leaves (native/core/forest.cpp)
MAX_CATEGORY_CODES = 1 << 24  # codes from here on are in no set (native/core/categories.hpp)
MAX_CATEGORY_WORDS = 1 << 25  # 32 codes each, of the sets of all nodes together: 128 MB
MAX_NESTING = 64  # levels of a UBJSON document
MAX_DEPTH = 24  # of CatBoost's symmetric trees; CatBoost itself stops at 16

# ---- `.qwyc` files -----------------------------------------------------------------------------
MAX_HEADER_BYTES = 100_000_000  # as safetensors has it
MAX_TENSORS = 256  # in one file
MAX_AXES = 4  # of one tensor
MAX_MONITOR_BYTES = 1 << 20  # of a file of a monitor, which takes a few thousand
MAX_ROWS_COUNTED = 1 << 40  # by a certificate or its evidence

# ---- data files --------------------------------------------------------------------------------
MAX_ROWS_WITHOUT_DATA = 1 << 16  # of a batch whose columns have no bytes
MAX_CSV_HEADER = 1 << 20  # bytes; the types of columns are inferred from as many
MAX_CSV_ROW = 1 << 23  # bytes, which is also a batch

# ---- messages ----------------------------------------------------------------------------------
MAX_VALUE_SHOWN = 60  # characters of a value out of a file, within a message
MAX_MESSAGE = 2000  # characters of an error that the command line prints


@dataclass(frozen=True)
class MemoryBound:
    """What reading a file takes at most: `fixed` bytes, and `factor` times the size of the file."""

    factor: int
    fixed: int

    def bytes_for(self, file_size: int) -> int:
        """The bound for a file of this size."""
        return self.fixed + self.factor * file_size


# A JSON list of empty lists takes 3 bytes an item in a file and about 64 in memory; a number of two
# bytes takes 8 as a pointer, and again in the arrays that are made of it. Category sets are bit sets up
# to the largest code, so a code of eight characters takes up to 2 MB: their sum has the limit above.
_SETS = 3 * 4 * MAX_CATEGORY_WORDS + 64 * MB
MEMORY = {
    "xgboost": MemoryBound(64, _SETS),
    "lightgbm": MemoryBound(64, _SETS),
    "catboost": MemoryBound(64, _SETS),
    "treelite": MemoryBound(32, _SETS),
    "onnx": MemoryBound(64, _SETS),
    "qwyc": MemoryBound(40, 64 * MB),
}
