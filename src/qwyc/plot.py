"""Pictures of a classifier, with matplotlib. Each function draws into `ax`, or into a new figure, and
returns the axes: `qwyc.plot.survival(fast, X).figure.savefig("survival.png")`."""

from __future__ import annotations
