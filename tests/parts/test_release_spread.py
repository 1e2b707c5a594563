"""`clinveil release` over part files by processes, Ray and Spark: the same bytes, also when one is
killed at work.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from held_workers import alive, gone, held, killer, told, unmoved
from part_cases import measured_release, release_command, small_vectors, without_attacks

from clinveil.cli import main
from clinveil.releases import writing
from clinveil.scale import ExecutorSettings, opened_for

HERE = Path(__file__).parent
DRIVER = """
import sys
from functools import partial
from pathlib import Path
from held_workers import held
from clinveil.cli.entry import main
from clinveil.releases import writing

if __name__ == "__main__":
    writing.perform = partial(held, sys.argv[1])
    main(sys.argv[2:])
"""


@pytest.fixture(autouse=True)
def no_attacks(monkeypatch):
    without_attacks(monkeypatch)


@pytest.fixture(scope="module")
def vectors(dealt):
    return small_vectors(dealt, "of spread")


@pytest.fixture(scope="module")
def alone(dealt, vectors):
    """All that is made of the parts in one process, in line."""
    with pytest.MonkeyPatch.context() as patch:
        without_attacks(patch)
        assert main(release_command(dealt, dealt / "alone", vectors)) == 4
    return made(dealt / "alone")


def made(out):
    """The bytes of the released parts, of the crosswalk, and of the channel."""
    vault = out / "vault"
    places = [
        vault / "refused/notes",
        vault / "crosswalk.parquet",
        vault / "channel",
    ]
    return {
        str(file.relative_to(out)): file.read_bytes()
        for place in places
        for file in sorted(place.rglob("*"))
        if file.is_file()
    }


@contextmanager
def started(on, *address):
    """Two worker processes that can import what is beside this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{HERE}{os.pathsep}{os.environ['PYTHONPATH']}")
        with opened_for(ExecutorSettings(on=on, address=next(iter(address), None)), 2):
            yield on


class Spread:
    """One class of these for each executor; a fixture `on` starts it."""

    def command(self, dealt, out, vectors, on, *flags):
        return release_command(dealt, out, vectors, "parts", "--on", on, "--workers", "2", *flags)

    def test_a_worker_is_killed_in_the_middle(
        self, dealt, vectors, alone, on, tmp_path, monkeypatch
    ):
        out = tmp_path / "out"
        mark = tmp_path / "mark"
        monkeypatch.setattr(writing, "perform", partial(held, str(mark)))
        with killer(mark) as seen:
            assert main(self.command(dealt, out, vectors, on)) == 4
        assert seen["was alive"] and not alive(seen["pid"]) and seen["pid"] != seen["driver"]
        assert "notes.parquet" in seen["made"] and not {"result.json", "done"} & set(seen["made"])
        assert made(out) == alone

    @pytest.mark.slow
    def test_a_driver_is_killed_and_started_again(self, dealt, vectors, alone, on, tmp_path):
        out = tmp_path / "out"
        mark = tmp_path / "mark"
        script = tmp_path / "driver.py"
        script.write_text(DRIVER)
        asked = self.command(dealt, out, vectors, on)
        path = f"{HERE}{os.pathsep}{os.environ['PYTHONPATH']}"
        driver = subprocess.Popen(
            [sys.executable, script, mark, *asked], env=os.environ | {"PYTHONPATH": path}
        )
        worker = told(mark)["pid"]
        driver.send_signal(signal.SIGKILL)
        assert driver.wait() == -signal.SIGKILL and gone(worker)
        looked = {
            file: file.stat().st_mtime_ns for file in (out / "vault/tasks").rglob("spans.bin")
        }
        assert len(looked) == 3 and not (out / "vault/refused").exists()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writing, "perform", partial(unmoved, looked))
            assert main(asked) == 4
        assert made(out) == alone

    @pytest.mark.slow
    def test_every_note_is_measured_alike(self, dealt, on, tmp_path, monkeypatch):
        flags = {"here": (), "there": ("--on", on, "--workers", "2")}
        here, there = (
            measured_release(dealt, tmp_path / name, monkeypatch, *how)
            for name, how in flags.items()
        )
        assert here == there and any("of sampled patients" in one["control_is"] for one in here)


class TestProcesses(Spread):
    @pytest.fixture
    def on(self):
        return "local"


@pytest.fixture(scope="module")
def ray():
    pytest.importorskip("ray")
    with started("ray") as on:
        yield on


@pytest.fixture(scope="module")
def spark():
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java is here")
    with started("spark", "local-cluster[2,1,1024]") as on:
        yield on


@pytest.mark.slow
class TestRay(Spread):
    @pytest.fixture
    def on(self, ray):
        return ray


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
class TestSpark(Spread):
    @pytest.fixture
    def on(self, spark):
        return spark
