"""The folder of a run, whatever the command: what it knows its own by, and what a failure
leaves.
"""

from __future__ import annotations

import stat
from contextlib import suppress

import pytest
from kills import killed_at_each

from clinveil.core import (
    FolderKind,
    GateError,
    InputError,
    UsageError,
    code_version,
    private_folder,
    private_text,
    run_folder,
    run_hash,
)
from clinveil.releases import ReleaseSettings as Settings

ONE = FolderKind(
    "run of ours", outputs=frozenset({"made"}), notes={"README.txt": "SECRET"}, scratch=("scratch",)
)
GROWS = FolderKind("vault of ours", notes={"README.txt": "SECRET"}, known=lambda marked, _: marked)


def tree(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def stopped(root, *, made=(), asked="a", error=KeyboardInterrupt, kind=ONE, force=False):
    with pytest.raises(error), run_folder(root, kind, asked, force=force) as folder:
        folder.key()
        for name in made:
            (root / name).mkdir()
            (root / name / "file").write_text(asked)
        raise error("stop")


def test_all_is_private_and_scratch_goes(tmp_path):
    with run_folder(tmp_path / "run", ONE, "a") as folder:
        (folder.root / "scratch" / "note.txt").write_text("text")
        folder.key()
        folder.finish()
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
    assert sorted(tree(tmp_path / "run")) == ["README.txt", "key.bin", "state.json"]
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in (tmp_path / "run").iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError, RuntimeError])
@pytest.mark.parametrize("kind", [ONE, GROWS], ids=["one", "grows"])
def test_a_run_that_made_nothing_leaves_nothing(tmp_path, kind, error):
    stopped(tmp_path / "run", kind=kind, asked="a" if kind is ONE else "", error=error)
    assert list(tmp_path.iterdir()) == []


def test_what_was_made_is_gone_on_with_under_the_same_key(tmp_path):
    stopped(tmp_path / "run", made=["made"], error=GateError)
    key = (tmp_path / "run" / "key.bin").read_bytes()
    with run_folder(tmp_path / "run", ONE, "a", force=True) as folder:
        assert folder.resumed and (folder.root / "made" / "file").exists()
        folder.key()
    assert (tmp_path / "run" / "key.bin").read_bytes() == key


def test_input_that_does_not_fit_undoes_a_new_run_and_not_one_that_was_gone_on_with(tmp_path):
    stopped(tmp_path / "run", made=["made"], error=InputError)
    assert list(tmp_path.iterdir()) == []
    stopped(tmp_path / "run", made=["made"])
    stopped(tmp_path / "run", error=InputError)
    assert (tmp_path / "run" / "made" / "file").exists()


def test_another_question_is_refused_until_it_replaces_what_is_there(tmp_path):
    stopped(tmp_path / "run", made=["made"])
    with (
        pytest.raises(UsageError, match="unfinished run of other notes or settings"),
        run_folder(tmp_path / "run", ONE, "b"),
    ):
        pass
    stopped(tmp_path / "run", asked="b", force=True)  # made nothing: the first is back
    assert (tmp_path / "run" / "made" / "file").read_text() == "a"
    for asked in ("b", "c"):  # of several that failed, the first waits
        stopped(tmp_path / "run", asked=asked, made=["made"], force=True)
        assert (tmp_path / ".run.replaced" / "made" / "file").read_text() == "a"
    with run_folder(tmp_path / "run", ONE, "d", force=True) as folder:
        folder.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_finished_run_is_not_made_again(tmp_path):
    with run_folder(tmp_path / "run", ONE, "a") as folder:
        folder.finish()
    with (
        pytest.raises(UsageError, match="contains a finished run"),
        run_folder(tmp_path / "run", ONE, "a"),
    ):
        pass


def test_what_a_kill_left_half_written_is_ours(tmp_path):
    stopped(tmp_path / "run", made=["made", ".made.0123abcd.part"])
    stopped(tmp_path / "run", asked="b", made=["made"], force=True)
    assert (tmp_path / ".run.replaced").is_dir()
    (tmp_path / "run" / "mine.0123abcd.part").write_text("mine")
    with (
        pytest.raises(UsageError, match="did not write"),
        run_folder(tmp_path / "run", ONE, "c", force=True),
    ):
        pass


@pytest.mark.parametrize("kind", [ONE, GROWS], ids=["one", "grows"])
def test_a_run_killed_at_any_file_operation_goes_on(tmp_path, kind):
    def run(folder):
        with run_folder(folder / "run", kind, "a" if kind is ONE else "") as opened:
            opened.key()
            private_text(opened.root / "made", "made")
            for name in kind.scratch:
                (opened.root / name / "text").write_text("text")
            opened.finish()

    for folder in killed_at_each(run, tmp_path):
        with suppress(UsageError):  # a finished run
            run(folder)
        names = {path.name for path in (folder / "run").rglob("*")}
        assert names - {"lock"} == {"README.txt", "key.bin", "made", "state.json"}


def test_a_replacement_killed_at_any_file_operation_goes_on(tmp_path):
    def run(folder):
        with run_folder(folder / "run", ONE, "b", force=True) as opened:
            private_text(opened.root / "made", "made")
            opened.finish()

    def replaced(folder):
        stopped(folder / "run", made=["made"])
        run(folder)

    for folder in killed_at_each(replaced, tmp_path):
        run(folder)
        assert [path.name for path in folder.iterdir()] == ["run"]


def test_a_run_at_work_is_not_set_aside(tmp_path):
    with (
        run_folder(tmp_path / "run", ONE, "a"),
        pytest.raises(UsageError, match="another run"),
        run_folder(tmp_path / "run", ONE, "b", force=True),
    ):
        pass


def test_a_folder_that_grows_keeps_its_key_and_its_files(tmp_path):
    vault = tmp_path / "vault"
    with run_folder(vault, GROWS) as folder:
        folder.key()
        (vault / "record").write_text("1")
    before = tree(vault)
    stopped(vault, kind=GROWS, asked="", error=GateError)
    assert tree(vault) == before
    (vault / "key.bin").unlink()
    stopped(vault, kind=GROWS, asked="", error=GateError)
    assert not (vault / "key.bin").exists() and (vault / "record").exists()
    (private_folder(tmp_path / "other") / "mine").write_text("mine")
    with (
        pytest.raises(UsageError, match="not a vault of ours"),
        run_folder(tmp_path / "other", GROWS, force=True),
    ):
        pass


def test_what_a_run_is_a_function_of(tmp_path):
    notes = tmp_path / "notes.csv"
    notes.write_text("a")
    made = {
        run_hash(Settings(), notes),
        run_hash(Settings(workers=9, quiet=True, force=True), notes),
    }
    assert len(made) == 1
    made |= {
        run_hash(Settings(seed=1), notes),
        run_hash(Settings(), notes, None),
        run_hash(Settings(), "x"),
    }
    notes.write_text("b")
    made |= {run_hash(Settings(), notes)}
    assert len(made) == 5 and all(len(one) == 64 for one in made)


def test_another_version_is_another_run(monkeypatch):
    before = run_hash(Settings())
    assert len(code_version()) == 64
    monkeypatch.setattr("clinveil.core.runfolder.code_version", lambda: "later")
    assert run_hash(Settings()) != before
