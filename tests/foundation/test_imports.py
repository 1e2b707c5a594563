"""No module imports another one that imports it, directly or through others."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source, modules):
    """Modules that a source text imports anywhere: in functions and for type checking too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imports_of(sources):
    return {module: {*imported(text, sources)} & {*sources} for module, text in sources.items()}


def test_no_module_is_in_a_circle_of_imports():
    sources = {module_name(path): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    TopologicalSorter(imports_of(sources)).prepare()


def test_an_import_inside_a_function_closes_a_circle():
    sources = {
        "p.a": "from p.b import f",
        "p.b": "def f():\n    from p import a",
    }
    with pytest.raises(CycleError):
        TopologicalSorter(imports_of(sources)).prepare()
