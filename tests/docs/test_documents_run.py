"""What the documents say is run: every console line that calls clinveil, and every Python block."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from clinveil.cli.groups import COMMANDS, Group
from clinveil.cli.main import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# CI runs these two in fresh environments of their own.
ELSEWHERE = ("pip install",)


def blocks(document: Path, language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(document.read_text(encoding="utf-8")) if name == language]


def commands(document: Path) -> list[list[str]]:
    lines = "\n".join(blocks(document, "console")).replace("\\\n", " ").splitlines()
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [shlex.split(line, comments=True) for line in typed if not line.startswith(ELSEWHERE)]


def test_the_readmes_commands_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    typed = commands(ROOT / "README.md")
    assert len(typed) >= 4
    for program, *arguments in typed:
        assert program == "clinveil"
        assert main(arguments) == 0, (arguments[0], capsys.readouterr().err)


@pytest.mark.parametrize("document", ["i-have-notes.md", "synthetic-notes.md", "adding.md"])
@pytest.mark.slow
def test_the_commands_about_notes_run_in_order(document, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    typed = commands(ROOT / "docs" / document)
    assert len(typed) >= 2
    for program, *arguments in typed:
        assert program == "clinveil"
        assert main(arguments) == 0, (arguments[0], capsys.readouterr().err)


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = blocks(ROOT / "README.md", "python")
    assert program.count("import") == 1
    names: dict[str, object] = {}
    exec(compile(program, "README.md", "exec"), names)
    protected = names["protected"]
    assert protected.num_rows > 200
    assert names["found"]


def test_the_readme_says_the_two_commands():
    said = "\n".join(blocks(ROOT / "README.md", "console"))
    assert "pip install . && clinveil demo" in said
    assert "pip install '.[dev]' && pytest" in said


def test_every_command_is_listed_and_has_help(capsys):
    for name in COMMANDS.names():
        assert main([name, "--help"]) == 0
        assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("document", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_links_lead_somewhere(document):
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / "docs" / target).exists(), target


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


def test_flags_named_in_the_documents_exist(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    known = set()
    groups = ((name, command.members.names()) for name, command in COMMANDS if isinstance(command, Group))
    members = [[name, below] for name, names in groups for below in names]
    for name in [*([command] for command in COMMANDS.names()), *members]:
        main([*name, "--help"])
        known |= set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
    said = "".join(p.read_text(encoding="utf-8") for p in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", said))
    elsewhere = {"--check", "--version", "--attribute", "--temp-dir"}  # sha256sum, the group itself, an example, Ray
    assert mentioned <= known | elsewhere, mentioned - known
