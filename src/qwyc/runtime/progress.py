"""Progress of long work: a bar on a terminal, a callable of the user's, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

ProgressOption = bool | Callable[[str, int, int], None] | None
Report = Callable[[int], None]
ROOM = 72  # columns of a terminal from which on there is a bar too


@contextmanager
def progress_reporter(option: ProgressOption, what: str, total: int) -> Iterator[Report]:
    """Give a function to call with the number of steps done out of `total`, 0 where nobody knows.

    None shows a bar when standard error is a terminal, True always, False never; a callable is
    called with (what, done, total)."""
    if callable(option):
        call = option
        call(what, 0, total)
        yield lambda done: call(what, done, total)
    elif option or (option is None and sys.stderr.isatty()):
        with make_bar(transient=option is None) as bar:  # asked for by name: it stays on the screen
            task = bar.add_task(what, total=total or None)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: None


def make_bar(*, transient: bool) -> Progress:
    """A bar on standard error: what is done, how much of it, the time it has taken and the time left.
    Where nobody knows how much there is, a bar that moves and the time it has taken."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class Left(ProgressColumn):
        """How much is done, and the time left."""

        max_refresh = 0.5  # a time that changes more often cannot be read

        def render(self, task: Task) -> Text:
            if task.total is None:
                return Text("")
            share = Text(f"{task.percentage:>3.0f}%", style="progress.percentage")
            seconds = task.time_remaining
            if seconds is None:
                return share
            minutes, rest = divmod(int(seconds), 60)
            left = f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
            return share.append(f"  {left} left", style="progress.remaining")

    console = Console(stderr=True)
    wide = [BarColumn(), TimeElapsedColumn()] if console.width >= ROOM else []  # otherwise one line
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        *wide,
        Left(table_column=Column(no_wrap=True)),
        console=console,
        transient=transient,
        # What is printed meanwhile stays above the bar; but only where both are the same screen.
        redirect_stdout=sys.stdout.isatty(),
    )
