"""Every measure that the source can produce has its own words, every field and every detail of a
finding a reader.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import clinveil
from clinveil.core import Finding
from clinveil.report.measures import catalogue, find
from clinveil.report.page_one import TASKS

ROOT = Path(clinveil.__file__).parent
ROOMS = ("attack", "utility", "study", "release", "corpus", "phi")
NAME = re.compile(rf"({'|'.join(ROOMS)})\.[a-z][a-z0-9_]*")
MAKES = re.compile(r"\b(Finding|MeasureSpec|mean_over)\(")  # a finding, or a builder of one
# Files, and beginnings of names.
NO_MEASURES = {"attack.own_", "attack.canary", "attack.channel", "attack.channel_"}


def _constants(tree: ast.AST) -> set[str]:
    return {
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def _bound(name: str, within: ast.AST) -> set[str]:
    """What a name stands for by the loops and comprehensions of a scope, as far as these run over
    constants.
    """
    loops = [n for n in ast.walk(within) if isinstance(n, ast.For | ast.comprehension)]
    return {
        word
        for loop in loops
        if name in {t.id for t in ast.walk(loop.target) if isinstance(t, ast.Name)}
        for word in _constants(loop.iter)
        if re.fullmatch("[a-z][a-z0-9_]*", word)
    }


def _passed(function: str, module: ast.Module) -> set[str]:
    """The first arguments of all calls of a function in its module."""
    found: set[str] = set()
    for call in (n for n in ast.walk(module) if isinstance(n, ast.Call) and n.args):
        called = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        if called == function:
            first = call.args[0]
            if isinstance(first, ast.Name):
                found |= _bound(first.id, module)
            elif isinstance(first, ast.JoinedStr):
                found.add(str(getattr(first.values[0], "value", "")))
            else:
                found |= _constants(first)
    return found


def _formatted(module: ast.Module, path: Path) -> Iterator[tuple[str, str]]:
    """Names that are put together: `f"attack.{name}"` for every constant that its module passes as
    `name`.
    """
    functions = [
        n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)
    ]  # outer ones before inner ones
    within = {
        n: function
        for function in functions
        for n in ast.walk(function)
        if isinstance(n, ast.JoinedStr)
    }
    for node, function in within.items():
        start = str(getattr(node.values[0], "value", ""))
        if not re.fullmatch(rf"({'|'.join(ROOMS)})\.[a-z0-9_]*", start):
            continue
        if not start.endswith("."):
            yield start.rstrip("_"), path.name
            continue
        assert isinstance(node.values[1], ast.FormattedValue)
        variable = getattr(node.values[1].value, "id", "")
        words = _bound(variable, function) | _passed(function.name, module)
        yield from (
            (start + word, path.name) for word in words if re.fullmatch("[a-z][a-z0-9_]*", word)
        )


def measures() -> dict[str, str]:
    """All names of measures in the source, and a file that holds each."""
    found: dict[str, str] = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path.is_relative_to(ROOT / "report") or not MAKES.search(
            path.read_text(encoding="utf-8")
        ):
            continue
        module = ast.parse(path.read_text(encoding="utf-8"))
        found |= {name: path.name for name in _constants(module) if NAME.fullmatch(name)}
        found |= dict(_formatted(module, path))
    return {name: where for name, where in found.items() if name not in NO_MEASURES}


MEASURES = measures()


def test_the_scan_finds_names_of_every_kind():
    assert len(MEASURES) >= 60
    assert {"attack.names", "attack.own", "attack.pdtp_gap"} <= set(MEASURES)
    assert {"corpus.null", "attack.linkage"} <= set(MEASURES)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_every_measure_has_words_of_its_own(name):
    entry, text = find(name)
    assert entry in catalogue(), f"{name} of {MEASURES[name]} has no entry in measures.toml"
    assert entry == name or entry not in ROOMS or name[len(entry) + 1 :] in text.rows, (
        f"{name} has no words of its own"
    )


@pytest.mark.parametrize("name", TASKS)
def test_every_task_of_the_first_page_has_a_text_of_its_own(name):
    assert find(name)[0] == name


FULL = Finding(
    "attack.names", 0.2345, 4321, "lower", 0.2222, 0.2468, 0.1357, 0.9753, "Paper Z, Table 9",
    numbers={"curious_key": 0.4242}, unit="oddments", count=1013, p=0.0321,
    p_is="tested by Q", method="interval by R",
    chance_is="guessed by S",
    control_is="planted by T", control_kind="positive", question="What did U ask?",
)  # fmt: skip


def test_the_terminal_shows_every_field(capsys, monkeypatch):
    from clinveil.cli.findings import print_findings

    monkeypatch.setenv("COLUMNS", "400")
    print_findings("x", [FULL], seed=1, json_out=None, title="t")
    said = capsys.readouterr().out
    shown = (
        "0.2345",
        "0.2222-0.2468",
        "0.1357",
        "0.9753",
        "4,321",
        "0.0321",
        "tested by Q",
        "interval by R",
    )
    shown += ("guessed by S", "positive control: planted by T", "What did U ask?", "names")
    assert [words for words in shown if words not in said] == []
