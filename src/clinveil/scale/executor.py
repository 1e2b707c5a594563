"""Executors: local processes, or Ray and Spark in one file of `executors/` each.

An executor opens a `Map`: results in the order of the items, equal for all executors and numbers of workers. A task
whose worker was killed is retried; an error raised by the function is raised by the map.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from clinveil.core.errors import UsageError
from clinveil.core.registry import Registry
from clinveil.core.settings import choice, flag
from clinveil.scale.local import Map, processes, threads


class Opener(Protocol):
    """The function that an executor's file registers."""

    def __call__(self, workers: int, address: str | None, ahead: int | None, /) -> AbstractContextManager[Map]:
        """Return a context manager for a map that runs `workers` tasks at a time.

        Args:
            address: of a cluster; None to start a local one.
            ahead: number of items read ahead; two per worker if None.
        """
        ...


executors: Registry[Opener] = Registry("executor", "clinveil.scale.executors", first=("local",))

# Flags of commands that can use an executor, in addition to WORKERS: `on: str = ON`.
ON = choice(executors, "local", "Run on this machine, on Ray or on Spark; the output is the same.")
ADDRESS = flag(None, "Address of a running cluster, such as spark://HOST:7077 (default: start one here).")


@executors.register("local")
@contextmanager
def local(workers: int, address: str | None, ahead: int | None) -> Iterator[Map]:
    """Open a map over local processes. Raises UsageError for an address."""
    if address is not None:
        hint = "omit --address, or choose a cluster with --on"
        raise UsageError("the local executor takes no address", where="--address", hint=hint)
    yield processes(workers, ahead=ahead)


class Spread(Protocol):
    """The settings that select an executor."""

    @property
    def on(self) -> str:
        """Name of the executor."""
        ...

    @property
    def workers(self) -> int:
        """Number of concurrent tasks."""
        ...

    @property
    def address(self) -> str | None:
        """Address of a running cluster."""
        ...


def opened(
    on: str = "local", workers: int = 1, address: str | None = None, *, ahead: int | None = None
) -> AbstractContextManager[Map]:
    """Open the map of an executor; `ahead`: number of items read ahead, two per worker if None.

    Raises:
        UsageError: an unknown executor, or an address for `local`. MissingExtra: its extra is not installed.
        InputError: no cluster answers at the address.
    """
    return executors.get(on)(workers, address, ahead)


def opened_for(settings: Spread, *, ahead: int | None = None, threaded: bool = False) -> AbstractContextManager[Map]:
    """Open the map for the settings `on`, `workers` and `address`. Raises like `opened`.

    `threaded`: use threads for local work, for functions that release the GIL.
    """
    if threaded and settings.on == "local" and settings.address is None:
        return nullcontext(threads(settings.workers))
    return opened(settings.on, settings.workers, settings.address, ahead=ahead)
