"""What an output of ours is known by: `--force` replaces nothing else, and nothing with files of somebody else in it.

A folder that a command wrote says so in a marker, a small JSON file that lists the other files. A single file has no
room for one: it is replaced as any program does that was told to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinveil.core.errors import UsageError

MARKER = ".clinveil.json"
SCHEMA = "clinveil.output/1"
REMEDY = "name another place, or move it away; --force replaces only what the same command wrote"


@dataclass(frozen=True)
class Maker:
    """A command that writes folders.

    Attributes:
        command: its name. marker: the JSON file that its folders are known by.
        says: what stands in the marker; without it, our schema and the command.
        beside: files of its folders that the marker does not list under `files`.
    """

    command: str
    marker: str = MARKER
    says: Mapping[str, str] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()

    def mark(self, folder: Path, run: str = "") -> None:
        """Write the marker, with a name for this run if there is one, unless the command wrote its own."""
        if not (folder / self.marker).exists():
            said = {**self._known_by(), **({"run": run} if run else {}), "files": sorted(files_in(folder))}
            (folder / self.marker).write_text(json.dumps(said, indent=1) + "\n", encoding="ascii")

    def refuse_foreign(self, place: Path) -> None:
        """Raise UsageError for what may not be replaced: all but a folder of this command with its own files only."""
        if not place.is_dir():
            raise UsageError("is a file, and a folder is to be written", where=place.name, remedy=REMEDY)
        files = files_in(place)
        if not files and not any(place.iterdir()):
            return
        said = _read(place / self.marker)
        if any(said.get(key) != value for key, value in self._known_by().items()):
            raise UsageError(f"is no folder of clinveil {self.command}", where=place.name, remedy=REMEDY)
        refuse_more(place, files, {self.marker, *self.beside, *said["files"]})

    def _known_by(self) -> Mapping[str, str]:
        return self.says or {"schema": SCHEMA, "command": self.command}


def refuse_more(place: Path, files: Iterable[str], own: Iterable[str]) -> None:
    """Raise UsageError, with their number, if some files of a folder are none of its own."""
    if more := set(files) - set(own):
        what = f"holds {len(more)} files that clinveil did not write" if len(more) > 1 else _ONE
        raise UsageError(what, where=place.name, remedy="move them away, or name another place")


_ONE = "holds a file that clinveil did not write"


def files_in(folder: Path) -> set[str]:
    """The relative names of all that is in a folder but folders; of an empty folder its own name, with a slash."""
    found = set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_dir():
            found.add(name)
        elif not any(path.iterdir()):
            found.add(f"{name}/")
    return found


def _read(marker: Path) -> dict[str, Any]:
    """What a marker says; nothing where it is none."""
    try:
        said = json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    fits = isinstance(said, dict) and isinstance(said.get("files"), list | dict)
    return said if fits and all(isinstance(name, str) for name in said["files"]) else {}
