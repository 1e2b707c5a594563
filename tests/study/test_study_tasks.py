"""Tasks: named by what they depend on, done once, begun anew after a kill; one run at a time in a
folder.
"""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from clinveil.core.errors import InputError, UsageError
from clinveil.scale import processes, serial
from clinveil.scale.tasks import Store, name_of, perform, perform_all, study_folder


@dataclass(frozen=True)
class Square:
    """A task that leaves a mark at each run beside its result."""

    number: int
    marks: Path

    @property
    def title(self):
        return f"square {self.number}"

    def identity(self):
        return {"number": self.number}

    def __call__(self, folder, store):
        with (self.marks / "marks").open("a") as file:
            file.write(f"{self.number}\n")
        (folder / "made").write_text("made")
        return {"square": self.number**2}


@dataclass(frozen=True)
class Cube(Square):
    """Another kind of task with the same inputs."""


def marks(folder):
    return sorted((folder / "marks").read_text().split())


def test_a_task_is_named_by_its_kind_and_inputs_and_not_by_paths(tmp_path):
    assert name_of(Square(2, tmp_path)) == name_of(Square(2, tmp_path / "elsewhere"))
    names = {
        name_of(work) for work in (Square(2, tmp_path), Square(3, tmp_path), Cube(2, tmp_path))
    }
    assert len(names) == 3
    assert all(len(name) == 32 and int(name, 16) >= 0 for name in names)


def test_a_task_is_done_once_and_its_result_is_kept(tmp_path):
    store = Store(tmp_path / "tasks")
    work = Square(3, tmp_path)
    assert not store.done(work)
    assert [perform(store, work), perform(store, work)] == [{"square": 9}] * 2
    assert store.done(work)
    assert store.result(work) == {"square": 9}
    assert marks(tmp_path) == ["3"]


def test_a_task_that_was_cut_off_starts_over_in_an_empty_folder(tmp_path):
    store = Store(tmp_path / "tasks")
    work = Square(4, tmp_path)
    perform(store, work)
    folder = store.folder(work)
    (folder / "done").unlink()
    (folder / "left over").write_text("half")
    assert not store.done(work)
    perform(store, work)
    assert not (folder / "left over").exists()
    assert marks(tmp_path) == ["4", "4"]


def test_what_tasks_write_is_for_their_owner_only(tmp_path):
    store = Store(tmp_path / "tasks")
    perform(store, Square(1, tmp_path))
    for path in store.folder(Square(1, tmp_path)).rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.folder(Square(1, tmp_path)).stat().st_mode) == 0o700


def test_a_result_that_cannot_be_read_is_one_line_with_a_remedy(tmp_path):
    store = Store(tmp_path / "tasks")
    work = Square(5, tmp_path)
    with pytest.raises(InputError, match="no readable result"):
        store.result(work)
    perform(store, work)
    (store.folder(work) / "result.json").write_text("{")
    with pytest.raises(InputError, match="run the same command again"):
        store.result(work)


@pytest.mark.parametrize("over", [serial, processes(2)], ids=["serial", "processes"])
def test_only_what_is_not_done_is_done(tmp_path, over):
    store = Store(tmp_path / "tasks")
    said = []
    works = [Square(number, tmp_path) for number in range(4)]
    perform(store, works[2])
    perform_all(store, works, over, said.append)
    assert [store.result(work)["square"] for work in works] == [0, 1, 4, 9]
    assert marks(tmp_path) == ["0", "1", "2", "3"]
    assert said == ["1 of 3: square 0", "2 of 3: square 1", "3 of 3: square 3"]


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="not a study folder"), study_folder(out, force=True):
        pass
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


def test_one_run_at_a_time_and_the_folder_says_that_it_is_secret(tmp_path):
    out = tmp_path / "out"
    with study_folder(out):
        assert "must not leave" in (out / "SECRET.txt").read_text()
        assert stat.S_IMODE(out.stat().st_mode) == 0o700
        with pytest.raises(UsageError, match="another run"), study_folder(out):
            pass
    with study_folder(out) as store:  # the lock is free again
        perform(store, Square(1, tmp_path))
    with study_folder(out) as store:
        assert store.done(Square(1, tmp_path))
    with study_folder(out, force=True) as store:
        assert not store.done(Square(1, tmp_path))


@pytest.mark.parametrize("link", [True, False], ids=["link", "file"])
@pytest.mark.parametrize("force", [True, False], ids=["force", "goes on"])
def test_a_lock_of_somebody_else_is_refused_and_left_alone(tmp_path, link, force):
    out = tmp_path / "out"
    theirs = tmp_path / "precious"
    out.mkdir(mode=0o700)
    if link:
        (out / "lock").symlink_to("../precious")
    else:
        theirs = out / "lock"
    theirs.write_text("mine")
    with pytest.raises(UsageError, match="out: contains a lock"), study_folder(out, force=force):
        pass
    assert theirs.read_text() == "mine"
    assert [path.name for path in out.iterdir()] == ["lock"]


def test_what_somebody_put_into_a_task_is_kept(tmp_path):
    with study_folder(tmp_path / "out") as store:
        perform(store, Square(1, tmp_path))
    mine = store.folder(Square(1, tmp_path)) / "mine.txt"
    mine.write_text("mine")
    with (
        pytest.raises(UsageError, match="did not write"),
        study_folder(tmp_path / "out", force=True),
    ):
        pass
    assert mine.read_text() == "mine" and store.done(Square(1, tmp_path))


SLEEPER = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from clinveil.scale import serial
from clinveil.scale.tasks import perform_all, study_folder

@dataclass(frozen=True)
class Sleeper:
    number: int
    title = "sleeper"
    def identity(self):
        return {"number": self.number}
    def __call__(self, folder, store):
        (folder / "begun").write_text("begun")
        if self.number == 1 and sys.argv[2] == "slow":
            time.sleep(600)
        return {"number": self.number}

with study_folder(Path(sys.argv[1])) as store:
    works = [Sleeper(n) for n in range(3)]
    perform_all(store, works, serial, lambda line: print(line, flush=True))
    print([store.result(work) for work in works])
"""


def test_after_a_kill_the_same_command_goes_on(tmp_path):
    out = tmp_path / "out"
    run = [sys.executable, "-c", SLEEPER, str(out)]
    with subprocess.Popen([*run, "slow"], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline().startswith("1 of 3")
        while len(list(out.glob("tasks/*/begun"))) < 2:
            time.sleep(0.02)
        first.kill()
    assert len(list(out.glob("tasks/*/done"))) == 1
    done = subprocess.run([*run, "quick"], capture_output=True, text=True, check=True).stdout
    assert "1 of 2" in done
    assert json.loads(done.splitlines()[-1].replace("'", '"')) == [{"number": n} for n in range(3)]


def test_a_secret_folder_of_another_command_is_no_study(tmp_path):
    (tmp_path / "medtext").mkdir(mode=0o700)
    for name in ("SECRET.txt", "train.parquet"):
        (tmp_path / "medtext" / name).write_text("mine")
    with pytest.raises(UsageError, match="not a study folder"), study_folder(tmp_path / "medtext"):
        pass
    assert (tmp_path / "medtext" / "SECRET.txt").read_text() == "mine"


def test_a_study_stopped_before_its_first_task_goes_on(tmp_path):
    with study_folder(tmp_path / "study") as store:
        store.root.rmdir()
    with study_folder(tmp_path / "study") as store:
        assert store.root.is_dir()
