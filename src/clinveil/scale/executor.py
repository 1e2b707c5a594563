"""Executors: local processes, or Ray and Spark in one file of `executors/` each.

An executor opens a `Map`: results in the order of the items, equal for all executors and numbers of
workers. A task whose worker was killed is retried; an error raised by the function is raised by the
map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ClassVar

from pydantic import model_validator

from clinveil.core import Affects, Members, Settings, setting
from clinveil.scale.local import Map, processes, threads

Opener = Callable[[int, str | None, int | None, int | None], AbstractContextManager[Map]]
"""The function that opens an executor; its arguments are workers, address, tasks and
ahead.
"""
EXECUTORS: Members[Opener] = Members(
    "executor",
    {
        "local": "clinveil.scale.executor:open_local",
        "ray": "clinveil.scale.executors.ray:open_ray",
        "spark": "clinveil.scale.executors.spark:open_spark",
    },
)


class ExecutorSettings(Settings):
    """Where the tasks of a command run; the output does not depend on it."""

    AFFECTS: ClassVar[Affects] = "call"
    on: str = setting(
        "local",
        "Run on this machine, on Ray or on Spark; the output is the same.",
        members=EXECUTORS,
    )
    address: str | None = setting(
        None, "Address of a running cluster, such as spark://HOST:7077 (default: start one here)."
    )
    tasks: int | None = setting(
        None, "Tasks sent to a cluster at a time (default: two per core).", ge=1, le=100_000
    )

    @model_validator(mode="after")
    def _cluster(self) -> ExecutorSettings:
        given = "address" if self.address is not None else "tasks" if self.tasks is not None else ""
        if self.on == "local" and given:
            raise ValueError(f"{given} is for a cluster: omit it, or set on to ray or spark")
        return self


@contextmanager
def open_local(
    workers: int, address: str | None, tasks: int | None, ahead: int | None
) -> Iterator[Map]:
    """Open a map over local processes; address and tasks are for clusters (`ExecutorSettings`
    refuses them here).
    """
    yield processes(workers, ahead=ahead)


def opened_for(
    executor: ExecutorSettings, workers: int, *, ahead: int | None = None, threaded: bool = False
) -> AbstractContextManager[Map]:
    """Open the map that a command's settings ask for.

    Args:
        workers: processes to start on this machine, if the executor starts any; never more than it
            has cores.
        ahead: number of items read ahead; two per worker or core if None.
        threaded: use threads for local work, for functions that release the GIL.

    Raises:
        UsageError: an unknown executor. MissingExtra: its extra is not installed.
        InputError: no cluster answers at the address.
    """
    if threaded and executor == ExecutorSettings():
        return nullcontext(threads(workers))
    return EXECUTORS.get(executor.on)(workers, executor.address, executor.tasks, ahead)
