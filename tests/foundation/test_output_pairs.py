"""A vault and the notes made with it: wherever the run is stopped, both are the old ones, or both the new."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clinveil.core.atomic import atomic_pair
from clinveil.core.errors import UsageError
from clinveil.core.files import Maker

MAKER, VAULT = Maker("test"), Maker("test --vault")
MOVES = 4  # old notes aside, old vault aside, new vault in, new notes in


def write(folder, said, force=True):
    vault, out = folder / "out.csv.vault", folder / "out.csv"
    with atomic_pair(vault, out, force=force, vault_maker=VAULT, maker=MAKER) as (secret, part):
        secret.mkdir()
        (secret / "key.bin").write_text(said)
        part.write_text(said)


def seen(folder):
    return (folder / "out.csv.vault" / "key.bin").read_text(), (folder / "out.csv").read_text()


def stop_at(monkeypatch, number, stop):
    """Have the `number`th move between the places stopped, before it is done."""
    moves, real = [], Path.replace

    def replace(self, target):
        if Path(self).name.startswith("out.csv") and not str(target).endswith(".partner"):
            moves.append(target)
            if len(moves) == number:
                stop()
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("number", range(1, MOVES + 1))
def test_an_interruption_leaves_notes_with_their_own_key(tmp_path, monkeypatch, number):
    write(tmp_path, "old")
    with monkeypatch.context() as patched:
        stop_at(patched, number, interrupt)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, "new")
    assert seen(tmp_path) == (("new", "new") if number == MOVES else ("old", "old"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.vault"]


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_output_pairs
class Patch:
    setattr = staticmethod(setattr)
test_output_pairs.stop_at(Patch, int(sys.argv[3]), lambda: os.kill(os.getpid(), 9))
test_output_pairs.write(Path(sys.argv[2]), "new")
"""


@pytest.mark.parametrize("number", range(1, MOVES + 1))
def test_a_kill_never_leaves_notes_beside_another_key_and_the_next_run_mends_it(tmp_path, number):
    write(tmp_path, "old")
    here = os.path.dirname(__file__)
    killed = subprocess.run([sys.executable, "-c", KILLED, here, str(tmp_path), str(number)], check=False)
    assert killed.returncode == -9
    if (tmp_path / "out.csv").exists() and (tmp_path / "out.csv.vault").exists():
        assert len(set(seen(tmp_path))) == 1
    with (
        pytest.raises(RuntimeError),
        atomic_pair(tmp_path / "out.csv.vault", tmp_path / "out.csv", force=True, vault_maker=VAULT, maker=MAKER),
    ):
        raise RuntimeError  # whatever a next run does, it has mended the places
    assert seen(tmp_path) == (("new", "new") if number == MOVES else ("old", "old"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.vault"]


def test_a_pair_is_as_careful_as_one(tmp_path):
    write(tmp_path, "old", force=False)
    with pytest.raises(UsageError, match="already exists"):
        write(tmp_path, "new", force=False)
    (tmp_path / "out.csv.vault" / "mine").write_text("mine")
    with pytest.raises(UsageError, match="did not write"):
        write(tmp_path, "new")
    assert seen(tmp_path) == ("old", "old")
