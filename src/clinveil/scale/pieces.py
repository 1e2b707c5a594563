"""A function over the parts of something: where one part is broken the others are done all the same, and it is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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


def each(over: Map, function: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
    """The function's results, in the order of the parts, without those of parts that are broken.

    The function is called in the folder of this process; what it writes is for the owner only.

    Raises:
        Incomplete: at the end, if it raised InputError for some parts: how many, and what is wrong with the first.
    """
    broken, count = [], 0
    for tried in over(partial(_try, function, Path.cwd()), parts):
        count += 1
        if tried.broken:
            broken.append(tried.broken)
        else:
            yield tried.made  # type: ignore[misc]
    if broken:
        more = f"; and {len(broken) - NAMED} more" if len(broken) > NAMED else ""
        what = f"{len(broken)} of {count} parts cannot be read: {'; '.join(broken[:NAMED])}{more}"
        remedy = "mend them, and run the same command again: what is done of the others stays"
        raise Incomplete(what, remedy=remedy)


def _try(function: Callable[[T], R], folder: Path, part: T) -> _Tried[R]:
    if Path.cwd() != folder:  # a worker of a cluster: places are told as they were typed
        os.chdir(folder)
    with owner_only():
        try:
            return _Tried(function(part))
        except InputError as error:
            return _Tried(None, str(error))
