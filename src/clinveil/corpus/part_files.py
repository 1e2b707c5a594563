"""Which files of a folder, or of a pattern, are parts of one set of notes; and what their folders' names say of them.

Folders named `key=value` (of Hive, which Spark and Arrow write) give their rows a column.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError, InputWarning
from clinveil.core.locations import below, files_of, is_pattern, root_of
from clinveil.core.remote import RemotePath
from clinveil.corpus.file_format import OWN, Source, folder_suffixes, suffix_of, suffixes
from clinveil.corpus.streams import has_unchecked_frame

UNCHECKED = "its zstd frames carry no checksum, so damage can pass unseen (zstd --check writes one, gzip always does)"
_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")
_CHECKSUM = ".crc"
DELTA_LOG = "_delta_log"


@dataclass(frozen=True)
class PartFile:
    """One file of several.

    Attributes:
        path: where it is. suffix: its format.
        name: what messages call it: without its folders, whose names may be data.
        keys: what the folders' names say: column -> value, the same for all its rows.
        fills: columns that it may lack, with their types: they are null then (Delta, whose tables grow columns).
    """

    path: Path
    suffix: str
    name: str
    keys: Mapping[str, str | None]
    fills: Mapping[str, pa.DataType] = field(default_factory=dict)


@dataclass(frozen=True)
class KeyedSource:
    """The rows of a source, each with the same values in some more columns of text."""

    source: Source
    keys: Mapping[str, str | None]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the source, then the others."""
        return (*self.source.names, *self.keys)

    @property
    def optional_keys(self) -> frozenset[str]:
        """Those of the source."""
        return self.source.optional_keys

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types of the columns, where the source knows them before it is read."""
        return {**types_of(self.source), **dict.fromkeys(self.keys, pa.string())}

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """All rows of the columns named."""
        wanted = list(dict.fromkeys((*ids, *texts, *kept)))
        ids, texts, kept = ([name for name in names if name not in self.keys] for names in (ids, texts, kept))
        own = [*ids, *texts, *kept]
        if not own:  # something must tell how many rows there are
            ids = [self.source.names[0]]
        for batch in self.source.read(ids, texts, kept):
            columns = [self._column(name, batch.num_rows) if name in self.keys else batch[name] for name in wanted]
            fields = [pa.field(n, pa.string()) if n in self.keys else batch.schema.field(n) for n in wanted]
            yield pa.record_batch(columns, schema=pa.schema(fields))

    def _column(self, name: str, rows: int) -> pa.Array:
        return pa.repeat(pa.scalar(self.keys[name], pa.string()), rows)


def types_of(source: Source) -> Mapping[str, pa.DataType]:
    """The types of a source's columns, where its format has types; empty for others."""
    found: Mapping[str, pa.DataType] = getattr(source, "types", {})
    return found


def part_files(path: Path) -> tuple[PartFile, ...]:
    """The part files of a folder or a pattern, in the order of their paths; none for anything else.

    A folder of notes of a file each (.txt, .xml) has none, nor has one with the `notes.parquet` of our own.

    Raises:
        InputError: nothing fits the pattern, files of several formats, folders whose names have different keys or that
            are no UTF-8, a link that leads out of the folder.

    Warns with InputWarning of files of other kinds, which are not read.
    """
    pattern = is_pattern(path)
    if not pattern and not (path.is_dir() if isinstance(path, RemotePath) else _is_for_parts(path)):
        return ()
    root = root_of(path) if pattern else path
    files = [file for file in files_of(path) if not file.name.lower().endswith(_CHECKSUM)]
    known = [file for file in files if suffix_of(file)]
    if (pattern or isinstance(path, RemotePath)) and not known:
        what = "no file of a known kind is there" if files else "no file fits the pattern" if pattern else "it is empty"
        raise InputError(what, where=path.name, hint=f"a pattern of {', '.join(suffixes())} files, in quotes")
    if known and (others := len(files) - len(known)):
        said = f"{others} files of other kinds are not read" if others > 1 else "a file of another kind is not read"
        warnings.warn(f"{path.name}: {said}", InputWarning, stacklevel=3)
    _refuse_delta(known, root, path.name)
    return tuple(_parts(known, root, path.name))


def is_delta(folder: Path) -> bool:
    """Whether a folder, here or in a store, is a Delta table."""
    if isinstance(folder, RemotePath):
        return not folder.pattern and folder.is_dir() and folder.child(DELTA_LOG).is_dir()
    return (folder / DELTA_LOG).is_dir()


def _refuse_delta(files: Sequence[Path], root: Path, where: str) -> None:
    """Raise InputError for files of a Delta table: some are of earlier versions, which only its log knows."""
    inside = {below(file, root).rpartition("/")[0] for file in files}
    plain = {_without_keys(folder) for folder in inside} - {""}
    folders = [root.child(folder) if isinstance(root, RemotePath) else root / folder for folder in plain]
    above = root.above() if isinstance(root, RemotePath) else list(root.absolute().parents)
    if any(map(is_delta, [*folders, root, *above])):
        raise InputError("it lies in a Delta table", where=where, hint="name the table's own folder")


def _without_keys(folder: str) -> str:
    """The folder that the first `key=value` of a path lies in; a table's own folder is none of them."""
    parts = folder.split("/")
    first = next((number for number, part in enumerate(parts) if "=" in part), len(parts))
    return "/".join(parts[:first])


def _is_for_parts(folder: Path) -> bool:
    if not folder.is_dir() or (folder / OWN).is_file():
        return False
    kinds = (".txt", *folder_suffixes())
    return not any(item.name.lower().endswith(kinds) for item in folder.rglob("*"))


def _parts(files: Sequence[Path], root: Path, where: str) -> Iterator[PartFile]:
    kinds = sorted({suffix_of(file) for file in files})
    if len(kinds) > 1:
        raise InputError(f"files of several formats: {', '.join(kinds)}", where=where, hint="a pattern of one of them")
    times = Counter(file.name for file in files)
    first: list[str] | None = None
    for number, file in enumerate(files, start=1):
        _refuse_way_out(file, root, where)
        name = file.name if times[file.name] == 1 else f"{file.name} (part {number} of {len(files)})"
        keys = _keys(below(file, root).split("/")[:-1], name)
        first = list(keys) if first is None else first
        if list(keys) != first:
            what = "the names of its folders have other keys than those of the first part"
            raise InputError(what, where=name, hint="a pattern of one level of folders")
        yield PartFile(file, kinds[0], name, keys)


def _keys(folders: Sequence[str], where: str) -> dict[str, str | None]:
    pairs = [(key, value) for key, sign, value in (name.partition("=") for name in folders) if sign]
    try:
        keys = {decoded(key): None if value == _NULL else decoded(value) for key, value in pairs}
    except UnicodeError:
        raise InputError("the name of its folder is no UTF-8", where=where, hint="rename it") from None
    if len(keys) < len(pairs):
        raise InputError("two of its folders have the same key", where=where, hint="rename one")
    return keys


def decoded(escaped: str) -> str:
    """A name as it was before `%20` and the like were put into it. Raises UnicodeError."""
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), escaped.encode()).decode()


def _refuse_way_out(file: Path, root: Path, where: str) -> None:
    """Notes of elsewhere are not what the user pointed at."""
    if file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root)):
        raise InputError("a link that leads out of the folder", where=where, hint="copy the notes, or remove the link")


def warn_unchecked(*files: Path) -> None:
    """Warn with InputWarning where damage to compressed files can pass unseen."""
    packed = [f for f in files if f.name.lower().endswith(".zst") and not isinstance(f, RemotePath) and f.is_file()]
    found = [file.name for file in packed if has_unchecked_frame(file)]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        warnings.warn(f"{found[0]}{more}: {UNCHECKED}", InputWarning, stacklevel=3)
