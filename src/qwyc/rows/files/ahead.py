"""Batches that are read by another thread while the last one is in use."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

BATCHES_AHEAD = 2  # that are read before they are asked for

Item = TypeVar("Item")


def read_ahead(batches: Iterator[Item]) -> Generator[Item]:
    """The same batches, read by another thread while this thread works on the last one. So Ctrl-C is
    noticed while a slow pipe is read."""
    waiting: queue.Queue[Any] = queue.Queue(maxsize=BATCHES_AHEAD)
    stopped = threading.Event()

    def put(item: Any) -> None:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                break

    def read() -> None:
        try:
            for batch in batches:
                put(batch)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as error:  # raised again by the thread that uses the batches
            put(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join(timeout=0.5)  # a thread that waits for a pipe does not end
