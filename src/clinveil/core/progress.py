"""Progress of long work: items done, elapsed time and remaining time.

The library counts items and names its stages; a command line that can show them (`Showing`) does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol, TypeVar, runtime_checkable

from clinveil.core.types import Say

T = TypeVar("T")


@runtime_checkable
class Showing(Protocol):
    """A `Say` that can show a count, and which stage of a plan is running."""

    def count(
        self, unit: str, total: int | None = None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Return a function that takes the number of items done so far."""

    def stage(self, name: str, number: int, n_stages: int) -> AbstractContextManager[object]:
        """Show a stage while it runs, with its number (from 1) of all stages."""


def rough(seconds: float) -> str:
    """Return seconds, minutes or hours as text: `90 s`, `75 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Countdown:
    """Estimate the remaining time of a piece of work from the items done.

    Args:
        total: number of items, if known. clock: returns seconds.
    """

    def __init__(
        self, total: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total = total
        self.done = 0
        self._clock = clock
        self._start = self._changed = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    def update(self, done: int) -> None:
        """Record how many items are done."""
        if done != self.done:
            self.done = done
            self._changed = self._clock()

    @property
    def rate(self) -> float | None:
        """Items per second up to the last update."""
        took = self._changed - self._start
        return self.done / took if self.done and took > 0 else None

    @property
    def left(self) -> float | None:
        """Remaining seconds; None if unknown or if the estimate is exceeded."""
        if not self.total or not self.rate:
            return None
        remaining = self.total / self.rate - self.elapsed
        return remaining if remaining > 0 else None


def track(
    items: Iterable[T],
    unit: str,
    say: Say,
    total: int | None = None,
    size: Callable[[T], int] = lambda _: 1,
) -> Iterator[T]:
    """Yield the items; their number, or the sum of their sizes, is shown where `say` can show it.

    An item of a list counts when its consumer asks for the next one, as the consumer does the work.
    An item of an iterator counts when it arrives, as the iterator has done the work.

    Args:
        unit: what is counted, in the plural. total: their number, if known.
    """
    if not isinstance(say, Showing):
        yield from items
        return
    waiting = isinstance(items, Sized)
    with say.count(unit, total) as show:
        done = 0
        for item in items:
            done += size(item)
            if not waiting:
                show(done)
            yield item
            if waiting:
                show(done)


@contextmanager
def steps(unit: str, say: Say) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes (done, total) of some work and shows it if `say` can."""
    if not isinstance(say, Showing):
        yield lambda done, all_: None
        return
    with ExitStack() as stack:
        show: list[Callable[[int], None]] = []

        def step(done: int, all_: int) -> None:
            if not show:
                show.append(stack.enter_context(say.count(unit, all_)))
            show[0](done)

        yield step
