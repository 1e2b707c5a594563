"""The size of the project stays within the budget of `pyproject.toml`; raising a limit needs a line
in CHANGELOG.md.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
BUDGET = SETTINGS["clinveil-budget"]
WIDTH = SETTINGS["ruff"]["line-length"]
DECLARES = {"setting"}  # a call of one of these declares a setting
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# Words of an early private vocabulary of this project, for which the field has terms of its own.
DIALECT = re.compile(
    r"\b(anew|beside|so"
    r" many|nobody|somebody|whose|heard|told|said|stands?|lies|strangers?|rooms?|thief|dealt|"
    r"gives? away|read back|of elsewhere|of theirs|of like|but for|is no|are"
    r" no|he|his|him|mend(?:s|ed)?|strays?)\b",
    re.IGNORECASE,
)


def prose(path):
    """All text of a Markdown file; comments and strings of several words of a Python file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return source
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kinds = {tokenize.COMMENT, tokenize.STRING}
    return "\n".join(t.string for t in tokens if t.type in kinds and " " in t.string)


def dialect_per_1000(paths):
    texts = [prose(path) for path in paths]
    return (
        1000
        * sum(len(DIALECT.findall(text)) for text in texts)
        / sum(len(text.split()) for text in texts)
    )


GENERATED = ("api.md", "packages.md")


def pages():
    return [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in GENERATED]


def words(paths):
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def function_name(call):
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def is_packed(node):
    """Whether a statement assigns several values that stand in one line."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def habits(source):
    """Counts of statements and of the habits that make code short without making it smaller."""
    nodes = list(ast.walk(ast.parse(source)))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    splatted = [call for call in calls if any(keyword.arg is None for keyword in call.keywords)]
    return {
        "statements": sum(isinstance(node, ast.stmt) for node in nodes),
        "long_lines": sum(len(line) > WIDTH for line in source.splitlines()),
        "tuple_assignments": sum(map(is_packed, nodes)),
        "splats": len(splatted),
        "settings": sum(function_name(call) in DECLARES for call in calls),
    }


def habits_of_the_package():
    counted = [habits(path.read_text(encoding="utf-8")) for path in SOURCES]
    return {name: sum(counts[name] for counts in counted) for name in counted[0]}


def sizes():
    return {
        **habits_of_the_package(),
        "source_files": len(SOURCES),
        "documentation_words": words(pages()),
        "readme_words": words([ROOT / "README.md"]),
        "dialect_per_1000_source": dialect_per_1000(SOURCES),
        "dialect_per_1000_documentation": dialect_per_1000([ROOT / "README.md", *pages()]),
    }


@pytest.mark.parametrize("name, value", sizes().items())
def test_within_the_budget(name, value):
    assert value <= BUDGET[name], (
        f"{name} is {value:.4g}; shorten something, or raise the limit and say why"
    )


def test_dialect_is_found(tmp_path):
    page = tmp_path / "page.py"
    page.write_text('"""Who is told of a room."""\nroom = "room"  # not counted\n')
    assert dialect_per_1000([page]) == pytest.approx(1000 * 2 / 9)


def test_packed_code_is_found():
    source = (
        f"a, b = 1, 2\nx, y = pair\nf(**options)\nwide = '{'w' * WIDTH}'\nz = setting(1, 'help')\n"
    )
    assert habits(source) == {
        "statements": 5,
        "long_lines": 1,
        "tuple_assignments": 1,
        "splats": 1,
        "settings": 1,
    }
