"""Apply a function to parts, or to each batch of a source; a damaged part is recorded, the others
are processed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar

from clinveil.core import Incomplete, InputError, owner_only
from clinveil.scale.local import Map, serial

T = TypeVar("T")
R = TypeVar("R")
Item_co = TypeVar("Item_co", covariant=True)
NAMED = 3  # damaged parts listed in a message


@dataclass
class Broken:
    """The parts that cannot be read.

    Attributes:
        errors: the message for each damaged part, by its index. tried: number of parts.
    """

    errors: dict[int, str] = field(default_factory=dict)
    tried: int = 0

    def left(self, parts: Iterable[T]) -> tuple[T, ...]:
        """Return the parts without the damaged ones."""
        return tuple(part for index, part in enumerate(parts) if index not in self.errors)

    def refuse(self) -> None:
        """Raise Incomplete, with the number of damaged parts and the first messages, if there are
        any.
        """
        if self.errors:
            messages = list(self.errors.values())[:NAMED]
            rest = len(self.errors) - NAMED
            omitted = f"; and {rest} more" if rest > 0 else ""
            problem = (
                f"{len(self.errors)} of {self.tried} parts cannot be read:"
                f" {'; '.join(messages)}{omitted}"
            )
            hint = "repair them and run the same command again; finished parts are kept"
            raise Incomplete(problem, hint=hint)


def each(
    executor: Map, function: Callable[[T], R], parts: Iterable[T], broken: Broken | None = None
) -> Iterator[R]:
    """Yield the function's results in the order of the parts, without damaged parts.

    The function runs in the working folder of this process and creates private files.

    Args:
        broken: records the parts for which the function raised InputError; its `refuse` may be
            called later.

    Raises:
        Incomplete: at the end, if there are damaged parts and `broken` is None.
    """
    record = Broken() if broken is None else broken
    for index, (result, error) in enumerate(executor(partial(_try, function, Path.cwd()), parts)):
        record.tried = index + 1
        if error:
            record.errors[index] = error
        else:
            yield result  # type: ignore[misc]
    if broken is None:
        record.refuse()


class Batched(Protocol[Item_co]):
    """A source of batches, such as a corpus; `parts`, if it has any, are such sources that workers
    can open.
    """

    def batches(self) -> Iterator[Item_co]:
        """Yield all batches, from the start."""


def each_batch(executor: Map, function: Callable[[T], R], source: Batched[T]) -> Iterator[R]:
    """Yield the function's result for each batch of a source, in order; parts are read where the
    map runs.

    Raises Incomplete at the end if the map's workers cannot read some parts.
    """
    if executor is not serial and (parts := getattr(source, "parts", ())):
        return chain.from_iterable(each(executor, partial(_in_part, function), parts))
    return executor(function, source.batches())


def _in_part(function: Callable[[T], R], part: Batched[T]) -> list[R]:
    return [function(batch) for batch in part.batches()]


def _try(function: Callable[[T], R], folder: Path, part: T) -> tuple[R | None, str]:
    """Return the function's result, or the reason why the part cannot be read."""
    if Path.cwd() != folder:  # in a cluster's worker: paths may be relative to the driver's folder
        os.chdir(folder)
    with owner_only():
        try:
            return function(part), ""
        except InputError as error:
            return None, str(error)


def shared(value: T, path: Path) -> Callable[[], T]:
    """Write a value to a file that all workers can read; return a function that returns it in any
    process.

    The workers of a machine map its arrays into memory, so they share one copy.
    """
    import joblib  # type: ignore[import-untyped]  # of scikit-learn

    path.unlink(missing_ok=True)  # a process may still map an older file
    joblib.dump(value, path)
    return partial(_loaded, path.absolute(), path.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _loaded(path: Path, stamp: int) -> Any:
    import joblib

    return joblib.load(path, mmap_mode="r")
