"""Whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from kills import killed_at_each

from clinveil.core import (
    UsageError,
    atomic,
    locked,
    private_folder,
    private_text,
    refuse_nested,
    save_array,
    workplace,
    write_findings,
)


def test_success_renames_and_is_private(tmp_path):
    out = tmp_path / "a" / "x.csv"
    with atomic(out) as part:
        part.write_text("done")
        assert not out.exists()
    assert out.read_text() == "done"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert list(out.parent.iterdir()) == [out]


def test_a_folder_is_private_all_the_way_down(tmp_path):
    with atomic(tmp_path / "d") as part:
        (part / "sub").mkdir(parents=True)
        (part / "sub" / "f").write_text("1")
    assert stat.S_IMODE((tmp_path / "d").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "d" / "sub" / "f").stat().st_mode) == 0o600


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_failure_leaves_nothing(tmp_path, failure):
    with pytest.raises(failure), atomic(tmp_path / "x") as part:
        part.write_text("half")
        raise failure
    assert list(tmp_path.iterdir()) == []


def test_an_existing_output_is_refused_or_kept_until_success(tmp_path):
    out = tmp_path / "x"
    out.write_text("old")
    with pytest.raises(UsageError, match="--force"), atomic(out):
        pass
    with pytest.raises(ValueError, match="stop"), atomic(out, force=True) as part:
        part.write_text("half")
        raise ValueError("stop")
    assert out.read_text() == "old"
    with atomic(out, force=True) as part:
        part.write_text("new")
    assert out.read_text() == "new"
    assert list(tmp_path.iterdir()) == [out]


def test_files_of_the_user_beside_the_output_stay(tmp_path):
    out = tmp_path / "x"
    mine = ["x.part", "x.old", ".x.0123abcd.part", ".x.part", "x.scratch.part"]
    for name in ("x", *mine):
        (tmp_path / name).write_text("mine")
    with atomic(out, force=True) as part:
        part.write_text("new")
    private_text(out, "text")
    assert {name: (tmp_path / name).read_text() for name in mine} == dict.fromkeys(mine, "mine")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["x", *mine])


KILLED = """
import os, sys
from contextlib import suppress
from pathlib import Path
from clinveil.core.atomic_files import atomic
with atomic(Path(sys.argv[1]), force=True) as part:
    part.write_text("half")
    if sys.argv[2] == "between":
        Path(sys.argv[1]).replace(part.with_name(part.name + ".old"))
    os.kill(os.getpid(), 9)
"""


def killed(out, when):
    assert subprocess.run([sys.executable, "-c", KILLED, out, when], check=False).returncode == -9
    (left,) = out.parent.glob(f".{out.name}.*.part")
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    return left


def test_what_a_killed_run_left_goes_with_the_next_run_of_the_same_name(tmp_path):
    killed(tmp_path / "x", "early")
    other = killed(tmp_path / "y", "early")
    with atomic(tmp_path / "x") as part:
        part.write_text("done")
    assert sorted(tmp_path.iterdir()) == sorted([other, tmp_path / "x"])


def test_a_run_killed_at_any_file_operation_leaves_nothing_to_the_next(tmp_path):
    def run(folder):
        with atomic(folder / "x") as part:
            part.write_text("done")
        write_findings(folder / "findings.json", "test", [], seed=1)

    for folder in killed_at_each(run, tmp_path):
        with suppress(UsageError):  # already exists
            run(folder)
        write_findings(folder / "findings.json", "test", [], seed=1)
        assert sorted(path.name for path in folder.iterdir()) == ["findings.json", "x"]
        assert (folder / "x").read_text() == "done"


def test_an_output_that_a_killed_run_set_aside_comes_back(tmp_path):
    out = tmp_path / "x"
    out.write_text("old")
    killed(out, "between")
    assert not out.exists()
    with pytest.raises(UsageError, match="--force"), atomic(out):
        pass
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_a_folder_of_such_a_name_without_our_lock_or_mode_stays(tmp_path):
    theirs = [tmp_path / f".x.{n}{'0' * 7}.part" for n in range(3)]
    for folder, (mode, lock) in zip(
        theirs, [(0o700, "other"), (0o755, "x.lock"), (0o500, "x.lock")], strict=True
    ):
        folder.mkdir()
        (folder / lock).touch()
        folder.chmod(mode)
    with workplace(tmp_path / "x"):
        pass
    assert sorted(tmp_path.iterdir()) == theirs


def test_runs_at_the_same_time_leave_each_other_alone(tmp_path):
    out = tmp_path / "x"
    with atomic(out, force=True) as first:
        first.write_text("first")
        with atomic(out, force=True) as second:
            assert first.read_text() == "first"
            second.write_text("second")
        assert out.read_text() == "second"
    assert out.read_text() == "first"
    with pytest.raises(UsageError, match="already exists"), atomic(tmp_path / "y") as part:
        part.write_text("mine")
        (tmp_path / "y").write_text("theirs")
    assert (tmp_path / "y").read_text() == "theirs"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x", "y"]


def test_a_name_that_looks_like_a_pattern(tmp_path):
    with atomic(tmp_path / "a.*[x] é") as part:
        part.mkdir()
    assert [p.name for p in tmp_path.iterdir()] == ["a.*[x] é"]


def test_a_text_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "t").write_text("old")
    with pytest.raises(UnicodeEncodeError):
        private_text(tmp_path / "t", "\ud800")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("t", "old")]


def folder_of(path, mode, *names):
    path.mkdir()
    for name in names:
        (path / name).write_text("x")
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("mode", "names"), [(0o755, "a"), (0o770, "a"), (0o1777, ""), (0o1777, "a"), (0o701, "a")]
)
def test_a_shared_folder_is_never_shut(tmp_path, mode, names):
    folder = folder_of(tmp_path / "f", mode, *names)
    with pytest.raises(UsageError, match="chmod 700"):
        private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == mode


@pytest.mark.parametrize(("mode", "names"), [(0o755, ""), (0o700, "a"), (0o700, "")])
def test_an_empty_or_private_folder_is_taken(tmp_path, mode, names):
    folder = folder_of(tmp_path / "f", mode, *names)
    assert private_folder(folder) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [p.name for p in folder.iterdir()] == [*names]


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "f").touch()
    with pytest.raises(UsageError, match="f: not a folder"):
        private_folder(tmp_path / "f")


@pytest.mark.parametrize(
    ("out", "vault", "notes", "said"),
    [
        ("a", "a", "n", "OUT and the vault are the same path"),
        ("a", "a/v", "n", "the vault is inside OUT"),
        ("v/a/b", "v", "n", "OUT is inside the vault"),
        ("notes", None, "notes", "OUT and NOTES are the same path"),
        ("notes/../a/./v", "a", "n", "OUT is inside the vault"),
        ("link", None, "notes", "OUT and NOTES are the same path"),
        ("link/out", None, "notes", "OUT is inside NOTES"),
        ("a", "a.vault", "link/../a/n", "NOTES is inside OUT"),
        ("hard.csv", None, "file.csv", "OUT and NOTES are the same path"),
    ],
)
def test_places_inside_one_another_are_refused(tmp_path, out, vault, notes, said):
    (tmp_path / "notes").mkdir()
    (tmp_path / "link").symlink_to("notes")
    (tmp_path / "file.csv").touch()
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "file.csv")
    with pytest.raises(UsageError, match=said):
        refuse_nested(
            OUT=tmp_path / out, the_vault=vault and tmp_path / vault, NOTES=tmp_path / notes
        )


def test_places_beside_one_another_are_fine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuse_nested(
        OUT=tmp_path / "o", the_vault=tmp_path / "o.vault", NOTES=tmp_path / "o.csv", none=None
    )
    refuse_nested(OUT=tmp_path / "out", NOTES=tmp_path / "out" / ".." / "notes")
    with pytest.raises(UsageError, match="the same path"):
        refuse_nested(OUT=tmp_path / "a", NOTES=(tmp_path / "a").relative_to(tmp_path))


HOLD = """
import sys
from contextlib import suppress
from pathlib import Path
from clinveil.core.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_held_against_another_process_and_goes_with_it(tmp_path):
    lock = tmp_path / "v" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="v: another run is using this folder"), locked(lock):
            pass
        assert lock.exists()
        other.kill()
    with locked(lock):
        assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert not lock.exists()
    with pytest.raises(ValueError, match="stop"), locked(lock):
        raise ValueError("stop")
    assert not lock.exists()


ARRAYS = [
    np.arange(12, dtype=np.float32).reshape(3, 4),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.arange(10)[::2],
    np.array([True, False]),
    np.zeros((0, 5), np.int32),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_an_array_is_written_as_numpy_does(tmp_path, array):
    save_array(tmp_path / "ours.npy", array)
    np.save(tmp_path / "numpy.npy", np.ascontiguousarray(array))
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()
    assert np.array_equal(np.load(tmp_path / "ours.npy"), array)


FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from clinveil.core.files import save_array
from clinveil.core.atomic_files import atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    with atomic(Path(sys.argv[1])) as part:
        save_array(part, np.zeros(100_000))
except OSError as error:
    print(error.errno)
"""


def test_a_failed_write_of_an_array_keeps_its_cause(tmp_path):
    said = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "x"], capture_output=True, text=True, check=True
    )
    assert int(said.stdout) == errno.EFBIG
    assert list(tmp_path.iterdir()) == []
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="No space left") as failure:
            save_array(type(tmp_path)("/dev/full"), np.zeros(100_000))
        assert failure.value.errno == errno.ENOSPC
