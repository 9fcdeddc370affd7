"""Progress of long work: a bar on a terminal, a callable of the user's, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ProgressOption = bool | Callable[[str, int, int], None] | None
Report = Callable[[int], None]


@contextmanager
def progress_reporter(option: ProgressOption, what: str, total: int) -> Iterator[Report]:
    """Give a function to call with the number of steps done out of `total`.

    None shows a bar when standard error is a terminal, True always, False never; a callable is
    called with (what, done, total)."""
    if callable(option):
        call = option
        yield lambda done: call(what, done, total)
    elif option or (option is None and sys.stderr.isatty()):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=option is None,  # asked for by name: leave it on the screen
        )
        with bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: None
