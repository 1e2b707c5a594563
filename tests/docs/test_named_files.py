"""Comments and docstrings name only Python files that exist."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "training", "benchmarks", "papers")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
NAME = re.compile(r"(?<![\w./-])[\w/-]*\w\.py\b")


def named_files(source):
    """Line and name of every Python file that a comment or a docstring names."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    docstrings = {node.body[0].lineno for node in nodes if ast.get_docstring(node)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and token.start[0] in docstrings
        if token.type == tokenize.COMMENT or is_docstring:
            for match in NAME.finditer(token.string):
                yield token.start[0], match.group()


def exists(name):
    return any(path.as_posix().endswith(f"/{name}") for path in SOURCES)


@pytest.mark.parametrize("folder", ["src", "tests", "training", "benchmarks", "papers"])
def test_named_files_exist(folder):
    missing = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] == folder
        for line, name in named_files(path.read_text(encoding="utf-8"))
        if not exists(name)
    ]
    assert not missing


def test_a_missing_file_is_noticed():
    source = '"""See corpus/nowhere.py."""\n\nx = "strings.py"  # as in elsewhere.py\n'
    assert [name for _, name in named_files(source)] == ["corpus/nowhere.py", "elsewhere.py"]
    assert not exists("corpus/nowhere.py")
