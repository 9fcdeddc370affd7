"""Every error and warning that qwyc raises on purpose. All derive from `QwycError`, and from the built-in
exception that a caller would expect as well."""

from __future__ import annotations


class QwycWarning(UserWarning):
    """Something that can be done as asked, and is probably not what was meant."""


class QwycError(Exception):
    """Base class of all errors that qwyc raises on purpose."""


class ModelError(QwycError, ValueError):
    """The model cannot be read, or is of a kind that is not supported."""


class ParityError(QwycError, ValueError):
    """The model as read does not decide like the live model it was read from."""


class InputError(QwycError, ValueError):
    """Rows that the model cannot take: a missing column, a wrong shape, an unknown category."""


class OptionError(QwycError, ValueError):
    """An option has a value outside what is allowed."""


class InfeasibleError(QwycError, ValueError):
    """What was asked for cannot be promised from so few rows; the message says how many it takes."""


class CapacityError(QwycError, MemoryError):
    """The work does not fit into memory; the message says how much it needs and what would fit."""


class ArtifactError(QwycError, OSError):
    """A `.qwyc` file that cannot be read, or any file that cannot be written."""


class MissingDependencyError(QwycError, ImportError):
    """An optional library is needed for this and is not installed."""
