"""Registries: a detector, a format, a mechanism, … is one file, and everything else finds it by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar

from clinveil.core.errors import UsageError

T = TypeVar("T")


class Registry(Generic[T]):
    """Implementations of one protocol, by name; a file is imported when its name is asked for, and not before.

    Three ways in: a file of the registry's packages (its name, with hyphens for underscores; files that begin with an
    underscore are none), `register` at run time, and for other distributions an entry point in the group
    `clinveil.KINDs`. Ours win over entry points of the same name.

    Args:
        kind: what one of them is called, in the singular, in messages and in the entry points' group.
        packages: the packages whose files are ours; each file calls `register` with its own name.
        first: names that stand first in the listing, in this order; the rest follow by the alphabet.
    """

    def __init__(self, kind: str, *packages: str, first: tuple[str, ...] = ()) -> None:
        self.kind, self._packages, self._first = kind, packages, first
        self._made: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator, or a function of a value: from now on `name` stands for it, whatever it stood for."""

        def keep(made: T) -> T:
            self._made[name] = made
            return made

        return keep

    def forget(self, name: str) -> None:
        """Undo a `register`, as tests do."""
        self._made.pop(name, None)

    def names(self) -> tuple[str, ...]:
        """All names; nothing is imported for it but the packages themselves."""
        known = {*self._files(), *self._made, *self._entry_points()}
        return (*(name for name in self._first if name in known), *sorted(known - {*self._first}))

    def ours(self) -> frozenset[str]:
        """Names of our own files."""
        return frozenset(self._files())

    def module(self, name: str) -> str | None:
        """The module of one of our own files, or None; it is not imported."""
        return self._files().get(name)

    def get(self, name: str) -> T:
        """What stands for a name. Raises UsageError, with all names, where there is none."""
        if name not in self._made and name in self._files():
            import_module(self._files()[name])
        if name not in self._made and name in self._entry_points():
            self._made[name] = self._entry_points()[name].load()
        if name not in self._made:
            raise UsageError(f"there is no {self.kind} {name!r}", hint="one of " + ", ".join(self.names()))
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """Every name and what stands for it, imported now."""
        return ((name, self.get(name)) for name in self.names())

    def _files(self) -> dict[str, str]:
        return {name: module for package in self._packages for name, module in _modules(package).items()}

    def _entry_points(self) -> dict[str, EntryPoint]:
        kind = self.kind.replace(" ", "_")
        return _installed(f"clinveil.{kind[:-1]}ies" if kind.endswith("y") else f"clinveil.{kind}s")


@cache
def _modules(package: str) -> dict[str, str]:
    """Name -> module of the files and folders of a package."""
    found = (module.name for module in iter_modules(import_module(package).__path__))
    return {name.replace("_", "-"): f"{package}.{name}" for name in found if not name.startswith("_")}


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}
