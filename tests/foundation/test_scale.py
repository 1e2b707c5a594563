"""Every Map gives the same results in the same order."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clinveil.scale import processes, serial, threads


def square(x: int) -> int:
    if x < 0:
        raise ValueError("negative")
    return x * x


MAPS = {"serial": serial, "threads": threads(3), "one": processes(1), "processes": processes(2)}


@pytest.mark.parametrize("name", MAPS)
def test_same_results_same_order(name):
    assert list(MAPS[name](square, range(50))) == [x * x for x in range(50)]
    assert list(MAPS[name](square, [])) == []


@pytest.mark.parametrize("name", MAPS)
def test_a_failure_comes_through(name):
    with pytest.raises(ValueError, match="negative"):
        list(MAPS[name](square, [1, -1, 2]))


def test_threads_read_few_items_ahead():
    seen = []

    def items():
        for i in range(1000):
            seen.append(i)
            yield i

    results = threads(2)(square, items())
    next(results)
    assert len(seen) < 20


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
