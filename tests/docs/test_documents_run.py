"""Run what the documents show: console lines, Python blocks; parse all other command lines; check
links and flags.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clinveil.cli import main
from clinveil.cli.groups import COMMANDS, Group

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted((ROOT / "docs").glob("*.md"))
WRITTEN = [page for page in PAGES if page.name not in ("api.md", "packages.md")]
DOCUMENTS = [ROOT / "README.md", *PAGES]
LINKED = [
    *DOCUMENTS,
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "benchmarks").glob("*.md")),
    *sorted((ROOT / "papers").rglob("*.md")),
]
GUIDES = [
    "quickstart.md",
    "deidentification.md",
    "measuring.md",
    "choosing-a-release.md",
    "synthetic-notes.md",
]
# CI runs these in fresh environments of their own.
ELSEWHERE = ("pip install",)


def blocks(document: Path, *languages: str) -> list[str]:
    return [
        body
        for name, body in BLOCK.findall(document.read_text(encoding="utf-8"))
        if name in languages
    ]


def lines(document: Path, *languages: str) -> list[str]:
    return "\n".join(blocks(document, *languages)).replace("\\\n", " ").splitlines()


def commands(document: Path) -> list[list[str]]:
    typed = [
        line.removeprefix("$ ") for line in lines(document, "console") if line.startswith("$ ")
    ]
    return [shlex.split(line, comments=True) for line in typed if not line.startswith(ELSEWHERE)]


def shown() -> Iterator[list[str]]:
    """Arguments of every command line that the documents show, run or not."""
    for document in DOCUMENTS:
        for line in lines(document, "console", "bash", "sh"):
            if (typed := line.removeprefix("$ ")).startswith("clinveil ") and "…" not in typed:
                yield shlex.split(typed, comments=True)[1:]


def leaves(members=COMMANDS, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command, by its name with that of its groups."""
    for name, command in members:
        yield (*above, name), command
        if isinstance(command, Group):
            yield from leaves(command.members, (*above, name))


def run_in_order(document: Path, capsys) -> int:
    typed = commands(document)
    for program, *arguments in typed:
        assert program == "clinveil"
        assert main(arguments) == 0, (arguments, capsys.readouterr().err)
    return len(typed)


@pytest.mark.slow
def test_the_readmes_commands_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_in_order(ROOT / "README.md", capsys) >= 4
    output = capsys.readouterr().out
    assert "May leave to recipients under an agreement" in output
    assert "release  out/release (deidentified)" in output


@pytest.mark.parametrize("document", GUIDES)
@pytest.mark.slow
def test_the_commands_of_guides_run_in_order(document, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_in_order(ROOT / "docs" / document, capsys) >= 2


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = blocks(ROOT / "README.md", "python")
    assert program.count("import") == 1
    names: dict[str, object] = {}
    exec(compile(program, "README.md", "exec"), names)
    protected = names["protected"]
    assert protected.num_rows > 200
    assert names["findings"]


def test_the_readme_has_the_two_commands_that_a_newcomer_runs():
    text = "\n".join(blocks(ROOT / "README.md", "console"))
    assert "pip install . && clinveil demo" in text
    assert "pip install '.[dev]' && pytest" in text


@pytest.mark.parametrize("arguments", list(shown()), ids=" ".join)
def test_every_command_line_shown_can_be_parsed(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, *rest = arguments
    command = COMMANDS.get(name)
    while isinstance(command, Group):
        name, *rest = rest
        command = command.members.get(name)
    command.parser().make_context(name, rest)


def test_every_command_is_listed_and_has_help(capsys):
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in COMMANDS.names():
        assert main([name, "--help"]) == 0
        assert capsys.readouterr().out.strip()
        assert f"`{name}" in reference, name


def _anchors(text: str) -> set[str]:
    """The anchors that a Markdown page has, as GitHub names them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", LINKED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_links_exist(document):
    text = document.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text):
        page = document.parent / target if target else document
        assert page.exists(), target
        assert not anchor or anchor in _anchors(page.read_text(encoding="utf-8")), (target, anchor)


def test_every_page_is_linked_from_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"docs/{page.name}" in text for page in PAGES)


def test_flags_named_in_the_documents_exist(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    known = set()
    for name, _ in leaves():
        main([*name, "--help"])
        known |= set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
    text = "".join(page.read_text(encoding="utf-8") for page in DOCUMENTS)
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    elsewhere = {"--version", "--install-completion"}  # of the program itself
    elsewhere |= {
        "--wheel-dir",
        "--no-index",
        "--find-links",
        "--rm",
        "--network",
        "--user",
        "--no-deps",
        "--recursive",
    }  # of pip, docker and aws
    assert mentioned <= known | elsewhere, mentioned - known


def test_settings_named_in_the_documents_exist():
    known: set[str] = set()
    for _, command in leaves():
        settings = getattr(command, "settings", None)
        known |= set(settings.declared()) if settings else set()
    text = "".join(page.read_text(encoding="utf-8") for page in DOCUMENTS)
    mentioned = set(re.findall(r"--set ([a-z_.]+)=", text)) - {"key"}
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    table = reference.partition("| Group | Key |")[2].partition("## Exit codes")[0]
    group = ""
    for row in table.splitlines():
        cells = row.split("|")
        if len(cells) > 4:
            named = re.findall(r"`([a-z_]+)`", cells[1])
            group = f"{named[0]}." if named else "" if "none" in cells[1] else group
            mentioned |= {f"{group}{key}" for key in re.findall(r"`([a-z_]+)`", cells[2])}
    assert len(mentioned) > 50
    assert mentioned <= known, mentioned - known


def test_the_documents_keep_their_size():
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in WRITTEN}
    assert len(words) <= 12, words
    assert sum(words.values()) <= 13_600, words
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 800


def test_pages_named_in_the_source_exist():
    named = {
        match
        for path in (ROOT / "src").rglob("*.py")
        for match in re.findall(
            r"\b((?:docs|benchmarks)/[\w-]+\.(?:md|py))\b", path.read_text(encoding="utf-8")
        )
    }
    assert named
    assert not {page for page in named if not (ROOT / page).exists()}
