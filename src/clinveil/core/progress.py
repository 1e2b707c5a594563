"""How far a long piece of work is, for those who can show it: the library itself only counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol, TypeVar, runtime_checkable

from clinveil.core.types import Say

T = TypeVar("T")


@runtime_checkable
class Counting(Protocol):
    """A `Say` that can show a count too, as a terminal does."""

    def count(self, what: str, total: int | None = None) -> AbstractContextManager[Callable[[int], None]]:
        """What takes the number that is done so far."""
        ...


def track(
    items: Iterable[T], what: str, say: Say, total: int | None = None, size: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """The items; their number, or the sum of their sizes, is shown where `say` can show it.

    Args:
        what: what is counted, in the plural. total: how many there will be, if that is known.
    """
    if not isinstance(say, Counting):
        yield from items
        return
    with say.count(what, total) as show:
        done = 0
        for item in items:
            done += size(item)
            show(done)
            yield item


def shown(
    over: Callable[..., Iterator[Any]], what: str, say: Say, total: int | None, size: Callable[[Any], int]
) -> Callable[..., Iterator[Any]]:
    """A map (`scale.Map`) whose results are counted as in `track`."""
    return lambda function, items, /: track(over(function, items), what, say, total, size)


@contextmanager
def steps(what: str, say: Say) -> Iterator[Callable[[int, int], None]]:
    """What takes (done, all) of some work, and shows it where `say` can show it."""
    if not isinstance(say, Counting):
        yield lambda done, all_: None
        return
    with ExitStack() as stack:
        show: list[Callable[[int], None]] = []

        def step(done: int, all_: int) -> None:
            if not show:
                show.append(stack.enter_context(say.count(what, all_)))
            show[0](done)

        yield step
