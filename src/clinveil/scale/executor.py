"""Who does the work of a run: this machine's processes, a Ray or a Spark. One file of `executors/` each.

An executor opens a `Map`: results in the order of the items, the same for any executor and number of workers. A task
whose worker was killed is tried again; an error that the function raises comes out of the map as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from clinveil.core.registry import Registry
from clinveil.scale.local import Map

Opener = Callable[[int, str | None], AbstractContextManager[Map]]
"""(workers, address of a cluster or None for one of this machine) -> a map, open as long as the `with` lasts."""

executors: Registry[Opener] = Registry("executor", "clinveil.scale.executors", first=("local",))


def opened(on: str = "local", workers: int = 1, address: str | None = None) -> AbstractContextManager[Map]:
    """The map of an executor.

    Raises:
        UsageError: an unknown executor, or an address for `local`. MissingExtra: its extra is not installed.
        InputError: no cluster answers at the address.
    """
    return executors.get(on)(workers, address)
