"""The folder of a run: two trees, a lock, resumption, and nothing lost."""

from __future__ import annotations

import stat
from contextlib import contextmanager

import pytest

from clinveil.core import (
    LOCK,
    GateError,
    InputError,
    UsageError,
    fingerprint,
    locked,
    private_folder,
    run_hash,
)
from clinveil.core import run_folder as open_folder
from clinveil.releases import ReleaseSettings
from clinveil.releases.outcome import KIND, RunPaths

PLAIN = ReleaseSettings(kind="obfuscated")
FORCE = ReleaseSettings(kind="obfuscated", force=True)


@contextmanager
def run_folder(out, notes, settings):
    asked = run_hash(
        settings,
        notes,
        settings.identifiers.patients,
        settings.channel.keep_words,
        settings.channel.drop_words,
    )
    with open_folder(out, KIND, asked, force=settings.force) as run:
        yield RunPaths(run)


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("id,text\n1,a\n")
    return path


def interrupted(out, notes, settings=PLAIN):
    with pytest.raises(KeyboardInterrupt), run_folder(out, notes, settings) as folder:
        key = folder.run.key(settings.seed)
        (folder.work / "scratch.txt").write_text("text")
        (folder.vault / "vectors").mkdir()
        raise KeyboardInterrupt
    return key


def finished(out, notes, settings=PLAIN):
    with run_folder(out, notes, settings) as folder:
        folder.release.mkdir()
        folder.run.finish("finished")


def test_the_vault_is_private_and_scratch_is_gone(tmp_path, notes):
    out = tmp_path / "out"
    finished(out, notes)
    assert stat.S_IMODE((out / "vault").stat().st_mode) == 0o700
    assert not (out / "vault" / "work").exists()
    assert not (out / "vault" / "staging").exists()


def test_an_interrupted_run_resumes_with_its_key_and_without_its_scratch(tmp_path, notes):
    out = tmp_path / "out"
    key = interrupted(out, notes)
    assert not (out / "vault" / "work").exists()
    with run_folder(out, notes, PLAIN.model_copy(update={"workers": 7})) as folder:
        assert folder.run.key(None) == key
        assert (folder.vault / "vectors").is_dir()


def test_other_settings_or_other_notes_do_not_resume(tmp_path, notes):
    out = tmp_path / "out"
    interrupted(out, notes)
    with (
        pytest.raises(UsageError, match="other notes or settings"),
        run_folder(out, notes, ReleaseSettings(kind="obfuscated", channel={"n": 5})),
    ):
        pass
    notes.write_text("id,text\n1,b\n")
    with pytest.raises(UsageError, match="other notes or settings"), run_folder(out, notes, PLAIN):
        pass


def test_a_finished_run_is_kept_without_force_and_until_success_with_it(tmp_path, notes):
    out = tmp_path / "out"
    finished(out, notes)
    with pytest.raises(UsageError, match="--force"), run_folder(out, notes, PLAIN):
        pass
    interrupted(out, notes, FORCE)
    assert (tmp_path / ".out.replaced" / "release").is_dir()
    finished(out, notes, FORCE)
    assert not (tmp_path / ".out.replaced").exists()


def test_input_that_does_not_fit_leaves_the_place_as_it_was(tmp_path, notes):
    out = tmp_path / "out"
    with pytest.raises(InputError), run_folder(out, notes, PLAIN):
        raise InputError("no")
    assert not out.exists()
    finished(out, notes)
    with pytest.raises(InputError), run_folder(out, notes, FORCE):
        raise InputError("no")
    assert (out / "release").is_dir()
    assert not (tmp_path / ".out.replaced").exists()


def test_what_took_hours_is_never_removed(tmp_path, notes):
    with pytest.raises(InputError), run_folder(tmp_path / "out", notes, PLAIN) as folder:
        key = folder.run.key(None)
        (folder.vault / "vectors").mkdir()
        raise InputError("too few patients for a measure")
    with run_folder(tmp_path / "out", notes, PLAIN) as again:
        assert again.run.resumed and again.run.key(None) == key


def test_a_failed_gate_keeps_the_evidence(tmp_path, notes):
    out = tmp_path / "out"
    with pytest.raises(GateError), run_folder(out, notes, PLAIN) as folder:
        (folder.vault / "evidence").write_text("x")
        folder.run.finish("refused")
        raise GateError("failed")
    assert (out / "vault" / "evidence").exists()
    with pytest.raises(UsageError, match="--force"), run_folder(out, notes, PLAIN):
        pass


@pytest.mark.parametrize("settings", [PLAIN, FORCE])
def test_a_folder_that_is_not_ours_is_never_touched(tmp_path, notes, settings):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.txt").write_text("years of work")
    with pytest.raises(UsageError, match="not a release run"), run_folder(out, notes, settings):
        pass
    assert (out / "chapter.txt").read_text() == "years of work"


def test_two_runs_at_once_are_refused(tmp_path, notes):
    out = tmp_path / "out"
    with (
        run_folder(out, notes, PLAIN),
        pytest.raises(UsageError, match="another run"),
        run_folder(out, notes, PLAIN),
    ):
        pass


def test_a_run_that_has_only_its_lock_is_busy_too(tmp_path, notes):
    out = tmp_path / "out"
    with locked(private_folder(out / "vault") / LOCK):
        (out / "vault" / "half").touch()
        with pytest.raises(UsageError, match="another run"), run_folder(out, notes, PLAIN):
            pass


def test_a_link_to_nowhere_is_one_line(tmp_path, notes):
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    with (
        pytest.raises(UsageError, match="link to a missing folder"),
        run_folder(tmp_path / "out", notes, PLAIN),
    ):
        pass


def test_no_vault_is_made_inside_a_release(tmp_path, notes):
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "manifest.sig").touch()
    with (
        pytest.raises(UsageError, match="is inside a release"),
        run_folder(tmp_path / "release/a/b", notes, PLAIN),
    ):
        pass
    assert [path.name for path in (tmp_path / "release").iterdir()] == ["manifest.sig"]


def test_a_folder_of_notes_has_a_fingerprint(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("x")
    before = fingerprint(folder)
    assert before == fingerprint(folder)
    (folder / "a.txt").rename(folder / "b.txt")
    assert fingerprint(folder) != before


def test_a_resumed_run_does_not_leave_an_older_release_standing(tmp_path, notes):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), run_folder(out, notes, PLAIN) as folder:
        folder.release.mkdir()
        raise KeyboardInterrupt
    with pytest.raises(GateError), run_folder(out, notes, PLAIN) as folder:
        folder.run.finish("refused")
        raise GateError("failed")
    assert not (out / "release").exists()


def test_another_feed_under_the_same_name_does_not_resume(tmp_path, notes):
    feed = tmp_path / "patients.parquet"
    feed.write_bytes(b"one")
    settings = ReleaseSettings(kind="obfuscated", identifiers={"patients": feed})
    interrupted(tmp_path / "out", notes, settings)
    feed.write_bytes(b"two")
    with (
        pytest.raises(UsageError, match="other notes or settings"),
        run_folder(tmp_path / "out", notes, settings),
    ):
        pass


@pytest.mark.parametrize("name", ["out.old", ".out.replaced"])
def test_a_folder_of_somebody_else_beside_the_run_survives(tmp_path, notes, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("mine")
    finished(tmp_path / "out", notes)
    with pytest.raises(InputError), run_folder(tmp_path / "other", notes, PLAIN):
        raise InputError("no")
    assert (tmp_path / name / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("place", ["mine", "release/mine", "vault/mine"])
def test_a_file_of_somebody_else_in_a_run_is_not_lost_with_it(tmp_path, notes, place):
    out = tmp_path / "out"
    finished(out, notes)
    (out / place).write_text("mine")
    with pytest.raises(UsageError, match="did not write"), run_folder(out, notes, FORCE):
        pass
    assert (out / place).read_text() == "mine"


def test_a_file_of_somebody_else_in_an_unfinished_run_is_not_lost_either(tmp_path, notes):
    out = tmp_path / "out"
    interrupted(out, notes)
    (out / "vault" / "mine").write_text("mine")
    with (
        pytest.raises(UsageError, match="did not write"),
        run_folder(out, notes, FORCE.but(vectors={"dim": 7})),
    ):
        pass
    assert (out / "vault" / "mine").read_text() == "mine"
