"""Mapping in line, in threads (for code that releases the GIL) and in spawned processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from clinveil.core.errors import LostWorkers

WATCH_SECONDS = 2.0
ALONE_SECONDS = 2.0  # about what it takes to start processes
TRIES = 4  # of one item, before the workers are held to be lost
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

    What a process that was killed had in hand is done again. Raises LostWorkers where that happens again and again.
    `ahead`: items read ahead of the result that is waited for; two a worker unless given. Few tasks of unlike length
    want more, or one long task leaves the other workers idle.
    """
    if workers == 1:
        return serial

    def run(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        window: deque[_Sent] = deque()
        with _Pools(workers, function) as pools:
            sent = (_Sent(item, pools.submit(item)) for item in items)
            for one in behind(sent, window, ahead or 2 * workers):
                yield pools.result(one, window)

    return run


def processes_later(workers: int, seconds: float = ALONE_SECONDS) -> Map:
    """In line, and by processes where that has lasted so long: for work of unknown size, as processes take seconds."""

    def run(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        left, end = iter(items), time.monotonic() + seconds
        for item in left:
            yield function(item)
            if time.monotonic() > end:
                break
        yield from processes(workers)(function, left)

    return run


@dataclass
class _Sent:
    """An item in work; it is kept until its result is there."""

    item: Any
    future: Future[Any]


class _Pools:
    """A pool of processes, and a new one where processes of the last were killed."""

    def __init__(self, workers: int, function: Callable[[Any], Any]) -> None:
        self.workers, self.function, self.stack = workers, function, ExitStack()

    def __enter__(self) -> _Pools:
        self._open()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.stack.__exit__(*raised)

    def _open(self) -> None:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_end_with, initargs=(os.getpid(),))
        self.pool = self.stack.enter_context(_stoppable(pool))

    def submit(self, item: Any) -> Future[Any]:
        """Send an item; to a broken pool too, so that `result` sees it."""
        try:
            return self.pool.submit(self.function, item)
        except BrokenProcessPool as error:
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    def result(self, one: _Sent, others: Iterable[_Sent]) -> Any:
        """The result of an item; if a process was killed, it and the others are sent to a new pool."""
        for _ in range(TRIES):
            try:
                return one.future.result()
            except BrokenProcessPool:
                self.stack.close()
                self._open()
                for each in (one, *others):
                    each.future = self.submit(each.item)
        raise LostWorkers


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


def _pooled(pool: Callable[[], AbstractContextManager[Executor]], workers: int) -> Map:
    if workers == 1:
        return serial

    def run(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        window: deque[Future[Any]] = deque()
        with pool() as executor:
            try:
                submitted = (executor.submit(function, item) for item in items)
                yield from map(Future.result, behind(submitted, window, 2 * workers))
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
