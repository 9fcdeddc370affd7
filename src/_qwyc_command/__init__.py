"""Entry point of the `qwyc` command, apart from the package, which takes a moment to import: in that
moment, too, Ctrl-C is one line."""

import os
import signal
import sys


def main() -> None:
    """Run the command."""
    _stand_in_for_closed_streams()
    signal.signal(signal.SIGINT, _leave)
    from qwyc.cli import main as run

    run()


def _stand_in_for_closed_streams() -> None:
    """Where `>&-` or the like has closed a stream, Python has None, and the next file to be opened gets
    its number. Input is then empty, output fails when it is written to, and messages get lost."""
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest number that is free
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")


def _leave(signum: int, frame: object) -> None:
    os.write(2, b"qwyc: interrupted\n")  # nothing has been done that would have to be cleaned up
    os._exit(130)
