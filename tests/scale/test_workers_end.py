"""Workers do not outlive the run that started them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SLEEPERS = """
import os, sys, time
from clinveil.scale import processes

def work(item):
    print(os.getpid(), flush=True)
    time.sleep(120)

if __name__ == "__main__":
    if sys.argv[1] == "raise":
        import signal
        def stop(number, frame):
            raise KeyboardInterrupt
        signal.signal(signal.SIGTERM, stop)
    list(processes(2)(work, range(4)))
"""


@pytest.mark.parametrize(("how", "number"), [("kill", signal.SIGKILL), ("raise", signal.SIGTERM)])
def test_workers_do_not_outlive_the_run(how, number, tmp_path):
    script = tmp_path / "sleepers.py"
    script.write_text(SLEEPERS)
    with (tmp_path / "out").open("wb") as out:
        run = subprocess.Popen(
            [sys.executable, str(script), how], stdout=out, stderr=subprocess.DEVNULL
        )
    workers = []
    for _ in range(600):
        workers = [int(line) for line in (tmp_path / "out").read_text().split()]
        if len(workers) == 2:
            break
        time.sleep(0.1)
    run.send_signal(number)
    run.wait(60)
    for _ in range(600):
        if not any(_alive(worker) for worker in workers):
            break
        time.sleep(0.1)
    assert len(workers) == 2 and not any(_alive(worker) for worker in workers)


def _alive(process):
    """Whether a process runs; one that has ended but was not yet reaped does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
