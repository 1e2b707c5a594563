"""Registries: each detector, format, mechanism, … is one file that other code looks up by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar

from clinveil.core.errors import UsageError

T = TypeVar("T")


class FolderRegistry(Generic[T]):
    """Implementations of one protocol, by name; a file is imported when its name is first looked
    up.

    An entry is a file of the registry's packages (hyphens for underscores; files that begin with an
    underscore are ignored), a `register` call at run time, or an entry point of another
    distribution in the group `clinveil.KINDs`. Built-in entries take precedence over entry points
    of the same name.

    Args:
        kind: the singular noun for an entry, used in messages and in the entry points' group.
        packages: the packages with the built-in entries; each file calls `register` with its own
            name.
        first: names listed first, in this order; the others follow alphabetically.
    """

    def __init__(self, kind: str, *packages: str, first: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self._packages = packages
        self._first = first
        self._registered: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers its argument as `name`, replacing an earlier entry."""

        def keep(entry: T) -> T:
            self._registered[name] = entry
            return entry

        return keep

    def forget(self, name: str) -> None:
        """Undo a `register`; for tests."""
        self._registered.pop(name, None)

    def names(self) -> tuple[str, ...]:
        """Return all names; only the packages themselves are imported."""
        known = {*self._files(), *self._registered, *self._entry_points()}
        return (*(name for name in self._first if name in known), *sorted(known - {*self._first}))

    def ours(self) -> frozenset[str]:
        """Return the names of the built-in entries."""
        return frozenset(self._files())

    def module(self, name: str) -> str | None:
        """Return the module of a built-in entry, not imported, or None."""
        return self._files().get(name)

    def get(self, name: str) -> T:
        """Return the entry of a name. Raises UsageError, with all names, if it is unknown."""
        if name not in self._registered and name in self._files():
            import_module(self._files()[name])
        if name not in self._registered and name in self._entry_points():
            self._registered[name] = self._entry_points()[name].load()
        if name not in self._registered:
            raise UsageError(
                f"unknown {self.kind} {name!r}", hint="use one of " + ", ".join(self.names())
            )
        return self._registered[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """Yield every name with its entry, imported now."""
        return ((name, self.get(name)) for name in self.names())

    def _files(self) -> dict[str, str]:
        return {
            name: module for package in self._packages for name, module in _modules(package).items()
        }

    def _entry_points(self) -> dict[str, EntryPoint]:
        kind = self.kind.replace(" ", "_")
        return _installed(f"clinveil.{kind[:-1]}ies" if kind.endswith("y") else f"clinveil.{kind}s")


@cache
def _modules(package: str) -> dict[str, str]:
    """Return the modules of a package by registry name."""
    modules = (module.name for module in iter_modules(import_module(package).__path__))
    return {
        name.replace("_", "-"): f"{package}.{name}" for name in modules if not name.startswith("_")
    }


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}
