"""Progress of long work: a bar on a terminal, calls of a function that the user passes, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

ProgressOption = bool | Callable[[str, int, int], None] | None
Report = Callable[[int], None]
BAR_WIDTH = 72  # a narrower terminal shows text only, so that progress stays on one line


@contextmanager
def progress_reporter(option: ProgressOption, what: str, total: int) -> Iterator[Report]:
    """Yield a function to call with the number of steps done out of `total` (0 if it is unknown).

    `option` decides where progress goes. None shows a bar if standard error is a terminal, True always
    shows one, False never does. A callable is called with (what, done, total)."""
    if callable(option):
        call = option
        call(what, 0, total)
        yield lambda done: call(what, done, total)
    elif option or (option is None and sys.stderr.isatty()):
        with make_bar(transient=option is None) as bar:  # with True it stays on the screen
            task = bar.add_task(what, total=total or None)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: None


def make_bar(*, transient: bool) -> Progress:
    """A progress bar on standard error with the task, the share done, the time elapsed and the time
    left. If the total is unknown, the bar pulses and only the time elapsed is shown."""
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

    class ShareAndTimeLeft(ProgressColumn):
        max_refresh = 0.5  # seconds; a time that changes more often is hard to read

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
    wide = [BarColumn(), TimeElapsedColumn()] if console.width >= BAR_WIDTH else []
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        *wide,
        ShareAndTimeLeft(table_column=Column(no_wrap=True)),
        console=console,
        transient=transient,
        # Text printed meanwhile goes above the bar, if standard output is the same terminal.
        redirect_stdout=sys.stdout.isatty(),
    )
