"""Commands are listed and run; attacks of other distributions have one; work reports progress."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Annotated, ClassVar

import pytest
import typer

from clinveil.attacks import Attack, attacks
from clinveil.cli import main
from clinveil.cli.command import Run, command
from clinveil.cli.groups import COMMANDS
from clinveil.cli.progress import Speaker
from clinveil.core import QUIET, SEED, Finding, Members, Settings, registry, setting, track

INSTRUMENTS: Members[str] = Members("instrument", {"drum": "x:DRUM", "horn": "x:HORN"})


class PlaySettings(Settings):
    instrument: str = setting("drum", "What is played.", members=INSTRUMENTS)
    pitch: int = setting(3, "How high it is.", ge=1)
    seed: int | None = SEED
    quiet: bool = QUIET


@pytest.fixture()
def play(monkeypatch):
    """One more command."""

    @command("play", PlaySettings, findings=True)
    def play(
        run: Run[PlaySettings], who: Annotated[str, typer.Argument(help="Who plays.")]
    ) -> None:
        """Play a tune."""
        pitch = run.settings.pitch
        run.show([Finding("corpus.tune", pitch, 1, unit="notes")], f"{who} plays (seed {run.seed})")

    monkeypatch.setitem(COMMANDS.paths, "play", "")
    monkeypatch.setitem(COMMANDS.helps, "play", play.help)
    monkeypatch.setattr(COMMANDS, "_loaded", {"play": play})


class FirstLetters(Attack):
    """Count the released notes that begin with one of some letters."""

    needs: ClassVar[frozenset[str]] = frozenset({"released", "original"})
    letter: tuple[str, ...] = setting(("a",), "A letter; repeatable.")

    def __call__(self, context, rng):
        counts = [self._count(side) for side in (context.released, context.original)]
        numbers = {"workers": context.workers}
        return [
            Finding(
                "attack.first_letters", counts[0], counts[1], "lower", unit="notes", numbers=numbers
            )
        ]

    def _count(self, notes):
        texts = (text for batch in notes.batches() for text in batch["text"].to_pylist())
        return sum(text.startswith(self.letter) for text in texts)


@pytest.fixture()
def first_letters():
    """An attack of somebody else's."""
    attacks.register("first-letters")(FirstLetters)
    yield
    attacks.forget("first-letters")


def test_a_command_is_listed_and_runs(play, capsys):
    assert main(["--help"]) == 0
    assert "play         Play a tune." in capsys.readouterr().out
    assert main(["play", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(
        words in said
        for words in ("--pitch", "How high it is.", "drum|horn", "--json", "Who plays.")
    )
    assert (
        main(["play", "she", "--instrument", "horn", "--pitch", "7", "--json", "-", "--seed", "5"])
        == 0
    )
    ran = capsys.readouterr()
    assert json.loads(ran.out)["findings"][0]["value"] == 7
    assert ran.err == "seed 5 (public: --seed 5 repeats this run)\n"
    assert main(["play", "she", "--pitch", "0"]) == 2
    assert "clinveil: pitch: must be " in capsys.readouterr().err
    assert main(["play", "she", "--instrument", "lute"]) == 2


def test_a_seed_that_is_drawn_is_said_once_and_not_at_all_when_quiet(play, capsys):
    assert main(["play", "she"]) == 0
    ran = capsys.readouterr()
    seed = ran.err.split()[1]
    assert ran.err.count(seed) == 2 and f"(seed {seed})" in ran.out
    assert main(["play", "she", "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_an_attack_comes_by_an_entry_point(monkeypatch):
    point = {"elsewhere": SimpleNamespace(load=lambda: FirstLetters)}
    monkeypatch.setattr(
        registry, "_installed", lambda group: point if group == "clinveil.attacks" else {}
    )
    assert "elsewhere" in attacks and attacks.names()[-1] == "elsewhere"
    assert attacks.get("elsewhere") is FirstLetters
    attacks.forget("elsewhere")


def test_an_attack_that_is_registered_has_a_command_of_its_needs_and_settings(
    first_letters, tmp_path, capsys
):
    (tmp_path / "a.csv").write_text("id,text\n1,ab\n2,bc\n3,ac\n")
    (tmp_path / "b.csv").write_text("id,text\n1,bb\n2,ac\n")
    assert main(["attack", "--help"]) == 0
    assert "Count the released notes that begin with one of some" in capsys.readouterr().out
    line = [
        "attack",
        "first-letters",
        str(tmp_path / "a.csv"),
        "--original",
        str(tmp_path / "b.csv"),
    ]
    line += ["--seed", "1", "--set", "quiet=true"]
    assert main([*line, "--set", "workers=3", "--json", "-"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["value"], found["n"], found["numbers"]["workers"]) == (2, 1, 3)
    letters = ["--set", "attack.letter=b", "--set", "attack.letter=c"]
    assert main([*line, *letters, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["value"] == 1
    assert main(line[:3]) == 2


def test_the_help_page_imports_no_command():
    code = "import sys; from clinveil.cli.entry import main; main(['--help']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert not {"pyarrow", "scipy", "gensim", "sklearn", "torch"} & loaded
    assert not [name for name in loaded if name.startswith("clinveil.cli.commands.")]


def test_items_are_counted_where_a_terminal_looks_on(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    loud = Speaker()
    quiet = Speaker(quiet=True)
    assert list(track(range(3), "notes", loud, total=30, size=lambda _: 10)) == [0, 1, 2]
    assert "30 of 30 notes" in capsys.readouterr().err
    assert (
        list(track(range(3), "notes", quiet)) == list(track(range(3), "notes", print)) == [0, 1, 2]
    )
    quiet("nothing")
    assert capsys.readouterr().err == ""


def test_a_line_stands_above_the_count(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    speaker = Speaker()
    with speaker.count("notes") as show, speaker.count("passes") as inner:
        show(4)
        inner(1)
        speaker("[half] way")
    assert "[half] way\n" in capsys.readouterr().err


def test_no_count_where_nobody_looks_on(capsys):
    assert list(track("ab", "notes", Speaker())) == ["a", "b"]
    assert capsys.readouterr().err == ""
