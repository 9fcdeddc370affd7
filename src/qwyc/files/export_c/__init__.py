"""Classifiers as C99: one source and one header that need nothing else.

text        numbers, arrays, strings and names of C
program     tables and code of a family of base models
nodes       nodes of trees, and the walk to a leaf
trees       trees of two classes
classes     trees of K classes, and filters for one of them; ties: which of them wins
lattices    lattices and calibrators
small       trees of two classes in integers; ranks: their nodes
categories  codes of categories
header      the header, and what all sources share
"""

from __future__ import annotations

import os
from pathlib import Path

from qwyc.errors import ArtifactError, ModelError, OptionError
from qwyc.files.export_c import classes, header, lattices, small, trees
from qwyc.files.export_c.program import Program
from qwyc.files.export_c.text import check_prefix, comment
from qwyc.model.class_trees import ClassTreeModels
from qwyc.model.combined_trees import CombinedTreeModels
from qwyc.model.lattices.models import LatticeModels
from qwyc.model.trees import TreeModels
from qwyc.policy.filter_policy import FilterPolicy
from qwyc.policy.lead_policy import LeadPolicy
from qwyc.policy.policy import Policy
from qwyc.promise.certified import Certified
from qwyc.runtime.output import check_target, replacing


def write(
    path: str | os.PathLike[str],
    certified: Certified,
    *,
    prefix: str = "qwyc",
    for_small_devices: bool = False,
) -> tuple[Path, Path]:
    """Write a source and a header; returns their paths. Each is replaced in one step or not at all."""
    name = check_prefix(prefix)
    source_path, header_path = paths(path)
    for target in (source_path, header_path):
        check_target(target, regular=True)
    source, declarations = texts(
        certified,
        header_path.name,
        prefix=name,
        for_small_devices=for_small_devices,
    )
    with replacing(source_path) as source_file, replacing(header_path) as header_file:
        source_file.write(source.encode())
        header_file.write(declarations.encode())
    return source_path, header_path


def paths(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """The source and the header that a path names, with or without .c or .h."""
    stem = Path(path)
    if stem.suffix in (".c", ".h"):
        stem = stem.with_suffix("")
    if not stem.name or stem.is_dir() or '"' in stem.name or "\\" in stem.name:
        raise ArtifactError(
            f"cannot write {path}: name a file, such as model, for model.c and model.h"
        )
    return stem.with_name(f"{stem.name}.c"), stem.with_name(f"{stem.name}.h")


def texts(
    certified: Certified,
    header_name: str,
    *,
    prefix: str = "qwyc",
    for_small_devices: bool = False,
) -> tuple[str, str]:
    """The source and the header as text; raises an error for what cannot be C."""
    check_exportable(certified)
    program = _program(certified, for_small_devices)
    note = header.about(certified, program, for_small_devices)
    return (
        header.source(certified, program, note, prefix, header_name),
        header.header(certified, program, note, prefix),
    )


def check_exportable(certified: Certified) -> None:
    """Raise an error for what is Python code."""
    ensemble = certified.ensemble
    if ensemble.base_models.tensors() is None or ensemble.schema is None:
        raise ModelError(
            f"a classifier of {ensemble.description} cannot be exported to C: its base models are "
            "Python code. Trees and lattices can"
        )
    if ensemble.transform is not None:
        raise ModelError(
            f"the pipeline's own steps ({ensemble.transform}) are Python code and cannot be exported to "
            "C: export classifier.without_transform(), which takes rows as pipeline[:-1].transform gives "
            "them"
        )


def _program(certified: Certified, for_small_devices: bool) -> Program:
    models, policy, origin = (
        certified.ensemble.base_models,
        certified.policy,
        certified.ensemble.source,
    )
    library = comment(origin.library if origin is not None else "the source library")
    if isinstance(models, CombinedTreeModels):
        raise ModelError(
            f"{models.description} cannot be exported to C: their keys and tables have no form in C. Train "
            "with max_ctr_complexity=1, or load the .qwyc file with qwyc"
        )
    if isinstance(models, (TreeModels, ClassTreeModels)) and models.scale != 1:
        raise ModelError(
            f"the model multiplies its sum by {models.scale:g}, which has no form in C: export a model "
            "whose scale is 1"
        )
    if for_small_devices and not isinstance(models, TreeModels):
        raise OptionError(
            f"the small form is for trees of two classes, and these are {models.description}: export "
            "them in the usual form"
        )
    if isinstance(models, ClassTreeModels) and isinstance(policy, (LeadPolicy, FilterPolicy)):
        return classes.program(models, policy, library)
    if type(policy) is Policy:
        if isinstance(models, TreeModels):
            return (
                small.program(models, policy)
                if for_small_devices
                else trees.program(models, policy, library)
            )
        if isinstance(models, LatticeModels):
            return lattices.program(models, policy)
    raise ModelError(
        f"a classifier of {models.description} with a {type(policy).__name__} cannot be exported to C"
    )
