"""Who does the work of a run: this machine's processes, a Ray or a Spark. One file of `executors/` each.

An executor opens a `Map`: results in the order of the items, the same for any executor and number of workers. A task
whose worker was killed is tried again; an error that the function raises comes out of the map as it is.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from clinveil.core.registry import Registry
from clinveil.core.settings import choice, flag
from clinveil.scale.local import Map, threads


class Opener(Protocol):
    """What an executor's file registers."""

    def __call__(self, workers: int, address: str | None, ahead: int | None, /) -> AbstractContextManager[Map]:
        """A map, open as long as the `with` lasts, of so many tasks at a time.

        Args:
            address: of a cluster; None for one of this machine.
            ahead: items read ahead of the result that is waited for; two a worker if None.
        """
        ...


executors: Registry[Opener] = Registry("executor", "clinveil.scale.executors", first=("local",))

# Flags of the commands whose work can be spread, beside WORKERS: `on: str = ON`.
ON = choice(executors, "local", "Run on this machine, on Ray or on Spark; the output is the same.")
ADDRESS = flag(None, "Address of a running cluster, such as spark://HOST:7077 (default: start one here).")


class Spread(Protocol):
    """The settings that say who does the work."""

    @property
    def on(self) -> str:
        """The executor."""
        ...

    @property
    def workers(self) -> int:
        """Tasks at a time."""
        ...

    @property
    def address(self) -> str | None:
        """Of a running cluster."""
        ...


def opened(
    on: str = "local", workers: int = 1, address: str | None = None, *, ahead: int | None = None
) -> AbstractContextManager[Map]:
    """The map of an executor; `ahead`: items read ahead of the result that is waited for, two a worker if None.

    Raises:
        UsageError: an unknown executor, or an address for `local`. MissingExtra: its extra is not installed.
        InputError: no cluster answers at the address.
    """
    return executors.get(on)(workers, address, ahead)


def opened_for(settings: Spread, *, ahead: int | None = None, threaded: bool = False) -> AbstractContextManager[Map]:
    """The map that `--on`, `--workers` and `--address` ask for; raises what `opened` raises.

    `threaded`: for functions that release the GIL: threads of this process, where the work stays on this machine.
    """
    if threaded and settings.on == "local" and settings.address is None:
        return nullcontext(threads(settings.workers))
    return opened(settings.on, settings.workers, settings.address, ahead=ahead)
