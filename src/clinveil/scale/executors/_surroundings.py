"""Environment variables, signals and private folders for Ray and Spark, restored afterwards.

Also checks that `--address` accepts connections, because both libraries would retry for minutes.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clinveil.core.files import remove

ANSWERS = 10.0  # seconds
LONGEST = 40  # characters of a folder's path that leave enough space for the names of Ray's sockets


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
    default = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="clinveil-", dir=default if len(default) < LONGEST else "/tmp"))
    try:
        yield folder
    finally:
        remove(folder)


@contextmanager
def own_signals() -> Iterator[None]:
    """Restore the signal handlers after the block, because a library's handler would leave scratch files behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
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
    """Return whether HOST:PORT, or one of several separated by commas, accepts a connection within ten seconds."""
    for endpoint in address.split(","):
        host, _, port = endpoint.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWERS).close()
            return True
        except (OSError, ValueError, OverflowError):
            continue
    return False
