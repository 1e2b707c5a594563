"""Members of a set, such as the kinds of release: dotted paths by name, imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from clinveil.core.errors import UsageError

T = TypeVar("T")


class Members(Generic[T]):
    """Implementations of one protocol by name, in the order of help texts.

    Args:
        kind: the singular noun for a member, used in messages.
        paths: name -> "module:attribute".
    """

    def __init__(self, kind: str, paths: Mapping[str, str]) -> None:
        self.kind = kind
        self.paths = dict(paths)
        self._loaded: dict[str, T] = {}

    def names(self) -> tuple[str, ...]:
        """Return all names, without importing a member."""
        return tuple(self.paths)

    def get(self, name: str) -> T:
        """Return a member, imported now. Raises UsageError, with all names, for an unknown one."""
        if name not in self:
            raise UsageError(
                f"unknown {self.kind} {name!r}", hint="use one of " + ", ".join(self.names())
            )
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """Yield every name with its member, imported now."""
        return ((name, self.get(name)) for name in self.names())

    def _load(self, name: str) -> Any:
        module, _, attribute = self.paths[name].partition(":")
        return getattr(import_module(module), attribute)


class Registry(Members[T]):
    """Members that other distributions can add: built-in ones, then others alphabetically.

    Another member is an entry point in the group `clinveil.KINDs`, or a `register` call at run
    time. Built-in members take precedence over entry points of the same name.
    """

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds its argument as `name`, instead of an earlier member."""

        def keep(member: T) -> T:
            self._loaded[name] = member
            return member

        return keep

    def forget(self, name: str) -> None:
        """Undo a `register`; for tests."""
        self._loaded.pop(name, None)

    def names(self) -> tuple[str, ...]:
        """Return all names, without importing a member."""
        others = {*self._loaded, *self._entry_points()} - self.paths.keys()
        return (*self.paths, *sorted(others))

    def _load(self, name: str) -> Any:
        return super()._load(name) if name in self.paths else self._entry_points()[name].load()

    def _entry_points(self) -> dict[str, EntryPoint]:
        return _installed(f"clinveil.{self.kind}s")


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}
