"""Names that the experiments need and that qwyc does not export.

The other modules of this package use the public API and this file only; import-linter checks it
(pyproject.toml). Each group says why the public API is not enough.
"""

# The first base models of an ensemble of lattices are an ensemble as well. The public API does not take one
# apart.
from qwyc.model.lattices.join import pack, unpack
from qwyc.model.lattices.models import lattice_ensemble

# Studies fit with other constants than the defaults. `qwyc.fit_path` has no parameters for them.
from qwyc.policy.fit.orders import RIDGE, correlation
from qwyc.policy.fit.problem import Problem
from qwyc.policy.fit.stopping import DEFAULT as DEFAULT_SETTINGS
from qwyc.policy.fit.stopping import fit_path

# The paper's experiments count rows that Fan's rule evaluates in full because their bin is unknown.
from qwyc.policy.rule import GO_ON, IN_FULL

# `monitoring` looks at a monitor's test after every row of a stream that has no classifier.
from qwyc.promise.sequential import SLOPES, RateTest

# `scaling` prints the memory that qwyc predicts next to the memory that a run takes.
from qwyc.runtime.memory import memory_needed, memory_to_fit_path

# `reproduce` writes all of its files or none.
from qwyc.runtime.output import replacing

__all__ = [
    "DEFAULT_SETTINGS",
    "GO_ON",
    "IN_FULL",
    "RIDGE",
    "SLOPES",
    "Problem",
    "RateTest",
    "correlation",
    "fit_path",
    "lattice_ensemble",
    "memory_needed",
    "memory_to_fit_path",
    "pack",
    "replacing",
    "unpack",
]
