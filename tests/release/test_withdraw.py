"""A release that was not handed over is withdrawn: its files, its record, and the ledger."""

from __future__ import annotations

import json
import shlex
import shutil

import pyarrow.parquet as pq
import pytest
from ledger_cases import KEYS, NAME, hashes_of, left, notes, release, released_once

from clinveil.cli import main
from clinveil.core import private_text
from clinveil.releases.earlier import withdrawal
from clinveil.releases.earlier.ledger import Ledger, Withdrawal, read_entry


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with notes of 60 patients and one finished release of them."""
    return released_once(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def fresh(desk, tmp_path, monkeypatch):
    """A copy of that folder, with its ledger."""
    monkeypatch.setenv("CLINVEIL_LEDGER", str(tmp_path / "desk" / NAME))
    copy = shutil.copytree(desk, tmp_path / "desk")
    for path in (copy / "out/vault").iterdir():
        path.chmod(0o700 if path.is_dir() else 0o600)
    return copy


def withdraw(folder, reason="sent to nobody", out="out"):
    return main(["withdraw", str(folder / out), "--reason", reason])


def state(folder):
    return json.loads((folder / "out/vault/state.json").read_text())


def test_a_withdrawn_release_is_gone_and_its_notes_can_be_released_again(fresh, capsys):
    run = json.loads((fresh / "out/release/manifest.json").read_text())["run"]
    kept = {"report.html", "manifest.json", "findings.json", "record.json", "key.bin"}
    assert main(release(fresh, "other")) == 2
    capsys.readouterr()
    assert withdraw(fresh) == 0
    assert f"withdrawn: release {run}" in capsys.readouterr().out
    assert not (fresh / "out/release").exists()
    names = {path.name for path in (fresh / "out/vault").iterdir()}
    assert kept | {"audit-0001.jsonl"} <= names and "withdrawn" not in names
    (made,) = Ledger(fresh / NAME).entries()
    assert made.is_withdrawn and made.withdrawn[run].reason == "sent to nobody"
    assert read_entry(fresh / "out/vault/ledger.parquet").is_withdrawn
    assert main(release(fresh, "other")) == 0
    pages = [fresh / "other/release/report.html", fresh / "other/vault/report.html"]
    assert not any("released before under another key:" in page.read_text() for page in pages)
    assert sorted(one.is_withdrawn for one in Ledger(fresh / NAME).entries()) == [False, True]


def test_the_command_of_the_refusal_withdraws(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLINVEIL_LEDGER", str(tmp_path / NAME))
    released_once(tmp_path)
    assert main(release(tmp_path, "other")) == 2
    command = capsys.readouterr().err.rpartition(": clinveil ")[2].strip().rstrip(")")
    assert main(shlex.split(command.replace("TEXT", "'for a test'"))) == 0
    assert not (tmp_path / "out/release").exists()


def test_the_next_release_says_that_an_earlier_one_was_withdrawn(fresh, capsys):
    assert withdraw(fresh) == 0
    command = [word for word in release(fresh, "other") if word != "--quiet"]
    assert main(command) == 0
    assert "was withdrawn on" in capsys.readouterr().err


def test_a_second_withdrawal_changes_nothing(fresh, capsys):
    assert withdraw(fresh) == 0
    before = Ledger(fresh / NAME).entries()[0].withdrawn
    capsys.readouterr()
    assert withdraw(fresh, "another reason") == 0
    assert "already withdrawn" in capsys.readouterr().out
    assert Ledger(fresh / NAME).entries()[0].withdrawn == before


STEPS = ("_record", "_log", "_remove_release", "Ledger.enter", "last _record")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_withdrawal_is_completed(step, when, fresh, monkeypatch):
    """At no point does a release exist that the ledger does not count."""
    owner = Ledger if step == "Ledger.enter" else withdrawal
    name = step.rpartition(".")[2].rpartition(" ")[2]
    done = getattr(owner, name)
    calls = []

    def interrupted(*given):
        calls.append(1)
        if step.startswith("last") and len(calls) == 1:
            return done(*given)
        if when == "after":
            done(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupted)
        assert withdraw(fresh, "first reason") == 130
    (made,) = Ledger(fresh / NAME).entries()
    assert not ((fresh / "out/release").exists() and made.is_withdrawn)
    if not (step == "_record" and when == "before"):
        assert (
            main(
                [
                    "release",
                    str(fresh / "notes.parquet"),
                    "-o",
                    str(fresh / "new"),
                    "--as",
                    "obfuscated",
                    "--reuse",
                    str(fresh / "out/vault"),
                ]
            )
            == 3
        )
    assert withdraw(fresh, "second reason") == 0
    (made,) = Ledger(fresh / NAME).entries()
    assert made.is_withdrawn and not (fresh / "out/release").exists()
    recorded = "second reason" if (step, when) == ("_record", "before") else "first reason"
    assert [one.reason for one in made.withdrawn.values()] == [recorded]
    assert state(fresh)["status"] == "withdrawn"
    assert main(["verify", str(fresh / "out/vault")]) == 0
    logged = (fresh / "out/vault/audit-0001.jsonl").read_text()
    assert logged.count('"event":"withdraw"') == 1 and recorded in logged


def test_other_commands_say_that_it_was_withdrawn(fresh, capsys):
    assert withdraw(fresh) == 0
    capsys.readouterr()
    assert main(["verify", str(fresh / "out/release")]) == 3
    assert "release: was withdrawn on 20" in capsys.readouterr().err
    assert main(["verify", str(fresh / "out/vault")]) == 0
    assert "seal" in capsys.readouterr().out
    assert main(["report", str(fresh / "out")]) == 0
    assert "this release was withdrawn on" in capsys.readouterr().err
    reuse = ["--reuse", str(fresh / "out/vault"), "--as", "obfuscated"]
    assert main(["release", str(fresh / "notes.parquet"), *reuse]) == 3
    line = capsys.readouterr().err
    assert "release that was withdrawn on" in line and line.count("\n") == 1
    assert main(release(fresh, "out")) == 2
    assert "contains a withdrawn release" in capsys.readouterr().err
    assert main(release(fresh, "out", "--force")) == 0
    assert (fresh / "out/release").is_dir()


@pytest.mark.parametrize(
    ("out", "status", "message"),
    [
        ("absent", None, "contains no release"),
        ("out/release", None, "pass "),
        ("out/vault", None, "pass "),
        ("out", "refused", "contains a refused run, of which nothing left"),
        ("out", "running", "contains an unfinished run"),
    ],
)
def test_nothing_else_is_withdrawn(out, status, message, fresh, capsys):
    if status:
        private_text(fresh / "out/vault/state.json", json.dumps(state(fresh) | {"status": status}))
    assert withdraw(fresh, out=out) == 3
    line = capsys.readouterr().err
    assert message in line and line.count("\n") == 1 and (fresh / "out/release").is_dir()


def test_a_reason_is_required(fresh, capsys):
    assert withdraw(fresh, " ") == 2
    assert main(["withdraw", str(fresh / "out")]) == 2
    assert (fresh / "out/release").is_dir()


def test_a_lost_ledger_gets_the_entry_from_the_vault(fresh):
    shutil.rmtree(fresh / NAME)
    assert withdraw(fresh) == 0
    assert [one.is_withdrawn for one in Ledger(fresh / NAME).entries()] == [True]


def test_a_ledger_that_cannot_be_written_is_completed_later(fresh, monkeypatch, capsys):
    def full(self, path):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("clinveil.releases.earlier.ledger.Entry.write", full)
        assert withdraw(fresh) == 5
    assert "ledger of releases cannot be written" in capsys.readouterr().err
    assert not Ledger(fresh / NAME).entries()[0].is_withdrawn
    assert withdraw(fresh) == 0
    assert Ledger(fresh / NAME).entries()[0].is_withdrawn


def test_of_two_releases_under_one_key_both_must_be_withdrawn(tmp_path):
    ledger = left(tmp_path, notes(40))
    (made,) = ledger.entries()
    first = made.run
    made = made.grown(hashes_of(notes(40, first=40)), f"{first}-2", tmp_path / "second")
    made = made.without(first, Withdrawal("2026-11-29", "wrong file"))
    ledger.enter(made, tmp_path / "vault")
    assert [one.share for one in ledger.earlier(hashes_of(notes(80)), KEYS[1])] == [1.0]
    made = made.without(f"{first}-2", Withdrawal("2026-11-29", "wrong file"))
    ledger.enter(made, tmp_path / "vault")
    assert ledger.earlier(hashes_of(notes(80)), KEYS[1]) == []
    assert len(ledger.overlapping(hashes_of(notes(80)), KEYS[1])) == 1


def test_a_run_that_is_published_later_is_no_longer_withdrawn(tmp_path):
    """A private run that its gates refused is marked as withdrawn, and may be resumed later."""
    ledger = left(tmp_path, notes(40))
    made = ledger.entries()[0].without(
        "2026-11-22-aaaaaaaa", Withdrawal("2026-11-22", "refused by its gates")
    )
    assert made.is_withdrawn
    made = made.grown(hashes_of(notes(40)), "2026-11-23-aaaaaaaa", tmp_path / "vault")
    assert not made.is_withdrawn and made.runs == 1


def test_a_refused_run_is_not_entered(fresh):
    before = sorted((fresh / NAME).glob("*.parquet"))
    assert withdraw(fresh) == 0
    command = [*release(fresh, "other"), "--set", "channel.min_patients=50"]
    assert main(command) != 0
    assert sorted((fresh / NAME).glob("*.parquet")) == before


def test_the_notes_of_the_test_have_no_templates(fresh):
    texts = pq.read_table(fresh / "notes.parquet")["text"].to_pylist()
    assert hashes_of(texts).specific.all()
