"""Treelite: checkpoint files of version 4, and live `treelite.Model` objects.

The checkpoint is read as it stands; Treelite itself is not needed for that. What a Treelite model
decides is what its own reference, GTIL, says: the class with the largest output, or probability > 0.5; or
its values.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qwyc.errors import ModelError
from qwyc.importers import files, live
from qwyc.importers.comparisons import with_one_rule
from qwyc.importers.flatten import NodeTable, flatten, flatten_vectors
from qwyc.importers.treelite.checkpoint import (
    REMEDY,
    Header,
    Reader,
    leaf_vectors,
    node_table,
    read_header,
    read_tree,
)
from qwyc.model.class_trees import class_tree_ensemble
from qwyc.model.ensemble import Ensemble, Sample, Source
from qwyc.model.link import Link
from qwyc.model.output import BY_TIES, Output
from qwyc.model.trees import Summation, tree_ensemble
from qwyc.rows.schema import MISSING, Schema
from qwyc.rows.sparse import canonical, is_sparse
from qwyc.target.boundary import smallest_positive
from qwyc.target.ties import BY_SCORES, Ties

LIVE_KINDS = "Treelite (Model)"
FILE_KINDS = "Treelite (checkpoints)"
LOADING_ERROR = 0.0
_NARROW = Link("logistic", dtype="float32")
_PLAIN = Output("plain logistic", "float32")
Array = npt.NDArray[Any]


def looks_like(head: bytes) -> bool:
    """Whether a file that starts with `head` may be a Treelite checkpoint: three numbers of a version
    and two types."""
    version = np.frombuffer(head[:12].ljust(12, b"\xff"), "<i4")
    return (
        len(head) > 22
        and 3 <= version[0] <= 9
        and all(0 <= part < 100 for part in version[1:])
        and head[12] in (1, 2, 3)
        and head[13] in (1, 2, 3)
    )


def is_live(model: object) -> bool:
    """Whether `model` is an object of the treelite library."""
    return live.made_by(model, "treelite")


def read_file(path: Path) -> Ensemble:
    """The model in a checkpoint file."""
    content = files.read_bytes(path)
    with files.reading(str(path), "Treelite checkpoint", REMEDY):
        return _ensemble(content)


def read_live(model: Any) -> Ensemble:
    """A `treelite.Model`."""
    with files.reading(type(model).__name__, "Treelite model", "import it again"):
        if not hasattr(model, "serialize_bytes"):
            raise ModelError("this is not a treelite.Model")
        return _ensemble(model.serialize_bytes())


def live_predictions(model: Any, sample: Sample) -> live.Predictions:
    """The model's own decisions and scores."""
    return live.Predictions.of(live_labels(model, sample), live_scores(model, sample))


def live_labels(model: Any, sample: Sample) -> Array:
    """The classes, (N,), that Treelite's own reference gives the rows X."""
    import treelite

    outputs = treelite.gtil.predict(model, _rows(sample))[:, 0, :]
    decided = outputs[:, 0] > 0.5 if outputs.shape[1] == 1 else np.argmax(outputs, axis=1)
    return np.asarray(sample.ensemble.classes[decided.astype(np.intp)])


def live_scores(model: Any, sample: Sample) -> Array:
    """The scores, (N,) or (N, K), that Treelite's own reference gives the rows X."""
    import treelite

    outputs = treelite.gtil.predict(model, _rows(sample), pred_margin=True)[:, 0, :]
    if outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0])
    if sample.ensemble.by_class:
        return np.asarray(outputs)
    # As in an ensemble of shares: near a half, on its decision's side.
    above = np.nextafter(0.5, 1.0)
    high = outputs[:, 1] > outputs[:, 0]
    low = np.minimum(outputs[:, 1], 0.5)
    return np.asarray(np.where(high, np.maximum(outputs[:, 1], above), low))


def _rows(sample: Sample) -> Any:
    """Rows as Treelite's own reference takes them; sparse rows stay sparse."""
    if not is_sparse(sample.given) or sample.ensemble.schema is None:
        return sample.rows
    return canonical(sample.given).astype(sample.ensemble.schema.dtype)


def load(path: Path) -> Any:
    """The model in a file as Treelite loads it."""
    import treelite

    return treelite.Model.deserialize(path)


def _ensemble(content: bytes) -> Ensemble:
    reader = Reader(content)
    header = read_header(reader)
    trees = [read_tree(reader, header.real) for _ in range(header.n_trees)]
    vectors = leaf_vectors(trees, header.n_classes) if header.vectors else None
    table, less_equal = with_one_rule(*node_table(trees, header, vectors))
    if header.n_classes > 1 and not header.shares:
        return _of_classes(header, table, less_equal, vectors)
    if header.values:
        summation, divisor = _sum_of_classes(header)
        link, threshold = Link("none"), 0.0
    else:
        summation, link, threshold = _rule(header)
        divisor = float(header.n_trees) if header.average else 1.0
    return tree_ensemble(
        flatten(table),
        schema=_schema(header),
        summation=summation,
        less_equal=less_equal,
        truncates=False,
        base=0.0 if header.shares else float(header.bases[0]) + 0.0,  # no -0
        divisor=divisor,
        threshold=threshold,
        classes=np.empty(0) if header.values else np.array([0, 1]),
        source=Source("treelite", header.version, header.task),
        link=link,
        output=_values(header) if header.values else _PLAIN if link == _NARROW else None,
    )


def _schema(header: Header) -> Schema:
    dtype = "float32" if header.narrow else "float64"
    return Schema(header.n_features, None, dtype, absent=MISSING)


def _of_classes(
    header: Header, table: NodeTable, less_equal: bool, vectors: Array | None
) -> Ensemble:
    """Scores by class: leaves hold a number for each, or every tree adds to one."""
    K = header.n_classes
    summation, divisor = _sum_of_classes(header)
    trees = flatten(table)
    if vectors is not None:
        trees, vectors = flatten_vectors(table, vectors)
    return class_tree_ensemble(
        trees,
        _schema(header),
        classes=np.empty(0) if header.values else np.arange(K),
        source=Source("treelite", header.version, header.task),
        summation=summation,
        less_equal=less_equal,
        truncates=False,
        start=np.asarray(header.bases) + 0.0,  # no -0
        divisor=divisor,
        tree_class=None if header.vectors else header.tree_class,
        leaf_vector=vectors,
        ties=BY_SCORES if header.values else _ties(header),
        output=_values(header) if header.values else _probabilities(header),
    )


def _sum_of_classes(header: Header) -> tuple[Summation, float]:
    """How the trees of a class are added up, and what the sum is divided by."""
    if not header.average:
        return Summation.FLOAT32_LATE if header.narrow else Summation.FLOAT64_LATE, 1.0
    if header.narrow or any(header.bases):
        raise ModelError("the model averages its trees in float32, or adds to the average")
    if header.vectors or header.n_classes == 1:
        return Summation.FLOAT64, float(header.n_trees)
    counts = np.bincount(header.tree_class, minlength=header.n_classes)
    if counts.min() != counts.max():
        raise ModelError(
            f"the model averages {counts.min()} trees of one class and {counts.max()} of another; "
            "supported are as many of each"
        )
    return Summation.FLOAT64, float(counts[0])


def _values(header: Header) -> Output:
    """What GTIL makes of the scores of a regressor, a ranker or an isolation forest."""
    kind, narrow = header.postprocessor, header.narrow
    dtype = "float32" if narrow else "float64"
    if kind in ("identity", "signed_square", "exponential"):
        return Output(kind.replace("_", " "), dtype)
    if kind == "sigmoid" and header.alpha > 0 and not (narrow and header.alpha != 1):
        return _PLAIN if narrow else Output("logistic", dtype, header.alpha)
    if kind == "exponential_standard_ratio" and header.ratio > 0 and not narrow:
        return Output("halving", dtype, header.ratio)
    if kind == "logarithm_one_plus_exp" and not narrow:
        return Output("log of 1 + exponential", dtype)
    raise ModelError(
        f"the model's values are {kind!r} of sums in {dtype}, whose last bits are not known; supported are "
        "'identity', 'signed_square', 'exponential' and 'sigmoid', and 'logarithm_one_plus_exp' and "
        "'exponential_standard_ratio' of float64 models"
    )


def _probabilities(header: Header) -> Output:
    """What GTIL makes of the scores of classes."""
    kind = "identity" if header.postprocessor == "identity_multiclass" else BY_TIES
    return Output(kind, "float32" if header.narrow else "float64")


def _ties(header: Header) -> Ties:
    """What GTIL compares, as its outputs are made."""
    if header.postprocessor == "identity_multiclass":
        return BY_SCORES
    if header.postprocessor == "softmax":
        return Ties("softmax", "float32" if header.narrow else "mixed")
    if header.postprocessor == "multiclass_ova" and header.alpha > 0 and not header.narrow:
        return Ties("sigmoid", "float64", header.alpha)
    kind = "float32" if header.narrow else "float64"
    raise ModelError(
        f"the model's outputs are {header.postprocessor!r} (alpha {header.alpha:g}, {kind}), which have no "
        "decision between classes; supported are 'softmax' and 'identity_multiclass', and 'multiclass_ova' "
        "of float64 models"
    )


def _rule(header: Header) -> tuple[Summation, Link, float]:
    """How trees are added up, and the smallest score that is positive."""
    if header.shares:
        return Summation.SHARES, Link("identity"), float(np.nextafter(0.5, 1.0))
    link, threshold = _decision(header.postprocessor, header.alpha, header.narrow)
    if not header.average:
        late = Summation.FLOAT32_LATE if header.narrow else Summation.FLOAT64_LATE
        return late, link, threshold
    if header.narrow or header.bases != [0.0]:
        raise ModelError("the model averages its trees in float32, or adds to the average")
    return Summation.FLOAT64, link, threshold


@cache
def _decision(postprocessor: str, alpha: float, narrow: bool) -> tuple[Link, float]:
    """The link, and the smallest score whose output exceeds 0.5."""
    dtype = np.float32 if narrow else np.float64
    if postprocessor == "hinge":
        return Link("none"), smallest_positive(lambda score: score > 0, dtype)
    if postprocessor != "sigmoid" or not alpha > 0 or (narrow and alpha != 1):
        raise ModelError(
            f"the model's outputs are {postprocessor!r} (alpha {alpha:g}), which have no decision; "
            "supported are 'sigmoid' and 'hinge'"
        )
    link = Link("logistic", scale=alpha, dtype="float32" if narrow else "float64")
    return link, smallest_positive(lambda score: link.probability(score) > 0.5, dtype)
