"""A function over the parts of something: where one part is broken the others are done all the same, and it is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from clinveil.core.errors import Incomplete, InputError
from clinveil.core.files import owner_only
from clinveil.scale.local import Map

T = TypeVar("T")
R = TypeVar("R")
NAMED = 3  # broken parts that a message names


@dataclass(frozen=True)
class _Tried(Generic[R]):
    """What became of one part: what the function gave, or why the part cannot be read."""

    made: R | None
    broken: str = ""


@dataclass
class Broken:
    """The parts that cannot be read.

    Attributes:
        said: what is wrong with each, by its place among the parts. tried: how many parts there are.
    """

    said: dict[int, str] = field(default_factory=dict)
    tried: int = 0

    def left(self, parts: Iterable[T]) -> tuple[T, ...]:
        """The parts without the broken ones."""
        return tuple(part for at, part in enumerate(parts) if at not in self.said)

    def refuse(self) -> None:
        """Raise Incomplete if there are any: how many, and what is wrong with the first."""
        if self.said:
            said, rest = list(self.said.values())[:NAMED], len(self.said) - NAMED
            more = f"; and {rest} more" if rest > 0 else ""
            what = f"{len(self.said)} of {self.tried} parts cannot be read: {'; '.join(said)}{more}"
            hint = "mend them, and run the same command again: what is done of the others stays"
            raise Incomplete(what, hint=hint)


def each(over: Map, function: Callable[[T], R], parts: Iterable[T], broken: Broken | None = None) -> Iterator[R]:
    """The function's results, in the order of the parts, without those of parts that are broken.

    The function is called in the folder of this process; what it writes is for the owner only.

    Args:
        broken: is told of the parts for which the function raised InputError, and may refuse them later.

    Raises:
        Incomplete: at the end, if there are broken parts and nobody else is told of them.
    """
    found = Broken() if broken is None else broken
    for at, tried in enumerate(over(partial(_try, function, Path.cwd()), parts)):
        found.tried = at + 1
        if tried.broken:
            found.said[at] = tried.broken
        else:
            yield tried.made  # type: ignore[misc]
    if broken is None:
        found.refuse()


def _try(function: Callable[[T], R], folder: Path, part: T) -> _Tried[R]:
    if Path.cwd() != folder:  # a worker of a cluster: places are told as they were typed
        os.chdir(folder)
    with owner_only():
        try:
            return _Tried(function(part))
        except InputError as error:
            return _Tried(None, str(error))
