"""The `qwyc` command: one module per command. `main` runs it (docs/cli.md)."""

from qwyc.cli.main import main

__all__ = ["main"]
