"""Fixtures that all rooms share, and a network that ends at this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

import small_attacks  # noqa: F401
from clinveil.core import Key
from clinveil.core.keys import KEY_BYTES

HERE = Path(__file__).parent
LONG = ("docs", "security", "release", "papers", "foundation", "api")
DATA = Path(os.environ.get("CLINVEIL_DATA", HERE.parents[1] / "shared" / "data"))
BLOCKED = HERE / "security" / "blocked"

# Tests describe the base installation, whatever extras are installed; test_second_opinion.py
# switches it on.
os.environ["CLINVEIL_SECOND_OPINION"] = "off"

# Shared machines are slow at times, and a suite should say the same twice.
settings.register_profile("clinveil", deadline=None, derandomize=True, database=None)
settings.load_profile("clinveil")

# In this process, and in every Python that a test starts.
_spec = importlib.util.spec_from_file_location("blocked_network", BLOCKED / "sitecustomize.py")
assert _spec and _spec.loader
_spec.loader.exec_module(importlib.util.module_from_spec(_spec))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(BLOCKED), os.environ.get("PYTHONPATH")])
)


# Nothing is written into the ledger of the user. Each test has a ledger of its own, and so has each
# fixture that several tests share.
_ledgers = tempfile.TemporaryDirectory(prefix="clinveil-ledgers-")
_ledger_numbers = itertools.count()


def _new_ledger() -> str:
    return str(Path(_ledgers.name) / str(next(_ledger_numbers)))


os.environ["CLINVEIL_LEDGER"] = _new_ledger()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Fixtures of a module or session use a ledger that no test uses."""
    if fixturedef.scope == "function":
        return (yield)
    before = os.environ["CLINVEIL_LEDGER"]
    os.environ["CLINVEIL_LEDGER"] = _new_ledger()
    try:
        return (yield)
    finally:
        os.environ["CLINVEIL_LEDGER"] = before


# A small release under a random key can stray over a gate's limit: each test has its own keys,
# always the same.
_keys = iter(())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """New keys are made of the test's name and a count from here on; the ledger is a new one."""
    global _keys
    os.environ["CLINVEIL_LEDGER"] = _new_ledger()
    _keys = (
        hashlib.sha256(f"{item.nodeid} {count}".encode()).digest()[:KEY_BYTES]
        for count in itertools.count()
    )


def _of_the_test(cls: type[Key]) -> Key:
    return cls(next(_keys))


_of_the_test.__doc__ = Key.generate.__doc__  # docs/api.md has it
Key.generate = classmethod(_of_the_test)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take minutes come first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: item.path.parent.name not in LONG)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """The path of a public data file beside the project; skips the test where it is missing."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"public data {name} is not beside the project")
        return path

    return find
