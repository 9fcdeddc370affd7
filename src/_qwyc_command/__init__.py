"""Entry point of the `qwyc` command, apart from the package, which takes a moment to import: in that
moment, too, Ctrl-C is one line."""

import os
import signal


def main() -> None:
    """Run the command."""
    signal.signal(signal.SIGINT, _leave)
    from qwyc.cli import main as run

    run()


def _leave(signum: int, frame: object) -> None:
    os.write(2, b"qwyc: interrupted\n")  # nothing has been done that would have to be cleaned up
    os._exit(130)
