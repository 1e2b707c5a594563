"""Command lines that people guess are accepted, or answered with the line that they need."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import tomllib
from pathlib import Path

import pytest

from clinveil.cli import main
from clinveil.cli.command import COMMON
from clinveil.cli.groups import COMMANDS, Group
from clinveil.cli.refusals import ANSWERS, COMMANDS_MEANT, SYNONYMS
from clinveil.comparison import CompareSettings
from clinveil.core import UsageError

GUESSES = tomllib.loads((Path(__file__).parent / "guesses.toml").read_text())["guess"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the paths of the guesses; the files are empty."""
    monkeypatch.chdir(tmp_path)
    for name in ("out/release/manifest.sig", "out/release/notes.parquet", "out/vault/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_no_guess_is_there_twice():
    assert len({one["line"] for one in GUESSES}) == len(GUESSES) == 87


@pytest.mark.parametrize("guess", GUESSES, ids=lambda guess: guess["line"])
def test_a_guess_is_accepted_or_answered(guess, place, only_parsed, capsys):
    code = main(shlex.split(guess["line"]))
    error = capsys.readouterr().err
    if "says" not in guess:
        assert (code, len(only_parsed), error) == (0, 1, "")
        return
    assert code == 2 and not only_parsed
    assert guess["says"] in error and error.count("\n") == 1


def commands(members=COMMANDS, prefix=""):
    for name, command in members:
        if isinstance(command, Group):
            yield from commands(command.members, f"{prefix}{name} ")
        else:
            yield command


def test_common_settings_are_flags_of_every_command_that_has_them():
    for command in commands():
        declared = command.settings.declared() if command.settings else {}
        missing = [name for name in COMMON if name in declared]
        shown = {setting.name for setting in command.flags().values()}
        assert not set(missing) - shown, command.name


SAME = {
    "--label": "a column whose values are learned",
    "--as": "kind of release, one or several",
    "--model": "kind of language model",
    "--public": "public text for differential privacy",
    "--quiet": "print less",
    "--seed": "public seed of all random draws",
    "--workers": "processes or threads",
}
"""Flags of several settings -> what they have in common."""


def test_suggested_flags_and_commands_exist():
    """Every suggestion is a flag or setting of some command, every command that is named a command,
    and nothing is suggested for a flag that exists everywhere.
    """
    flags = {flag for command in commands() for one in command.parser().params for flag in one.opts}
    declared = {
        f"--set {name}"
        for command in commands()
        if command.settings
        for name in command.settings.declared()
    }
    shown = set(itertools.chain.from_iterable(SYNONYMS.values()))
    assert not shown - flags - declared
    hints = [*ANSWERS.values(), *COMMANDS_MEANT.values()]
    named = {word for hint in hints for word in re.findall(r"clinveil ([a-z-]+)", hint)}
    assert named <= {name for name, _ in COMMANDS}


def test_a_flag_has_one_meaning():
    """A flag is one setting, or settings with a meaning in common."""
    meanings: dict[str, set[str]] = {}
    for command in commands():
        if command.name == "demo":  # --patients is their number
            continue
        for setting in command.flags().values():
            meanings.setdefault(setting.flag, set()).add(setting.last)
    several = {flag for flag, names in meanings.items() if len(names) > 1}
    assert not several
    helps: dict[str, set[str]] = {}
    for command in commands():
        for setting in command.flags().values() if command.name != "demo" else ():
            helps.setdefault(setting.flag, set()).add(setting.field.description or "")
    differing = {flag for flag, texts in helps.items() if len(texts) > 1}
    assert differing == {*SAME, "--patients"}  # of compare, the same list


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("attack copies r t h", "r t h"),
        ("attack copies --held-out h r t", "r t h"),
        ("attack copies t h --released r", "r t h"),
        ("attack copies --training t --held-out h --released r", "r t h"),
    ],
)
def test_paths_by_position_and_by_option(line, places, place, only_parsed):
    assert main(shlex.split(line)) == 0
    ((_, given),) = only_parsed
    names = ("released", "training", "held_out")
    assert [str(given[name]) for name in names] == places.split()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("attack copies r t h more", "too many arguments"),
        ("attack copies r t h --training t", "too many paths: h (the order is RELEASED"),
        ("attack copies r t", "Missing argument 'HELD_OUT'"),
        ("attack membership t out/release", "HELD_OUT is a release, and RELEASED is not"),
        ("release n --as deidentified --brand x", "see clinveil release --help"),
        ("attack names v --patients p --pateints q", "did you mean --patients?"),
        ("evaluate transfer n r --model lr", "did you mean --classifier?"),
        ("attack lnkage r k", "did you mean `linkage`?"),
        ("attack theft r k", "one of inversion, linkage"),
        ("release n --text-folder x", "did you mean --text?"),
        ("deidentify -i n -o out", "pass NOTES without a flag"),
        ("release n --as all", "clinveil compare makes all kinds."),
    ],
)
def test_what_does_not_fit_is_one_line(line, says, place, only_parsed, capsys):
    assert main(shlex.split(line)) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1 and not only_parsed


@pytest.mark.parametrize("line", ["", "attack", "evaluate"])
def test_without_a_command_there_is_only_the_help_page(line, capsys):
    assert main(shlex.split(line)) == 2
    captured = capsys.readouterr()
    assert captured.err == "" and "Usage: clinveil" in captured.out


def test_an_interruption_says_that_the_same_command_continues(monkeypatch, capsys, tmp_path):
    def stopped(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("clinveil.cli.commands.release.run_release", stopped)
    monkeypatch.setattr("clinveil.cli.commands.inspect.open_corpus", stopped)
    out = str(tmp_path / "out")
    assert main(["release", "notes.csv", "--as", "deidentified", "-o", out]) == 130
    assert capsys.readouterr().err == "clinveil: interrupted (the same command continues)\n"
    assert main(["inspect", "notes.csv"]) == 130
    assert capsys.readouterr().err == "clinveil: interrupted\n"


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("wide=channel.n=5", "--setting wide: no kind of release (add kind=obfuscated"),
        ("wide=kind=obfuscated,channel.m=5", "--setting wide: this command has no setting channel"),
        ("wide=kind=obfuscated,channel.n=x", "channel.n"),
        ("wide=kind=obfuscated,workers=x", "--setting wide workers: a value of the wrong type"),
    ],
)
def test_settings_of_compare_are_named_as_they_were_given(setting, says):
    from clinveil.comparison.settings import candidates

    with pytest.raises(UsageError) as caught:
        candidates(CompareSettings(label="x", setting=(setting,)))
    assert says in str(caught.value) and "--set " not in str(caught.value)


def test_a_verified_out_is_its_release(place, capsys):
    (place / "out/vault/manifest.json").write_text("{}")
    assert main(["verify", "out"]) == 4
    captured = capsys.readouterr().out
    assert captured.startswith("FAILED  all files are present (missing: README.md")
