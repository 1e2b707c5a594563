"""`--text --id --patient --label` are flags of every command that reads notes."""

from __future__ import annotations

import pytest

from clinveil.cli import main
from clinveil.cli.command import Command
from clinveil.cli.groups import COMMANDS
from clinveil.core import NotesSettings


def commands(members=COMMANDS, prefix=""):
    for name in members.names():
        command = members.get(name)
        if isinstance(command, Command):
            yield prefix + name, command
        else:
            yield from commands(command.members, f"{prefix}{name} ")


def test_every_command_with_settings_of_notes_has_the_group():
    reading = {name: c for name, c in commands() if c.settings and _reads_notes(c.settings)}
    assert {
        "embed",
        "validate",
        "compare",
        "release",
        "deidentify",
        "attack linkage",
        "evaluate perplexity",
    } <= {*reading}
    for name, command in reading.items():
        assert {"text", "id", "patient", "label"} <= {*command.flags()}, name


def _reads_notes(settings):
    fields = settings.model_fields.values()
    return any(
        isinstance(f.annotation, type) and issubclass(f.annotation, NotesSettings) for f in fields
    )


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "odd.csv"
    rows = [
        f'{i},{i % 30},"fever and cough of the lung today number {"abcdefgh"[i % 8]}'
        f' pain",{"xy"[i % 2]}'
        for i in range(120)
    ]
    path.write_text("no,who,words,group\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


ROLES = ["--text", "words", "--id", "no", "--patient", "who", "--label", "group"]


@pytest.mark.parametrize(
    "command",
    [
        ["inspect", "NOTES"],
        ["embed", "NOTES", "-o", "OUT", "--dim", "8", "--set", "vectors.epochs=1", "-q"],
        ["deidentify", "NOTES", "-o", "OUT.csv", "--workers", "1", "-q"],
        ["validate", "NOTES", "-o", "OUT", "--workers", "1", "-q", "--set", "locations=40"],
        ["attack", "linkage", "NOTES", "--known", "NOTES"],
    ],
)
def test_the_roles_are_used_and_a_wrong_one_is_one_line(notes, tmp_path, capsys, command):
    given = [
        part.replace("NOTES", str(notes)).replace("OUT", str(tmp_path / "out")) for part in command
    ]
    assert main([*given, *ROLES]) == 0
    capsys.readouterr()
    wrong = [part.replace(str(tmp_path / "out"), str(tmp_path / "other")) for part in given]
    assert main([*wrong, *ROLES[:-1], "absent"]) == 3
    assert "absent" in capsys.readouterr().err
