"""Compiled loops: kept for the next run where that can be, and never with an old helper inside."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import clinveil
from clinveil.channel.tables import fill_slots
from clinveil.core import compiling

PACKAGE = Path(clinveil.__file__).parent
DECORATORS = ("kernel", "helper", "compiled")


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """The compiled functions of a file."""

    def is_compiled(decorator: ast.expr) -> bool:
        name = decorator.func if isinstance(decorator, ast.Call) else decorator
        return isinstance(name, ast.Name) and name.id in DECORATORS

    tree = ast.parse(path.read_text())
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {node.name: node for node in found if any(map(is_compiled, node.decorator_list))}


FILES = {path: functions(path) for path in sorted(PACKAGE.rglob("*.py"))}


@pytest.mark.parametrize("path", [p for p, found in FILES.items() if found], ids=lambda p: p.stem)
def test_a_kernel_uses_helpers_and_constants_of_its_own_file_only(path):
    """The cache of numba is looked up by the hash of the file of the kernel alone."""
    elsewhere = {name for other, found in FILES.items() if other != path for name in found}
    body = ast.parse(path.read_text()).body
    own = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    imported = {
        alias.asname or alias.name
        for node in body
        if isinstance(node, ast.ImportFrom) and "clinveil" in (node.module or "")
        for alias in node.names
    }
    for function in FILES[path].values():
        names = {
            node.id
            for statement in function.body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name)
        }
        assert not (names - own) & elsewhere
        assert not names & imported


def test_nothing_is_compiled_in_another_way():
    users = [p for p in FILES if "njit" in p.read_text() and p.name != "compiling.py"]
    assert users == []


def test_compiled_code_is_kept():
    slots = np.zeros(8, dtype=np.int32)
    data = np.frombuffer(b"abc", dtype=np.uint8)
    offsets = np.array([0, 1, 2, 3])
    offsets.setflags(write=False)
    fill_slots(data, offsets, slots)
    assert sorted(slots[slots > 0]) == [1, 2, 3]
    assert list(Path(fill_slots.stats.cache_path).glob("tables.fill_slots-*.nbi"))


def test_where_nothing_can_be_written_it_is_compiled_all_the_same(monkeypatch):
    njit = numba.njit

    def refused(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(numba, "njit", refused)
    assert compiling.kernel(lambda x: x + 1)(1) == 2


OF_ONE_VERSION = """
from typing import NamedTuple
from clinveil.core.compiling import kernel

class {name}(NamedTuple):
    step: int

@kernel
def next_step(state, n):
    return state.step + n

print(next_step({name}(1), 2), sum(next_step.stats.cache_hits.values()))
"""


def run_version(folder: Path, name: str) -> list[str]:
    """Run a program whose only kernel takes a value of the type `name`; what it prints."""
    (folder / "steps.py").write_text(OF_ONE_VERSION.format(name=name))
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", "import steps"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_the_cache_of_a_version_with_other_types_is_compiled_again(tmp_path):
    assert run_version(tmp_path, "Before") == ["3", "0"]
    assert run_version(tmp_path, "Before") == ["3", "1"]
    assert run_version(tmp_path, "Renamed") == ["3", "0"]
    assert run_version(tmp_path, "Renamed") == ["3", "1"]


def test_a_damaged_cache_is_compiled_again(tmp_path):
    run_version(tmp_path, "Before")
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(index.read_bytes()[:-9])
    assert run_version(tmp_path, "Before") == ["3", "0"]
    assert run_version(tmp_path, "Before") == ["3", "1"]
