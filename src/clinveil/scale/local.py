"""Maps in the calling thread, in threads (for code that releases the GIL) and in spawned processes.

Never more threads or processes are opened than this process may use cores.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from clinveil.core import LostWorkers, at_most_cores

WATCH_SECONDS = 2.0
TRIES = 4  # attempts per item before LostWorkers
T = TypeVar("T")
R = TypeVar("R")
Sent = TypeVar("Sent")


class Map(Protocol):
    """Apply a function to items; results come in the order of the items, and few items are read
    ahead.
    """

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]:
        """Yield function(item) for each item, in order."""


def serial(function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]:
    """Map in the calling thread."""
    return map(function, items)


def threads(workers: int) -> Map:
    """Return a map over threads, for functions that release the GIL (numba's nogil, pyarrow)."""
    at_once = at_most_cores(workers)
    if at_once == 1:
        return serial

    def run(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        with ThreadPoolExecutor(at_once) as pool:
            sent = (pool.submit(function, item) for item in items)
            yield from in_order(sent, Future.result, Future.cancel, 2 * at_once)

    return run


def processes(workers: int, *, ahead: int | None = None) -> Map:
    """Return a map over spawned processes (forked children hang after torch or numba were
    used).

    The items of a killed process are retried. Raises LostWorkers if that happens repeatedly.
    `ahead`: number of items read ahead, by default two per worker; increase it for few tasks of
    different length, so that no worker is idle.
    """
    at_once = at_most_cores(workers)
    if at_once == 1:
        return serial

    def run(function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        window: deque[_Sent] = deque()
        with _Pools(at_once, function) as pools:
            sent = (_Sent(item, pools.submit(item)) for item in items)
            for item in _behind(sent, window, ahead or 2 * at_once):
                yield pools.result(item, window)

    return run


@dataclass
class _Sent:
    """A submitted item, stored until its result is available."""

    item: Any
    future: Future[Any]


class _Pools:
    """A pool of processes that is replaced if its processes are killed."""

    def __init__(self, workers: int, function: Callable[[Any], Any]) -> None:
        self.workers = workers
        self.function = function
        self.stack = ExitStack()

    def __enter__(self) -> _Pools:
        self._open()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.stack.__exit__(*raised)

    def _open(self) -> None:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(
            self.workers, mp_context=context, initializer=_end_with, initargs=(os.getpid(),)
        )
        self.pool = self.stack.enter_context(_stoppable(pool))

    def submit(self, item: Any) -> Future[Any]:
        """Submit an item, also to a broken pool, so that `result` detects the failure."""
        try:
            return self.pool.submit(self.function, item)
        except BrokenProcessPool as error:
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    def result(self, sent: _Sent, others: Iterable[_Sent]) -> Any:
        """Return the result of an item; after a kill, resubmit it and the others to a new pool."""
        for _ in range(TRIES):
            try:
                return sent.future.result()
            except BrokenProcessPool:
                self.stack.close()
                self._open()
                for each in (sent, *others):
                    each.future = self.submit(each.item)
        raise LostWorkers


@contextmanager
def _stoppable(executor: ProcessPoolExecutor) -> Iterator[ProcessPoolExecutor]:
    """Open the pool; an exception in the block, such as Ctrl-C, terminates its processes."""
    before = set(multiprocessing.active_children())
    with executor:
        try:
            yield executor
        except BaseException:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise


def _end_with(parent: int) -> None:
    """End this worker when its parent process has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def in_order(
    sent: Iterable[Sent], result: Callable[[Sent], R], cancel: Callable[[Sent], object], ahead: int
) -> Iterator[R]:
    """Yield the results of submitted items in order, after submitting up to `ahead` more; cancel
    others at the end.
    """
    window: deque[Sent] = deque()
    try:
        for item in _behind(sent, window, ahead):
            window.appendleft(item)  # so that it is cancelled too
            value = result(item)
            window.popleft()
            yield value
    finally:
        for item in window:
            cancel(item)


def _behind(submitted: Iterable[T], window: deque[T], ahead: int) -> Iterator[T]:
    for item in submitted:
        window.append(item)
        if len(window) > ahead:
            yield window.popleft()
    while window:
        yield window.popleft()
