"""The executor for local spawned processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clinveil.core.errors import UsageError
from clinveil.scale.executor import executors
from clinveil.scale.local import Map, processes


@executors.register("local")
@contextmanager
def local(workers: int, address: str | None, ahead: int | None) -> Iterator[Map]:
    """Open a map over processes. Raises UsageError for an address."""
    if address is not None:
        hint = "omit --address, or choose a cluster with --on"
        raise UsageError("the local executor takes no address", where="--address", hint=hint)
    yield processes(workers, ahead=ahead)
