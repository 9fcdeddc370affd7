"""Entry point of the `qwyc` command.

It is apart from the package, whose import takes a moment: Ctrl-C must end the command with one line in
that moment too."""

from _qwyc_command import process


def main() -> None:
    """Run the command that sys.argv names, and end the process."""
    process.replace_closed_streams()
    process.handle_signals()
    from qwyc.cli import main as run

    run()
