"""What every `Map` promises; and functions for its workers, which import this file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from clinveil.core import InputError, LostWorkers, MissingExtra
from clinveil.phi import DeidentifySettings, deidentify_notes

HERE = Path(__file__).parent
MARK = "CLINVEIL_TEST_MARK"


def square(x):
    return x * x


def refuse(x):
    raise InputError("is no number", where=f"row {x}", hint="correct it")


def want(x):
    raise MissingExtra("torch", "neural")


def fail(x):
    raise ValueError("negative")


def same(x):
    return x


def process(x):
    return os.getpid()


def die_once(item):
    """Kill this process with SIGKILL, if no other has."""
    number, mark = item
    if number == 3 and _first(mark):
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die(x):
    os.kill(os.getpid(), signal.SIGKILL)


def _first(mark):
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class MapContract:
    """A class of these for each executor gives a fixture `over`."""

    def test_same_results_in_order(self, over):
        assert list(over(square, range(20))) == [x * x for x in range(20)]
        assert list(over(square, [])) == []

    def test_few_items_are_read_ahead(self, over):
        seen = []
        results = over(square, (seen.append(i) or i for i in range(1000)))
        assert [next(results) for _ in range(3)] == [0, 1, 4]
        results.close() if hasattr(results, "close") else None
        assert len(seen) < 12

    @pytest.mark.parametrize(
        ("function", "kind", "said", "code"),
        [
            (refuse, InputError, "row 1: is no number (correct it)", 3),
            (want, MissingExtra, "torch is not installed (pip install 'clinveil[neural]')", 6),
            (fail, ValueError, "negative", None),
        ],
    )
    def test_an_error_comes_out_as_it_is(self, over, function, kind, said, code):
        with pytest.raises(Exception) as raised:
            list(over(function, [1, 2]))
        assert type(raised.value) is kind and str(raised.value) == said
        assert getattr(raised.value, "exit_code", None) == code

    def test_a_large_batch(self, over):
        batch = pa.record_batch({"text": ["x" * 1000] * 5_000})
        assert batch.nbytes > 5_000_000
        assert [each.equals(batch) for each in over(same, [batch, batch])] == [True, True]


class WorkersContract(MapContract):
    """Of executors whose workers are processes."""

    def test_a_killed_worker_changes_nothing(self, over, tmp_path):
        mark = str(tmp_path / "killed")
        assert list(over(die_once, [(i, mark) for i in range(8)])) == [i * i for i in range(8)]
        assert Path(mark).exists()

    def test_workers_that_are_killed_again_and_again(self, over):
        with pytest.raises(LostWorkers, match="run the same command again") as raised:
            list(over(die, [1]))
        assert raised.value.exit_code == 5
        assert list(over(square, [3])) == [9]


class ElsewhereContract(WorkersContract):
    """Of executors that are not this process's own."""

    on = ""

    def test_a_run_writes_the_same_bytes(self, over, tmp_path):
        rows = [
            f"{i},p{i % 2},Mr. John Smith{i} was seen on 03/0{i + 1}/2019. Call 617-555-010{i}."
            for i in range(4)
        ]
        source = tmp_path / "notes.csv"
        source.write_text("\n".join(["note_id,patient_id,text", *rows]))
        written = []
        for on, workers in (("local", 1), (self.on, 2)):
            settings = DeidentifySettings.model_validate(
                {"executor": {"on": on}, "workers": workers, "seed": 1, "quiet": True}
            )
            deidentify_notes(source, tmp_path / f"{on}.csv", settings, say=len)
            written.append((tmp_path / f"{on}.csv").read_bytes())
        assert written[0] == written[1] and b"617-555" not in written[0]


SCRIPT = """
import os, sys, time
from clinveil.core.errors import install_signal_handlers
from clinveil.scale.executor import ExecutorSettings, opened_for

def work(place):
    open(place, "w").close()
    time.sleep(300)

if __name__ == "__main__":
    install_signal_handlers()
    try:
        with opened_for(ExecutorSettings(on=sys.argv[1]), 2) as over:
            list(over(work, sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
"""


def interrupted(on, folder):
    """Start a run, interrupt it at work; its exit code, what it said, and the processes that it
    left.
    """
    script = folder / "sleepers.py"
    places = [folder / name for name in "abcd"]
    script.write_text(SCRIPT)
    mark = uuid.uuid4().hex
    environ = os.environ | {MARK: mark, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(script), on, *map(str, places)]
    run = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    _until(lambda: places[0].exists() and places[1].exists(), 120)
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=120)
    _until(lambda: not _marked(mark), 30)
    return run.returncode, said.decode(), _marked(mark)


def _until(true, seconds):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.1)


def _marked(mark):
    """The processes that have a mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ended = (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if not ended and f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def listening():
    """The local addresses, as the system writes them, at which this process and those below it
    listen.
    """
    inodes = {os.readlink(fd) for process in _below(os.getpid()) for fd in _files(process)}
    found = []
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            columns = row.split()
            if columns[3] == "0A" and f"socket:[{columns[9]}]" in inodes:
                found.append(columns[1].partition(":")[0])
    return found


LOOPBACK = {"0100007F", "0" * 24 + "01000000", "0000000000000000FFFF00000100007F"}


def _files(process):
    try:
        return [fd for fd in Path(f"/proc/{process}/fd").iterdir() if fd.is_symlink()]
    except OSError:
        return []


def _below(process):
    yield process
    try:
        children = [
            c
            for t in Path(f"/proc/{process}/task").iterdir()
            for c in (t / "children").read_text().split()
        ]
    except OSError:
        return
    for child in children:
        yield from _below(child)
