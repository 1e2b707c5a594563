"""Places on another machine, or in a store of objects: `s3://bucket/notes/*.parquet`.

Nothing here is imported or asked unless somebody names such a place. The store is reached by Arrow's own file systems
(s3, gs, abfs, hdfs, file), for other schemes by those of fsspec; what it wants to know of the user, it finds where its
tools do (environment, profile, role): an address with a password in it is refused.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from glob import has_magic
from pathlib import Path
from typing import Any

from clinveil.core.errors import ClinveilError, DiskError, InputError, MissingExtra, UsageError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?]*)(/?[^?]*)(?:\?(.*))?", re.DOTALL)
_COLLAPSED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # what `Path` leaves of an address; a drive has one letter
# What an address may say besides the place; all else may be a secret.
_TOLD = frozenset({"endpoint_override", "scheme", "region", "anonymous", "tls_verify", "replication"})
_TOLD |= {f"{service}_storage_{what}" for service in ("blob", "dfs") for what in ("authority", "scheme")}
_OURS = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file"})
_ENVIRONMENT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID")
_TIMEOUT, _ATTEMPTS = 10.0, 3
# What a store says of a failure (Arrow has no types for it), and what is said of it here.
_SAID = (
    (r"NO_SUCH_BUCKET|bucket does not exist|ContainerNotFound", "there is no such bucket", "check its name"),
    (
        r"ACCESS_DENIED|Forbidden|status 403|HTTP status 40[13]|INVALID_ACCESS_KEY|SIGNATURE|PermissionError|EXPIRED",
        "the store does not let you",
        "ask for the right, or look at the credentials of this account",
    ),
    (
        r"NETWORK_CONNECTION|curlCode|[Cc]onnect|[Tt]imed? ?out|resolve host|Broken pipe|SLOW_DOWN",
        "the store cannot be reached",
        "try again later, or look at address and network",
    ),
)


class RemotePath(type(Path())):  # type: ignore[misc]
    """A place that is named by its URL, where the code has a `Path`.

    It can be listed, opened for reading, and sent to another process. Whatever else would take it for a file of this
    machine gets a UsageError.

    Attributes:
        url: as it was given; its query stands in no message and no record.
    """

    url: str

    def __new__(cls, url: str) -> RemotePath:
        """Of a URL. Raises UsageError, in which nothing of it stands, for one with a password or unknown options."""
        self = super().__new__(cls, url)
        self.url = _checked(url)
        return self

    def __init__(self, url: str) -> None:
        if sys.version_info >= (3, 12):
            super().__init__(url)

    @property
    def name(self) -> str:
        """Its last part."""
        return self._key.rstrip("/").rpartition("/")[2] or self._parts_of_url[1]

    @property
    def suffix(self) -> str:
        """The end of its name, from the last dot."""
        return Path(self.name).suffix

    @property
    def shown(self) -> str:
        """The URL without its query."""
        return self.url.partition("?")[0]

    @property
    def pattern(self) -> bool:
        """Whether its path has `*` or `[`; a `?` begins the query."""
        return has_magic(self._key)

    @property
    def parents(self) -> Sequence[Path]:
        """None: no folder of this machine holds it."""
        return ()

    def exists(self, **_: Any) -> bool:
        """Whether there is an object of this name, or one below it. Raises InputError where the store does not say."""
        return self._kind() != "NotFound"

    def is_dir(self, **_: Any) -> bool:
        """Whether objects lie below it."""
        return self._kind() == "Directory"

    def is_file(self, **_: Any) -> bool:
        """Whether it is an object."""
        return self._kind() == "File"

    def is_symlink(self) -> bool:
        """Never."""
        return False

    def absolute(self) -> RemotePath:
        """Itself."""
        return self

    def resolve(self, strict: bool = False) -> RemotePath:
        """Itself."""
        return self

    def opened(self) -> Any:
        """An Arrow file that can be read anywhere. Raises OSError; see `failure`."""
        system, path = self.system()
        return system.open_input_file(path)

    def system(self) -> tuple[Any, str]:
        """Its file system, and its path there. Raises MissingExtra, InputError."""
        scheme, host, _, query = self._parts_of_url
        with failing(self.name):
            # One a process, for connections do not outlive a fork; another where the environment says so.
            return _system(scheme, host, query, os.getpid(), tuple(map(os.environ.get, _ENVIRONMENT))), _path(self)

    def child(self, below: str) -> RemotePath:
        """What lies below it."""
        query = self.url.partition("?")[2]
        folder = self.shown if self.shown.endswith("/") else f"{self.shown}/"
        return RemotePath(f"{folder}{below}" + f"?{query}" * bool(query))

    def above(self) -> list[RemotePath]:
        """The folders that it lies in, the nearest first, down to the bucket."""
        scheme, host, key, query = self._parts_of_url
        folders = key.strip("/").split("/")[:-1]
        ends = ["/".join(folders[:n]) for n in range(len(folders), -1, -1)]
        return [RemotePath(f"{scheme}://{host}/{end}" + f"?{query}" * bool(query)) for end in ends]

    def below(self, root: RemotePath) -> str:
        """Its path below another."""
        return self.shown[len(root.shown) :].lstrip("/")

    def __fspath__(self) -> str:
        raise UsageError("a place of another machine cannot be used here", where=self.name, hint="copy it here first")

    def __str__(self) -> str:
        return self.shown

    def __reduce__(self) -> tuple[Any, ...]:
        return RemotePath, (self.url,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def _parts_of_url(self) -> tuple[str, str, str, str]:
        found = _URL.fullmatch(self.url)
        assert found is not None
        return found[1].lower(), found[2], found[3], found[4] or ""

    @property
    def _key(self) -> str:
        return self._parts_of_url[2]

    def _kind(self) -> str:
        system, path = self.system()
        with failing(self.name):
            return str(system.get_file_info(path).type.name)


def place(given: str | Path) -> Path:
    """The place that a user named: a path of this machine, or one of another. Raises UsageError as `RemotePath`."""
    if isinstance(given, str) and _URL.fullmatch(given):
        return RemotePath(given)
    return given if isinstance(given, RemotePath) else Path(given)


def refuse_remote(path: Path) -> Path:
    """The path; raises UsageError for an address of a store, which a plain `Path` would make a folder of here."""
    if isinstance(path, RemotePath) or _COLLAPSED.match(str(path)):
        hint = "name a place of this machine (clinveil publish sends a finished release to a store)"
        raise UsageError("is an address of a store, and this must lie here", where=path.name, hint=hint)
    return path


def root_of(pattern: RemotePath) -> RemotePath:
    """The folder that a pattern looks in."""
    scheme, host, key, query = pattern._parts_of_url
    plain = []
    for part in key.split("/")[:-1]:
        if has_magic(part):
            break
        plain.append(part)
    return RemotePath(f"{scheme}://{host}{'/'.join(plain)}" + f"?{query}" * bool(query))


def files_of(place: RemotePath) -> list[tuple[RemotePath, int, int]]:
    """The files of a folder, or those that fit a pattern, with size in bytes and time of change in ns; in order."""
    from pyarrow.fs import FileSelector, FileType

    root = root_of(place) if place.pattern else place
    system, path = root.system()
    with failing(place.name):
        infos = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
        if not infos and system.get_file_info(path.partition("/")[0] or "/").type == FileType.NotFound:
            raise InputError("there is no such bucket", where=place.name, hint="check its name")
    fits = re.compile(_regex(place.below(root)) if place.pattern else ".*", re.DOTALL).fullmatch
    path = path.strip("/")
    found = [(one.path.strip("/")[len(path) :].lstrip("/"), one) for one in infos if one.type == FileType.File]
    kept = sorted((below, one) for below, one in found if fits(below))
    return [(root.child(below), one.size or 0, one.mtime_ns or 0) for below, one in kept]


def listing(place: RemotePath) -> Iterator[str]:
    """A line for each file of a place: its name, size and time of change; what tells whether it is as it was."""
    if place.is_file() and not place.pattern:
        system, path = place.system()
        with failing(place.name):
            one = system.get_file_info(path)
        yield f"{one.size}\0{one.mtime_ns}"
    else:
        root = root_of(place) if place.pattern else place
        yield from (f"{file.below(root)}\0{size}\0{time}" for file, size, time in files_of(place))


@contextmanager
def failing(where: str, *, writing: bool = False) -> Iterator[None]:
    """Errors of a store in the block become one line: InputError, or with `writing` DiskError."""
    try:
        yield
    except OSError as error:
        raise failure(error, where, writing=writing) from None
    except ValueError:  # also Arrow's own
        raise UsageError("no address of a store", where=where, hint="such as s3://bucket/notes/*.parquet") from None


def failure(error: BaseException, where: str, *, writing: bool = False) -> ClinveilError:
    """What is said of a store's error, whose own words may quote names of the store."""
    kind: type[ClinveilError] = DiskError if writing else InputError
    text = f"{type(error).__name__} {error}"
    for pattern, what, hint in _SAID:
        if re.search(pattern, text):
            return kind(what, where=where, hint=hint)
    return kind(f"the store refused to {'write' if writing else 'read'} it", where=where, hint="check the address")


def is_failure_of_store(error: BaseException) -> bool:
    """Whether an error tells of the store, and not of a damaged file."""
    return any(re.search(pattern, f"{type(error).__name__} {error}") for pattern, *_ in _SAID)


def _checked(url: str) -> str:
    found = _URL.fullmatch(url)
    if not found:
        raise UsageError("no address of a store", hint="such as s3://bucket/notes/*.parquet")
    if ":" in found[2].partition("@")[0] and "@" in found[2]:
        hint = "leave it out: set the store's own environment variables, profile or role"
        raise UsageError("a password stands in the address", where=f"{found[1]}://…", hint=hint)
    if strange := _options(found[4] or "").keys() - _TOLD:
        what = f"{len(strange)} unknown {'options' if len(strange) > 1 else 'option'} in the address"
        raise UsageError(what, where=f"{found[1]}://…", hint=f"one of {', '.join(sorted(_TOLD))}; no secret")
    return url


def _options(query: str) -> dict[str, str]:
    return {key: value for key, _, value in (one.partition("=") for one in query.split("&") if one)}


def _path(place: RemotePath) -> str:
    """The path within the file system."""
    scheme, host, key, _ = place._parts_of_url
    if scheme in ("hdfs", "viewfs", "file"):
        return key or "/"
    if scheme in ("abfs", "abfss"):
        return f"{host.partition('@')[0]}{key}".rstrip("/")
    return f"{host}{key}".rstrip("/")


@cache
def _system(scheme: str, host: str, query: str, *_: Any) -> Any:
    from pyarrow import fs

    told = _options(query)
    if scheme == "s3":
        return _s3(fs, host, told)
    if scheme in _OURS:
        scheme = "gs" if scheme == "gcs" else scheme
        return _of_arrow(fs, f"{scheme}://{host}/" + f"?{query}" * bool(query), scheme)
    return _of_fsspec(fs, scheme)


def _s3(fs: Any, bucket: str, told: Mapping[str, str]) -> Any:
    address = told.get("endpoint_override") or os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL"))
    way, _, host = (address or "").rpartition("://")
    more: dict[str, Any] = {"anonymous": True} if told.get("anonymous") == "true" else {}
    region = told.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if address:
        more |= {"endpoint_override": host.rstrip("/"), "scheme": told.get("scheme") or way or "https"}
    elif not region:
        region = fs.resolve_s3_region(bucket)
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    return fs.S3FileSystem(region=region, connect_timeout=_TIMEOUT, retry_strategy=retry, **more)


def _of_arrow(fs: Any, url: str, scheme: str) -> Any:
    try:
        return fs.FileSystem.from_uri(url)[0]
    except (OSError, NotImplementedError) as error:
        if "libjvm" in str(error) or "libhdfs" in str(error):
            hint = "set JAVA_HOME, HADOOP_HOME and CLASSPATH as Hadoop's tools want them"
            raise UsageError("hdfs needs Java and Hadoop's library here", hint=hint) from None
        raise


def _of_fsspec(fs: Any, scheme: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise MissingExtra("fsspec", "storage") from None
    try:
        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme)))
    except ImportError as error:  # its message names the package that fsspec wants for it
        raise MissingExtra(f"the driver of {scheme}://", "storage", pip=_package(str(error), scheme)) from None
    except ValueError:
        raise UsageError(f"{scheme}:// is no kind of place that is known", hint="such as s3, gs, abfs, hdfs") from None


def _package(said: str, scheme: str) -> str:
    named = re.search(r"[Ii]nstall ([\w.-]+)", said)
    return f"pip install {named[1]}" if named else f"pip install the fsspec driver of {scheme}"


def _regex(pattern: str) -> str:
    """A pattern as a regular expression over the path below its root; a folder that fits means all of it."""
    translated, at = "", 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            translated, at = translated + r"(?:[^/]+/)*", at + 3
        elif pattern.startswith("**", at):
            translated, at = translated + ".*", at + 2
        elif pattern[at] == "*":
            translated, at = translated + "[^/]*", at + 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inner = pattern[at + 1 : end].replace("\\", "\\\\")
            translated, at = f"{translated}[{'^' + inner[1:] if inner[0] == '!' else inner}]", end + 1
        else:
            translated, at = translated + re.escape(pattern[at]), at + 1
    return translated + "(?:/.*)?"
