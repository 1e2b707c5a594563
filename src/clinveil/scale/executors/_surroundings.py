"""What Ray and Spark are started in: variables, signals and a private folder, each as before when they are gone.

And whether anybody takes a connection where `--address` points: both would try for minutes.
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
LONGEST = 40  # characters of a folder in which the names of Ray's sockets are still short enough for the system


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for the block, and for what is started in it."""
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
    """A private folder, removed at the end."""
    usual = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="clinveil-", dir=usual if len(usual) < LONGEST else "/tmp"))
    try:
        yield folder
    finally:
        remove(folder)


@contextmanager
def own_signals() -> Iterator[None]:
    """What signals did before they do after the block too: a library's handler would leave scratch behind."""
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
    """Nothing on stderr in the block, not even by libraries that write there by themselves."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def anybody_at(address: str) -> bool:
    """Whether HOST:PORT, or one of several behind commas, takes a connection within ten seconds."""
    for place in address.split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWERS).close()
            return True
        except (OSError, ValueError, OverflowError):
            continue
    return False
