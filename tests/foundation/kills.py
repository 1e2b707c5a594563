"""Runs that are killed at each of their file operations in turn."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

OPERATIONS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "fcntl.flock"}


def killed_at_each(run: Callable[[Path], object], root: Path) -> Iterator[Path]:
    """Yield the folder of each killed run, until a run ends before its kill; `run` gets a new
    folder below `root`.
    """
    for number in count(1):
        folder = root / str(number)
        folder.mkdir()
        if child := os.fork():
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code != -signal.SIGKILL:
                assert code == 0 and number > 5
                return
            yield folder
            continue
        try:
            kill_at(number)
            run(folder)
            os._exit(0)
        finally:
            os._exit(1)


def kill_at(number: int) -> None:
    """Kill this process before its file operation of this number."""
    left = number

    def hook(event: str, arguments: tuple) -> None:
        nonlocal left
        if event in OPERATIONS or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
