"""Send a finished release to an object store; the vault is never sent."""

from __future__ import annotations

from pathlib import Path

from clinveil.core.errors import InputError, UsageError
from clinveil.core.locations import RemotePath
from clinveil.core.upload import ready, send
from clinveil.releases.manifest import verify

COMMAND = "publish"


def check_target(to: Path, *, force: bool) -> RemotePath:
    """Return the target of an upload. Raises UsageError for a local path or an existing target."""
    if not isinstance(to, RemotePath):
        raise UsageError("is a local path", where=to.name, hint="pass a URL, for example s3://bucket/release")
    ready(to, command=COMMAND, force=force)
    return to


def publish_release(out: Path, to: RemotePath, *, force: bool = False) -> None:
    """Send `OUT/release` of a finished run after verification.

    Raises:
        InputError: no release, or verification failed. UsageError: the target exists.
        DiskError: writing to the store failed; a retry resumes.
    """
    release = out / "release"
    if not release.is_dir():
        raise InputError("contains no release", where=out.name, hint="pass the OUT of a run that passed all gates")
    if failed := [check for check in verify(release) if not check.passed]:
        what = f"{len(failed)} checks of its release failed; nothing was sent"
        raise InputError(what, where=out.name, hint="run clinveil verify OUT/release for details")
    send(release, to, command=COMMAND, force=force)
