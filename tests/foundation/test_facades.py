"""Packages are used through their façades: `clinveil.PACKAGE`, never a module inside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "clinveil"
PACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
USERS = [
    *(path for path in SOURCE.rglob("*.py")),
    *(path for folder in ("papers", "benchmarks") for path in (ROOT / folder).rglob("*.py")),
]


def stub(package: str) -> list[str]:
    """Return the names that a package exports."""
    tree = ast.parse((SOURCE / package / "__init__.pyi").read_text(encoding="utf-8"))
    return [
        alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]


def modules_named(path: Path) -> Iterator[str]:
    """Yield every module that a file imports, or imports names from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def own_package(path: Path) -> str | None:
    inside = path.relative_to(SOURCE).parts if path.is_relative_to(SOURCE) else ()
    return inside[0] if len(inside) > 1 else None


@pytest.mark.parametrize("path", USERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_facade_of_another_package_is_imported(path: Path) -> None:
    deep = [
        module
        for module in modules_named(path)
        if module.startswith("clinveil.")
        and module.count(".") > 1
        and module.split(".")[1] != own_package(path)
    ]
    assert deep == []


@pytest.mark.parametrize("package", PACKAGES)
def test_exported_names_are_what_their_stub_says(package: str) -> None:
    facade = import_module(f"clinveil.{package}")
    names = stub(package)
    assert len(set(names)) == len(names)
    assert sorted(facade.__all__) == sorted(names)
    # A module with the name of an exported function would replace it once it is imported.
    modules = {path.stem for path in (SOURCE / package).iterdir()}
    assert [name for name in names if name in modules and callable(getattr(facade, name))] == []
