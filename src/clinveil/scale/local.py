"""Mapping in line, in threads (for code that releases the GIL) and in spawned processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

WATCH_SECONDS = 2.0
T = TypeVar("T")
R = TypeVar("R")


class Map(Protocol):
    """Apply a function to items; results come in the order of the items, and few items are read ahead."""

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]:
        """Yield function(item) for each item, in order."""
        ...


def serial(function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]:
    """The plain map."""
    return map(function, items)


def threads(workers: int) -> Map:
    """A map over threads; right for functions that release the GIL (numba's nogil, pyarrow)."""
    return _pooled(lambda: ThreadPoolExecutor(workers), workers)


def processes(workers: int, *, ahead: int | None = None) -> Map:
    """A map over spawned processes (a child forked after faiss, torch or numba hangs).

    `ahead`: items read ahead of the result that is waited for; two a worker unless given. Few tasks of unlike length
    want more, or one long task leaves the other workers idle.
    """
    if workers == 1:
        return serial
    context = multiprocessing.get_context("spawn")

    def pool() -> AbstractContextManager[Executor]:
        return _stoppable(
            ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with, initargs=(os.getpid(),))
        )

    return _pooled(pool, workers, ahead)


@contextmanager
def _stoppable(executor: ProcessPoolExecutor) -> Iterator[ProcessPoolExecutor]:
    """The pool; where the block is left by an exception, such as Ctrl-C, its processes do not finish their tasks."""
    before = set(multiprocessing.active_children())
    with executor:
        try:
            yield executor
        except BaseException:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise


def _end_with(parent: int) -> None:
    """In a worker: end where the parent is gone (killed), rather than work on for nobody."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _pooled(pool: Callable[[], AbstractContextManager[Executor]], workers: int, ahead: int | None = None) -> Map:
    if workers == 1:
        return serial

    def run(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        window: deque[Future[Any]] = deque()
        with pool() as executor:
            try:
                submitted = (executor.submit(function, item) for item in items)
                yield from map(Future.result, behind(submitted, window, ahead or 2 * workers))
            finally:
                for future in window:
                    future.cancel()

    return run


def behind(submitted: Iterable[T], window: deque[T], ahead: int) -> Iterator[T]:
    """What was submitted, in its order; so many more are submitted before one is waited for."""
    for one in submitted:
        window.append(one)
        if len(window) > ahead:
            yield window.popleft()
    while window:
        yield window.popleft()
