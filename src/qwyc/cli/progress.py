"""Progress of a command on the terminal."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

from qwyc.runtime.progress import make_bar

ERASE_LINE_AND_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"


class ProgressLine:
    """One line of progress on standard error if that is a terminal, and nothing otherwise.

    It is called with the name of the task, the amount done and the total, which is 0 if unknown."""

    active: ProgressLine | None = None  # the line that is on the screen

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self._bar: Any = None
        self._what = what
        if sys.stderr.isatty() and not quiet:
            self._bar = make_bar(transient=True)
            self._task = self._bar.add_task(what, total=None)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how much of a task is done."""
        if self._bar is None:
            return
        if what != self._what:
            self._bar.remove_task(self._task)
            self._task, self._what = self._bar.add_task(what, total=total or None), what
        self._bar.update(self._task, completed=done, total=total or None)

    def __enter__(self) -> ProgressLine:
        if self._bar is not None:
            ProgressLine.active = self
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            ProgressLine.active = None

    @classmethod
    def erase(cls) -> None:
        """Erase the line that is on the screen, if any, from within a signal handler.

        Stopping the bar would wait for locks of Rich."""
        if cls.active is not None and not cls.active._bar.console.is_dumb_terminal:
            os.write(2, ERASE_LINE_AND_SHOW_CURSOR)
