"""Locations of input: local paths, patterns such as `notes/*.parquet`, and URLs such as
`s3://bucket/notes/*.parquet`.

A store is contacted only if the user passes its URL, through Arrow's own file systems (s3, gs,
abfs, hdfs). Credentials come from the store's usual sources (environment, profile, role); a URL
with a password is rejected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from itertools import takewhile
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, UsageError
from clinveil.core.stores import ENVIRONMENT, URL, failing, file_system, refuse_url

# A URL after `Path` collapsed its slashes; a drive has one letter.
_COLLAPSED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True, repr=False)
class RemotePath:
    """A location in a store, identified by its URL: it can be listed and opened for reading.

    Attributes:
        url: as given; its query never appears in messages or records.

    Raises UsageError, without quoting the URL, for a password or unknown options.
    """

    url: str

    def __post_init__(self) -> None:
        refuse_url(self.url)

    @property
    def name(self) -> str:
        """The last component."""
        return self.key.rstrip("/").rpartition("/")[2] or self._parts_of_url[1]

    @property
    def suffix(self) -> str:
        """The end of the name, from the last dot."""
        return Path(self.name).suffix

    @property
    def shown(self) -> str:
        """The URL without its query."""
        return self.url.partition("?")[0]

    @property
    def pattern(self) -> bool:
        """Whether the path contains `*` or `[`; a `?` begins the query."""
        return has_magic(self.key)

    def absolute(self) -> RemotePath:
        """Return itself."""
        return self

    def exists(self) -> bool:
        """Return whether an object of this name, or one below it, exists. Raises InputError if the
        store fails.
        """
        return self._kind() != "NotFound"

    def is_dir(self) -> bool:
        """Return whether it contains objects."""
        return self._kind() == "Directory"

    def is_file(self) -> bool:
        """Return whether it is an object."""
        return self._kind() == "File"

    def is_symlink(self) -> bool:
        """Return False: stores have no links."""
        return False

    def opened(self) -> Any:
        """Open an Arrow file with random access for reading. Raises OSError; see `failure`."""
        system, path = self.system()
        return system.open_input_file(path)

    def system(self) -> tuple[Any, str]:
        """Return its Arrow file system and its path there. Raises MissingExtra, InputError."""
        scheme, host, _, query = self._parts_of_url
        with failing(self.name):
            # One per process, because connections do not survive a fork, and per environment.
            return file_system(
                scheme, host, query, os.getpid(), tuple(map(os.environ.get, ENVIRONMENT))
            ), _path(self)

    def child(self, relative: str) -> RemotePath:
        """Return the location of a relative path below it."""
        query = self.url.partition("?")[2]
        folder = self.shown if self.shown.endswith("/") else f"{self.shown}/"
        return RemotePath(f"{folder}{relative}" + f"?{query}" * bool(query))

    def above(self) -> list[RemotePath]:
        """Return its parent folders, from the nearest to the bucket."""
        folders = self.key.strip("/").split("/")[:-1]
        return [self.with_key("/" + "/".join(folders[:n])) for n in range(len(folders), -1, -1)]

    def with_key(self, key: str) -> RemotePath:
        """Return the location of another key in the same store."""
        scheme, host, _, query = self._parts_of_url
        return RemotePath(f"{scheme}://{host}{key}" + f"?{query}" * bool(query))

    def __str__(self) -> str:
        return self.shown

    @property
    def _parts_of_url(self) -> tuple[str, str, str, str]:
        match = URL.fullmatch(self.url)
        assert match is not None
        return match[1].lower(), match[2], match[3], match[4] or ""

    @property
    def key(self) -> str:
        """The path in the store, from its bucket on."""
        return self._parts_of_url[2]

    def _kind(self) -> str:
        system, path = self.system()
        with failing(self.name):
            return str(system.get_file_info(path).type.name)


Location = Path | RemotePath


def as_location(path: str | Location) -> Location:
    """Return the local or remote path that a user passed; `file://` is local. Raises UsageError
    like `RemotePath`.
    """
    if isinstance(path, str) and URL.fullmatch(path):
        return (
            Path(path.removeprefix("file://")) if path.startswith("file:///") else RemotePath(path)
        )
    return Path(path) if isinstance(path, str) else path


def refuse_remote(path: Path) -> Path:
    """Return a local path. Raises UsageError for a URL, from which `Path` would create a local
    folder.
    """
    if _COLLAPSED.match(str(path)):
        hint = "write to a local path, verify the output, then copy it with the store's own tool"
        scheme = str(path).partition(":")[0]
        # A user part or a query may contain a password.
        where = f"{scheme}://…/{path.name.partition('?')[0]}"
        raise UsageError("output is not written to a URL", where=where, hint=hint)
    return path


def is_pattern(path: Location) -> bool:
    """Return whether a path is a glob pattern (`*`, `?`, `[…]`, `**`) and not the name of an
    existing file.
    """
    if isinstance(path, RemotePath):
        return path.pattern
    return has_magic(str(path)) and not path.exists()


def root_of(pattern: Location) -> Location:
    """Return the folder that a pattern searches: its leading parts without wildcards."""
    if isinstance(pattern, RemotePath):
        return pattern.with_key("/".join(_plain(pattern.key.split("/"))))
    return Path(*plain_parts(pattern))


def plain_parts(pattern: Path) -> list[str]:
    """Return the leading parts of a pattern without wildcards."""
    return _plain(pattern.parts)


def _plain(parts: Sequence[str]) -> list[str]:
    return list(takewhile(lambda part: not has_magic(part), parts[:-1]))


def below(file: Location, root: Location) -> str:
    """Return the path of a file relative to a folder, with slashes."""
    if isinstance(file, RemotePath) or isinstance(root, RemotePath):
        return str(file)[len(str(root)) :].lstrip("/")
    return file.relative_to(root).as_posix()


def files_of(location: Location) -> list[Location]:
    """Return all files of a folder or pattern, sorted by path; a folder that matches contributes
    all of its files.

    Names that begin with `.` or `_` below the folder are skipped: they are not data.
    """
    root = root_of(location) if is_pattern(location) else location
    paths: list[Location] = (
        [file for file, *_ in _stored_files(location)]
        if isinstance(location, RemotePath)
        else [*local_files(location)]
    )
    names = {below(file, root): file for file in paths}
    return [
        names[name]
        for name in sorted(names)
        if not any(part.startswith((".", "_")) for part in name.split("/"))
    ]


def local_files(location: Path) -> set[Path]:
    """Return all files of a local folder or pattern."""
    pattern = is_pattern(location)
    root = Path(*plain_parts(location)) if pattern else location
    paths = set[Path]()
    for path in root.glob(str(location.relative_to(root))) if pattern else [location]:
        inside = (Path(parent, name) for parent, _, names in os.walk(path) for name in names)
        paths.update([path] if path.is_file() else filter(Path.is_file, inside))
    return paths


def _stored_files(location: RemotePath) -> list[tuple[RemotePath, int, int]]:
    """Return the files of a remote folder or pattern, with size in bytes and time in ns, sorted by
    path.
    """
    from pyarrow.fs import FileSelector, FileType

    root = root_of(location) if location.pattern else location
    assert isinstance(root, RemotePath)
    system, path = root.system()
    with failing(location.name):
        infos = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
        if (
            not infos
            and system.get_file_info(path.partition("/")[0] or "/").type == FileType.NotFound
        ):
            raise InputError(
                "the bucket does not exist", where=location.name, hint="check its name"
            )
    fits = re.compile(
        _regex(below(location, root)) if location.pattern else ".*", re.DOTALL
    ).fullmatch
    path = path.strip("/")
    files = [
        (info.path.strip("/")[len(path) :].lstrip("/"), info)
        for info in infos
        if info.type == FileType.File
    ]
    matching = sorted((name, info) for name, info in files if fits(name))
    return [(root.child(name), info.size or 0, info.mtime_ns or 0) for name, info in matching]


def listing(location: RemotePath) -> Iterator[str]:
    """Yield one line per file with its name, size and modification time, to detect changes."""
    if location.is_file() and not location.pattern:
        system, path = location.system()
        with failing(location.name):
            info = system.get_file_info(path)
        yield f"{info.size}\0{info.mtime_ns}"
    else:
        root = root_of(location) if location.pattern else location
        yield from (
            f"{below(file, root)}\0{size}\0{time}" for file, size, time in _stored_files(location)
        )


def _path(location: RemotePath) -> str:
    """Return the path within the file system."""
    scheme, host, key, _ = location._parts_of_url
    if scheme in ("hdfs", "viewfs"):
        return key or "/"
    if scheme in ("abfs", "abfss"):
        return f"{host.partition('@')[0]}{key}".rstrip("/")
    return f"{host}{key}".rstrip("/")


def _regex(pattern: str) -> str:
    """Return a glob pattern as a regular expression; a folder that matches includes everything
    below it.
    """
    translated = ""
    position = 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            translated = translated + r"(?:[^/]+/)*"
            position = position + 3
        elif pattern.startswith("**", position):
            translated = translated + ".*"
            position = position + 2
        elif pattern[position] == "*":
            translated = translated + "[^/]*"
            position = position + 1
        elif pattern[position] == "[" and (end := pattern.find("]", position + 2)) > 0:
            inner = pattern[position + 1 : end].replace("\\", "\\\\")
            translated = f"{translated}[{'^' + inner[1:] if inner[0] == '!' else inner}]"
            position = end + 1
        else:
            translated = translated + re.escape(pattern[position])
            position = position + 1
    return translated + "(?:/.*)?"
