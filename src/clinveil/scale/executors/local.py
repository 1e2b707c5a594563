"""The spawned processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clinveil.core.errors import UsageError
from clinveil.scale.executor import executors
from clinveil.scale.local import Map, processes


@executors.register("local")
@contextmanager
def local(workers: int, address: str | None, ahead: int | None) -> Iterator[Map]:
    """A map over processes; raises UsageError for an address."""
    if address is not None:
        raise UsageError("local work has no address", hint="leave --address out, or name a cluster with --on")
    yield processes(workers, ahead=ahead)
