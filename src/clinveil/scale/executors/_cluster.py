"""Shared by Ray and Spark: run a function in remote tasks, in an environment that is restored
afterwards.

An error of the function is returned as a value. Otherwise Ray and Spark would put it into their own
reports, which quote rows, and retry a task that always fails. `--address` must accept connections,
because both libraries would retry for minutes.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from clinveil.core import InputError, code_version, owner_only
from clinveil.scale.local import in_order

Sent = TypeVar("Sent")
SAME = "install the same clinveil, with the same Python and libraries, on every node"
NOWHERE = "http://127.0.0.1:9"  # an unreachable proxy: see ray.py
ANSWERS = 10.0  # seconds
LONGEST = 40  # characters of a folder's path that leave enough space for the names of Ray's sockets


@dataclass(frozen=True)
class RemoteOutcome:
    """The outcome of one item: a result, or the error that the function raised."""

    result: Any = field(default=None, repr=False)
    error: Exception | None = field(default=None, repr=False)

    def get(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result


@dataclass(frozen=True)
class RemoteCall:
    """A function for remote workers: checks the code version, sets the working folder, and writes
    private files.

    Attributes:
        code: the driver's `code_version`, which must match the worker's. folder: base of relative
            paths.
    """

    function: Callable[[Any], Any] = field(repr=False)
    code: str = field(default_factory=code_version)
    folder: Path = field(default_factory=Path.cwd)

    def __call__(self, item: Any) -> RemoteOutcome:
        """Apply the function; an exception becomes an `RemoteOutcome`."""
        if code_version() != self.code:
            return RemoteOutcome(
                error=InputError(
                    "a worker has another version of clinveil", where="--on", hint=SAME
                )
            )
        with suppress(OSError):
            os.chdir(self.folder)
        for name in ("http_proxy", "HTTP_PROXY"):
            if os.environ.get(name) == NOWHERE:
                del os.environ[name]
        try:
            with owner_only():
                return RemoteOutcome(self.function(item))
        except Exception as error:  # noqa: BLE001  it is raised when the result is fetched
            try:
                return RemoteOutcome(error=deepcopy(error))
            # A library's exception that cannot be copied cannot be sent either.
            except Exception:  # noqa: BLE001
                return RemoteOutcome(error=RuntimeError(type(error).__name__))


def outcomes(
    send: Callable[[Any], Sent],
    items: Iterable[Any],
    fetch: Callable[[Sent], RemoteOutcome],
    cancel: Callable[[Sent], object],
    *,
    slots: int,
    tasks: int | None,
    ahead: int | None,
) -> Iterator[Any]:
    """Yield the results of a job's items in order; the driver opens no thread or process for them.

    Args:
        send: submits an item without waiting. fetch: waits for its outcome. cancel: stops it; its
            errors are ignored.
        slots: number of tasks that the cluster can run now. tasks: number of tasks to have on the
            cluster at a time.
        ahead: without `tasks`, number of items to submit in advance, by default two per slot.
    """

    def stop(sent: Sent) -> None:
        with suppress(Exception):
            cancel(sent)

    for outcome in in_order(
        map(send, items), fetch, stop, tasks - 1 if tasks else ahead or 2 * slots
    ):
        yield outcome.get()


def foreign() -> InputError:
    """Return the error for a worker that cannot load the function or an item."""
    return InputError("a worker cannot load this command's code or items", where="--on", hint=SAME)


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the block and for processes started in it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a private folder, removed at the end."""
    parent = tempfile.gettempdir() if len(tempfile.gettempdir()) < LONGEST else "/tmp"
    with tempfile.TemporaryDirectory(prefix="clinveil-", dir=parent) as folder:
        yield Path(folder)


@contextmanager
def own_signals() -> Iterator[None]:
    """Restore the signal handlers after the block, because a library's handler would leave scratch
    files behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@contextmanager
def hushed() -> Iterator[None]:
    """Discard stderr in the block, including output of native libraries."""
    saved = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def accepts_connections(address: str) -> bool:
    """Return whether HOST:PORT, or one of several separated by commas, accepts a connection within
    ten seconds.
    """
    for endpoint in address.split(","):
        host, _, port = endpoint.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWERS).close()
            return True
        except (OSError, ValueError, OverflowError):
            continue
    return False
