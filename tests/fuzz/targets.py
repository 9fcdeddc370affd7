"""What is done with a mutated file: it is read, and rows are evaluated if it is taken."""

import contextlib
import warnings
from functools import cache

import numpy as np

import qwyc
from fuzz.corpus import MAKERS, classifier
from qwyc.limits import MB, MEMORY, MemoryBound
from qwyc.rows.files.reader import read_table

TARGETS = tuple(MAKERS)
LONGEST_MESSAGE = 20_000  # the command line shows a part of it
DATA = ("csv", "parquet", "arrow")
# Reading a table takes blocks of a fixed size; evaluating a few rows takes the layout of the trees.
TABLE_BOUND = MemoryBound(40, 256 * MB)


def bound_of(target):
    """The memory that a target may take."""
    if target in DATA:
        return TABLE_BOUND
    return MEMORY["qwyc" if target == "monitor" else target.split("-")[0]]


@cache
def _rows(n_features):
    return np.random.default_rng(0).normal(size=(3, n_features))


def run(target, path):
    """Read a file, and use what it holds. Returns whether it was taken; errors of qwyc are no finding."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            if target in DATA:
                features, kept = read_table(
                    path, classifier().ensemble.schema, keep=["kept", "coded"], kind=target
                )
                classifier().predict(features)
                kept.to_pylist()
            elif target == "monitor":
                monitor = qwyc.Monitor.load(path, classifier())
                monitor.predict(_rows(3))
                monitor.metrics()
                repr((monitor.alarm, monitor.interval, monitor))
            elif target.startswith("qwyc"):
                _use(qwyc.load(path))
            else:
                _use(qwyc.read_model(path))
        except qwyc.QwycError as error:
            if len(str(error)) > LONGEST_MESSAGE:
                raise AssertionError(f"a message of {len(str(error)):,} characters") from None
            return False
    return True


def _use(model):
    """Evaluate rows with a model or a classifier, and describe it."""
    repr(model)
    schema = getattr(model, "ensemble", model).schema
    if schema.n_features > 10_000:
        return  # the rows themselves would take the memory
    with contextlib.suppress(qwyc.QwycError):  # rows that the changed schema refuses
        model.predict(_rows(schema.n_features))
    if isinstance(model, qwyc.Classifier):
        str(model)
        with contextlib.suppress(qwyc.QwycError):
            model.decide(_rows(schema.n_features))
        with contextlib.suppress(qwyc.QwycError):
            model.at(alpha=0.1)
