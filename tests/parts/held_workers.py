"""What workers do so that a test can kill one in the middle of a part; they import this file."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from clinveil.core import files_in, private_text
from clinveil.releases import writing
from clinveil.scale import tasks

PATIENCE = 120.0  # seconds


def held(mark, store, work):
    """As `perform`, but the first worker that has written the notes of a part waits there; `mark`
    says who it is.
    """
    real = writing.Target.check

    def wait(self, *given):
        if first(mark):
            private_text(
                Path(mark),
                json.dumps({"pid": os.getpid(), "made": sorted(files_in(self.path.parent))}),
            )
            time.sleep(PATIENCE)
        return real(self, *given)

    writing.Target.check = wait
    try:
        return tasks.perform(store, work)
    finally:
        writing.Target.check = real


def unmoved(files, store, work):
    """As `perform`, for parts that were looked through before and were not again."""
    assert all(file.stat().st_mtime_ns == time for file, time in files.items())
    return tasks.perform(store, work)


def first(mark):
    """Whether nobody asked before, in any process."""
    try:
        os.close(os.open(f"{mark}.first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def told(mark):
    """What the worker that waits says."""
    end = time.monotonic() + PATIENCE
    while not mark.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return json.loads(mark.read_text())


def gone(pid):
    """Whether a process has ended, within a while."""
    end = time.monotonic() + 30
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.1)
    return not alive(pid)


def alive(pid):
    """Whether a process runs: one that has ended and was not asked for its exit code does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def killer(mark):
    """Kills the worker that waits, with SIGKILL; gives what was seen: who it was, and what it had
    made by then.
    """
    seen = {}

    def kill():
        seen.update(told(mark), driver=os.getpid())
        seen["was alive"] = alive(seen["pid"])
        os.kill(seen["pid"], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    yield seen
    thread.join()
